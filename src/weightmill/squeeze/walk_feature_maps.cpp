#include "walk.h"

#include <algorithm>

#include <fmt/format.h>

#include <weightmill/base/bits.h>
#include <weightmill/base/error.h>

namespace weightmill {
namespace {

/// ELEMENTWISE modes with one operand: leaky ReLU, ABS, CLZ and (U85) NOT.
bool is_unary(std::uint32_t mode) { return mode == 5 || mode == 6 || mode == 7 || mode == 36; }

}  // namespace

bool Walker::is_off_memory(const FeatureMapRegisters& map) const {
  return program_.payload.product() == Product::u85 && (registers_[map.precision] >> 14 & 3) >= 2;
}

bool Walker::reads_ifm2(const Operation& operation) const {
  const bool is_u85 = program_.payload.product() == Product::u85;
  if (operation.opcode == Opcode::conv || operation.opcode == Opcode::depthwise) {
    const bool adds_ifm2 = (registers_[reg::kAccFormat] >> 4 & 3) == 2;
    return is_u85 && ((operation.opcode == Opcode::conv && (operation.parameter & 1) != 0) || adds_ifm2);
  }
  if (operation.opcode != Opcode::elementwise || is_unary(operation.parameter)) return false;
  return is_u85 ? (registers_[reg::kIfm2Precision] >> 14 & 3) != 3 : (registers_[reg::kIfm2Broadcast] >> 7 & 1) == 0;
}

std::uint64_t Walker::extent(const FeatureMapRegisters& map, std::uint64_t depth) const {
  constexpr std::uint64_t kBrickDepth = 16;  // channels of a NHCWB16 brick
  const std::uint64_t precision = registers_[map.precision];
  const unsigned element_bits = map.log2_element_bit;
  const std::uint64_t element = std::uint64_t{1} << (precision >> element_bits & 3);
  const std::uint64_t height_m1 = std::max(registers_[map.height0_m1], registers_[map.height1_m1]);
  const std::uint64_t width_m1 = registers_[map.width0_m1];
  const auto stride = [&](unsigned axis) { return registers_[static_cast<std::size_t>(map.stride_x + axis)]; };
  const std::uint64_t rows = saturating_multiply(height_m1, stride(1));
  if ((precision >> 6 & 3) != 1) {
    return saturating_add(rows, saturating_add(saturating_multiply(width_m1, stride(0)), depth * element));
  }
  const std::uint64_t bricks = saturating_multiply(ceil_div(depth, kBrickDepth) - 1, stride(2));
  return saturating_add(rows, saturating_add((width_m1 + 1) * kBrickDepth * element, bricks));
}

void Walker::read_feature_map(Operation& operation, const FeatureMapRegisters& map) {
  if (is_off_memory(map)) return;
  const unsigned region = region_of(operation, map.region, map.name);
  read_tile(operation, map, map.base, region);
  for (RegisterId tile = 1; tile < 4; ++tile) {
    const auto base = static_cast<RegisterId>(map.base + tile);
    if (registers_[base] != 0) read_tile(operation, map, base, region);
  }
}

void Walker::read_tile(Operation& operation, const FeatureMapRegisters& map, RegisterId base, unsigned region) {
  constexpr std::uint64_t kBroadcastChannels = 1u << 2;
  const std::uint64_t depth = std::max(registers_[reg::kIfmDepthM1], registers_[reg::kOfmDepthM1]) + 1;
  const RegisterId broadcast = map.base == kIfm2.base ? reg::kIfm2Broadcast : reg::kIfmBroadcast;
  const bool has_one_channel = (registers_[broadcast] & kBroadcastChannels) != 0;
  Reference reference{Reference::Role::feature_map, false, false, 0, static_cast<std::uint8_t>(region), base, 0,
                      registers_[base], extent(map, depth), 0, std::nullopt};
  reference.tight_size = has_one_channel ? extent(map, 1) : reference.size;
  if (region == 0 && reference.address < read_only_size_) {
    const std::uint64_t rest = read_only_size_ - reference.address;
    reference.size = std::min(reference.size, rest);
    reference.tight_size = std::min(reference.tight_size, rest);
    reference.origin = Origin{reference.address, 0, 0};
  } else if (region == 0 && base == map.base) {
    fail_at(operation, ErrorCode::bad_file,
            fmt::format("{} at {} is outside the read-only tensor of {} bytes", map.name, reference.address,
                        read_only_size_));
  } else if (const auto piece = copies_.first_piece(region, reference.address, reference.tight_size)) {
    operation.staged.push_back(*piece);  // beyond that piece the bound is too loose to tell anything
  }
  operation.references.push_back(reference);
}

void Walker::write_feature_map(const Operation& operation) {
  if (is_off_memory(kOfm)) return;
  const unsigned region = region_of(operation, kOfm.region, kOfm.name);
  if (region == 0) fail_at(operation, ErrorCode::unsupported, "writes its OFM into the read-only tensor");
  const std::uint64_t size = extent(kOfm, registers_[reg::kOfmDepthM1] + 1);
  for (RegisterId tile = 0; tile < 4; ++tile) {
    const std::uint64_t address = registers_[static_cast<std::size_t>(kOfm.base + tile)];
    if (tile == 0 || address != 0) copies_.overwrite(region, address, size);
  }
}

}  // namespace weightmill

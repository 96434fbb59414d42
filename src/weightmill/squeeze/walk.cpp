#include "walk.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <weightmill/base/bits.h>
#include <weightmill/base/error.h>

namespace weightmill {
namespace {

constexpr std::uint64_t kStreamAlignment = 16;  // bytes: the NPU fetches weights in whole bus words
constexpr std::uint64_t kOnChip = 1u << 8;      // in a DMA region register: look-up table memory, no region
constexpr std::uint64_t kIndexed = 1u << 11;    // in a DMA region register, U85
constexpr std::uint64_t kRegionMask = 7;
constexpr std::uint64_t kMaxScaleBytes = 0xFFFFF;  // SCALE_LENGTH has 20 bits
constexpr std::size_t kMaxStagedPieces = 1024;     // of one DMA: bounds the work on a hostile file

/// Whether an operation counts in the numbering of hardware operations.
bool is_counted(Opcode opcode) {
  return opcode == Opcode::conv || opcode == Opcode::depthwise || opcode == Opcode::pool ||
         opcode == Opcode::elementwise || opcode == Opcode::resize;
}

/// ELEMENTWISE modes with one operand: leaky ReLU, ABS, CLZ and (U85) NOT.
bool is_unary(std::uint32_t mode) { return mode == 5 || mode == 6 || mode == 7 || mode == 36; }

}  // namespace

std::string where_of(const Program& program, std::uint32_t word) {
  return fmt::format("{}, command word {}", program.name, word);
}

Program open_program(std::string name, std::span<const std::uint8_t> payload) {
  Program program;
  program.payload = parse_payload(payload, name);
  program.commands = decode_commands(program.payload.commands(), program.payload.product(), name);
  program.name = std::move(name);
  return program;
}

unsigned n_cores(const Payload& payload, const Registers& registers) {
  constexpr unsigned kLog2MacsOfDual = 9;  // U65-512, the only one with two cores
  const bool is_dual = payload.product() == Product::u65 && payload.log2_macs() == kLog2MacsOfDual;
  return is_dual && registers[reg::kParallelMode] == 1 ? 2 : 1;
}

Walker::Walker(const Program& program, std::uint64_t read_only_size)
    : program_(program), read_only_size_(read_only_size) {}

void Walker::fail_at(const Operation& operation, ErrorCode code, const std::string& why) const {
  fail(code, where_of(program_, operation.word), why);
}

bool Walker::next(Operation& operation) {
  while (position_ < program_.commands.size()) {
    const Command& command = program_.commands[position_++];
    if (!command.is_operation()) {
      registers_.write(command.id(), command.value());
      continue;
    }
    operation.command = position_ - 1;
    operation.word = command.word;
    operation.opcode = static_cast<Opcode>(command.id());
    operation.is_counted = is_counted(operation.opcode);
    operation.parameter = command.parameter();
    operation.references.clear();
    operation.staged.clear();
    describe(operation);
    return true;
  }
  return false;
}

void Walker::describe(Operation& operation) {
  if (operation.opcode == Opcode::dma_start) return describe_dma(operation);
  if (!operation.is_counted) return;
  operation.number = n_counted_++;
  if (operation.opcode == Opcode::conv || operation.opcode == Opcode::depthwise) {
    describe_weighted(operation);
  } else if (operation.opcode != Opcode::resize && (registers_[reg::kOfmPrecision] >> 8 & 1) == 0) {
    read_all_scales(operation, /*optional=*/true);
  }
  read_feature_map(operation, kIfm);
  if (reads_ifm2(operation)) read_feature_map(operation, kIfm2);
  write_feature_map(operation);
}

unsigned Walker::region_of(const Operation& operation, RegisterId id, const char* name) const {
  if (!registers_.is_written(id)) {
    fail_at(operation, ErrorCode::bad_file, fmt::format("reads {}_REGION, which was never written", name));
  }
  return static_cast<unsigned>(registers_[id] & kRegionMask);
}

std::optional<Origin> Walker::origin_of(unsigned region, std::uint64_t address, std::uint64_t size) const {
  if (region != 0) return copies_.find(region, address, size);
  if (saturating_add(address, size) > read_only_size_) return std::nullopt;
  return Origin{address, 0, 0};
}

void Walker::describe_weighted(Operation& operation) {
  const bool weights_from_ifm2 =
      program_.payload.product() == Product::u85 && operation.opcode == Opcode::conv && (operation.parameter & 1) != 0;
  if (!weights_from_ifm2) {
    const bool is_u85 = program_.payload.product() == Product::u85;
    const unsigned n_streams = is_u85 ? std::min(program_.payload.n_decoders(), 4u) : n_cores(program_.payload, registers_);
    for (unsigned core = 0; core < n_streams; ++core) read_weights(operation, core);
  }
  read_all_scales(operation, /*optional=*/false);
}

void Walker::read_weights(Operation& operation, unsigned core) {
  const RegisterId base = reg::kWeightBase[core];
  const auto length = static_cast<RegisterId>(base + 1);
  const std::uint64_t size = registers_[length];
  if (size == 0) return;  // this core or decoder has nothing to do
  const std::uint64_t address = registers_[base];
  const unsigned region = region_of(operation, reg::kWeightRegion, "WEIGHT");
  if (!registers_.is_written(base)) {
    fail_at(operation, ErrorCode::bad_file, fmt::format("weight stream {} has a length but no base", core));
  }
  if (size > UINT32_MAX) fail_at(operation, ErrorCode::bad_file, "a weight length has bits above its second word");
  const std::optional<Origin> origin = origin_of(region, address, size);
  if (!origin && region == 0) {
    fail_at(operation, ErrorCode::bad_file, fmt::format("weight stream at {}, {} bytes, is outside the read-only tensor of {} bytes",
                                                        address, size, read_only_size_));
  }
  if (!origin) {
    fail_at(operation, ErrorCode::unsupported, fmt::format("weight stream at {} of region {} is not covered by a DMA "
                                                           "from the read-only tensor", address, region));
  }
  if (origin->offset % kStreamAlignment != 0 || address % kStreamAlignment != 0 || size % kStreamAlignment != 0) {
    fail_at(operation, ErrorCode::bad_file, fmt::format("weight stream at {}, {} bytes: wanted multiples of {}", address,
                                                        size, kStreamAlignment));
  }
  operation.references.push_back({Reference::Role::weights, false, false, static_cast<std::uint8_t>(core),
                                  static_cast<std::uint8_t>(region), base, length, address, size, size, origin});
}

void Walker::read_all_scales(Operation& operation, bool optional) {
  for (unsigned core = 0; core < n_cores(program_.payload, registers_); ++core) read_scales(operation, core, optional);
}

void Walker::read_scales(Operation& operation, unsigned core, bool optional) {
  const RegisterId base = reg::kScaleBase[core];
  const std::uint64_t size = registers_[static_cast<std::size_t>(base + 1)];
  if (size == 0) return;
  const std::uint64_t address = registers_[base];
  const bool is_known = registers_.is_written(reg::kScaleRegion) && registers_.is_written(base);
  const auto region = static_cast<unsigned>(registers_[reg::kScaleRegion] & kRegionMask);
  std::optional<Origin> origin;
  if (is_known && size <= kMaxScaleBytes) origin = origin_of(region, address, size);
  if (!origin) {
    if (optional) return;  // a stale value, and the operation does not care
    fail_at(operation, region == 0 ? ErrorCode::bad_file : ErrorCode::unsupported,
            fmt::format("scales at {} of region {}, {} bytes, are neither in the read-only tensor nor copied from it",
                        address, region, size));
  }
  operation.references.push_back({Reference::Role::scales, optional, false, static_cast<std::uint8_t>(core),
                                  static_cast<std::uint8_t>(region), base, 0, address, size, size, origin});
}

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
    fail_at(operation, ErrorCode::bad_file, fmt::format("{} at {} is outside the read-only tensor of {} bytes", map.name,
                                                        reference.address, read_only_size_));
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

bool Walker::dma_is_indexed(RegisterId region) const {
  return program_.payload.product() == Product::u85 && (registers_[region] & kIndexed) != 0;
}

/// One range of bytes to another, no rows and no indices.
bool Walker::dma_is_plain() const {
  const bool is_u85 = program_.payload.product() == Product::u85;
  const std::uint64_t dimensions = registers_[is_u85 ? reg::kDmaSrcRegion : reg::kDmaDstRegion] >> 9 & 3;
  return dimensions == 0 && !dma_is_indexed(reg::kDmaSrcRegion) && !dma_is_indexed(reg::kDmaDstRegion);
}

void Walker::describe_dma(Operation& operation) {
  if (registers_[reg::kDmaLength] > UINT32_MAX) {
    fail_at(operation, ErrorCode::bad_file, "DMA0_LEN has bits above its second word");
  }
  read_dma_source(operation);
  if (dma_is_indexed(reg::kDmaSrcRegion) || dma_is_indexed(reg::kDmaDstRegion)) read_dma_index(operation);
  write_dma_destination(operation);
}

/// An upper bound of the bytes from the first that a strided or indexed DMA reads to its last.
std::uint64_t Walker::dma_source_extent() const {
  const std::uint64_t length = registers_[reg::kDmaLength];
  const std::uint64_t rows = registers_[reg::kDmaSize0], planes = registers_[reg::kDmaSize1];
  std::uint64_t row = registers_[reg::kDmaSkip0], plane = registers_[reg::kDmaSkip1];
  if (program_.payload.product() == Product::u65) {  // skips stand between the rows; strides count from start to start
    row = saturating_add(row, length);
    plane = saturating_add(plane, saturating_multiply(rows, row));
  }
  std::uint64_t size = saturating_add(length, saturating_multiply(std::max<std::uint64_t>(rows, 1), row));
  size = saturating_add(size, saturating_multiply(planes, plane));
  if (dma_is_indexed(reg::kDmaSrcRegion)) {
    size = saturating_add(size, saturating_multiply(registers_[reg::kDmaIndexMax], std::max(row, length)));
  }
  return size;
}

void Walker::read_staged(Operation& operation, const Reference& reference) const {
  copies_.append_pieces(reference.region, reference.address, reference.size, operation.staged);
  if (operation.staged.size() > kMaxStagedPieces) {
    fail_at(operation, ErrorCode::unsupported, fmt::format("reads more than {} copied pieces at once", kMaxStagedPieces));
  }
}

void Walker::read_dma_source(Operation& operation) {
  const bool is_on_chip = (registers_[reg::kDmaSrcRegion] & kOnChip) != 0;
  const unsigned region = region_of(operation, reg::kDmaSrcRegion, "DMA0_SRC");
  const bool to_chip = (registers_[reg::kDmaDstRegion] & kOnChip) != 0;
  Reference reference{Reference::Role::dma, false, to_chip, 0, static_cast<std::uint8_t>(region), reg::kDmaSrc,
                      reg::kDmaLength, registers_[reg::kDmaSrc], registers_[reg::kDmaLength], 0, std::nullopt};
  if (!dma_is_plain()) {
    reference.role = Reference::Role::fixed_dma;
    reference.size = dma_source_extent();
  }
  if (!is_on_chip && region == 0) {
    if (reference.role == Reference::Role::fixed_dma && reference.address < read_only_size_) {
      reference.size = std::min(reference.size, read_only_size_ - reference.address);  // an upper bound: the end clips it
    }
    reference.origin = origin_of(0, reference.address, reference.size);
    if (!reference.origin) {
      fail_at(operation, ErrorCode::bad_file, fmt::format("DMA of {} bytes from {} is outside the read-only tensor of {} bytes",
                                                          reference.size, reference.address, read_only_size_));
    }
  } else if (!is_on_chip) {
    read_staged(operation, reference);
  }
  reference.tight_size = reference.size;
  operation.references.push_back(reference);
}

void Walker::read_dma_index(Operation& operation) {
  constexpr std::uint64_t kIndexBytes = 4;
  const unsigned region = region_of(operation, reg::kDmaIndexRegion, "DMA0_IDX");
  const std::uint64_t count = saturating_multiply(std::max<std::uint64_t>(registers_[reg::kDmaSize0], 1),
                                                  std::max<std::uint64_t>(registers_[reg::kDmaSize1], 1));
  Reference reference{Reference::Role::index, false, false, 0, static_cast<std::uint8_t>(region), reg::kDmaIndex, 0,
                      registers_[reg::kDmaIndex], 0, 0, std::nullopt};
  reference.size = saturating_add(saturating_multiply(count, kIndexBytes),
                                  saturating_multiply(registers_[reg::kDmaSize1], registers_[reg::kDmaIndexSkip1]));
  if (region == 0) {
    if (reference.address >= read_only_size_) fail_at(operation, ErrorCode::bad_file, "DMA0_IDX is outside the read-only tensor");
    reference.size = std::min(reference.size, read_only_size_ - reference.address);
    reference.origin = Origin{reference.address, 0, 0};
  } else {
    read_staged(operation, reference);
  }
  reference.tight_size = reference.size;
  operation.references.push_back(reference);
}

void Walker::write_dma_destination(const Operation& operation) {
  if ((registers_[reg::kDmaDstRegion] & kOnChip) != 0) return;
  const unsigned region = region_of(operation, reg::kDmaDstRegion, "DMA0_DST");
  if (region == 0) fail_at(operation, ErrorCode::unsupported, "a DMA writes into the read-only tensor");
  if (!dma_is_plain()) return copies_.overwrite_all(region);
  const std::uint64_t destination = registers_[reg::kDmaDst], size = registers_[reg::kDmaLength];
  const std::uint64_t source = registers_[reg::kDmaSrcRegion];
  if ((source & kOnChip) == 0 && (source & kRegionMask) == 0) {
    copies_.copy(region, destination, registers_[reg::kDmaSrc], size);
  } else {
    copies_.overwrite(region, destination, size);
  }
}

}  // namespace weightmill

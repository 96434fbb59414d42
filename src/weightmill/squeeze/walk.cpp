#include "walk.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

constexpr std::uint64_t kStreamAlignment = 16;  // bytes: the NPU fetches weights in whole bus words
constexpr std::uint64_t kRegionMask = 7;
constexpr std::uint64_t kMaxScaleBytes = 0xFFFFF;  // SCALE_LENGTH has 20 bits

/// Whether an operation counts in the numbering of hardware operations.
bool is_counted(Opcode opcode) {
  return opcode == Opcode::conv || opcode == Opcode::depthwise || opcode == Opcode::pool ||
         opcode == Opcode::elementwise || opcode == Opcode::resize;
}

/// Whether an operation without weights may use scales of channels: POOL that sums. The other modes of POOL only choose
/// among values, and drivers take it that ELEMENTWISE never reads scales.
bool may_scale_channels(const Operation& operation) {
  constexpr std::uint32_t kAverage = 1, kReduceSum = 2, kSum = 3;
  const std::uint32_t mode = operation.parameter;
  return operation.opcode == Opcode::pool && (mode == kAverage || mode == kReduceSum || mode == kSum);
}

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
    const unsigned n_streams =
        is_u85 ? std::min(program_.payload.n_decoders(), 4u) : n_cores(program_.payload, registers_);
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
    fail_at(operation, ErrorCode::bad_file,
            fmt::format("weight stream at {}, {} bytes, is outside the read-only tensor of {} bytes", address, size,
                        read_only_size_));
  }
  if (!origin) {
    fail_at(operation, ErrorCode::unsupported, fmt::format("weight stream at {} of region {} is not covered by a DMA "
                                                           "from the read-only tensor", address, region));
  }
  if (origin->offset % kStreamAlignment != 0 || address % kStreamAlignment != 0 || size % kStreamAlignment != 0) {
    fail_at(operation, ErrorCode::bad_file,
            fmt::format("weight stream at {}, {} bytes: wanted multiples of {}", address, size, kStreamAlignment));
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
  // An address left over from an operation before means nothing in memory that is written again and again; in the
  // read-only tensor it costs nothing to follow.
  if (optional && region != 0 && !may_scale_channels(operation)) return;
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

}  // namespace weightmill

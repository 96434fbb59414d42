#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <weightmill/base/error.h>

#include "commands.h"
#include "copies.h"
#include "payload.h"
#include "registers.h"

namespace weightmill {

/// The value of every register; a command stream starts with none written.
class Registers {
 public:
  void write(RegisterId id, std::uint64_t value) {
    values_[id] = value;
    written_[id] = true;
  }
  bool is_written(RegisterId id) const { return written_[id]; }
  /// 0 where it was never written.
  std::uint64_t operator[](std::size_t id) const { return values_[id]; }

 private:
  std::array<std::uint64_t, kRegisterIds> values_{};
  std::array<bool, kRegisterIds> written_{};
};

/// One thing in memory that an operation reads through movable registers.
struct Reference {
  enum class Role : std::uint8_t {
    weights,      ///< a weight stream
    scales,       ///< scale records
    feature_map,  ///< IFM or IFM2, one tile
    index,        ///< the index list of a gather or scatter
    dma,          ///< the source of a DMA
    fixed_dma,    ///< the same, strided or indexed: its rows must keep their distance
  };

  Role role = Role::weights;
  bool optional = false;        ///< may be read: scales of a POOL or ELEMENTWISE. Present only where it resolves
  bool to_chip = false;         ///< a DMA into look-up table memory
  std::uint8_t core = 0;        ///< core (U55, U65) or weight decoder (U85)
  std::uint8_t region = 0;      ///< as addressed; on-chip memory has none
  RegisterId base = 0;
  RegisterId length = 0;        ///< the length register where that is movable, else 0
  std::uint64_t address = 0;    ///< the value of `base`
  std::uint64_t size = 0;       ///< bytes; of a feature map an upper bound
  std::uint64_t tight_size = 0; ///< feature maps broadcast along channels: the bound with one channel; else `size`
  std::optional<Origin> origin; ///< nothing where the bytes do not come from the read-only tensor
};

/// One operation with everything it reads. The walker reuses it from one to the next.
struct Operation {
  std::size_t command = 0;  ///< index of its command
  std::uint32_t word = 0;
  Opcode opcode = Opcode::stop;
  std::uint32_t parameter = 0;
  bool is_counted = false;  ///< CONV, DEPTHWISE, POOL, ELEMENTWISE or RESIZE
  std::size_t number = 0;   ///< counts those from 0
  std::vector<Reference> references;
  std::vector<CopiedPiece> staged;  ///< copied bytes that are read where they lie, through registers that do not move
};

/// One command stream, opened. `name` is for messages.
struct Program {
  std::string name;
  Payload payload;
  std::vector<Command> commands;
};

/// Throws: as parse_payload() and decode_commands().
Program open_program(std::string name, std::span<const std::uint8_t> payload);

/// Cores that share the work of each operation: 2 only on U65-512 in parallel mode.
unsigned n_cores(const Payload& payload, const Registers& registers);

/// Steps through a program, operation by operation, and keeps what the NPU would know: its registers and which bytes of
/// each region are copies of the read-only tensor.  [docs/compiled-models.md §4]
class Walker {
 public:
  /// `program` must outlive the walker. `read_only_size`: bytes of region 0.
  Walker(const Program& program, std::uint64_t read_only_size);

  /// Moves to the next operation, or returns false at the end of the stream.
  /// Throws: bad_file or unsupported for an operation whose reads cannot be followed (names the word).
  bool next(Operation& operation);

  const Registers& registers() const { return registers_; }

 private:
  void describe(Operation& operation);
  void describe_weighted(Operation& operation);
  void read_weights(Operation& operation, unsigned core);
  void read_scales(Operation& operation, unsigned core, bool optional);
  void read_all_scales(Operation& operation, bool optional);
  void read_feature_map(Operation& operation, const FeatureMapRegisters& map);
  void read_tile(Operation& operation, const FeatureMapRegisters& map, RegisterId base, unsigned region);
  void write_feature_map(const Operation& operation);
  void describe_dma(Operation& operation);
  void read_dma_source(Operation& operation);
  void read_dma_index(Operation& operation);
  void read_staged(Operation& operation, const Reference& reference) const;
  void write_dma_destination(const Operation& operation);
  bool dma_is_plain() const;
  bool dma_is_indexed(RegisterId region) const;
  std::uint64_t dma_source_extent() const;
  std::uint64_t extent(const FeatureMapRegisters& map, std::uint64_t depth) const;
  bool is_off_memory(const FeatureMapRegisters& map) const;
  bool reads_ifm2(const Operation& operation) const;
  unsigned region_of(const Operation& operation, RegisterId id, const char* name) const;
  std::optional<Origin> origin_of(unsigned region, std::uint64_t address, std::uint64_t size) const;
  [[noreturn]] void fail_at(const Operation& operation, ErrorCode code, const std::string& why) const;

  const Program& program_;
  std::uint64_t read_only_size_;
  Registers registers_;
  Copies copies_;
  std::size_t position_ = 0;
  std::size_t n_counted_ = 0;
};

/// "operator NAME, command word N": where messages about an operation point.
std::string where_of(const Program& program, std::uint32_t word);

}  // namespace weightmill

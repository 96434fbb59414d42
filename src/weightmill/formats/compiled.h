#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weightmill {

/// What carries a compiled model.
enum class CompiledFormat : std::uint8_t {
  tflite,           ///< a .tflite with `ethos-u` operators
  vela_raw,         ///< Vela's raw output, a .npz
  vela_bin_stream,  ///< the blob of ExecuTorch's Ethos-U backend
};

/// The NPU operators of a model that was compiled for Ethos-U. Views of the file's bytes.
struct CompiledFile {
  struct NpuOperator {
    std::string name;                       ///< where it stands, for messages: "subgraph 0, operator 3"
    std::span<const std::uint8_t> payload;  ///< driver header and command stream
    std::size_t read_only = 0;              ///< index into `read_only`
  };
  /// An operator that the NPU does not run.
  struct CpuOperator {
    struct Constant {
      std::size_t input = 0;  ///< which of the operator's inputs
      std::uint64_t type = 0;  ///< TFLite's number
      std::span<const std::uint8_t> shape;  ///< int32, little endian
      std::span<const std::uint8_t> data;
    };
    std::string name;
    std::uint64_t code = 0;    ///< TFLite's number of a builtin operator; 32: custom
    std::span<const std::uint8_t> custom_code, custom_options;
    std::vector<Constant> constants;
  };
  CompiledFormat format = CompiledFormat::tflite;
  std::vector<NpuOperator> operators;
  std::vector<std::span<const std::uint8_t>> read_only;  ///< the read-only tensors, each used by one operator or more
  std::vector<CpuOperator> cpu_operators;  ///< TFLite only
};

/// Whether the bytes look like a compiled model in one of these carriers; false for anything that is not sound.
bool is_compiled(std::span<const std::uint8_t> file) noexcept;

/// Opens a compiled model, whatever carries it: the content decides. Every offset in it is checked. `name` is for
/// messages. Throws: bad_file if it is damaged, or not made as the driver expects; unsupported if it has no NPU
/// operator (nothing to do), or holds what could not be kept when parts of it change their length (names the part).
/// Source: docs/compiled-models.md §1, §7.
CompiledFile open_compiled(std::span<const std::uint8_t> file, std::string_view name);

/// The file with other payloads and read-only tensors, one for each in `open_compiled(file)`, in that order.
/// Every other byte stays, but for offsets across the changed parts and their sizes.
/// Throws: as open_compiled(); bad_request if the numbers of parts differ.
std::vector<std::uint8_t> replace_compiled(std::span<const std::uint8_t> file, std::string_view name,
                                           const std::vector<std::vector<std::uint8_t>>& payloads,
                                           const std::vector<std::vector<std::uint8_t>>& read_only);

}  // namespace weightmill

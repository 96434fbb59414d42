#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weightmill {

/// What a file carries for one NPU operator. Views of the file's bytes.
struct CompiledParts {
  std::span<const std::uint8_t> payload;    ///< driver header and command stream
  std::span<const std::uint8_t> read_only;  ///< region 0
};

/// Whether the file starts like a ZIP archive, as a .npz does.
bool is_zip(std::span<const std::uint8_t> file) noexcept;

/// Opens what Vela writes with `--output-format raw`: a .npz whose arrays `cmd_data` and `weight_data` are byte
/// strings. Throws: bad_file if the archive or one of these arrays is broken or missing; unsupported if they are
/// compressed. Source: docs/compiled-models.md §7.
CompiledParts open_vela_raw(std::span<const std::uint8_t> file, std::string_view name);

/// The archive with other bytes in these two arrays; all other members stay as they are.
/// Throws: as open_vela_raw().
std::vector<std::uint8_t> replace_vela_raw(std::span<const std::uint8_t> file, std::string_view name,
                                           std::span<const std::uint8_t> payload,
                                           std::span<const std::uint8_t> read_only);

}  // namespace weightmill

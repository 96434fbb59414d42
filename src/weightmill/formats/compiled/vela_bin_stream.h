#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "vela_raw.h"

namespace weightmill {

/// Whether the bytes start like the blob of ExecuTorch's Ethos-U backend.
bool is_vela_bin_stream(std::span<const std::uint8_t> file) noexcept;

/// Opens the blob that ExecuTorch's Ethos-U backend keeps in a program ("vela_bin_stream"): named blocks, one after the
/// other. Throws: bad_file if a block is broken, unknown, missing or there twice (names it and its byte). Source:
/// docs/compiled-models.md §7.
CompiledParts open_vela_bin_stream(std::span<const std::uint8_t> file, std::string_view name);

/// The blob with other bytes in `cmd_data` and `weight_data`; all other blocks stay as they are.
/// Throws: as open_vela_bin_stream().
std::vector<std::uint8_t> replace_vela_bin_stream(std::span<const std::uint8_t> file, std::string_view name,
                                                  std::span<const std::uint8_t> payload,
                                                  std::span<const std::uint8_t> read_only);

}  // namespace weightmill

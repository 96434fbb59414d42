#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include <weightmill/codec/codec.h>

namespace weightmill {

/// What a raw stream was made from, or made into.
struct CodecResult {
  std::uint64_t n_weights = 0;
  std::uint64_t stream_bytes = 0;
};

/// Codes the integers of a .npy array, in its row-major order, and writes the stream to `output` (empty: nowhere).
/// `fast`: the fast format of U85, in place of a standard stream of `effort` and `forms`.
/// Throws: as read_npy() and AtomicFile; bad_request if the array holds no integers, or a weight is outside [-255, 255];
/// unsupported if the fast format cannot hold the weights.
CodecResult encode_npy(const std::filesystem::path& input, const std::filesystem::path& output, mlw::Effort effort,
                       mlw::Forms forms, bool fast);

/// Decodes a raw stream and writes the weights to `output` as a .npy array of int16 (empty: nowhere).
/// `n_fast`: it is a fast stream of so many weights.
/// Throws: bad_file if a file cannot be read or written; bad_stream if the stream breaks its format.
CodecResult decode_to_npy(const std::filesystem::path& input, const std::filesystem::path& output,
                          std::optional<std::uint64_t> n_fast);

}  // namespace weightmill

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <weightmill/squeeze/squeeze.h>
#include <weightmill/squeeze/stream_table.h>

namespace weightmill {

/// What squeezing a compiled model came to. Bytes of whole files.
struct SqueezeReport {
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;   ///< the same as before where nothing got smaller: then the file is as it was
  std::size_t n_npu_operators = 0;
  SqueezeSummary summary;          ///< of what was found; done only where `bytes_after` is smaller

  bool is_smaller() const { return bytes_after < bytes_before; }
};

/// The bytes of a squeezed model, or of the model itself where nothing got smaller.
struct SqueezedBytes {
  std::vector<std::uint8_t> bytes;
  SqueezeReport report;
};

/// The encoder named `effort`: one of mlw::kEffortNames, or "vela", which takes the smaller of Vela's two for each stream.
/// `forms`: one of mlw::kFormsNames. Throws: bad_option for another name.
StreamEncoder stream_encoder(std::string_view effort, std::string_view forms = "proven");

/// Squeezes a compiled model in memory, whatever carries it; the result is opened and read again before it is given
/// back. `name` is for messages. Throws: as open_compiled() and squeeze().
SqueezedBytes squeeze_bytes(std::span<const std::uint8_t> file, std::string_view name, const SqueezeOptions& options);

/// Squeezes the file `from` and writes `to`, which may be the same: whole or not at all. Where nothing gets smaller,
/// `to` gets the bytes of `from`, or is left alone if it is the same file. An empty `to` writes nothing. Throws: as
/// squeeze_bytes(); bad_file if a file cannot be read or written.
SqueezeReport squeeze_file(const std::filesystem::path& from, const std::filesystem::path& to,
                           const SqueezeOptions& options);

/// A driver payload and its read-only tensor, without a carrier.
struct BlobPair {
  std::vector<std::uint8_t> payload, read_only;
};
struct SqueezedPair {
  BlobPair blobs;  ///< as they were where nothing got smaller
  SqueezeReport report;
};
/// Throws: as squeeze().
SqueezedPair squeeze_pair(std::span<const std::uint8_t> payload, std::span<const std::uint8_t> read_only,
                          std::string_view name, const SqueezeOptions& options);

/// squeeze_pair() on files. Empty output paths write nothing. Both results are on the disk before either gets its name;
/// the names change one after the other, so a machine that stops in between leaves the two of different makes, where
/// they replace an older pair. Throws: as squeeze_pair(); bad_option if both would go to the same file; bad_file if a
/// file cannot be read or written.
SqueezeReport squeeze_pair_files(const std::filesystem::path& payload, const std::filesystem::path& read_only,
                                 const std::filesystem::path& payload_to, const std::filesystem::path& read_only_to,
                                 const SqueezeOptions& options);

/// What a compiled file holds.
struct CompiledFileReport {
  std::string file;
  std::string format;  ///< "tflite", "vela-raw" or "vela-bin-stream"
  std::uint64_t size_bytes = 0;
  std::size_t n_npu_operators = 0, n_cpu_operators = 0;
  std::vector<CompiledReport> groups;  ///< one for each read-only tensor
};
/// Throws: as open_compiled() and inspect_programs().
CompiledFileReport inspect_compiled(const std::filesystem::path& path, unsigned jobs);

/// Schema "weightmill.squeeze/1".
nlohmann::ordered_json to_json(const SqueezeReport& report);
/// Schema "weightmill.inspect-compiled/1".
nlohmann::ordered_json to_json(const CompiledFileReport& report);

/// Whether the file at `path` is a model compiled for Ethos-U. Throws: bad_file if it cannot be read.
bool is_compiled_file(const std::filesystem::path& path);

/// Whether two compiled files make the NPU do the same with the same weights, scales, constants and tables, and have
/// the same CPU operators with the same constants and custom options: nothing, or a sentence about the first difference.
/// They may have different carriers. Throws: as open_compiled() and compare_programs().
std::optional<std::string> compare_compiled(const std::filesystem::path& first, const std::filesystem::path& second);

}  // namespace weightmill

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include <weightmill/model/packed.h>

namespace weightmill {

/// What the manifest says of the model that was packed.
struct SourceFile {
  std::string name;    ///< file name without its folder
  std::string sha256;  ///< of the whole file
  std::uint64_t size_bytes = 0;
};

/// A line of the accelerator table, as manifests and `targets --json` have it.
nlohmann::ordered_json to_json(const Accelerator& accelerator);

/// Writes `folder`/weights.safetensors and then `folder`/manifest.json, each atomically, and makes the folder if need be.
/// The manifest comes last: where it is, the blobs are whole.
/// Throws: bad_file if the folder cannot be made or written.  [docs/packed-files.md]
void write_packed(const Packed& packed, const SourceFile& source, const std::filesystem::path& folder,
                  unsigned jobs = 1);

/// Adds `folder`/weights.h and weights.c with the same bytes as C arrays, aligned to 16 bytes, and their offsets as macros.
void write_c_arrays(const Packed& packed, const std::filesystem::path& folder);

/// A packed folder read back. `source` is what the manifest says of the model.
struct PackedFolder {
  Packed packed;
  SourceFile source;
};

/// Whether `path` looks like a packed folder, or the manifest in one.
bool is_packed(const std::filesystem::path& path);

/// Whether the bytes are the ones the manifest was written for is verify_packed()'s business.
/// Throws: bad_file if a file or blob is missing or no manifest of this version.
PackedFolder read_packed(const std::filesystem::path& folder);

}  // namespace weightmill

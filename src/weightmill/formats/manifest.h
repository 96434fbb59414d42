#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <weightmill/model/packed.h>

#include "packed_files.h"

namespace weightmill {

/// The manifest of `packed`: every offset, length, range, scale, traversal, core and SHA-256, but not the bytes.
/// Keys keep their order, so that equal input gives equal text.  [docs/packed-files.md]
nlohmann::ordered_json to_manifest(const Packed& packed, const SourceFile& source, unsigned jobs = 1);

/// The way back; the layers' `weights` and `scales` are left empty. Throws: bad_file where a key is missing, of another type
/// or out of range (names the key's path).
Packed from_manifest(const nlohmann::json& manifest);

/// Names of the blobs of layer `index` in weights.safetensors.
std::string weights_blob_name(std::size_t index);
std::string scales_blob_name(std::size_t index);

inline constexpr const char* kBlobsFile = "weights.safetensors";
inline constexpr const char* kManifestSchema = "weightmill.packed/1";

}  // namespace weightmill

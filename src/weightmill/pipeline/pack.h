#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include <weightmill/formats/packed_files.h>
#include <weightmill/pack/pack.h>
#include <weightmill/verify/verify.h>

namespace weightmill {

/// Reads the model at `path` and packs its weights for the accelerator that Vela calls `accelerator`.
/// Throws: as read_model(), find_accelerator() and pack().
PackedFolder pack_file(const std::filesystem::path& path, std::string_view accelerator, const PackOptions& options);

/// Writes what pack_file() made into `folder`; `c_arrays` adds weights.c and weights.h. `jobs`: threads, 0: the
/// machine's. Throws: as write_packed().
void write_packed_folder(const PackedFolder& packed, const std::filesystem::path& folder, bool c_arrays, int jobs = 1);

/// Throws: bad_option if the model at `model` is one of the files that would be written into `folder`.
void require_not_overwritten(const std::filesystem::path& model, const std::filesystem::path& folder);

/// Proves what pack_file() made against the model at `model`. A model other than the one that was packed is a finding.
/// Throws: as read_model().
VerifyReport verify_packed_model(const PackedFolder& packed, const std::filesystem::path& model,
                                 const VerifyOptions& options);

/// A blob by the name it has in the manifest, "layers.3.weights". Throws: bad_request if there is none.
std::span<const std::uint8_t> packed_blob(const Packed& packed, std::string_view name);

/// Reads a packed folder and proves it against `model`; without one, only against its own manifest.
/// A model other than the one that was packed is a finding.
/// Throws: as read_packed() and read_model().
VerifyReport verify_packed_folder(const std::filesystem::path& folder,
                                  const std::optional<std::filesystem::path>& model, const VerifyOptions& options);

}  // namespace weightmill

#include "pack.h"

#include <future>
#include <utility>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/base/parallel.h>
#include <weightmill/base/sha256.h>
#include <weightmill/formats/formats.h>
#include <weightmill/formats/manifest.h>
#include <weightmill/pack/accelerator.h>

namespace weightmill {
namespace {

/// Digests a mapped file piece by piece and lets the pages go, so that a large model does not stay in memory for it.
std::string digest_of(const MappedFile& file) {
  constexpr std::size_t kPiece = std::size_t{1} << 22;
  Sha256 sha;
  const auto bytes = file.bytes();
  for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
    sha.update(bytes.subspan(at, std::min(kPiece, bytes.size() - at)));
    file.release(at, kPiece);
  }
  return sha.hex_digest();
}

SourceFile source_of(const std::filesystem::path& path, const Model& model) {
  return {path.filename().string(), digest_of(*model.file), model.file->bytes().size()};
}

}  // namespace

PackedFolder pack_file(const std::filesystem::path& path, std::string_view accelerator, const PackOptions& options) {
  const Accelerator& target = find_accelerator(accelerator);
  const Model model = read_model(path);
  const auto when = resolve_jobs(options.jobs) > 1 ? std::launch::async : std::launch::deferred;
  std::future<SourceFile> source = std::async(when, [&] { return source_of(path, model); });
  Packed packed = pack(model, target, options);
  return {std::move(packed), source.get()};
}

void write_packed_folder(const PackedFolder& packed, const std::filesystem::path& folder, bool c_arrays, int jobs) {
  if (c_arrays) write_c_arrays(packed.packed, folder);
  write_packed(packed.packed, packed.source, folder, resolve_jobs(jobs));
}

void require_not_overwritten(const std::filesystem::path& model, const std::filesystem::path& folder) {
  for (const char* name : {"weights.safetensors", "manifest.json", "weights.c", "weights.h"}) {
    std::error_code error;
    if (std::filesystem::equivalent(model, folder / name, error) && !error) {
      fail(ErrorCode::bad_option, "--output",
           fmt::format("{} is the model itself; choose another folder", (folder / name).string()));
    }
  }
}

std::span<const std::uint8_t> packed_blob(const Packed& packed, std::string_view name) {
  for (std::size_t i = 0; i < packed.layers.size(); ++i) {
    if (name == weights_blob_name(i) && packed.layers[i].same_as < 0) return packed.layers[i].weights;
    if (name == scales_blob_name(i)) return packed.layers[i].scales;
  }
  fail(ErrorCode::bad_request, name, "is no blob of this model; the manifest names them");
}

VerifyReport verify_packed_model(const PackedFolder& packed, const std::filesystem::path& path,
                                 const VerifyOptions& options) {
  const Model model = read_model(path);
  VerifyReport report = verify_packed(packed.packed, model, options);
  if (const SourceFile source = source_of(path, model); source.sha256 != packed.source.sha256) {
    ++report.n_findings;
    report.findings.insert(report.findings.begin(),
                           {-1, path.filename().string(), "SHA-256 " + source.sha256,
                            fmt::format("{} of {}, which was packed", packed.source.sha256, packed.source.name)});
  }
  return report;
}

VerifyReport verify_packed_folder(const std::filesystem::path& folder,
                                  const std::optional<std::filesystem::path>& model, const VerifyOptions& options) {
  const PackedFolder packed = read_packed(folder);
  return model ? verify_packed_model(packed, *model, options) : verify_packed(packed.packed, options);
}

}  // namespace weightmill

#include "../packed_files.h"

#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

#include <weightmill/base/atomic_file.h>
#include <weightmill/base/error.h>
#include <weightmill/base/json_text.h>
#include <weightmill/base/mapped_file.h>
#include <weightmill/base/sha256.h>

#include "../manifest.h"
#include "../safetensors.h"
#include "fields.h"

namespace weightmill {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifestName = "manifest.json";

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(ErrorCode::bad_file, folder.string(), "cannot be made: " + error.message());
}

/// The stream and record ranges of a layer, as C macros.
std::string c_macros(const PackedLayer& layer, std::size_t index) {
  std::string text = fmt::format("/* layer {}: {} {} */\n", index, layer.op_name, layer.role);
  for (std::size_t s = 0; s < layer.slices.size(); ++s) {
    for (const PackedScales& group : layer.slices[s].scales) {
      text += fmt::format(
          "#define WEIGHTMILL_LAYER{0}_SLICE{1}_CORE{2}_SCALES_OFFSET {3}u\n#define "
          "WEIGHTMILL_LAYER{0}_SLICE{1}_CORE{2}_SCALES_BYTES {4}u\n",
          index, s, group.core, group.offset, group.size_bytes);
    }
    for (const PackedStream& stream : layer.slices[s].streams) {
      text += fmt::format(
          "#define WEIGHTMILL_LAYER{0}_SLICE{1}_CORE{2}_WEIGHTS_OFFSET {3}u\n#define "
          "WEIGHTMILL_LAYER{0}_SLICE{1}_CORE{2}_WEIGHTS_BYTES {4}u\n",
          index, s, stream.core, stream.offset, stream.size_bytes);
    }
  }
  return text;
}

std::string c_array(const std::string& name, std::span<const std::uint8_t> bytes) {
  std::string text = fmt::format("_Alignas(16) const uint8_t {}[{}] = {{\n", name, bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i)
    text += fmt::format("{}0x{:02x},{}", i % 16 == 0 ? "  " : " ", bytes[i], i % 16 == 15 ? "\n" : "");
  if (bytes.size() % 16 != 0) text += '\n';
  return text + "};\n";
}

/// C has no empty arrays; a layer that shares its streams has none of its own.
bool has_bytes(std::span<const std::uint8_t> bytes) { return !bytes.empty(); }

void write_c_source(const Packed& packed, const fs::path& path) {
  AtomicFile file(path);
  file.write("#include \"weights.h\"\n");
  for (std::size_t i = 0; i < packed.layers.size(); ++i) {
    const PackedLayer& layer = packed.layers[i];
    if (has_bytes(layer.scales)) file.write(c_array(fmt::format("weightmill_layer{}_scales", i), layer.scales));
    if (has_bytes(layer.weights)) file.write(c_array(fmt::format("weightmill_layer{}_weights", i), layer.weights));
  }
  file.commit();
}

void write_c_header(const Packed& packed, const fs::path& path) {
  std::string text = "#ifndef WEIGHTMILL_WEIGHTS_H\n#define WEIGHTMILL_WEIGHTS_H\n#include <stdint.h>\n\n";
  for (std::size_t i = 0; i < packed.layers.size(); ++i) {
    const PackedLayer& layer = packed.layers[i];
    text += c_macros(layer, i);
    if (has_bytes(layer.scales))
      text += fmt::format("extern const uint8_t weightmill_layer{}_scales[{}];\n", i, layer.scales.size());
    if (layer.same_as >= 0)
      text += fmt::format("#define weightmill_layer{}_weights weightmill_layer{}_weights\n", i, layer.same_as);
    else if (has_bytes(layer.weights))
      text += fmt::format("extern const uint8_t weightmill_layer{}_weights[{}];\n", i, layer.weights.size());
    text += '\n';
  }
  write_file(path, text + "#endif\n");
}

nlohmann::json parse_manifest(const fs::path& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  // Depth and size are bounded by the manifest's own form; the parser itself does not recurse into data it has not read.
  auto json = nlohmann::json::parse(bytes.begin(), bytes.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) fail(ErrorCode::bad_file, path.string(), "is no JSON");
  return json;
}

std::vector<std::uint8_t> blob_of(const Safetensors& blobs, const std::string& name) {
  const SafetensorsTensor* blob = blobs.find(name);
  if (blob == nullptr)
    fail(ErrorCode::bad_file, blobs.file->name(), fmt::format("there is no blob {}, which the manifest names", name));
  return {blob->data.begin(), blob->data.end()};
}

}  // namespace

void write_packed(const Packed& packed, const SourceFile& source, const fs::path& folder, unsigned jobs) {
  make_folder(folder);
  const std::string manifest_text = json_text(to_manifest(packed, source, jobs)) + "\n";
  std::vector<SafetensorsSource> blobs;
  const auto add = [&](std::string name, std::span<const std::uint8_t> bytes) {
    blobs.push_back({std::move(name), DType::u8, {static_cast<std::int64_t>(bytes.size())}, bytes});
  };
  for (std::size_t i = 0; i < packed.layers.size(); ++i) {
    if (packed.layers[i].same_as < 0) add(weights_blob_name(i), packed.layers[i].weights);
    add(scales_blob_name(i), packed.layers[i].scales);
  }
  // Both files are whole before either is put in place, and no old manifest ever stands beside new blobs.
  AtomicFile blobs_file(folder / kBlobsFile), manifest_file(folder / kManifestName);
  write_safetensors(blobs_file, blobs);
  manifest_file.write(manifest_text);
  std::error_code error;
  fs::remove(folder / kManifestName, error);
  blobs_file.commit();
  manifest_file.commit();
}

void write_c_arrays(const Packed& packed, const fs::path& folder) {
  make_folder(folder);
  write_c_source(packed, folder / "weights.c");
  write_c_header(packed, folder / "weights.h");
}

bool is_packed(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return fs::exists(path / kManifestName, error);
  return path.filename() == kManifestName && fs::exists(path, error);
}

PackedFolder read_packed(const fs::path& path) {
  const fs::path folder = fs::is_directory(path) ? path : path.parent_path();
  const auto manifest = parse_manifest(folder / kManifestName);
  PackedFolder result{from_manifest(manifest), {}};
  const formats::Fields source = formats::Fields(manifest, "manifest").at("source");
  result.source = {source.get<std::string>("file"), source.get<std::string>("sha256"),
                   source.get<std::uint64_t>("size_bytes")};
  const Safetensors blobs = read_safetensors(folder / kBlobsFile);
  for (std::size_t i = 0; i < result.packed.layers.size(); ++i) {
    PackedLayer& layer = result.packed.layers[i];
    if (layer.same_as < 0) layer.weights = blob_of(blobs, weights_blob_name(i));
    layer.scales = blob_of(blobs, scales_blob_name(i));
  }
  return result;
}

}  // namespace weightmill

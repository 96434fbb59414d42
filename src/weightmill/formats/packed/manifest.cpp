#include "../manifest.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/base/parallel.h>
#include <weightmill/base/sha256.h>

#include "fields.h"

namespace weightmill {
namespace {

nlohmann::ordered_json ublock_to_json(const BlockShape& shape) {
  return {{"width", shape.width}, {"height", shape.height}, {"depth", shape.depth}};
}

}  // namespace

nlohmann::ordered_json to_json(const Accelerator& accelerator) {
  nlohmann::ordered_json json{{"name", accelerator.name},
                              {"family", name_of(accelerator.family)},
                              {"macs_per_cycle", accelerator.macs_per_cycle},
                              {"cores", accelerator.cores},
                              {"ofm_ublocks", nlohmann::ordered_json::array()},
                              {"ifm_ublock", ublock_to_json(accelerator.ifm_ublock)},
                              {"largest_ofm_block", ublock_to_json(accelerator.largest_ofm_block)},
                              {"ofm_split_depth", accelerator.ofm_split_depth},
                              {"largest_sub_kernel", accelerator.largest_sub_kernel}};
  for (const BlockShape& ublock : accelerator.ofm_ublocks) json["ofm_ublocks"].push_back(ublock_to_json(ublock));
  return json;
}

namespace {

using formats::Fields;

using Json = nlohmann::ordered_json;

// ---- records to JSON -----------------------------------------------------------------------------------------------

Json to_json(const BrickGeometry& g) {
  return {{"traversal", name_of(g.traversal)},
          {"ifm_bits", g.ifm_bits},
          {"ofm_block_depth", g.ofm_block_depth},
          {"ifm_block_depth", g.ifm_block_depth},
          {"ofm_ublock_depth", g.ofm_ublock_depth},
          {"ifm_ublock_depth", g.ifm_ublock_depth},
          {"stride_y", g.stride_y},
          {"stride_x", g.stride_x},
          {"sub_kernel_height", g.sub_kernel_height},
          {"sub_kernel_width", g.sub_kernel_width},
          {"sparse", g.sparse},
          {"cores", g.cores},
          {"core", g.core}};
}

std::string digest_of(std::span<const std::uint8_t> blob, std::uint64_t offset, std::uint64_t size) {
  return sha256_hex(blob.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size)));
}

Json to_json(const PackedStream& stream, std::span<const std::uint8_t> blob) {
  return {{"core", stream.core},
          {"offset", stream.offset},
          {"size_bytes", stream.size_bytes},
          {"n_ordered", stream.n_ordered},
          {"first_channel", stream.first_channel},
          {"channel_step", stream.channel_step},
          {"sha256", digest_of(blob, stream.offset, stream.size_bytes)},
          {"geometry", to_json(stream.geometry)}};
}

Json to_json(const PackedScales& scales, std::span<const std::uint8_t> blob) {
  return {{"core", scales.core},
          {"offset", scales.offset},
          {"size_bytes", scales.size_bytes},
          {"n_records", scales.n_records},
          {"n_zero_records", scales.n_zero_records},
          {"first_channel", scales.first_channel},
          {"channel_step", scales.channel_step},
          {"sha256", digest_of(blob, scales.offset, scales.size_bytes)}};
}

Json to_json(const DepthSlice& slice, std::span<const std::uint8_t> weights, std::span<const std::uint8_t> scales) {
  Json json{{"first_channel", slice.first_channel},
            {"n_channels", slice.n_channels},
            {"compression_scale", slice.compression_scale},
            {"scales", Json::array()},
            {"streams", Json::array()}};
  for (const PackedScales& group : slice.scales) json["scales"].push_back(to_json(group, scales));
  for (const PackedStream& stream : slice.streams) json["streams"].push_back(to_json(stream, weights));
  return json;
}

Json channels_to_json(const std::vector<ChannelRecord>& channels) {
  Json bias = Json::array(), multiplier = Json::array(), shift = Json::array();
  for (const ChannelRecord& record : channels) {
    bias.push_back(record.bias);
    multiplier.push_back(record.rescale.multiplier);
    shift.push_back(record.rescale.shift);
  }
  return {{"bias", bias}, {"multiplier", multiplier}, {"shift", shift}};
}

Json source_of(const PackedLayer& layer) {
  return {{"kind", name_of(layer.kind)},
          {"subgraph", layer.subgraph},
          {"node", layer.node},
          {"op_name", layer.op_name},
          {"role", layer.role},
          {"weights",
           {{"tensor", layer.weights_tensor}, {"name", layer.weights_name}, {"dtype", name_of(layer.weights_dtype)}}},
          {"bias", {{"tensor", layer.bias_tensor}, {"name", layer.bias_name}}},
          {"ifm", {{"tensor", layer.ifm_tensor}, {"name", layer.ifm_name}, {"dtype", name_of(layer.ifm_dtype)}}},
          {"ofm", {{"tensor", layer.ofm_tensor}, {"name", layer.ofm_name}}}};
}

Json to_json(const PackedLayer& layer, std::size_t index, std::span<const std::uint8_t> weights) {
  Json json = source_of(layer);
  json["ohwi"] = layer.ohwi;
  json["zero_point"] = layer.zero_point;
  json["flipped"] = layer.flipped;
  json["stride"] = {{"y", layer.stride_y}, {"x", layer.stride_x}};
  json["dilation"] = {{"y", layer.dilation_y}, {"x", layer.dilation_x}};
  json["block_type"] = name_of(layer.block_type);
  json["traversal"] = name_of(layer.traversal);
  json["format"] = name_of(layer.format);
  json["ofm_block_depth"] = layer.ofm_block_depth;
  json["ifm_block_depth"] = layer.ifm_block_depth;
  json["ofm_ublock"] = ublock_to_json(layer.ofm_ublock);
  json["ofm_depth_step"] = layer.ofm_depth_step;
  json["scaling"] = name_of(layer.scaling);
  json["record_format"] = name_of(layer.record_format);
  json["rescaled_for_activation"] = layer.rescaled_for_activation;
  json["ifm_scale"] = layer.ifm_scale;
  json["ofm_scale"] = layer.ofm_scale;
  json["weight_scale"] = layer.weight_scale;
  json["n_source_weights"] = layer.n_source_weights;
  json["weights_size_bytes"] = layer.weights_size_bytes;
  json["double_buffer_size_bytes"] = layer.double_buffer_size_bytes;
  json["worst_compression_scale"] = layer.worst_compression_scale;
  json["mean_compression_scale"] = layer.mean_compression_scale;
  json["same_as"] = layer.same_as;
  json["weights_blob"] = weights_blob_name(layer.same_as < 0 ? index : static_cast<std::size_t>(layer.same_as));
  json["scales_blob"] = scales_blob_name(index);
  json["slices"] = Json::array();
  for (const DepthSlice& slice : layer.slices) json["slices"].push_back(to_json(slice, weights, layer.scales));
  json["channels"] = channels_to_json(layer.channels);
  return json;
}

Json to_json(const NotPacked& entry) {
  return {{"subgraph", entry.subgraph},
          {"node", entry.node},
          {"op_name", entry.op_name},
          {"tensor", entry.tensor},
          {"reason", entry.reason}};
}

// ---- JSON to records -----------------------------------------------------------------------------------------------

BlockShape block_shape_from(const Fields& f) {
  return {f.get<int>("width"), f.get<int>("height"), f.get<int>("depth")};
}

Accelerator accelerator_from(const Fields& f) {
  Accelerator accelerator;
  accelerator.name = f.get<std::string>("name");
  accelerator.family = f.word<NpuFamily>("family");
  accelerator.macs_per_cycle = f.get<int>("macs_per_cycle");
  accelerator.cores = f.get<int>("cores");
  for (const Fields& ublock : f.list("ofm_ublocks")) accelerator.ofm_ublocks.push_back(block_shape_from(ublock));
  accelerator.ifm_ublock = block_shape_from(f.at("ifm_ublock"));
  accelerator.largest_ofm_block = block_shape_from(f.at("largest_ofm_block"));
  accelerator.ofm_split_depth = f.get<int>("ofm_split_depth");
  accelerator.largest_sub_kernel = f.get<int>("largest_sub_kernel");
  return accelerator;
}

BrickGeometry geometry_from(const Fields& f, const Accelerator& accelerator) {
  BrickGeometry g;
  g.family = accelerator.family;
  g.macs_per_cycle = accelerator.macs_per_cycle;
  g.traversal = f.word<Traversal>("traversal");
  g.ifm_bits = f.get<int>("ifm_bits");
  g.ofm_block_depth = f.get<int>("ofm_block_depth");
  g.ifm_block_depth = f.get<int>("ifm_block_depth");
  g.ofm_ublock_depth = f.get<int>("ofm_ublock_depth");
  g.ifm_ublock_depth = f.get<int>("ifm_ublock_depth");
  g.stride_y = f.get<int>("stride_y");
  g.stride_x = f.get<int>("stride_x");
  g.sub_kernel_height = f.get<int>("sub_kernel_height");
  g.sub_kernel_width = f.get<int>("sub_kernel_width");
  g.sparse = f.get<bool>("sparse");
  g.cores = f.get<int>("cores");
  g.core = f.get<int>("core");
  return g;
}

PackedStream stream_from(const Fields& f, const Accelerator& accelerator) {
  return {f.get<int>("core"),
          f.get<std::uint64_t>("offset"),
          f.get<std::uint64_t>("size_bytes"),
          f.get<std::uint64_t>("n_ordered"),
          f.get<int>("first_channel"),
          f.get<int>("channel_step"),
          geometry_from(f.at("geometry"), accelerator),
          f.get<std::string>("sha256")};
}

PackedScales scales_from(const Fields& f) {
  return {f.get<int>("core"),         f.get<std::uint64_t>("offset"), f.get<std::uint64_t>("size_bytes"),
          f.get<int>("n_records"),    f.get<int>("n_zero_records"),   f.get<int>("first_channel"),
          f.get<int>("channel_step"), f.get<std::string>("sha256")};
}

DepthSlice slice_from(const Fields& f, const Accelerator& accelerator) {
  DepthSlice slice;
  slice.first_channel = f.get<int>("first_channel");
  slice.n_channels = f.get<int>("n_channels");
  slice.compression_scale = f.get<double>("compression_scale");
  for (const Fields& group : f.list("scales")) slice.scales.push_back(scales_from(group));
  for (const Fields& stream : f.list("streams")) slice.streams.push_back(stream_from(stream, accelerator));
  return slice;
}

std::vector<ChannelRecord> channels_from(const Fields& f) {
  const auto bias = f.numbers<std::int64_t>("bias");
  const auto multiplier = f.numbers<std::int64_t>("multiplier");
  const auto shift = f.numbers<int>("shift");
  if (multiplier.size() != bias.size() || shift.size() != bias.size()) {
    fail(ErrorCode::bad_file, f.path(),
         fmt::format("{} biases, {} multipliers, {} shifts; as many of each wanted", bias.size(), multiplier.size(),
                     shift.size()));
  }
  std::vector<ChannelRecord> channels(bias.size());
  for (std::size_t o = 0; o < channels.size(); ++o) channels[o] = {bias[o], {multiplier[o], shift[o]}};
  return channels;
}

void read_source(const Fields& f, PackedLayer& layer) {
  layer.subgraph = f.get<int>("subgraph");
  layer.node = f.get<int>("node");
  layer.op_name = f.get<std::string>("op_name");
  layer.role = f.get<std::string>("role");
  layer.weights_tensor = f.at("weights").get<int>("tensor");
  layer.weights_name = f.at("weights").get<std::string>("name");
  layer.weights_dtype = f.at("weights").word<DType>("dtype");
  layer.bias_tensor = f.at("bias").get<int>("tensor");
  layer.bias_name = f.at("bias").get<std::string>("name");
  layer.ifm_tensor = f.at("ifm").get<int>("tensor");
  layer.ifm_name = f.at("ifm").get<std::string>("name");
  layer.ifm_dtype = f.at("ifm").word<DType>("dtype");
  layer.ofm_tensor = f.at("ofm").get<int>("tensor");
  layer.ofm_name = f.at("ofm").get<std::string>("name");
}

void read_sizes(const Fields& f, PackedLayer& layer) {
  layer.n_source_weights = f.get<std::uint64_t>("n_source_weights");
  layer.weights_size_bytes = f.get<std::uint64_t>("weights_size_bytes");
  layer.double_buffer_size_bytes = f.get<std::uint64_t>("double_buffer_size_bytes");
  layer.worst_compression_scale = f.get<double>("worst_compression_scale");
  layer.mean_compression_scale = f.get<double>("mean_compression_scale");
}

void read_scaling(const Fields& f, PackedLayer& layer) {
  layer.scaling = f.word<ScalingRule>("scaling");
  layer.record_format = f.word<RecordFormat>("record_format");
  layer.rescaled_for_activation = f.get<bool>("rescaled_for_activation");
  layer.ifm_scale = f.get<float>("ifm_scale");
  layer.ofm_scale = f.get<float>("ofm_scale");
  layer.weight_scale = f.numbers<float>("weight_scale");
  layer.channels = channels_from(f.at("channels"));
}

PackedLayer layer_from(const Fields& f, const Accelerator& accelerator) {
  PackedLayer layer;
  read_source(f, layer);
  layer.kind = f.word<OpKind>("kind");
  const auto ohwi = f.numbers<int>("ohwi");
  if (ohwi.size() != layer.ohwi.size())
    fail(ErrorCode::bad_file, f.path() + ".ohwi", fmt::format("{} extents, 4 wanted", ohwi.size()));
  std::copy(ohwi.begin(), ohwi.end(), layer.ohwi.begin());
  layer.zero_point = f.numbers<std::int64_t>("zero_point");
  layer.flipped = f.get<bool>("flipped");
  layer.stride_y = f.at("stride").get<int>("y");
  layer.stride_x = f.at("stride").get<int>("x");
  layer.dilation_y = f.at("dilation").get<int>("y");
  layer.dilation_x = f.at("dilation").get<int>("x");
  layer.block_type = f.word<NpuBlockType>("block_type");
  layer.traversal = f.word<Traversal>("traversal");
  layer.format = f.word<StreamFormat>("format");
  layer.ofm_block_depth = f.get<int>("ofm_block_depth");
  layer.ifm_block_depth = f.get<int>("ifm_block_depth");
  layer.ofm_ublock = block_shape_from(f.at("ofm_ublock"));
  layer.ofm_depth_step = f.get<int>("ofm_depth_step");
  layer.same_as = f.get<int>("same_as");
  for (const Fields& slice : f.list("slices")) layer.slices.push_back(slice_from(slice, accelerator));
  read_scaling(f, layer);
  read_sizes(f, layer);
  return layer;
}

}  // namespace
std::string weights_blob_name(std::size_t index) { return fmt::format("layers.{}.weights", index); }
std::string scales_blob_name(std::size_t index) { return fmt::format("layers.{}.scales", index); }

nlohmann::ordered_json to_manifest(const Packed& packed, const SourceFile& source, unsigned jobs) {
  Json json{{"schema", kManifestSchema},
            {"source", {{"file", source.name}, {"size_bytes", source.size_bytes}, {"sha256", source.sha256}}},
            {"accelerator", to_json(packed.accelerator)},
            {"effort", packed.effort},
            {"forms", packed.forms},
            {"scaling", name_of(packed.scaling)},
            {"blobs", kBlobsFile},
            {"layers", Json::array()},
            {"not_packed", Json::array()}};
  std::vector<Json> layers(packed.layers.size());
  parallel_for(layers.size(), jobs, [&](std::size_t i) {  // for the digests
    const PackedLayer& layer = packed.layers[i];
    const PackedLayer& holder = layer.same_as < 0 ? layer : packed.layers[static_cast<std::size_t>(layer.same_as)];
    layers[i] = to_json(layer, i, holder.weights);
  });
  for (Json& layer : layers) json["layers"].push_back(std::move(layer));
  for (const NotPacked& entry : packed.not_packed) json["not_packed"].push_back(to_json(entry));
  return json;
}

namespace {

/// Names that this version of the format fixes.
void require_text(const Fields& f, const char* key, std::string_view wanted) {
  if (const auto found = f.get<std::string>(key); found != wanted) {
    fail(ErrorCode::bad_file, f.path() + "." + key, fmt::format("found '{}'; '{}' wanted", found, wanted));
  }
}

}  // namespace

Packed from_manifest(const nlohmann::json& manifest) {
  const Fields f(manifest, "manifest");
  if (const auto schema = f.get<std::string>("schema"); schema != kManifestSchema) {
    fail(ErrorCode::bad_file, "manifest.schema", fmt::format("'{}'; this program reads '{}'", schema, kManifestSchema));
  }
  Packed packed;
  packed.accelerator = accelerator_from(f.at("accelerator"));
  packed.effort = f.get<std::string>("effort");
  packed.forms = f.get<std::string>("forms");
  packed.scaling = f.word<ScalingRule>("scaling");
  require_text(f, "blobs", kBlobsFile);
  for (const Fields& layer : f.list("layers")) {
    const std::size_t index = packed.layers.size();
    packed.layers.push_back(layer_from(layer, packed.accelerator));
    const int same_as = packed.layers.back().same_as;
    require_text(layer, "weights_blob", weights_blob_name(same_as < 0 ? index : static_cast<std::size_t>(same_as)));
    require_text(layer, "scales_blob", scales_blob_name(index));
  }
  for (const Fields& entry : f.list("not_packed")) {
    packed.not_packed.push_back({entry.get<int>("subgraph"), entry.get<int>("node"), entry.get<std::string>("op_name"),
                                 entry.get<std::string>("tensor"), entry.get<std::string>("reason")});
  }
  return packed;
}

}  // namespace weightmill

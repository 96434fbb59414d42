#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/codec/codec.h>
#include <weightmill/pack/accelerator.h>
#include <weightmill/pack/brick_order.h>
#include <weightmill/pack/compress_weights.h>
#include <weightmill/pack/fixed_scale.h>
#include <weightmill/pack/scale_bias.h>
#include <weightmill/pack/traversal.h>

#include "arrays.h"
#include "words.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
namespace mlw = weightmill::mlw;

namespace {

using weightmill::BrickGeometry;
using weightmill::ErrorCode;
using weightmill::fail;
using weightmill::FixedPoint;
using weightmill::WeightVolume;
using Volume = nb::ndarray<nb::ro, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using Ohwi = std::array<int, 4>;

weightmill::Traversal traversal_named(std::string_view name) {
  using weightmill::Traversal;
  return named<Traversal>("traversal", name,
                          {{"depth_first", Traversal::depth_first},
                           {"part_kernel_first", Traversal::part_kernel_first},
                           {"depthwise", Traversal::depthwise}});
}

weightmill::NpuBlockType block_type_named(std::string_view name) {
  using weightmill::NpuBlockType;
  return named<NpuBlockType>("block type", name,
                             {{"convolution", NpuBlockType::convolution},
                              {"depthwise", NpuBlockType::depthwise},
                              {"vector_product", NpuBlockType::vector_product},
                              {"ConvolutionMxN", NpuBlockType::convolution},
                              {"ConvolutionDepthWise", NpuBlockType::depthwise},
                              {"VectorProduct", NpuBlockType::vector_product}});
}

/// The words of Vela, which has one more for "no choice was made".
std::string_view velas_word(weightmill::Traversal traversal, weightmill::NpuBlockType type) {
  if (type == weightmill::NpuBlockType::vector_product) return "Default";
  constexpr std::array<std::string_view, 3> kWords{"DepthFirst", "PartKernelFirst", "DepthWise"};
  return kWords[static_cast<std::size_t>(traversal)];
}

template <class Work>
auto released(const Work& work) {
  const nb::gil_scoped_release release;
  return work();
}

template <class T>
std::span<const T> span_of(const Volume& volume) {
  return {static_cast<const T*>(volume.data()), volume.size()};
}

weightmill::WeightValues values_of(const Volume& volume) {
  if (volume.dtype() == nb::dtype<std::int8_t>()) return span_of<std::int8_t>(volume);
  if (volume.dtype() == nb::dtype<std::uint8_t>()) return span_of<std::uint8_t>(volume);
  if (volume.dtype() == nb::dtype<std::int16_t>()) return span_of<std::int16_t>(volume);
  throw nb::type_error("weights must be int8, uint8 or int16");
}

int extent(const Volume& volume, std::size_t axis) {
  constexpr std::size_t kLargest = std::size_t{1} << 30;
  if (volume.shape(axis) > kLargest) fail(ErrorCode::bad_request, "weights", "an extent is beyond 2^30");
  return static_cast<int>(volume.shape(axis));
}

WeightVolume ohwi_volume(const Volume& v, int zero_point) {
  return weightmill::volume_from_ohwi(values_of(v), {extent(v, 0), extent(v, 1), extent(v, 2), extent(v, 3)},
                                      zero_point);
}

WeightVolume hwio_volume(const Volume& v, int zero_point) {
  return weightmill::volume_from_hwio(values_of(v), {extent(v, 3), extent(v, 0), extent(v, 1), extent(v, 2)},
                                      zero_point);
}

auto brick_order(const Volume& volume, int zero_point, const BrickGeometry& geometry, bool fast) {
  return to_numpy(released([&] {
    const WeightVolume weights = ohwi_volume(volume, zero_point);
    return fast ? fast_order(weights, geometry) : weightmill::brick_order(weights, geometry);
  }));
}

auto brick_indices(const Ohwi& ohwi, const BrickGeometry& geometry, bool fast) {
  return to_numpy(
      released([&] { return fast ? fast_indices(ohwi, geometry) : weightmill::brick_indices(ohwi, geometry); }));
}

nb::tuple reorder_encode(const Volume& volume, int zero_point, const BrickGeometry& geometry, std::string_view effort,
                         std::string_view forms) {
  const mlw::Effort chosen = effort_named(effort);
  const mlw::Forms chosen_forms = forms_named(forms);
  std::size_t n_ordered = 0;
  const auto stream = released([&] {
    const auto order = weightmill::brick_order(ohwi_volume(volume, zero_point), geometry);
    n_ordered = order.size();
    return mlw::encode(order, chosen, chosen_forms);
  });
  return nb::make_tuple(nb::bytearray(stream.data(), stream.size()), n_ordered);
}

nb::dict block_record(const weightmill::BlockShape& block) {
  nb::dict record;
  record["width"] = block.width;
  record["height"] = block.height;
  record["depth"] = block.depth;
  return record;
}

nb::dict accelerator_record(const weightmill::Accelerator& a) {
  constexpr std::array<const char*, 3> kFamilies{"u55", "u65", "u85"};
  nb::dict record;
  nb::list ublocks;
  for (const auto& ublock : a.ofm_ublocks) ublocks.append(block_record(ublock));
  record["name"] = a.name;
  record["family"] = kFamilies[static_cast<std::size_t>(a.family)];
  record["macs_per_cycle"] = a.macs_per_cycle;
  record["cores"] = a.cores;
  record["ofm_ublocks"] = ublocks;
  record["ifm_ublock"] = block_record(a.ifm_ublock);
  record["largest_ofm_block"] = block_record(a.largest_ofm_block);
  record["largest_sub_kernel"] = a.largest_sub_kernel;
  return record;
}

nb::list accelerators() {
  nb::list list;
  for (const auto& a : weightmill::accelerators()) list.append(accelerator_record(a));
  return list;
}

BrickGeometry geometry_of(std::string_view accelerator, std::string_view traversal) {
  const weightmill::Accelerator& a = weightmill::find_accelerator(accelerator);
  BrickGeometry g;
  g.family = a.family;
  g.traversal = traversal_named(traversal);
  g.ofm_ublock_depth = a.ofm_ublocks.front().depth;
  g.ifm_ublock_depth = a.ifm_ublock.depth;
  g.cores = a.family == weightmill::NpuFamily::u85 ? a.cores : 1;
  g.macs_per_cycle = a.macs_per_cycle;
  return g;
}

nb::dict compressed_record(const weightmill::CompressedWeights& c, weightmill::NpuBlockType type) {
  nb::dict record;
  nb::list values;
  for (const auto& stream : c.values) values.append(to_bytes(stream));
  record["compressed_values"] = values;
  record["substream_offsets"] = nb::cast(c.substream_offsets);
  record["offsets"] = nb::cast(c.offsets);
  record["scales"] = nb::cast(c.scales);
  record["worst_scale"] = c.worst_scale;
  record["mean_scale"] = c.mean_scale;
  record["storage_shape"] = nb::cast(c.storage_shape);
  record["brick_size"] = nb::tuple(nb::cast(c.brick_size));
  record["block_traversal"] = velas_word(c.traversal, type);
  return record;
}

struct CompressOptions {
  int zero_point, ofm_block_depth, ofm_depth_step, ifm_bits;
  std::array<int, 2> dilation_hw;
  bool flip, double_buffer;
  int jobs;
};

weightmill::CompressRequest request_of(const Volume& hwio, const CompressOptions& o, std::string_view block_type,
                                       std::string_view effort) {
  weightmill::CompressRequest r;
  r.weights = hwio_volume(hwio, o.zero_point);
  r.block_type = block_type_named(block_type);
  r.ofm_block_depth = o.ofm_block_depth;
  r.ofm_depth_step = o.ofm_depth_step;
  r.ifm_bits = o.ifm_bits;
  r.dilation_h = o.dilation_hw[0];
  r.dilation_w = o.dilation_hw[1];
  r.flip = o.flip;
  r.double_buffer = o.double_buffer;
  r.effort = effort_named(effort);
  r.jobs = o.jobs;
  return r;
}

nb::dict compress_weights(const Volume& hwio, std::string_view accelerator, const CompressOptions& options,
                          std::string_view block_type, std::string_view effort, weightmill::WeightCache* cache,
                          std::uint64_t equivalence_id) {
  const weightmill::Accelerator& npu = weightmill::find_accelerator(accelerator);
  const weightmill::CompressRequest request = request_of(hwio, options, block_type, effort);
  const auto result = released([&] {
    return cache != nullptr ? cache->compress(equivalence_id, request, npu)
                            : weightmill::compress_weights(request, npu);
  });
  return compressed_record(result, request.block_type);
}

weightmill::DType dtype_named(std::string_view name) {
  using weightmill::DType;
  return named<DType>("feature map type", name, {{"int8", DType::i8}, {"uint8", DType::u8}, {"int16", DType::i16}});
}

weightmill::ScalingRule rule_named(std::string_view name) {
  using weightmill::ScalingRule;
  return named<ScalingRule>(
      "scaling", name, {{"2020", ScalingRule::v2020}, {"vela5", ScalingRule::vela5}, {"regor", ScalingRule::regor}});
}

struct ScaleOptions {
  std::string rule, ifm_dtype;
  float ifm_scale = 1, ofm_scale = 1;
  bool fully_connected = false, bias_is_64_bit = false, rescale_for_activation = false;
};

std::vector<weightmill::ChannelRecord> channel_records(const std::vector<std::int64_t>& biases,
                                                       const std::vector<float>& weight_scales, const ScaleOptions& o,
                                                       bool reduced_always) {
  weightmill::ScaleRequest r;
  r.rule = rule_named(o.rule);
  r.ifm_dtype = dtype_named(o.ifm_dtype);
  r.ifm_scale = o.ifm_scale;
  r.ofm_scale = o.ofm_scale;
  r.weight_scale = weight_scales;
  r.fully_connected = o.fully_connected;
  r.bias_is_64_bit = o.bias_is_64_bit;
  r.rescale_for_activation = o.rescale_for_activation;
  r.reduced_always = reduced_always;
  const auto scales = channel_scales(r, biases.size());
  std::vector<weightmill::ChannelRecord> records;
  for (std::size_t c = 0; c < biases.size(); ++c) records.push_back({biases[c], scales[c]});
  return records;
}

nb::dict scales_record(const weightmill::PackedRecords& packed, std::size_t n_channels) {
  nb::list values, offsets;
  std::uint64_t n_padding = 0;
  for (const auto& slice : packed.slices) {
    const std::uint64_t first = slice.front().offset, end = slice.back().offset + slice.back().size_bytes;
    nb::list slice_offsets;
    slice_offsets.append(std::uint64_t{0});
    for (const auto& core : slice) {
      slice_offsets.append(core.offset + core.size_bytes - first);
      n_padding += core.size_bytes - static_cast<std::uint64_t>(core.n_records) * weightmill::kRecordBytes;
    }
    values.append(to_bytes(std::span(packed.bytes).subspan(first, end - first)));
    offsets.append(slice_offsets);
  }
  nb::dict record;
  record["compressed_values"] = values;
  record["substream_offsets"] = offsets;
  record["storage_shape"] =
      nb::make_tuple(n_channels + (n_padding + weightmill::kRecordBytes - 1) / weightmill::kRecordBytes);
  record["element_size_bytes"] = weightmill::kRecordBytes;
  return record;
}

nb::dict pack_scales(const std::vector<std::int64_t>& biases, const std::vector<float>& weight_scales,
                     const ScaleOptions& options, std::string_view accelerator, int ofm_depth_step,
                     int ofm_ublock_depth) {
  const weightmill::Accelerator& npu = weightmill::find_accelerator(accelerator);
  const bool u85 = npu.family == weightmill::NpuFamily::u85;
  const bool wide = u85 && options.ifm_dtype == "int16";
  const auto records = channel_records(biases, weight_scales, options, wide);
  const auto format = wide ? weightmill::RecordFormat::bias48_scale15 : weightmill::RecordFormat::bias32_scale31;
  const auto packed = u85 ? pack_records_u85(records, ofm_depth_step, ofm_ublock_depth, format)
                          : pack_records(records, ofm_depth_step, npu.cores);
  return scales_record(packed, biases.size());
}

nb::bytearray pack_record(std::int64_t bias, std::int64_t scale, int shift) {
  const auto bytes = weightmill::pack_record({bias, {scale, shift}}, weightmill::RecordFormat::bias40_scale32);
  return nb::bytearray(bytes.data(), bytes.size());
}

nb::tuple pair_of(FixedPoint value) { return nb::make_tuple(value.multiplier, value.shift); }

nb::tuple simplified_add_sub(double a, double b, double out, int input_shift) {
  const auto s = weightmill::simplified_elementwise_add_sub_scale(a, b, out, input_shift);
  return nb::make_tuple(s.a_rescale, s.b_rescale, s.output.multiplier, s.output.shift);
}

nb::tuple advanced_add_sub(double a, double b, double out, int ifm_bits) {
  const auto s = weightmill::advanced_elementwise_add_sub_scale(a, b, out, ifm_bits);
  return nb::make_tuple(s.input.multiplier, s.input.shift, s.output.multiplier, s.output.shift,
                        static_cast<int>(s.operand));
}

void bind_geometry(nb::module_& m) {
  nb::class_<BrickGeometry>(m, "BrickGeometry", "What an order depends on; see docs/brick-order.md.")
      .def_rw("ifm_bits", &BrickGeometry::ifm_bits)
      .def_rw("ofm_block_depth", &BrickGeometry::ofm_block_depth)
      .def_rw("ifm_block_depth", &BrickGeometry::ifm_block_depth)
      .def_rw("ofm_ublock_depth", &BrickGeometry::ofm_ublock_depth)
      .def_rw("ifm_ublock_depth", &BrickGeometry::ifm_ublock_depth)
      .def_rw("stride_y", &BrickGeometry::stride_y)
      .def_rw("stride_x", &BrickGeometry::stride_x)
      .def_rw("sub_kernel_height", &BrickGeometry::sub_kernel_height)
      .def_rw("sub_kernel_width", &BrickGeometry::sub_kernel_width)
      .def_rw("sparse", &BrickGeometry::sparse)
      .def_ro("cores", &BrickGeometry::cores)
      .def_rw("core", &BrickGeometry::core);
  m.def("geometry", &geometry_of, nb::arg("accelerator"), nb::arg("traversal"),
        "The accelerator's own part of a geometry. Raises Error.");
}

void bind_orders(nb::module_& m) {
  m.def("brick_order", &brick_order, nb::arg("volume").noconvert(), nb::arg("zero_point"), nb::arg("geometry"),
        nb::arg("fast"), "int8, uint8 or int16 OHWI -> int16 [N]. Raises Error.");
  m.def("brick_indices", &brick_indices, nb::arg("ohwi"), nb::arg("geometry"), nb::arg("fast"),
        "-> int32 [N]. Raises Error.");
  m.def("reorder_encode", &reorder_encode, nb::arg("volume").noconvert(), nb::arg("zero_point"), nb::arg("geometry"),
        nb::arg("effort"), nb::arg("forms"), "int8, uint8 or int16 OHWI -> (bytearray, N). Raises Error.");
  m.def("accelerators", &accelerators, "The table, as dictionaries.");
}

void bind_compress(nb::module_& m) {
  nb::class_<weightmill::WeightCache>(m, "WeightCache", "Results of compress_weights for one graph and accelerator.")
      .def(nb::init<>())
      .def_prop_ro("n_hits", &weightmill::WeightCache::n_hits);
  nb::class_<CompressOptions>(m, "CompressOptions")
      .def(nb::init<int, int, int, int, std::array<int, 2>, bool, bool, int>(), nb::arg("zero_point"),
           nb::arg("ofm_block_depth"), nb::arg("ofm_depth_step"), nb::arg("ifm_bits"), nb::arg("dilation_hw"),
           nb::arg("flip"), nb::arg("double_buffer"), nb::arg("jobs"));
  m.def("compress_weights", &compress_weights, nb::arg("hwio").noconvert(), nb::arg("accelerator"), nb::arg("options"),
        nb::arg("block_type"), nb::arg("effort"), nb::arg("cache").none(), nb::arg("equivalence_id"),
        "int8, uint8 or int16 HWIO -> dict. Raises Error.");
}

void bind_scales(nb::module_& m) {
  nb::class_<ScaleOptions>(m, "ScaleOptions")
      .def(nb::init<std::string, std::string, float, float, bool, bool, bool>(), nb::arg("rule"), nb::arg("ifm_dtype"),
           nb::arg("ifm_scale"), nb::arg("ofm_scale"), nb::arg("fully_connected"), nb::arg("bias_is_64_bit"),
           nb::arg("rescale_for_activation"));
  m.def("pack_scales", &pack_scales, nb::arg("biases"), nb::arg("weight_scales"), nb::arg("options"),
        nb::arg("accelerator"), nb::arg("ofm_depth_step"), nb::arg("ofm_ublock_depth"), "-> dict. Raises Error.");
  m.def("pack_record", &pack_record, nb::arg("bias"), nb::arg("scale"), nb::arg("shift"),
        "-> bytearray(10). Raises Error.");
  m.def(
      "quantise_scale", [](double x) { return pair_of(weightmill::quantise_scale(x)); }, nb::arg("scale"),
      "-> (multiplier, shift).");
  m.def(
      "reduced_quantise_scale", [](double x) { return pair_of(weightmill::reduced_quantise_scale(x)); },
      nb::arg("scale"), "-> (multiplier, shift).");
  m.def(
      "quantise_pooling_scale",
      [](std::int64_t n, int bits) { return pair_of(weightmill::quantise_pooling_scale(n, bits)); },
      nb::arg("nr_kernel_elements"), nb::arg("rescale_bits"), "-> (multiplier, shift).");
  m.def(
      "elementwise_mul_scale",
      [](double a, double b, double out, bool d) { return pair_of(weightmill::elementwise_mul_scale(a, b, out, d)); },
      nb::arg("input_scale"), nb::arg("input2_scale"), nb::arg("output_scale"), nb::arg("use_double"),
      "-> (multiplier, shift).");
  m.def("simplified_elementwise_add_sub_scale", &simplified_add_sub, nb::arg("input1_scale"), nb::arg("input2_scale"),
        nb::arg("output_scale"), nb::arg("input_shift"), "-> (rescale 1, rescale 2, multiplier, shift).");
  m.def("advanced_elementwise_add_sub_scale", &advanced_add_sub, nb::arg("input1_scale"), nb::arg("input2_scale"),
        nb::arg("output_scale"), nb::arg("bitdepth"),
        "-> (multiplier, shift, output multiplier, output shift, operand to scale).");
}

}  // namespace

void bind_pack(nb::module_& m) {
  bind_geometry(m);
  bind_orders(m);
  bind_compress(m);
  bind_scales(m);
}

#include "quantize_ir.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/base/parallel.h>
#include <weightmill/fold/numbers.h>

#include "ir_files.h"
#include "ir_weights.h"
#include "reading_limit.h"
#include "weight_choice.h"
#include "weight_coder.h"
#include "weight_groups.h"

namespace weightmill {
namespace {

namespace fs = std::filesystem;

/// Where the parts of a weight are in the new .bin.
struct StoredWeight {
  IrPayload codes, scale;
  std::optional<IrPayload> zero_point, target_shape;
};

/// The shape of the codes: `shape`, with the blocked axis in two.
Shape codes_shape(const ScalePlan& plan, Shape shape) {
  if (plan.block_size == 0) return shape;
  const auto axis = static_cast<std::ptrdiff_t>(plan.axis.value());
  shape[plan.axis.value()] /= plan.block_size;
  shape.insert(shape.begin() + axis + 1, plan.block_size);
  return shape;
}

/// The shape of the scales, with as many axes as the codes.
Shape affine_shape(const ScalePlan& plan, const Shape& shape) {
  Shape affine = codes_shape(plan, shape);
  for (std::size_t i = 0; i < affine.size(); ++i) {
    const bool apart = plan.block_size > 0 ? i != *plan.axis + 1 : plan.axis == i || (plan.grouped && i == 0);
    if (!apart) affine[i] = 1;
  }
  return affine;
}

/// Names of new layers: NAME, with a number where that is taken.
class LayerNames {
 public:
  explicit LayerNames(const IrGraph& graph) {
    for (const IrLayer& layer : graph.layers) taken_.insert(layer.name);
  }
  std::string fresh(const std::string& name) {
    std::string tried = name;
    std::size_t& number = numbers_[name];
    while (!taken_.insert(tried + "/codes").second) tried = fmt::format("{}_{}", name, ++number);
    return tried;
  }

 private:
  std::set<std::string> taken_;
  std::map<std::string, std::size_t> numbers_;  ///< the last one that a name got
};

class IrWeightQuantizer {
 public:
  IrWeightQuantizer(const IrInput& input, Ir& ir, const WeightQuantizeOptions& options, const Progress& progress)
      : input_(input),
        ir_(ir),
        options_(options),
        jobs_(resolve_jobs(options.jobs)),
        payloads_(input, "quantizing", progress) {
    for (std::size_t g = 0; g < ir.n_graphs(); ++g) {
      for (IrFloatWeight& site : find_float_weights(ir, g)) add(std::move(site));
    }
  }

  /// Decides what is quantized. Throws: as quantize_weights_ir().
  void plan(WeightQuantizeReport& report);
  /// Writes all payloads and edits the graphs.
  void run(PayloadFile& out, WeightQuantizeReport& report);

 private:
  void add(IrFloatWeight site);
  QuantizedWeight row_of(const IrFloatWeight& site) const;
  FloatWeight float_weight(std::size_t row);
  void choose();
  bool same_elements(std::size_t a, std::size_t b) const;
  void check_work();

  void store(const WeightGroup& group, PayloadFile& out);
  IrPayload store_codes(const FloatWeight& weight, const WeightGroup& group, const WeightScales& scales,
                        PayloadFile& out);
  StoredWeight store_parts(const FloatWeight& weight, const WeightGroup& group, const WeightScales& scales,
                           PayloadFile& out);
  IrPayload store_bytes(std::span<const std::uint8_t> bytes, PayloadFile& out);
  void edit(const WeightGroup& group, const StoredWeight& stored);
  void drop_floats(std::vector<IrLiveness>& alive) const;

  const IrInput& input_;
  Ir& ir_;
  const WeightQuantizeOptions& options_;
  unsigned jobs_;
  IrPayloads payloads_;
  std::vector<IrFloatWeight> sites_;
  std::vector<WeightSource> sources_;
  std::vector<QuantizedWeight> rows_;
  std::map<std::tuple<std::uint64_t, std::uint64_t>, std::size_t> source_ids_;  ///< of offset and size in the .bin
  std::vector<WeightGroup> groups_;
  std::vector<LayerNames> names_;  ///< of each graph
};

void IrWeightQuantizer::add(IrFloatWeight site) {
  WeightSource source;
  source.other_reader = site.other_reader;
  const auto& payload = ir_.graph(site.graph).layers[site.constant].payload;
  source.id = sources_.size();
  // Constants at one place of the .bin are one: OpenVINO stores equal ones once.
  if (payload) source.id = source_ids_.emplace(std::tuple(payload->offset, payload->size), source.id).first->second;
  rows_.push_back(row_of(site));
  sources_.push_back(std::move(source));
  sites_.push_back(std::move(site));
}

QuantizedWeight IrWeightQuantizer::row_of(const IrFloatWeight& site) const {
  const auto& layers = ir_.graph(site.graph).layers;
  QuantizedWeight row;
  row.node = layers[site.reader.layer].name;
  row.op = layers[site.reader.layer].type;
  row.weight = layers[site.constant].name;
  for (const std::size_t layer : site.via) row.via.push_back(layers[layer].type + " " + layers[layer].name);
  row.shape = site.shape;
  row.type_before = row.type_after = site.data.type == nullptr ? DType::other : site.data.type->dtype;
  row.bytes_before = row.bytes_after = site.data.bytes.size();
  row.reason = site.left_reason;
  return row;
}

FloatWeight IrWeightQuantizer::float_weight(std::size_t row) {
  const IrFloatWeight& site = sites_[row];
  FloatWeight weight;
  weight.name = "constant " + rows_[row].weight;
  weight.shape = site.shape;
  const Numbers numbers{site.data.bytes, site.data.type->dtype, site.data.shape, site.data.n_elements};
  weight.read = [this, numbers](std::uint64_t first, std::span<float> out) {
    load_floats(numbers, first, out);
    payloads_.consumed(out.size() * size_bits(numbers.dtype) / 8);
  };
  weight.channel_axis = site.channel_axis;
  weight.grouped = site.grouped;
  weight.block_axis = site.block_axis;
  weight.no_channels = site.no_channels;
  return weight;
}

void IrWeightQuantizer::choose() {
  std::vector<std::string> names;
  for (const QuantizedWeight& row : rows_) names.push_back(row.node);
  const WeightChoice choice(options_, known_ir_types(), usual_ir_types(), names);
  for (QuantizedWeight& row : rows_) {
    if (row.reason.empty()) choice.judge(row);
  }
}

bool IrWeightQuantizer::same_elements(std::size_t a, std::size_t b) const {
  return sites_[a].data.type == sites_[b].data.type && sites_[a].shape == sites_[b].shape;
}

/// Throws: bad_file if the .bin would be read many times over.
void IrWeightQuantizer::check_work() {
  std::uint64_t n_coded = 0;
  for (const WeightGroup& group : groups_) n_coded += sites_[group.rows.front()].data.bytes.size();
  const std::uint64_t n_bytes = constant_bytes(ir_) + n_coded;
  payloads_.expect(n_bytes + 2 * n_coded);
  if (!reads_too_often(n_bytes, input_.bin.size())) return;
  fail(ErrorCode::bad_file, input_.xml_name,
       fmt::format("its layers overlap in {}: {} bytes would be read of {}", input_.bin_name, n_bytes,
                   input_.bin.size()));
}

void IrWeightQuantizer::plan(WeightQuantizeReport& report) {
  choose();
  leave_shared(sources_, rows_);
  groups_ = group_weights(
      sources_, rows_, [this](std::size_t row) { return plan_scales(float_weight(row), options_); },
      [this](std::size_t a, std::size_t b) { return same_elements(a, b); });
  for (const WeightGroup& group : groups_) {
    for (const std::size_t row : group.rows) rows_[row].outcome = WeightOutcome::quantized;
    report.n_folded_chains += sites_[group.rows.front()].via.empty() ? 0 : 1;
  }
  report.weights = rows_;
  conclude(report, input_.xml_name);
  check_work();
}

/// Reads the weights of a group three times, for scales, error and codes, and makes its readers read the codes.
void IrWeightQuantizer::store(const WeightGroup& group, PayloadFile& out) {
  const FloatWeight weight = float_weight(group.rows.front());
  const CodedWeight coded = code_weight(weight, group.plan, jobs_);
  record(group, coded, rows_);
  edit(group, store_parts(weight, group, *coded.scales, out));
}

IrPayload IrWeightQuantizer::store_codes(const FloatWeight& weight, const WeightGroup& group,
                                         const WeightScales& scales, PayloadFile& out) {
  const auto codes = plan_codes(weight, group.plan, scales);
  const std::uint64_t n = n_elements(weight.shape, weight.name);
  const std::uint64_t size = code_bytes(codes->code_type(), n);
  const unsigned bits = size_bits(codes->code_type());
  BlockResult result;
  std::mutex mutex;
  const auto fill = [&](std::uint64_t offset, std::span<std::uint8_t> block) {
    const std::uint64_t first = offset * 8 / bits;
    const std::uint64_t count = std::min<std::uint64_t>(n - first, block.size() * 8 / bits);
    const BlockResult own = codes->codes(first, count, block);
    const std::scoped_lock lock(mutex);
    result.merge(own);
  };
  const IrPayload payload{out.store(size, jobs_, fill).value(), size};
  check_codes(weight, *codes, result);
  return payload;
}

IrPayload IrWeightQuantizer::store_bytes(std::span<const std::uint8_t> bytes, PayloadFile& out) {
  const auto fill = [&](std::uint64_t offset, std::span<std::uint8_t> block) {
    std::memcpy(block.data(), bytes.data() + offset, block.size());
  };
  return {out.store(bytes.size(), jobs_, fill).value(), bytes.size()};
}

template <class Number>
std::span<const std::uint8_t> bytes_of(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const std::uint8_t*>(numbers.data()), numbers.size() * sizeof(Number)};
}

StoredWeight IrWeightQuantizer::store_parts(const FloatWeight& weight, const WeightGroup& group,
                                            const WeightScales& scales, PayloadFile& out) {
  StoredWeight stored;
  stored.codes = store_codes(weight, group, scales, out);
  if (!scales.zero_point.empty())
    stored.zero_point = store_bytes(packed_zero_points(scales, group.plan.code_type), out);
  stored.scale = store_bytes(bytes_of(scales.scale), out);
  if (group.plan.block_size > 0) stored.target_shape = store_bytes(bytes_of(weight.shape), out);
  return stored;
}

/// One dequantization for each constant and type that a graph's operators read.
void IrWeightQuantizer::edit(const WeightGroup& group, const StoredWeight& stored) {
  std::map<std::tuple<std::size_t, std::size_t, DType>, IrQuantizedWeight> edits;
  for (const std::size_t row : group.rows) {
    const IrFloatWeight& site = sites_[row];
    IrQuantizedWeight& weight = edits[{site.graph, site.constant, site.float_type}];
    weight.readers.push_back(site.reader);
    if (weight.readers.size() > 1) continue;
    weight.name = names_[site.graph].fresh(rows_[row].weight);
    weight.before = site.constant;
    weight.code_type = group.plan.code_type;
    weight.float_type = site.float_type;
    weight.codes_shape = codes_shape(group.plan, site.shape);
    weight.scale_shape = affine_shape(group.plan, site.shape);
    weight.shape = site.shape;
    weight.codes = stored.codes;
    weight.scale = stored.scale;
    weight.zero_point = stored.zero_point;
    weight.target_shape = stored.target_shape;
  }
  for (const auto& [key, weight] : edits) ir_.dequantize_weight(std::get<0>(key), weight);
}

/// Takes what was quantized from its float constants.
void IrWeightQuantizer::drop_floats(std::vector<IrLiveness>& alive) const {
  for (const WeightGroup& group : groups_) {
    for (const std::size_t row : group.rows) {
      const IrFloatWeight& site = sites_[row];
      alive[site.graph].drop_use(ir_.graph(site.graph).layers[site.reader.layer].inputs[site.reader.input].layer);
    }
  }
}

void IrWeightQuantizer::run(PayloadFile& out, WeightQuantizeReport& report) {
  std::vector<IrLiveness> alive;
  for (std::size_t g = 0; g < ir_.n_graphs(); ++g) {
    alive.emplace_back(ir_.graph(g));
    names_.emplace_back(ir_.graph(g));
  }
  drop_floats(alive);
  std::map<std::pair<std::size_t, std::size_t>, std::vector<const WeightGroup*>> groups;
  for (const WeightGroup& group : groups_) {
    const IrFloatWeight& site = sites_[group.rows.front()];
    groups[{site.graph, site.constant}].push_back(&group);
  }
  IrConstantCopier constants(ir_, payloads_, out, jobs_);
  for (std::size_t g = 0; g < ir_.n_graphs(); ++g) {
    for (std::size_t layer = 0; layer < ir_.graph(g).layers.size(); ++layer) {
      if (!ir_.graph(g).layers[layer].payload) continue;
      if (const auto found = groups.find({g, layer}); found != groups.end()) {
        for (const WeightGroup* group : found->second) store(*group, out);
      }
      if (!alive[g].dead(layer)) constants.copy(g, layer);
    }
  }
  for (std::size_t g = 0; g < ir_.n_graphs(); ++g) {
    for (const std::size_t layer : alive[g].dead()) ir_.remove(g, layer);
  }
  count_sources_once(sources_, rows_);
  report.weights = std::move(rows_);
}

WeightQuantizeReport quantize_input(const IrInput& input, const fs::path& out, const WeightQuantizeOptions& options,
                                    const Progress& progress) {
  check(options);
  WeightQuantizeReport report;
  report.format = "openvino";
  report.options = options;
  report.bytes_before = input.size_bytes();
  Ir ir = input.parse();
  IrWeightQuantizer quantizer(input, ir, options, progress);
  quantizer.plan(report);
  PayloadFile payloads = open_payloads(out);
  quantizer.run(payloads, report);
  const std::string xml = ir.xml();
  report.bytes_after = xml.size() + payloads.size_bytes();
  if (out.empty() || report.count_below_min_sqnr() > 0) return report;
  commit_ir(out, xml, payloads);
  report.output = out.filename().string();
  return report;
}

}  // namespace

WeightQuantizeReport quantize_weights_ir(const fs::path& in, const fs::path& out, const WeightQuantizeOptions& options,
                                         const Progress& progress) {
  if (!out.empty()) check_ir_paths(in, out);
  WeightQuantizeReport report = quantize_input(IrInput(in), out, options, progress);
  report.input = in.filename().string();
  return report;
}

WeightQuantizeReport plan_quantize_weights_ir(std::span<const std::uint8_t> xml, std::span<const std::uint8_t> bin,
                                              const WeightQuantizeOptions& options) {
  return quantize_input(IrInput(xml, bin), {}, options, {});
}

}  // namespace weightmill

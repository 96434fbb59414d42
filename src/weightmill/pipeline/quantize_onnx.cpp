#include "quantize_onnx.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/base/parallel.h>
#include <weightmill/formats_onnx/onnx.h>

#include "reading_limit.h"
#include "weight_choice.h"
#include "weight_coder.h"
#include "weight_groups.h"

namespace weightmill {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kKnownTypes{"Conv", "ConvTranspose", "Gemm", "MatMul", "Gather"};
/// Not Gather: ONNX Runtime 1.32 would dequantize the whole table for each look-up.
const std::vector<std::string> kUsualTypes{"Conv", "ConvTranspose", "Gemm", "MatMul"};

FloatWeight float_weight(const OnnxModel& model, const OnnxFloatWeight& site) {
  FloatWeight weight;
  weight.name = "tensor " + site.data.name;
  weight.shape = site.data.shape;
  weight.read = model.reader(site.data);
  weight.channel_axis = site.channel_axis;
  weight.block_axis = site.block_axis;
  weight.no_channels = site.no_channels;
  return weight;
}

QuantizedWeight row_of(const OnnxFloatWeight& site) {
  QuantizedWeight row;
  row.node = site.name;
  row.op = site.op;
  row.weight = site.data.name;
  row.via = site.via;
  row.shape = site.data.shape;
  row.type_before = row.type_after = site.data.stored_dtype;
  row.bytes_before = row.bytes_after = site.data.bytes.size();
  row.reason = site.left_reason;
  return row;
}

class OnnxWeightQuantizer {
 public:
  OnnxWeightQuantizer(OnnxModel& model, const WeightQuantizeOptions& options, const Progress& progress)
      : model_(model),
        options_(options),
        progress_(progress),
        jobs_(resolve_jobs(options.jobs)),
        sites_(model.float_weights()) {
    for (const OnnxFloatWeight& site : sites_) {
      rows_.push_back(row_of(site));
      sources_.push_back({site.source, site.other_readers.empty() ? "" : site.other_readers.front()});
    }
  }

  void run(WeightQuantizeReport& report) {
    choose();
    leave_shared(sources_, rows_);
    const std::vector<WeightGroup> groups = grouped();
    check_opsets(groups);
    check_work(groups);
    std::vector<OnnxDequantization> edits;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (progress_) progress_("measuring", i, groups.size());
      edits.push_back(quantized(groups[i]));
      report.n_folded_chains += sites_[groups[i].rows.front()].via.empty() ? 0 : 1;
    }
    model_.dequantize_weights(edits);
    note_inputs(groups, report);
    count_sources_once(sources_, rows_);
    report.weights = std::move(rows_);
  }

 private:
  void choose() {
    std::vector<std::string> names;
    for (const OnnxFloatWeight& site : sites_) names.push_back(site.name);
    const WeightChoice choice(options_, kKnownTypes, kUsualTypes, names);
    for (QuantizedWeight& row : rows_) {
      if (row.reason.empty()) choice.judge(row);
    }
  }

  std::vector<WeightGroup> grouped() const {
    return group_weights(
        sources_, rows_, [&](std::size_t i) { return plan_scales(float_weight(model_, sites_[i]), options_); },
        [&](std::size_t a, std::size_t b) { return same_elements(sites_[a].data, sites_[b].data); });
  }

  void check_opsets(const std::vector<WeightGroup>& groups) const {
    for (const WeightGroup& group : groups) {
      const OnnxFloatWeight& site = sites_[group.rows.front()];
      const std::int64_t wanted = dequantize_opset(group.plan.code_type, true, group.plan.block_size > 0);
      if (group.plan.block_size == 0 || site.opset >= wanted) continue;
      fail(ErrorCode::unsupported, model_.path().string(),
           fmt::format("{} {}: blocks need operator set {}, and the model has {}: convert it with "
                       "onnx.version_converter, or leave the block size out",
                       site.op, site.name, wanted, site.opset));
    }
  }

  /// Throws: bad_file if the model would be read many times over.
  void check_work(const std::vector<WeightGroup>& groups) const {
    std::uint64_t n_bytes = 0;
    for (const WeightGroup& group : groups) n_bytes += sites_[group.rows.front()].data.bytes.size();
    if (!reads_too_often(n_bytes, model_.size_bytes())) return;
    fail(ErrorCode::bad_file, model_.path().string(),
         fmt::format("its operators see constants in {} ways: {} bytes would be read of {}", groups.size(), n_bytes,
                     model_.size_bytes()));
  }

  OnnxDequantization quantized(const WeightGroup& group) {
    const OnnxFloatWeight& site = sites_[group.rows.front()];
    const FloatWeight weight = float_weight(model_, site);
    const CodedWeight coded = code_weight(weight, group.plan, jobs_);
    record(group, coded, rows_);
    OnnxDequantization edit;
    for (const std::size_t member : group.rows) edit.readers.push_back({sites_[member].node, sites_[member].input});
    edit.name = site.data.name;
    edit.code_type = group.plan.code_type;
    edit.shape = site.data.shape;
    edit.codes = [weight, plan = group.plan, scales = coded.scales, jobs = jobs_](const auto& sink) {
      write_codes(weight, plan, *scales, jobs, sink);
    };
    edit.float_type = site.data.dtype;
    edit.scale_shape = group.plan.scale_shape;
    edit.scale = {coded.scales, &coded.scales->scale};  // lives as long as what holds it
    edit.zero_point = packed_zero_points(*coded.scales, group.plan.code_type);
    edit.axis = static_cast<std::int64_t>(group.plan.axis.value_or(0));
    edit.block_size = group.plan.block_size;
    return edit;
  }

  void note_inputs(const std::vector<WeightGroup>& groups, WeightQuantizeReport& report) const {
    std::set<std::size_t> inputs;
    for (const WeightGroup& group : groups) {
      const OnnxFloatWeight& site = sites_[group.rows.front()];
      if (site.was_input) inputs.insert(site.source);
    }
    if (inputs.empty()) return;
    report.notes.push_back(
        fmt::format("weights that were inputs too, and that no caller can replace any more: {}", inputs.size()));
  }

  OnnxModel& model_;
  const WeightQuantizeOptions& options_;
  const Progress& progress_;
  unsigned jobs_;
  std::vector<OnnxFloatWeight> sites_;
  std::vector<WeightSource> sources_;
  std::vector<QuantizedWeight> rows_;
};

}  // namespace

WeightQuantizeReport quantize_weights_onnx(const fs::path& in, const fs::path& out,
                                           const WeightQuantizeOptions& options, const Progress& progress) {
  check(options);
  OnnxModel model(in);
  WeightQuantizeReport report;
  report.input = in.filename().string();
  report.format = "onnx";
  report.options = options;
  report.bytes_before = model.size_bytes();
  OnnxWeightQuantizer(model, options, progress).run(report);
  conclude(report, in.string());
  const bool write = !out.empty() && report.count_below_min_sqnr() == 0;
  if (progress) progress("writing", 0, 1);
  report.bytes_after = model.write(write ? out : fs::path(), options.external_data);
  if (write) report.output = out.filename().string();
  return report;
}

}  // namespace weightmill

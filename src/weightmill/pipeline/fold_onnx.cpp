#include "fold_onnx.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/base/parallel.h>
#include <weightmill/fold/quantize_linear.h>
#include <weightmill/formats_onnx/onnx.h>

#include "block_stream.h"
#include "reading_limit.h"

namespace weightmill {
namespace {

namespace fs = std::filesystem;
using Sink = std::function<void(std::span<const std::uint8_t>)>;
using ReadFloats = std::function<void(std::uint64_t first, std::span<float> out)>;

/// The operation that a node stands for. Reads scale and zero point; the data stays where it is.
QuantizeLinear operation_of(const OnnxQuantize& site, const ReadFloats& read) {
  QuantizeLinear operation;
  operation.type = site.data.dtype;
  operation.shape = site.data.shape;
  operation.read = read;
  operation.scale_type = site.scale.dtype;
  operation.scale_shape = site.scale.shape;
  operation.scale.resize(n_elements(site.scale.shape, site.scale.name));
  read_floats(site.scale, 0, operation.scale);
  if (site.zero_point) {
    operation.zero_point_shape = site.zero_point->shape;
    operation.zero_point = read_integers(*site.zero_point);
  }
  operation.code_type = site.code_dtype;
  operation.axis = site.axis;
  operation.block_size = site.block_size;
  operation.division = site.division;
  return operation;
}

bool same_codes(const OnnxQuantize& a, const OnnxQuantize& b) {
  const auto same_values = [](const OnnxConstant& x, const OnnxConstant& y) {
    return same_elements(x, y) || (x.dtype == y.dtype && x.shape == y.shape && x.casts.empty() && y.casts.empty() &&
                                   x.strides == y.strides && std::ranges::equal(x.bytes, y.bytes));
  };
  return same_elements(a.data, b.data) && a.code_dtype == b.code_dtype && a.axis == b.axis &&
         a.block_size == b.block_size && a.division == b.division && same_values(a.scale, b.scale) &&
         a.zero_point.has_value() == b.zero_point.has_value() &&
         (!a.zero_point || same_values(*a.zero_point, *b.zero_point));
}

/// Hashes of constants, each of which is read once however many nodes use it.
class Hashes {
 public:
  std::size_t operator()(std::span<const std::uint8_t> bytes) {
    const auto [entry, is_new] = known_.try_emplace({bytes.data(), bytes.size()}, 0);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (is_new) entry->second = std::hash<std::string_view>()(text);
    return entry->second;
  }

 private:
  std::map<std::pair<const void*, std::size_t>, std::size_t> known_;
};

/// Equal where same_codes() holds, and rarely else: many nodes may quantize one constant.
std::size_t hash_of_parameters(const OnnxQuantize& site, Hashes& hashes) {
  std::size_t sum = hashes(site.scale.bytes);
  const auto add = [&](std::size_t part) { sum = sum * 31 + part; };
  if (site.zero_point) add(hashes(site.zero_point->bytes));
  for (const std::int64_t number : {site.axis, site.block_size}) add(std::hash<std::int64_t>()(number));
  for (const std::int64_t stride : site.data.strides) add(std::hash<std::int64_t>()(stride));
  add(static_cast<std::size_t>(site.code_dtype));
  add(static_cast<std::size_t>(site.division));
  return sum;
}

/// One constant that is to be, and the nodes that it replaces: numbers in the list of sites.
using Group = std::vector<std::size_t>;

class OnnxFolder {
 public:
  OnnxFolder(OnnxModel& model, const FoldOptions& options, const Progress& progress)
      : model_(model), jobs_(resolve_jobs(options.jobs)), progress_(progress), sites_(model.quantize_of_constants()) {
    for (const OnnxQuantize& site : sites_) rows_.push_back(row_of(site));
  }

  std::vector<FoldedTensor> run(std::vector<std::string>& notes) {
    std::vector<OnnxFold> folds;
    const std::vector<Group> groups = grouped();
    check_work(groups);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (progress_) progress_("checking", i, groups.size());
      if (auto fold = folded(groups[i])) folds.push_back(std::move(*fold));
    }
    const std::vector<std::string> kept = model_.fold_quantize(folds);
    for (const std::string& name : kept)
      notes.push_back(fmt::format("{} stays as it was too: something else reads it", name));
    return std::move(rows_);
  }

 private:
  static FoldedTensor row_of(const OnnxQuantize& site) {
    FoldedTensor row;
    row.name = site.output;
    row.constant = site.data.name;
    row.reason = site.left_reason;
    row.shape = site.data.shape;
    row.type_before = row.type_after = site.data.stored_dtype;
    row.bytes_before = row.bytes_after = site.data.bytes.size();
    return row;
  }

  /// Sites that may be folded, together with those that have the same codes, in the order of the first one.
  std::vector<Group> grouped() const {
    std::vector<Group> groups;
    Hashes hashes;
    std::multimap<std::pair<const void*, std::size_t>, std::size_t> by_data;
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      if (!sites_[i].left_reason.empty()) continue;
      const std::pair key(static_cast<const void*>(sites_[i].data.bytes.data()), hash_of_parameters(sites_[i], hashes));
      const auto [begin, end] = by_data.equal_range(key);
      const auto known = std::find_if(
          begin, end, [&](const auto& entry) { return same_codes(sites_[groups[entry.second].front()], sites_[i]); });
      if (known != end) {
        groups[known->second].push_back(i);
      } else {
        by_data.emplace(key, groups.size());
        groups.push_back({i});
      }
    }
    return groups;
  }

  /// Throws: bad_file if the model would be read many times over.
  void check_work(const std::vector<Group>& groups) const {
    std::uint64_t n_bytes = 0;
    for (const Group& group : groups) {
      const OnnxQuantize& site = sites_[group.front()];
      n_bytes += site.data.bytes.size() + site.scale.bytes.size();
      if (site.zero_point) n_bytes += site.zero_point->bytes.size();
    }
    const std::uint64_t size = model_.size_bytes();
    if (!reads_too_often(n_bytes, size)) return;
    fail(ErrorCode::bad_file, model_.path().string(),
         fmt::format("its {} QuantizeLinear nodes share constants: {} bytes would be read of {}", groups.size(),
                     n_bytes, size));
  }

  /// The edit that folds a group, after all its codes have been made once and checked; nothing where it must be left.
  std::optional<OnnxFold> folded(const Group& group) {
    const auto plan =
        plan_quantize_linear(operation_of(sites_[group.front()], model_.reader(sites_[group.front()].data)));
    if (const auto* left = std::get_if<Left>(&plan)) return leave(group, left->reason);
    const ConstantFold& fold = *std::get<std::unique_ptr<ConstantFold>>(plan);
    const BlockResult result = stream_codes(fold, jobs_, [](auto) {});
    if (const std::string objection = fold.objection(result); !objection.empty()) return leave(group, objection);
    record(group, fold, result);
    return edit_of(group, fold);
  }

  std::nullopt_t leave(const Group& group, const std::string& reason) {
    for (const std::size_t site : group) rows_[site].reason = reason;
    return std::nullopt;
  }

  void record(const Group& group, const ConstantFold& fold, const BlockResult& result) {
    for (const std::size_t site : group) {
      FoldedTensor& row = rows_[site];
      const bool first = site == group.front();
      row.outcome = FoldOutcome::folded;
      row.type_after = fold.code_type();
      row.bytes_before = first ? row.bytes_before : 0;  // one constant, counted once
      row.bytes_after = first ? code_bytes(row.type_after, n_elements(row.shape, row.name)) : 0;
      row.max_error_steps = result.error.max_steps;
      row.bound_steps = result.error.bound_steps;
      row.zero_point_kept = fold.zero_point() == ZeroPoint::kept;
    }
  }

  /// Scales may be as many as weights: they are read again when the codes are written, not kept until then.
  OnnxFold edit_of(const Group& group, const ConstantFold& fold) const {
    OnnxFold edit;
    for (const std::size_t site : group) edit.quantize.push_back(sites_[site].index);
    edit.dtype = fold.code_type();
    edit.shape = fold.shape();
    edit.codes = [site = sites_[group.front()], read = model_.reader(sites_[group.front()].data),
                  jobs = jobs_](const Sink& sink) {
      const auto plan = plan_quantize_linear(operation_of(site, read));
      const ConstantFold& again = *std::get<std::unique_ptr<ConstantFold>>(plan);
      const std::string objection = again.objection(stream_codes(again, jobs, sink));
      if (objection.empty()) return;
      fail(ErrorCode::internal, site.output, "its data changed while it was read: " + objection);
    };
    return edit;
  }

  OnnxModel& model_;
  unsigned jobs_;
  const Progress& progress_;
  std::vector<OnnxQuantize> sites_;
  std::vector<FoldedTensor> rows_;
};

void refuse_left(const FoldReport& report) {
  const auto left = std::ranges::find(report.tensors, FoldOutcome::left, &FoldedTensor::outcome);
  if (left == report.tensors.end()) return;
  fail(ErrorCode::unsupported, report.input,
       fmt::format("{} of {} quantized constants cannot be folded; the first is {}: {}",
                   report.count(FoldOutcome::left), report.tensors.size(), left->name, left->reason));
}

}  // namespace

FoldReport fold_onnx(const fs::path& in, const fs::path& out, const FoldOptions& options, const Progress& progress) {
  OnnxModel model(in);
  FoldReport report;
  report.input = in.filename().string();
  report.output = out.filename().string();
  report.format = "onnx";
  report.semantics = options.semantics;
  report.bytes_before = model.size_bytes();
  if (options.compress_weights) report.tensors = OnnxFolder(model, options, progress).run(report.notes);
  if (options.fail_on_left) refuse_left(report);
  if (progress) progress("writing", 0, 1);
  report.bytes_after = model.write(out, options.external_data);
  return report;
}

}  // namespace weightmill

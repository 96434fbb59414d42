#include "weight_coder.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include <weightmill/base/bits.h>
#include <weightmill/base/error.h>
#include <weightmill/base/parallel.h>
#include <weightmill/fold/quantize_linear.h>
#include <weightmill/quantize/scale_search.h>

#include "block_stream.h"

namespace weightmill {
namespace {

/// "[1, 0, 0, 2]" for the element with this number in row-major order.
std::string position_of(const Shape& shape, std::uint64_t element) {
  Shape position(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const auto extent = static_cast<std::uint64_t>(shape[axis]);
    position[axis] = static_cast<std::int64_t>(element % extent);
    element /= extent;
  }
  return to_string(position);
}

[[noreturn]] void refuse(const FloatWeight& weight, std::uint64_t element) {
  float value = 0;
  weight.read(element, {&value, 1});
  fail(ErrorCode::bad_file, weight.name,
       fmt::format("weight {} of {} is {}: weights must be finite", position_of(weight.shape, element),
                   to_string(weight.shape), value));
}

/// What one thread has read, kept from block to block.
struct Worker {
  std::vector<float> x = std::vector<float>(kBlockElements);
  std::vector<WeightRange> ranges;
  std::vector<WeightError> errors;
  ScaleSearch::Errors candidates;
  std::optional<std::uint64_t> not_finite;
};

std::vector<WeightRange> ranges_of(const FloatWeight& weight, const ScalePlan& plan, std::vector<Worker>& workers) {
  for (Worker& worker : workers) worker.ranges.assign(plan.n_scales(), {});
  const auto read = [&](std::size_t i, std::uint64_t first, std::uint64_t count) {
    Worker& worker = workers[i];
    const auto x = std::span(worker.x).first(count);
    weight.read(first, x);
    const auto bad = widen(plan.layout, first, x, worker.ranges);
    if (bad) worker.not_finite = first + *bad;
  };
  const auto taken = [&](std::size_t i) {
    if (workers[i].not_finite) refuse(weight, *workers[i].not_finite);
  };
  for_each_block(n_elements(weight.shape, weight.name), static_cast<unsigned>(workers.size()), read, taken);
  std::vector<WeightRange> ranges = std::move(workers.front().ranges);
  for (const Worker& worker : std::span(workers).subspan(1)) {  // the least of all, in whatever order
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      ranges[i] = {std::min(ranges[i].low, worker.ranges[i].low), std::max(ranges[i].high, worker.ranges[i].high)};
    }
  }
  return ranges;
}

/// The best scales of all groups of a weight, whose errors are added up block by block in order.
WeightScales searched_together(const FloatWeight& weight, const ScalePlan& plan, const ScaleSearch& search,
                               std::vector<Worker>& workers) {
  std::vector<double> totals(search.no_errors().size());
  const auto read = [&](std::size_t i, std::uint64_t first, std::uint64_t count) {
    Worker& worker = workers[i];
    const auto x = std::span(worker.x).first(count);
    weight.read(first, x);
    worker.candidates.assign(totals.size(), 0);
    add_candidate_errors(search, plan.layout, first, x, 0, worker.candidates);
  };
  const auto taken = [&](std::size_t i) {
    for (std::size_t e = 0; e < totals.size(); ++e) totals[e] += static_cast<double>(workers[i].candidates[e]);
  };
  for_each_block(n_elements(weight.shape, weight.name), static_cast<unsigned>(workers.size()), read, taken);
  return search.best(totals);
}

/// Weights between one change of blocks and the next: they are stored together, and so are their scales.
struct Stripe {
  std::uint64_t first = 0, count = 0;  ///< weights
  std::uint64_t first_scale = 0, n_scales = 0;
};

/// Searches the scales of one stripe, reading it a piece at a time.
void search_stripe(const FloatWeight& weight, const ScalePlan& plan, const Stripe& stripe,
                   std::span<const WeightRange> ranges, Worker& worker, WeightScales& scales) {
  const ScaleSearch search(ranges.subspan(stripe.first_scale, stripe.n_scales), plan.code_type);
  worker.candidates.assign(search.no_errors().size(), 0);
  for (std::uint64_t done = 0; done < stripe.count; done += kBlockElements) {
    const auto x = std::span(worker.x).first(std::min(kBlockElements, stripe.count - done));
    weight.read(stripe.first + done, x);
    add_candidate_errors(search, plan.layout, stripe.first + done, x, stripe.first_scale, worker.candidates);
  }
  const WeightScales best = search.best(std::vector<double>(worker.candidates.begin(), worker.candidates.end()));
  std::ranges::copy(best.scale, scales.scale.begin() + static_cast<std::ptrdiff_t>(stripe.first_scale));
  std::ranges::copy(best.zero_point, scales.zero_point.begin() + static_cast<std::ptrdiff_t>(stripe.first_scale));
}

/// The best scales of a weight in blocks: stripe by stripe, as there may be as many scales as would fill the memory with
/// candidates.
WeightScales searched_in_stripes(const FloatWeight& weight, const ScalePlan& plan, std::span<const WeightRange> ranges,
                                 std::vector<Worker>& workers) {
  WeightScales scales = scales_for(ranges, plan.code_type);
  const std::uint64_t elements = plan.layout.block * plan.layout.inner;  // rows are whole blocks
  const std::uint64_t at_once = std::max<std::uint64_t>(1, kBlockElements / elements);
  const std::uint64_t n_stripes = ceil_to(plan.n_scales() / plan.layout.inner, at_once) / at_once;
  for (std::uint64_t begin = 0; begin < n_stripes; begin += workers.size()) {
    const std::size_t n = std::min<std::uint64_t>(workers.size(), n_stripes - begin);
    parallel_for(n, static_cast<unsigned>(workers.size()), [&](std::size_t i) {
      const std::uint64_t block = (begin + i) * at_once;
      const std::uint64_t n_blocks = std::min(at_once, plan.n_scales() / plan.layout.inner - block);
      const Stripe stripe{block * elements, n_blocks * elements, block * plan.layout.inner,
                          n_blocks * plan.layout.inner};
      search_stripe(weight, plan, stripe, ranges, workers[i], scales);
    });
  }
  return scales;
}

WeightScales scales_of(const FloatWeight& weight, const ScalePlan& plan, std::vector<Worker>& workers) {
  const std::vector<WeightRange> ranges = ranges_of(weight, plan, workers);
  if (!plan.search) return scales_for(ranges, plan.code_type);
  if (plan.block_size > 0) return searched_in_stripes(weight, plan, ranges, workers);
  return searched_together(weight, plan, ScaleSearch(ranges, plan.code_type), workers);
}

/// Errors of each channel, or of all weights together: sums of floats, added up block by block in order.
std::vector<WeightError> errors_of(const FloatWeight& weight, const ScalePlan& plan, const WeightScales& scales,
                                   std::vector<Worker>& workers) {
  const bool per_channel = plan.axis && plan.block_size == 0;
  std::vector<WeightError> errors(per_channel ? plan.n_scales() : 1);
  const auto read = [&](std::size_t i, std::uint64_t first, std::uint64_t count) {
    Worker& worker = workers[i];
    const auto x = std::span(worker.x).first(count);
    weight.read(first, x);
    worker.errors.assign(errors.size(), {});
    add_error(plan.layout, scales, plan.code_type, first, x, worker.errors);
  };
  const auto taken = [&](std::size_t i) {
    for (std::size_t e = 0; e < errors.size(); ++e) errors[e].merge(workers[i].errors[e]);
  };
  for_each_block(n_elements(weight.shape, weight.name), static_cast<unsigned>(workers.size()), read, taken);
  return errors;
}

/// The operation whose codes these are.
QuantizeLinear operation_of(const FloatWeight& weight, const ScalePlan& plan, const WeightScales& scales) {
  QuantizeLinear operation;
  operation.shape = weight.shape;
  operation.read = weight.read;
  operation.scale_shape = plan.scale_shape;
  operation.scale = scales.scale;
  operation.zero_point_shape = plan.scale_shape;
  operation.zero_point = scales.zero_point;
  operation.code_type = plan.code_type;
  operation.axis = static_cast<std::int64_t>(plan.axis.value_or(0));
  operation.block_size = plan.block_size;
  return operation;
}

DType eight_bit(DType type) { return is_signed_integer(type) ? DType::i8 : DType::u8; }

void set_channels(ScalePlan& plan, const FloatWeight& weight) {
  if (!weight.channel_axis) {
    plan.note = weight.no_channels;
    return;
  }
  plan.axis = weight.channel_axis;
  plan.layout = ScaleLayout::along(weight.shape, *plan.axis);
  plan.scale_shape = {weight.shape[*plan.axis]};
  plan.granularity = fmt::format("per axis {}", *plan.axis);
}

void set_blocks(ScalePlan& plan, const FloatWeight& weight, std::int64_t block) {
  plan.axis = weight.block_axis;
  plan.block_size = block;
  plan.layout = ScaleLayout::along(weight.shape, *plan.axis, static_cast<std::uint64_t>(block));
  plan.scale_shape = weight.shape;
  plan.scale_shape[*plan.axis] /= block;
  plan.granularity = fmt::format("blocks of {} along axis {}", block, *plan.axis);
}

}  // namespace

std::uint64_t ScalePlan::size_bytes(const Shape& shape) const {
  const std::uint64_t zero_points = is_signed_integer(code_type) ? 0 : code_bytes(code_type, n_scales());
  return code_bytes(code_type, n_elements(shape, "codes")) + n_scales() * sizeof(float) + zero_points;
}

ScalePlan plan_scales(const FloatWeight& weight, const WeightQuantizeOptions& options) {
  ScalePlan plan;
  plan.granularity = "per tensor";
  plan.code_type = weight.block_axis ? options.weight_type : eight_bit(options.weight_type);
  const ScaleMethod usual = size_bits(plan.code_type) == 4 ? ScaleMethod::mse : ScaleMethod::minmax;
  plan.search = (options.scale_method == ScaleMethod::automatic ? usual : options.scale_method) == ScaleMethod::mse;
  const std::int64_t block = options.block_size;
  if (block > 0 && weight.block_axis && weight.shape[*weight.block_axis] % block == 0) {
    set_blocks(plan, weight, block);
    return plan;
  }
  if (options.per_channel) set_channels(plan, weight);
  if (block > 0 && weight.block_axis) {
    plan.note = fmt::format("{} is no multiple of {}", weight.shape[*weight.block_axis], block);
  } else if (plan.note.empty() && (block > 0 || plan.code_type != options.weight_type)) {
    plan.note = "blocks and 4-bit codes are for matrices";
  }
  return plan;
}

CodedWeight code_weight(const FloatWeight& weight, const ScalePlan& plan, unsigned jobs) {
  std::vector<Worker> workers(jobs);
  CodedWeight coded;
  coded.scales = std::make_shared<WeightScales>(scales_of(weight, plan, workers));
  const std::vector<WeightError> errors = errors_of(weight, plan, *coded.scales, workers);
  coded.worst_sqnr_db = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < errors.size(); ++i) {
    coded.error.merge(errors[i]);
    const bool dead = std::ranges::binary_search(coded.scales->negligible, i) || errors[i].signal == 0;
    if (!dead) coded.worst_sqnr_db = std::min(coded.worst_sqnr_db, errors[i].sqnr_db());
  }
  return coded;
}

void write_codes(const FloatWeight& weight, const ScalePlan& plan, const WeightScales& scales, unsigned jobs,
                 const std::function<void(std::span<const std::uint8_t>)>& sink) {
  const auto planned = plan_quantize_linear(operation_of(weight, plan, scales));
  if (const auto* left = std::get_if<Left>(&planned)) fail(ErrorCode::internal, weight.name, left->reason);
  const ConstantFold& codes = *std::get<std::unique_ptr<ConstantFold>>(planned);
  const std::string objection = codes.objection(stream_codes(codes, jobs, sink));
  if (!objection.empty()) fail(ErrorCode::internal, weight.name, "its data changed while it was read: " + objection);
}

}  // namespace weightmill

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

/// What a block of weights is read into and what comes of it; used again for later blocks.
struct Slot {
  std::vector<float> x;
  std::vector<WeightRange> ranges;
  std::vector<WeightError> errors;
  ScaleSearch::Errors candidates;
  std::optional<std::uint64_t> not_finite;
};

/// Weights between one change of blocks and the next: they are stored together, and so are their scales.
struct Stripe {
  std::uint64_t first = 0, count = 0;  ///< weights
  std::uint64_t first_scale = 0, n_scales = 0;
};

/// Reads a weight, several times, on several threads.
class WeightPasses {
 public:
  WeightPasses(const FloatWeight& weight, const ScalePlan& plan, unsigned jobs)
      : weight_(weight),
        plan_(plan),
        jobs_(jobs),
        n_weights_(n_elements(weight.shape, weight.name)),
        slots_(n_slots()) {}

  WeightScales scales() {
    if (plan_.block_size > 0) return scales_in_stripes();
    const std::vector<WeightRange> ranges = ranges_together();
    return plan_.search ? searched_together(ScaleSearch(ranges, plan_.code_type)) : scales_for(ranges, plan_.code_type);
  }

  /// Errors of each channel, or of all weights together: sums of floats, added up block by block in order.
  std::vector<WeightError> errors(const WeightScales& scales) {
    const bool per_channel = plan_.axis && plan_.block_size == 0;
    std::vector<WeightError> errors(per_channel ? plan_.n_scales() : 1);
    const auto read = [&](Slot& slot, std::uint64_t first, std::span<const float> x) {
      slot.errors.assign(errors.size(), {});
      add_error(plan_.layout, scales, plan_.code_type, first, x, slot.errors);
    };
    for_each_slot(read, [&](const Slot& slot) {
      for (std::size_t e = 0; e < errors.size(); ++e) errors[e].merge(slot.errors[e]);
    });
    return errors;
  }

 private:
  /// Each slot holds candidates and errors of all channels: in all, they may take some 32 MiB, or one slot a thread.
  /// Blocks come and go with their stripe.
  std::size_t n_slots() const {
    constexpr std::uint64_t kBytes =
        sizeof(WeightError) + sizeof(WeightRange) + ScaleSearch::kCandidates * sizeof(float);
    const std::uint64_t n_scales = plan_.block_size > 0 ? 1 : plan_.n_scales();
    const std::uint64_t fit = (std::uint64_t{32} << 20) / (kBytes * std::max<std::uint64_t>(n_scales, 1));
    const std::uint64_t n_blocks = n_weights_ / kBlockElements + 1;
    return std::min(n_blocks, std::clamp<std::uint64_t>(fit, jobs_, slots_for(jobs_)));
  }

  /// Reads into the slot.
  std::span<const float> weights(Slot& slot, std::uint64_t first, std::uint64_t count) const {
    slot.x.resize(std::max<std::size_t>(slot.x.size(), count));
    const auto x = std::span(slot.x).first(count);
    weight_.read(first, x);
    return x;
  }

  template <class Read, class Take>
  void for_each_slot(const Read& read, const Take& take) {
    const auto make = [&](std::size_t i, std::uint64_t first, std::uint64_t count) {
      read(slots_[i], first, weights(slots_[i], first, count));
    };
    for_each_block(n_weights_, jobs_, slots_.size(), make, [&](std::size_t i) { take(slots_[i]); });
  }

  std::vector<WeightRange> ranges_together() {
    std::vector<WeightRange> ranges(plan_.n_scales());
    for (Slot& slot : slots_) slot.ranges.assign(ranges.size(), {});
    const auto read = [&](Slot& slot, std::uint64_t first, std::span<const float> x) {
      const auto bad = widen(plan_.layout, first, x, slot.ranges);
      if (bad) slot.not_finite = first + *bad;
    };
    for_each_slot(read, [&](const Slot& slot) {
      if (slot.not_finite) refuse(weight_, *slot.not_finite);
    });
    for (const Slot& slot : slots_) {  // the least of all, in whatever order
      for (std::size_t i = 0; i < ranges.size(); ++i) {
        ranges[i] = {std::min(ranges[i].low, slot.ranges[i].low), std::max(ranges[i].high, slot.ranges[i].high)};
      }
    }
    return ranges;
  }

  WeightScales searched_together(const ScaleSearch& search) {
    std::vector<double> totals(search.no_errors().size());
    const auto read = [&](Slot& slot, std::uint64_t first, std::span<const float> x) {
      slot.candidates.assign(totals.size(), 0);
      add_candidate_errors(search, plan_.layout, first, x, 0, slot.candidates);
    };
    for_each_slot(read, [&](const Slot& slot) {
      for (std::size_t e = 0; e < totals.size(); ++e) totals[e] += static_cast<double>(slot.candidates[e]);
    });
    return search.best(totals);
  }

  /// Scales of blocks, stripe by stripe: there may be so many that ranges and candidates of all would fill the memory.
  WeightScales scales_in_stripes() {
    const std::uint64_t inner = plan_.layout.inner, n_rows = plan_.n_scales() / inner;
    const std::uint64_t row_weights = plan_.layout.block * inner;
    const std::uint64_t at_once = std::max<std::uint64_t>(1, kBlockElements / row_weights);
    WeightScales scales;
    scales.scale.resize(plan_.n_scales());
    if (!is_signed_integer(plan_.code_type)) scales.zero_point.resize(plan_.n_scales());
    for (std::uint64_t begin = 0; begin < n_rows; begin += at_once * slots_.size()) {
      const std::uint64_t end = std::min(n_rows, begin + at_once * slots_.size());
      const std::size_t n = ceil_to(end - begin, at_once) / at_once;
      std::vector<WeightScales> parts(n);
      const auto stripe_of = [&](std::size_t i) {
        const std::uint64_t row = begin + i * at_once, rows = std::min(at_once, end - row);
        return Stripe{row * row_weights, rows * row_weights, row * inner, rows * inner};
      };
      parallel_for(n, jobs_, [&](std::size_t i) { parts[i] = scales_of_stripe(stripe_of(i), slots_[i]); });
      for (std::size_t i = 0; i < n; ++i) put(parts[i], stripe_of(i).first_scale, scales, slots_[i]);
    }
    return scales;
  }

  /// visit(first, x) for the weights of a stripe, a piece at a time.
  template <class Visit>
  void read_stripe(const Stripe& stripe, Slot& slot, const Visit& visit) const {
    for (std::uint64_t done = 0; done < stripe.count; done += kBlockElements) {
      const std::uint64_t count = std::min(kBlockElements, stripe.count - done);
      visit(stripe.first + done, weights(slot, stripe.first + done, count));
    }
  }

  WeightScales scales_of_stripe(const Stripe& stripe, Slot& slot) const {
    slot.ranges.assign(stripe.n_scales, {});
    read_stripe(stripe, slot, [&](std::uint64_t first, std::span<const float> x) {
      const auto bad = widen(plan_.layout, first, x, slot.ranges, stripe.first_scale);
      if (bad && !slot.not_finite) slot.not_finite = first + *bad;
    });
    if (!plan_.search || slot.not_finite) return scales_for(slot.ranges, plan_.code_type);
    const ScaleSearch search(slot.ranges, plan_.code_type);
    slot.candidates.assign(search.no_errors().size(), 0);
    read_stripe(stripe, slot, [&](std::uint64_t first, std::span<const float> x) {
      add_candidate_errors(search, plan_.layout, first, x, stripe.first_scale, slot.candidates);
    });
    return search.best(std::vector<double>(slot.candidates.begin(), slot.candidates.end()));
  }

  void put(const WeightScales& part, std::uint64_t first_scale, WeightScales& scales, const Slot& slot) const {
    if (slot.not_finite) refuse(weight_, *slot.not_finite);
    const auto first = static_cast<std::ptrdiff_t>(first_scale);
    std::ranges::copy(part.scale, scales.scale.begin() + first);
    std::ranges::copy(part.zero_point, scales.zero_point.begin() + (part.zero_point.empty() ? 0 : first));
  }

  const FloatWeight& weight_;
  const ScalePlan& plan_;
  unsigned jobs_;
  std::uint64_t n_weights_;
  std::vector<Slot> slots_;
};

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
  operation.grouped = plan.grouped;
  return operation;
}

DType eight_bit(DType type) { return is_signed_integer(type) ? DType::i8 : DType::u8; }

void set_channels(ScalePlan& plan, const FloatWeight& weight) {
  if (!weight.channel_axis) {
    plan.note = weight.no_channels;
    return;
  }
  plan.axis = weight.channel_axis;
  plan.grouped = weight.grouped;
  if (plan.grouped) {
    plan.layout = ScaleLayout::along_groups(weight.shape, *plan.axis);
    plan.scale_shape = {weight.shape[0], weight.shape[*plan.axis]};
    plan.granularity = fmt::format("per axes 0 and {}", *plan.axis);
    return;
  }
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
  const bool odd = weight.block_axis && weight.shape[*weight.block_axis] % 2 != 0;
  plan.code_type = weight.block_axis && !odd ? options.weight_type : eight_bit(options.weight_type);
  const ScaleMethod usual = size_bits(plan.code_type) == 4 ? ScaleMethod::mse : ScaleMethod::minmax;
  plan.search = (options.scale_method == ScaleMethod::automatic ? usual : options.scale_method) == ScaleMethod::mse;
  const std::int64_t block = options.block_size;
  if (block > 0 && weight.block_axis && weight.shape[*weight.block_axis] % block == 0) {
    set_blocks(plan, weight, block);
    return plan;
  }
  if (options.per_channel) set_channels(plan, weight);
  if (odd && plan.code_type != options.weight_type) {
    plan.note = fmt::format("{} is odd: OpenVINO 2026.4 computes something else from 4-bit codes then",
                            weight.shape[*weight.block_axis]);
  } else if (block > 0 && weight.block_axis) {
    plan.note = fmt::format("{} is no multiple of {}", weight.shape[*weight.block_axis], block);
  } else if (plan.note.empty() && (block > 0 || plan.code_type != options.weight_type)) {
    plan.note = "blocks and 4-bit codes are for matrices";
  }
  return plan;
}

std::vector<std::uint8_t> packed_zero_points(const WeightScales& scales, DType code_type) {
  const unsigned bits = size_bits(code_type), per_byte = 8 / bits;
  std::vector<std::uint8_t> bytes(code_bytes(code_type, scales.zero_point.size()));
  for (std::size_t i = 0; i < scales.zero_point.size(); ++i) {
    const auto shifted = static_cast<unsigned>(scales.zero_point[i]) << (i % per_byte * bits);
    bytes[i / per_byte] = static_cast<std::uint8_t>(bytes[i / per_byte] | shifted);
  }
  return bytes;
}

CodedWeight code_weight(const FloatWeight& weight, const ScalePlan& plan, unsigned jobs) {
  WeightPasses passes(weight, plan, jobs);
  CodedWeight coded;
  coded.scales = std::make_shared<WeightScales>(passes.scales());
  const std::vector<WeightError> errors = passes.errors(*coded.scales);
  coded.worst_sqnr_db = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < errors.size(); ++i) {
    coded.error.merge(errors[i]);
    const bool dead = std::ranges::binary_search(coded.scales->negligible, i) || errors[i].signal == 0;
    if (!dead) coded.worst_sqnr_db = std::min(coded.worst_sqnr_db, errors[i].sqnr_db());
  }
  return coded;
}

std::unique_ptr<ConstantFold> plan_codes(const FloatWeight& weight, const ScalePlan& plan, const WeightScales& scales) {
  auto planned = plan_quantize_linear(operation_of(weight, plan, scales));
  if (const auto* left = std::get_if<Left>(&planned)) fail(ErrorCode::internal, weight.name, left->reason);
  return std::move(std::get<std::unique_ptr<ConstantFold>>(planned));
}

void check_codes(const FloatWeight& weight, const ConstantFold& codes, const BlockResult& result) {
  const std::string objection = codes.objection(result);
  if (!objection.empty()) fail(ErrorCode::internal, weight.name, "its data changed while it was read: " + objection);
}

void write_codes(const FloatWeight& weight, const ScalePlan& plan, const WeightScales& scales, unsigned jobs,
                 const std::function<void(std::span<const std::uint8_t>)>& sink) {
  const auto codes = plan_codes(weight, plan, scales);
  check_codes(weight, *codes, stream_codes(*codes, jobs, sink));
}

}  // namespace weightmill

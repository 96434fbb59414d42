#include "weight_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/kernels/channel_rows.h>

#include "layer.h"

namespace weightmill {
namespace {

void check_options(const WeightRequest& request) {
  if (request.bits != 4 && request.bits != 8) {
    fail(ErrorCode::bad_request, request.name, fmt::format("E_BITS: {}-bit weights; wanted 4 or 8", request.bits));
  }
  const std::size_t group = request.group_size;
  if (group == 0) return;
  if (group < 16 || !std::has_single_bit(group) || !request.per_channel) {
    fail(ErrorCode::bad_request, request.name,
         fmt::format("E_GROUP: groups of {} rows{}; wanted a power of two of at least 16, per channel", group,
                     request.per_channel ? "" : " per tensor"));
  }
}

/// The scale of a lane as engines take it, or a dead lane where float32 holds none.
void add_lane(QuantizedWeights& plan, double peak) {
  const double steps = (plan.bits == 8 ? 127.0 : 7.0) / peak;  // infinite for a peak of 0
  const auto renorm = static_cast<float>(1 / steps);
  const bool dead = !std::isfinite(steps) || renorm == 0;
  plan.steps_per_unit.push_back(dead ? 0.0 : steps);
  plan.renorm.push_back(dead ? 1.0F : renorm);
}

/// Quantizes the rows [first, last) as one group of each channel.
void quantize_group(QuantizedWeights& plan, const Layer& layer, std::size_t first, std::size_t last) {
  const std::size_t n = layer.n_channels;
  const auto rows = layer.request.weight.subspan(first * n, (last - first) * n);
  std::vector<std::uint32_t> peak_bits(n);
  channel_peak_bits(rows, peak_bits);
  if (!plan.per_channel) peak_bits.assign(n, *std::max_element(peak_bits.begin(), peak_bits.end()));
  std::vector<double> steps;
  for (const std::uint32_t bits : peak_bits) {
    add_lane(plan, static_cast<double>(std::bit_cast<float>(bits)));
    steps.push_back(plan.steps_per_unit.back());
  }
  std::vector<std::int64_t> unused_sum(n);
  quantize_rows(rows, steps, std::span(plan.weight).subspan(first * n, rows.size()), unused_sum);
}

/// The checks of shape and numbers are those of a convolution.
ConvRequest as_conv(const WeightRequest& request) {
  ConvRequest conv;
  conv.name = request.name;
  conv.weight = request.weight;
  conv.weight_shape = request.weight_shape;
  return conv;
}

void add_diagnostics(QuantizedWeights& plan, const Layer& layer) {
  std::vector<ChannelEffect> dead;
  for (std::size_t c = 0; c < layer.n_channels; ++c) {
    if (layer.channel_peak[c] == 0) {
      dead.push_back({static_cast<std::int64_t>(c), std::numeric_limits<double>::infinity()});
    }
  }
  if (!dead.empty()) plan.diagnostics.push_back({DiagnosticCode::dead_channels, std::move(dead)});
  if (plan.bits == 4 && !plan.per_channel) plan.diagnostics.push_back({DiagnosticCode::int4_per_tensor, {}});
}

}  // namespace

QuantizedWeights plan_weights(const WeightRequest& request) {
  check_options(request);
  const ConvRequest conv = as_conv(request);
  const Layer layer = check_request(conv);
  QuantizedWeights plan;
  plan.bits = request.bits;
  plan.weight_shape = request.weight_shape;
  plan.per_channel = request.per_channel;
  plan.group_size = request.group_size == 0 ? layer.n_rows : request.group_size;
  plan.weight.resize(request.weight.size());
  for (std::size_t row = 0; row < layer.n_rows; row += plan.group_size) {
    quantize_group(plan, layer, row, std::min(layer.n_rows, row + plan.group_size));
  }
  if (!plan.per_channel) {
    plan.steps_per_unit.resize(1);
    plan.renorm.resize(1);
  }
  add_diagnostics(plan, layer);
  return plan;
}

std::vector<std::uint8_t> pack_int4(std::span<const std::int8_t> weight) {
  std::vector<std::uint8_t> packed((weight.size() + 1) / 2);
  for (std::size_t i = 0; i < weight.size(); ++i) {
    const unsigned nibble = static_cast<unsigned>(weight[i]) & 0xfu;
    packed[i / 2] = static_cast<std::uint8_t>(packed[i / 2] | nibble << (i % 2 * 4));
  }
  return packed;
}

}  // namespace weightmill

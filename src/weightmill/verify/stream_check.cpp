#include "stream_check.h"

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/codec/codec.h>

#include "order_walk.h"
#include "ranges.h"

namespace weightmill::verify {
namespace {

bool is_fast(StreamFormat format) { return format == StreamFormat::fast || format == StreamFormat::fast_sparse; }

/// How many channels of the slice the stream has.
int n_channels(const DepthSlice& slice, const PackedStream& stream) {
  if (stream.channel_step < 1 || stream.first_channel < slice.first_channel) return 0;
  const int end = slice.first_channel + slice.n_channels;
  return stream.first_channel >= end ? 0 : (end - 1 - stream.first_channel) / stream.channel_step + 1;
}

/// One stream against the model's weights.
class StreamCheck {
 public:
  StreamCheck(const PackedLayer& layer, const ModelWeights& model, std::vector<bool>& met, LayerCheck& check,
              Findings& findings)
      : layer_(layer), model_(model), met_(met), check_(check), findings_(findings) {}

  void compare(const DepthSlice& slice, const PackedStream& stream, std::span<const std::int16_t> decoded,
               const std::string& place) {
    const auto& [n_o, n_y, n_x, n_i] = model_.ohwi;
    const std::array<int, 4> volume{n_channels(slice, stream), n_y, n_x, n_i};
    if (const std::string problem = geometry_problem(stream.geometry, volume); !problem.empty()) {
      findings_.add(place, problem, "a geometry that an NPU can have");
      return;
    }
    if (volume[0] > 0 && stream.first_channel + (volume[0] - 1) * stream.channel_step >= n_o) {
      findings_.add(place, "channels past the last", fmt::format("{} channels", n_o));
      return;
    }
    const auto order = walk_order(stream.geometry, layer_.format, volume);
    if (order.size() != decoded.size()) {
      findings_.add(place, fmt::format("{} weights", decoded.size()),
                    fmt::format("{} in the NPU's order", order.size()));
      return;
    }
    for (std::size_t at = 0; at < order.size(); ++at) compare_one(stream, order[at], decoded[at], at, place);
  }

 private:
  void compare_one(const PackedStream& stream, std::int64_t local, std::int16_t value, std::size_t at,
                   const std::string& place) {
    if (local == kPadding) {
      ++check_.n_padding;
      if (value != 0)
        findings_.add(fmt::format("{}, weight {}", place, at), fmt::format("{} in the padding", value), "0");
      return;
    }
    const std::int64_t per_channel = static_cast<std::int64_t>(model_.ohwi[1]) * model_.ohwi[2] * model_.ohwi[3];
    const std::int64_t channel = stream.first_channel + local / per_channel * stream.channel_step;
    const auto index = static_cast<std::size_t>(channel * per_channel + local % per_channel);
    if (value != model_.values[index]) {
      findings_.add(fmt::format("{}, weight {} ({})", place, at, coordinates(index)), std::to_string(value),
                    std::to_string(model_.values[index]));
    } else if (!met_[index]) {
      met_[index] = true;
      ++check_.n_weights;
    }
  }

  std::string coordinates(std::size_t index) const {
    const auto n_i = static_cast<std::size_t>(model_.ohwi[3]);
    const auto n_x = static_cast<std::size_t>(model_.ohwi[2]);
    const auto n_y = static_cast<std::size_t>(model_.ohwi[1]);
    return fmt::format("o {}, y {}, x {}, i {}", index / n_i / n_x / n_y, index / n_i / n_x % n_y, index / n_i % n_x,
                       index % n_i);
  }

  const PackedLayer& layer_;
  const ModelWeights& model_;
  std::vector<bool>& met_;
  LayerCheck& check_;
  Findings& findings_;
};

/// The stream's weights; a finding and nothing where it does not decode to as many as stated.
std::vector<std::int16_t> decode_stream(const PackedLayer& layer, const PackedStream& stream,
                                        std::span<const std::uint8_t> bytes, const std::string& place,
                                        Findings& findings) {
  std::vector<std::int16_t> weights;
  if (bytes.empty()) return weights;
  try {
    const auto n = static_cast<std::size_t>(stream.n_ordered);
    weights = is_fast(layer.format) ? mlw::decode_fast(bytes, n) : mlw::decode(bytes, n);
  } catch (const Error& error) {
    findings.add(place, error.what(), fmt::format("a stream of {} weights", stream.n_ordered));
    return {};
  }
  if (weights.size() != stream.n_ordered) {
    findings.add(place, fmt::format("{} weights", weights.size()), fmt::format("{} as stated", stream.n_ordered));
    return {};
  }
  return weights;
}

}  // namespace

void check_streams(const PackedLayer& layer, std::span<const std::uint8_t> blob, const ModelWeights* model,
                   LayerCheck& check, Findings& findings) {
  std::vector<bool> met(model != nullptr ? model->values.size() : 0, false);
  std::vector<ByteRange> ranges;
  for (std::size_t s = 0; s < layer.slices.size(); ++s) {
    const DepthSlice& slice = layer.slices[s];
    for (const PackedStream& stream : slice.streams) {
      const std::string place = fmt::format("slice {}, core {}", s, stream.core);
      const auto bytes = bytes_at(blob, stream.offset, stream.size_bytes, place, findings);
      if (bytes.size() != stream.size_bytes) continue;
      ++check.n_streams;
      ranges.push_back({stream.offset, stream.offset + stream.size_bytes});
      check_digest(bytes, stream.stated_sha256, place, findings);
      const std::uint64_t before = findings.count();
      const auto decoded = decode_stream(layer, stream, bytes, place, findings);
      if (model != nullptr && findings.count() == before) {
        StreamCheck(layer, *model, met, check, findings).compare(slice, stream, decoded, place);
      }
    }
  }
  check_tiling(std::move(ranges), blob.size(), "weights", findings);
  if (model != nullptr && check.n_weights != met.size()) {
    findings.add("", fmt::format("{} of {} weights met and right", check.n_weights, met.size()), "all of them");
  }
}

}  // namespace weightmill::verify

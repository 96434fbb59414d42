#include "scale_bias.h"

#include <algorithm>

#include <fmt/format.h>

#include <weightmill/base/bits.h>
#include <weightmill/base/error.h>

#include "fixed_scale.h"

namespace weightmill {
namespace {

/// What the NPU's sigmoid and tanh tables expect: 0x3000 steps to one.
constexpr double kActivationSteps = 0x3000;
constexpr unsigned kAlignment = 16;

struct RecordFields {
  int bias_bytes;
  unsigned bias_bits;
  int scale_bytes;
  unsigned scale_bits;
};

constexpr unsigned kShiftBits = 6;

RecordFields fields_of(RecordFormat format) {
  switch (format) {
    case RecordFormat::bias32_scale31:
      return {4, 32, 4, 31};
    case RecordFormat::bias48_scale15:
      return {6, 48, 2, 15};
    case RecordFormat::bias40_scale32:
      break;
  }
  return {5, 40, 4, 32};
}

void check_field(const char* name, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high) {
    fail(ErrorCode::bad_request, name, fmt::format("{} does not fit the record, wanted {}..{}", value, low, high));
  }
}

void put(std::uint8_t*& out, std::uint64_t value, int n_bytes) {
  for (int i = 0; i < n_bytes; ++i) *out++ = static_cast<std::uint8_t>(value >> (8 * i));
}

std::uint64_t get(const std::uint8_t*& in, int n_bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < n_bytes; ++i) value |= std::uint64_t{*in++} << (8 * i);
  return value;
}

std::int64_t sign_extended(std::uint64_t value, unsigned bits) {
  const unsigned unused = 64 - bits;
  return static_cast<std::int64_t>(value << unused) >> unused;
}

}  // namespace

RecordBytes pack_record(const ChannelRecord& record, RecordFormat format) {
  const RecordFields fields = fields_of(format);
  const std::int64_t bias_limit = std::int64_t{1} << (fields.bias_bits - 1);
  check_field("bias", record.bias, -bias_limit, bias_limit - 1);
  check_field("scale", record.rescale.multiplier, 0, (std::int64_t{1} << fields.scale_bits) - 1);
  check_field("shift", record.rescale.shift, 0, (1 << kShiftBits) - 1);
  RecordBytes bytes{};
  std::uint8_t* out = bytes.data();
  put(out, static_cast<std::uint64_t>(record.bias), fields.bias_bytes);
  put(out, static_cast<std::uint64_t>(record.rescale.multiplier), fields.scale_bytes);
  put(out, static_cast<std::uint64_t>(record.rescale.shift), 1);
  return bytes;
}

ChannelRecord unpack_record(std::span<const std::uint8_t, kRecordBytes> bytes, RecordFormat format) {
  const RecordFields fields = fields_of(format);
  const std::uint8_t* in = bytes.data();
  ChannelRecord record;
  record.bias = sign_extended(get(in, fields.bias_bytes), fields.bias_bits);
  const std::uint64_t multiplier = get(in, fields.scale_bytes);
  const std::uint64_t shift = get(in, 1);
  const bool unused_set = std::any_of(in, bytes.data() + kRecordBytes, [](std::uint8_t b) { return b != 0; });
  if (multiplier >> fields.scale_bits != 0 || shift >> kShiftBits != 0 || unused_set) {
    fail(ErrorCode::bad_stream, "scale record", "has bits outside its fields");
  }
  record.rescale = {static_cast<std::int64_t>(multiplier), static_cast<int>(shift)};
  return record;
}

namespace {

/// The product and quotient in the precision that each rule and type has used.  [docs/scale-records.md §3]
double plain_factor(const ScaleRequest& r, float weight_scale) {
  const bool float_product = r.ifm_dtype == DType::u8 || (r.rule != ScalingRule::v2020 && r.fully_connected);
  const double product = float_product ? static_cast<double>(r.ifm_scale * weight_scale)
                                       : static_cast<double>(r.ifm_scale) * static_cast<double>(weight_scale);
  return product / static_cast<double>(r.ofm_scale);
}

double activation_factor(const ScaleRequest& r, float weight_scale) {
  if (r.ifm_dtype == DType::u8) return static_cast<double>(r.ifm_scale * weight_scale) * kActivationSteps;
  return static_cast<double>(r.ifm_scale) * kActivationSteps * static_cast<double>(weight_scale);
}

bool uses_reduced_scale(const ScaleRequest& r) {
  if (r.reduced_always) return true;
  if (r.ifm_dtype != DType::i16) return false;
  return r.rule == ScalingRule::v2020 || r.bias_is_64_bit;
}

FixedPoint quantised(const ScaleRequest& r, double factor) {
  const bool reduced = uses_reduced_scale(r);
  if (r.rule == ScalingRule::regor)
    return reduced ? reduced_quantise_scale_regor(factor) : quantise_scale_regor(factor);
  return reduced ? reduced_quantise_scale(factor) : quantise_scale(factor);
}

}  // namespace

std::vector<double> rescale_factors(const ScaleRequest& request) {
  if (request.ifm_dtype != DType::i8 && request.ifm_dtype != DType::u8 && request.ifm_dtype != DType::i16) {
    fail(ErrorCode::unsupported, "feature map",
         fmt::format("is {}, wanted int8, uint8 or int16", name_of(request.ifm_dtype)));
  }
  const bool for_activation = request.rule == ScalingRule::v2020 && request.rescale_for_activation;
  std::vector<double> factors;
  factors.reserve(request.weight_scale.size());
  for (const float scale : request.weight_scale) {
    factors.push_back(for_activation ? activation_factor(request, scale) : plain_factor(request, scale));
  }
  return factors;
}

std::vector<FixedPoint> channel_scales(const ScaleRequest& request, std::size_t n_channels) {
  const std::vector<double> factors = rescale_factors(request);
  if (factors.size() != 1 && factors.size() != n_channels) {
    fail(ErrorCode::bad_request, "weight scales",
         fmt::format("{} of them for {} channels", factors.size(), n_channels));
  }
  std::vector<FixedPoint> scales;
  scales.reserve(n_channels);
  for (const double factor : factors) scales.push_back(quantised(request, factor));
  scales.resize(n_channels, scales.front());
  return scales;
}

namespace {

void append_record(std::vector<std::uint8_t>& out, std::span<const ChannelRecord> channels, std::size_t channel,
                   RecordFormat format) {
  try {
    const RecordBytes bytes = pack_record(channels[channel], format);
    out.insert(out.end(), bytes.begin(), bytes.end());
  } catch (const Error& error) {
    fail(error.code, fmt::format("channel {}", channel), error.what());
  }
}

/// Appends records of channels first, first + step, … below `end`, and the padding after them.
PackedScales append_scales(std::vector<std::uint8_t>& out, std::span<const ChannelRecord> channels, PackedScales at,
                           std::size_t end, RecordFormat format) {
  at.offset = out.size();
  for (std::size_t c = static_cast<std::size_t>(at.first_channel); c < end;
       c += static_cast<std::size_t>(at.channel_step)) {
    append_record(out, channels, c, format);
    ++at.n_records;
  }
  out.resize(out.size() + static_cast<std::size_t>(at.n_zero_records) * kRecordBytes);
  out.resize(ceil_to(out.size(), std::size_t{kAlignment}));
  at.size_bytes = out.size() - at.offset;
  return at;
}

void check_step(int depth_step) {
  if (depth_step < 1) fail(ErrorCode::bad_request, "depth step", fmt::format("is {}, wanted at least 1", depth_step));
}

}  // namespace

PackedRecords pack_records(std::span<const ChannelRecord> channels, int depth_step, int cores) {
  check_step(depth_step);
  if (cores < 1) fail(ErrorCode::bad_request, "cores", fmt::format("is {}, wanted at least 1", cores));
  PackedRecords result;
  const auto step = static_cast<std::size_t>(depth_step);
  for (std::size_t first = 0; first < channels.size(); first += step) {
    const std::size_t length = std::min(step, channels.size() - first);
    const std::size_t n_cores = std::min(static_cast<std::size_t>(cores), length);
    std::vector<PackedScales>& slice = result.slices.emplace_back();
    for (std::size_t core = 0; core < n_cores; ++core) {
      PackedScales at;
      at.core = static_cast<int>(core);
      at.first_channel = static_cast<int>(first + core);
      at.channel_step = cores;
      const std::size_t end = std::min(first + core + length, channels.size());
      slice.push_back(append_scales(result.bytes, channels, at, end, RecordFormat::bias40_scale32));
    }
  }
  return result;
}

PackedRecords pack_records_u85(std::span<const ChannelRecord> channels, int depth_step, int ofm_ublock_depth,
                               RecordFormat format) {
  check_step(depth_step);
  PackedRecords result;
  const auto step = static_cast<std::size_t>(depth_step);
  const std::size_t unit = ceil_to(static_cast<std::size_t>(std::max(ofm_ublock_depth, 1)), std::size_t{16});
  for (std::size_t first = 0; first < channels.size(); first += step) {
    const std::size_t length = std::min(step, channels.size() - first);
    PackedScales at;
    at.first_channel = static_cast<int>(first);
    at.n_zero_records = static_cast<int>(ceil_to(length, unit) - length);
    result.slices.push_back({append_scales(result.bytes, channels, at, first + length, format)});
  }
  return result;
}

}  // namespace weightmill

#include "record_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "expected_rescale.h"
#include "ranges.h"

namespace weightmill::verify {
namespace {

constexpr std::size_t kRecordBytes = 10;
constexpr std::size_t kAlignment = 16;

/// `n_bytes` little-endian bytes.
std::uint64_t field(std::span<const std::uint8_t> record, std::size_t at, std::size_t n_bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < n_bytes; ++i) value |= static_cast<std::uint64_t>(record[at + i]) << (8 * i);
  return value;
}

std::int64_t signed_field(std::span<const std::uint8_t> record, std::size_t n_bytes) {
  const unsigned unused = 64 - 8 * static_cast<unsigned>(n_bytes);
  return static_cast<std::int64_t>(field(record, 0, n_bytes) << unused) >> unused;
}

/// What a record holds; `clean` is false where a bit is set that has no meaning.
struct ParsedRecord {
  ChannelRecord record;
  bool clean = true;
};

ParsedRecord parse(std::span<const std::uint8_t> bytes, RecordFormat format) {
  ParsedRecord parsed;
  std::uint64_t scale = 0, shift = 0, rest = 0;
  switch (format) {
    case RecordFormat::bias40_scale32:
      parsed.record.bias = signed_field(bytes, 5), scale = field(bytes, 5, 4), shift = bytes[9];
      break;
    case RecordFormat::bias32_scale31:
      parsed.record.bias = signed_field(bytes, 4), scale = field(bytes, 4, 4), shift = bytes[8], rest = bytes[9];
      parsed.clean = scale >> 31 == 0;
      break;
    case RecordFormat::bias48_scale15:
      parsed.record.bias = signed_field(bytes, 6), scale = field(bytes, 6, 2), shift = bytes[8], rest = bytes[9];
      parsed.clean = scale >> 15 == 0;
      break;
  }
  parsed.clean = parsed.clean && shift < 64 && rest == 0;
  parsed.record.rescale = {static_cast<std::int64_t>(scale), static_cast<int>(shift)};
  return parsed;
}

std::string text_of(const ChannelRecord& r) {
  return fmt::format("bias {}, multiplier {}, shift {}", r.bias, r.rescale.multiplier, r.rescale.shift);
}

/// The records that the model asks for, one for each output channel; empty where it cannot say.
std::vector<ChannelRecord> records_wanted(const PackedLayer& layer, const Model& model, Findings& findings) {
  const ModelBiases biases = biases_of(layer, model);
  if (!biases.problem.empty()) {
    findings.add("", biases.problem, "the biases that were packed");
    return {};
  }
  const Tensor* weights = tensor_of(layer, model, layer.weights_tensor);
  const Tensor* bias = layer.bias_tensor >= 0 ? tensor_of(layer, model, layer.bias_tensor) : nullptr;
  if (weights == nullptr) return {};
  const auto& scale = weights->quantization.scale;
  std::vector<ChannelRecord> records(biases.values.size());
  if (scale.size() > 1 && scale.size() != records.size()) {
    findings.add("", fmt::format("{} weight scales", scale.size()), fmt::format("one, or {}", records.size()));
    return {};
  }
  for (std::size_t o = 0; o < records.size(); ++o) {
    const float weight_scale = scale.empty() ? 1.0f : scale.size() == 1 ? scale[0] : scale[o];
    records[o] = {biases.values[o],
                  expected_rescale(layer, weight_scale, bias != nullptr && bias->dtype == DType::i64)};
  }
  return records;
}

void check_tensor_scale(const PackedLayer& layer, const Model& model, int number, float stated, const char* what,
                        Findings& findings) {
  const Tensor* tensor = number >= 0 ? tensor_of(layer, model, number) : nullptr;
  if (tensor == nullptr || tensor->quantization.scale.size() != 1) return;
  const float scale = tensor->quantization.scale[0];
  if (scale != stated) findings.add(what, fmt::format("scale {}", stated), fmt::format("{} as in the model", scale));
}

/// One group of records: what one core reads for one slice.
void check_group(const PackedLayer& layer, const PackedScales& group, std::span<const std::uint8_t> bytes,
                 const std::vector<ChannelRecord>& wanted, const std::string& place, std::vector<bool>& met,
                 LayerCheck& check, Findings& findings) {
  const std::size_t n = static_cast<std::size_t>(group.n_records);
  const std::size_t n_slots = n + static_cast<std::size_t>(group.n_zero_records);
  if (bytes.size() < n_slots * kRecordBytes || bytes.size() % kAlignment != 0 ||
      bytes.size() - n_slots * kRecordBytes >= kAlignment) {
    findings.add(place, fmt::format("{} bytes", bytes.size()),
                 fmt::format("{} records of 10 bytes, rounded up to 16", n_slots));
    return;
  }
  for (std::size_t k = 0; k < n; ++k) {
    const auto channel =
        static_cast<std::size_t>(group.first_channel) + k * static_cast<std::size_t>(group.channel_step);
    const std::string where = fmt::format("{}, channel {}", place, channel);
    if (channel >= layer.channels.size()) {
      findings.add(where, "a record", fmt::format("{} channels", layer.channels.size()));
      return;
    }
    const ParsedRecord parsed = parse(bytes.subspan(k * kRecordBytes, kRecordBytes), layer.record_format);
    if (!parsed.clean) findings.add(where, "bits set outside the fields", "zeros there");
    if (parsed.record != layer.channels[channel])
      findings.add(where, text_of(parsed.record), text_of(layer.channels[channel]) + " as stated");
    if (!wanted.empty() && parsed.record != wanted[channel])
      findings.add(where, text_of(parsed.record), text_of(wanted[channel]));
    met[channel] = true;
    ++check.n_records;
  }
  const auto tail = bytes.subspan(n * kRecordBytes);
  if (std::any_of(tail.begin(), tail.end(), [](std::uint8_t b) { return b != 0; }))
    findings.add(place, "padding that is not zero", "zeros");
}

}  // namespace

void check_records(const PackedLayer& layer, const Model* model, LayerCheck& check, Findings& findings) {
  std::vector<ChannelRecord> wanted;
  if (model != nullptr) {
    check_tensor_scale(layer, *model, layer.ifm_tensor, layer.ifm_scale, "input", findings);
    check_tensor_scale(layer, *model, layer.ofm_tensor, layer.ofm_scale, "output", findings);
    wanted = records_wanted(layer, *model, findings);
    if (!wanted.empty() && wanted.size() != layer.channels.size()) {
      findings.add("", fmt::format("{} channels stated", layer.channels.size()), fmt::format("{}", wanted.size()));
      return;
    }
  }
  std::vector<bool> met(layer.channels.size(), false);
  std::vector<ByteRange> ranges;
  for (std::size_t s = 0; s < layer.slices.size(); ++s) {
    for (const PackedScales& group : layer.slices[s].scales) {
      const std::string place = fmt::format("slice {}, records of core {}", s, group.core);
      if (group.n_records < 0 || group.n_zero_records < 0 || group.first_channel < 0 || group.channel_step < 1) {
        findings.add(place, "negative counts", "counts");
        continue;
      }
      const auto bytes = bytes_at(layer.scales, group.offset, group.size_bytes, place, findings);
      if (bytes.size() != group.size_bytes) continue;
      ranges.push_back({group.offset, group.offset + group.size_bytes});
      check_digest(bytes, group.stated_sha256, place, findings);
      check_group(layer, group, bytes, wanted, place, met, check, findings);
    }
  }
  check_tiling(std::move(ranges), layer.scales.size(), "records", findings);
  const auto n_met = std::count(met.begin(), met.end(), true);
  if (static_cast<std::size_t>(n_met) != met.size())
    findings.add("", fmt::format("records of {} channels", n_met), fmt::format("{}", met.size()));
}

}  // namespace weightmill::verify

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <weightmill/base/bits.h>
#include <weightmill/base/error.h>

#include "quote.h"
#include "safetensors.h"
#include "safetensors/dtypes.h"

namespace weightmill {
namespace {

/// The header ends at a multiple of this, so that the widest type lies aligned behind it.
constexpr std::size_t kHeaderAlignment = 8;

using Order = std::vector<const SafetensorsSource*>;

/// Wider types first: the format allows no gaps, so this is what keeps each tensor aligned.
Order order_of(std::span<const SafetensorsSource> tensors) {
  Order order;
  for (const SafetensorsSource& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return size_bits(a->dtype) > size_bits(b->dtype); });
  return order;
}

/// `text` as a JSON string. Throws: bad_request if it is no UTF-8.
std::string json_string(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    fail(ErrorCode::bad_request, quote(text), "is no UTF-8, which the names in a safetensors file must be");
  }
}

void check_tensor(const SafetensorsSource& tensor, std::set<std::string_view>& names) {
  const std::string where = "tensor " + quote(tensor.name);
  if (tensor.name == "__metadata__")
    fail(ErrorCode::bad_request, where, "has the name that the format keeps for metadata");
  if (!names.insert(tensor.name).second) fail(ErrorCode::bad_request, where, "is there twice");
  if (safetensors::word_of(tensor.dtype).empty()) {
    fail(ErrorCode::bad_request, where,
         fmt::format("is {}, which safetensors does not know: write its bytes as uint8", name_of(tensor.dtype)));
  }
  const std::uint64_t wanted = size_bytes(tensor.shape, tensor.dtype, where);
  if (!tensor.produce && tensor.data.size() != wanted) {
    fail(ErrorCode::bad_request, where,
         fmt::format("has {} bytes, wanted {} for {}", tensor.data.size(), wanted, to_string(tensor.shape)));
  }
}

std::string metadata_entry(const std::map<std::string, std::string>& metadata) {
  std::string entry = "\"__metadata__\":{";
  for (const auto& [key, value] : metadata) {
    if (entry.back() != '{') entry += ',';
    entry += json_string(key) + ':' + json_string(value);
  }
  return entry + '}';
}

std::string make_header(const Order& order, const std::map<std::string, std::string>& metadata) {
  std::string header = "{";
  if (!metadata.empty()) header += metadata_entry(metadata);
  std::uint64_t begin = 0;
  for (const SafetensorsSource* tensor : order) {
    const std::uint64_t end = begin + size_bytes(tensor->shape, tensor->dtype, tensor->name);
    if (header.size() > 1) header += ',';
    header += fmt::format(R"({}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", json_string(tensor->name),
                          safetensors::word_of(tensor->dtype), nlohmann::json(tensor->shape).dump(), begin, end);
    begin = end;
  }
  header += '}';
  header.resize(ceil_to(header.size(), kHeaderAlignment), ' ');
  return header;
}

void write_data(AtomicFile& file, const SafetensorsSource& tensor) {
  if (!tensor.produce) return file.write(tensor.data);
  std::uint64_t written = 0;
  tensor.produce([&](std::span<const std::uint8_t> bytes) {
    file.write(bytes);
    written += bytes.size();
  });
  const std::uint64_t wanted = size_bytes(tensor.shape, tensor.dtype, tensor.name);
  if (written != wanted) {
    fail(ErrorCode::bad_request, "tensor " + quote(tensor.name),
         fmt::format("gave {} bytes, wanted {} for {}", written, wanted, to_string(tensor.shape)));
  }
}

std::string little_endian(std::uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

}  // namespace

void write_safetensors(AtomicFile& file, std::span<const SafetensorsSource> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::set<std::string_view> names;
  for (const SafetensorsSource& tensor : tensors) check_tensor(tensor, names);
  const Order order = order_of(tensors);
  const std::string header = make_header(order, metadata);
  file.write(little_endian(header.size()));
  file.write(header);
  for (const SafetensorsSource* tensor : order) write_data(file, *tensor);
}

void write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsSource> tensors,
                       const std::map<std::string, std::string>& metadata) {
  AtomicFile file(path);
  write_safetensors(file, tensors, metadata);
  file.commit();
}

}  // namespace weightmill

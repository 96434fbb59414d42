#include "testkit/ir_builder.h"

#include <cstring>
#include <fstream>
#include <stdexcept>

#include <weightmill/base/half.h>

namespace weightmill::testkit {
namespace {

template <class T>
void append(std::vector<std::uint8_t>& bytes, T value) {
  const auto at = bytes.size();
  bytes.resize(at + sizeof(T));
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

void append_number(std::vector<std::uint8_t>& bytes, const std::string& type, double value) {
  if (type == "f32") return append(bytes, static_cast<float>(value));
  if (type == "f64") return append(bytes, value);
  if (type == "f16") return append(bytes, to_f16(static_cast<float>(value)));
  if (type == "bf16") return append(bytes, to_bf16(static_cast<float>(value)));
  if (type == "i8") return append(bytes, static_cast<std::int8_t>(value));
  if (type == "u8") return append(bytes, static_cast<std::uint8_t>(value));
  if (type == "i32") return append(bytes, static_cast<std::int32_t>(value));
  throw std::runtime_error("the builder knows no " + type);
}

std::string precision_of(const std::string& type) {
  if (type == "bf16") return "BF16";
  if (type[0] == 'f') return "FP" + type.substr(1);
  return (type[0] == 'i' ? "I" : "U") + type.substr(1);
}

std::string join(const IrBuilder::Dims& shape) {
  std::string text;
  for (const auto extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return text;
}

std::string port(int id, const std::string& type, const IrBuilder::Dims& shape) {
  std::string text = "<port id=\"" + std::to_string(id) + "\" precision=\"" + precision_of(type) + "\">";
  for (const auto extent : shape) text += "<dim>" + std::to_string(extent) + "</dim>";
  return text + "</port>";
}

}  // namespace

int IrBuilder::constant(const std::string& name, const std::string& type, const Dims& shape,
                        const std::vector<double>& values) {
  std::vector<std::uint8_t> bytes;
  for (const double value : values) append_number(bytes, type, value);
  return raw_constant(name, type, shape, bytes);
}

int IrBuilder::raw_constant(const std::string& name, const std::string& type, const Dims& shape,
                            const std::vector<std::uint8_t>& bytes) {
  const std::string data = "element_type=\"" + type + "\" shape=\"" + join(shape) + "\" offset=\"" +
                           std::to_string(bin_.size()) + "\" size=\"" + std::to_string(bytes.size()) + "\"";
  bin_.insert(bin_.end(), bytes.begin(), bytes.end());
  return layer(name, "Const", data, {}, type, shape);
}

int IrBuilder::parameter(const std::string& name, const Dims& shape) {
  return layer(name, "Parameter", "shape=\"" + join(shape) + "\" element_type=\"f32\"", {}, "f32", shape);
}

int IrBuilder::layer(const std::string& name, const std::string& type, const std::string& data,
                     const std::vector<int>& inputs, const std::string& element_type, const Dims& shape,
                     const std::string& extra) {
  const int id = static_cast<int>(outputs_.size());
  layers_ += "<layer id=\"" + std::to_string(id) + "\" name=\"" + name + "\" type=\"" + type +
             "\" version=\"opset1\"><data " + data + " />" + extra;
  if (!inputs.empty()) layers_ += "<input>";
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto from = static_cast<std::size_t>(inputs[i]);
    layers_ += port(static_cast<int>(i), outputs_[from].type, outputs_[from].shape);
    edges_ += "<edge from-layer=\"" + std::to_string(inputs[i]) + "\" from-port=\"" + std::to_string(n_inputs_[from]) +
              "\" to-layer=\"" + std::to_string(id) + "\" to-port=\"" + std::to_string(i) + "\" />";
  }
  if (!inputs.empty()) layers_ += "</input>";
  const auto n_inputs = static_cast<int>(inputs.size());
  if (type != "Result") layers_ += "<output>" + port(n_inputs, element_type, shape) + "</output>";
  layers_ += "</layer>\n";
  outputs_.push_back({element_type, shape});
  n_inputs_.push_back(n_inputs);
  return id;
}

int IrBuilder::convert(const std::string& name, int input, const std::string& to) {
  return layer(name, "Convert", "destination_type=\"" + to + "\"", {input}, to,
               outputs_[static_cast<std::size_t>(input)].shape);
}

int IrBuilder::fake_quantize(const std::string& name, int weights, const std::vector<int>& limits, int levels,
                             const std::string& extra) {
  std::vector<int> inputs{weights};
  inputs.insert(inputs.end(), limits.begin(), limits.end());
  const Output& data = outputs_[static_cast<std::size_t>(weights)];
  return layer(name, "FakeQuantize", "levels=\"" + std::to_string(levels) + "\" auto_broadcast=\"numpy\"", inputs,
               data.type, data.shape, extra);
}

int IrBuilder::fake_quantize(const std::string& name, int weights, double low, double high, int levels) {
  const int low_id = constant(name + "_low", outputs_[static_cast<std::size_t>(weights)].type, {}, {low});
  const int high_id = constant(name + "_high", outputs_[static_cast<std::size_t>(weights)].type, {}, {high});
  return fake_quantize(name, weights, {low_id, high_id, low_id, high_id}, levels);
}

int IrBuilder::binary(const std::string& name, const std::string& type, int left, int right) {
  const Output& data = outputs_[static_cast<std::size_t>(left)];
  return layer(name, type, "auto_broadcast=\"numpy\"", {left, right}, data.type, data.shape);
}

int IrBuilder::result(int input) {
  return layer("result" + std::to_string(outputs_.size()), "Result", "", {input}, "f32", {});
}

std::string IrBuilder::xml(int version) const {
  return "<?xml version=\"1.0\"?>\n<net name=\"built\" version=\"" + std::to_string(version) + "\"><layers>\n" +
         layers_ + "</layers><edges>" + edges_ + "</edges><rt_info /></net>\n";
}

void IrBuilder::write(const std::filesystem::path& path) const {
  std::ofstream(path, std::ios::binary) << xml();
  std::ofstream bin(std::filesystem::path(path).replace_extension(".bin"), std::ios::binary);
  bin.write(reinterpret_cast<const char*>(bin_.data()), static_cast<std::streamsize>(bin_.size()));
}

}  // namespace weightmill::testkit

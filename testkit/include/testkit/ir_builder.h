#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace weightmill::testkit {

/// Writes an OpenVINO IR layer by layer; a layer is known by the number that its call returns. All layers have one
/// output.
class IrBuilder {
 public:
  using Dims = std::vector<std::int64_t>;

  /// `type`: f32, f16, bf16, f64, i8, u8 or i32. `values` are converted to it, row-major.
  int constant(const std::string& name, const std::string& type, const Dims& shape, const std::vector<double>& values);
  /// A Const over bytes as they are.
  int raw_constant(const std::string& name, const std::string& type, const Dims& shape,
                   const std::vector<std::uint8_t>& bytes);
  int scalar(const std::string& name, double value) { return constant(name, "f32", {}, {value}); }
  int parameter(const std::string& name, const Dims& shape);
  /// `data`: the attributes of <data>; `extra`: XML that goes between it and the ports.
  int layer(const std::string& name, const std::string& type, const std::string& data, const std::vector<int>& inputs,
            const std::string& element_type, const Dims& shape, const std::string& extra = "");
  int convert(const std::string& name, int input, const std::string& to);
  int fake_quantize(const std::string& name, int weights, const std::vector<int>& limits, int levels,
                    const std::string& extra = "");
  /// Limits that are scalars, shared by input and output.
  int fake_quantize(const std::string& name, int weights, double low, double high, int levels);
  int binary(const std::string& name, const std::string& type, int left, int right);
  int result(int input);

  std::string xml(int version = 11) const;
  const std::vector<std::uint8_t>& bin() const { return bin_; }
  std::vector<std::uint8_t>& bin() { return bin_; }
  /// Writes PATH and the .bin beside it.
  void write(const std::filesystem::path& path) const;

 private:
  struct Output {
    std::string type;
    Dims shape;
  };
  std::string layers_;
  std::string edges_;
  std::vector<Output> outputs_;
  std::vector<int> n_inputs_;
  std::vector<std::uint8_t> bin_;
};

}  // namespace weightmill::testkit

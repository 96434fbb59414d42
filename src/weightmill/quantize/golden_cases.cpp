#include "golden_cases.h"

#include <cstdlib>

namespace weightmill {
namespace {

double number(const nlohmann::json& value) {
  return value.is_string() ? std::strtod(value.get<std::string>().c_str(), nullptr) : value.get<double>();
}

}  // namespace

bool for_each_golden_case(const std::function<void(const GoldenCase&)>& body) {
  const auto set = testkit::GoldenSet::open("convq/convq");
  const auto arrays = testkit::NpzFile::open(testkit::golden_dir() / "convq/convq.npz");
  if (!set || !arrays) return false;
  for (const auto& entry : set->cases()) body(GoldenCase(entry, *arrays));
  return true;
}

void read_request(const GoldenCase& golden, OwnedRequest& owned) {
  const auto& e = golden.entry();
  ConvRequest& r = owned.request;
  r.weight_shape = e.at("weight_shape").get<Shape>();
  owned.weight = golden.array<float>("w");
  r.weight = owned.weight;
  if (golden.has("b")) {
    owned.bias = golden.array<float>("b");
    r.bias = owned.bias;
  }
  if (golden.has("mean")) {
    owned.mean = golden.array<float>("mean");
    r.input_mean = owned.mean;
  }
  r.input = {e.at("input_scale").get<double>(), e.at("input_zero").get<std::int64_t>()};
  r.output = {number(e.at("out_lo")), number(e.at("out_hi"))};
  r.per_channel = e.at("per_channel");
  r.asymmetric = e.at("asymmetric");
  if (golden.category() == "mult31") {
    r.mode = e.at("bits") == 16 ? ConvMode::mult31_i16 : ConvMode::mult31_i8;
    return;
  }
  r.int16_input = e.at("int15");
  r.relu_workaround = e.at("relu_workaround");
  r.allow_int32 = e.at("allow_int32");
  r.policy = e.at("policy") == "fixed" ? PlanPolicy::fixed : PlanPolicy::classic;
  r.mode = conv_mode_of(e.at("mode").get<std::string>());
}

}  // namespace weightmill

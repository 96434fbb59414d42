#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "conv_plan.h"
#include "testkit/golden.h"
#include "testkit/npz.h"

namespace weightmill {

/// One case of the golden set `convq`, with its arrays.
class GoldenCase {
 public:
  GoldenCase(const nlohmann::json& entry, const testkit::NpzFile& arrays) : entry_(entry), arrays_(arrays) {}

  const nlohmann::json& entry() const { return entry_; }
  std::string id() const { return entry_.at("id"); }
  std::string category() const { return entry_.at("category"); }
  bool has(const std::string& name) const { return arrays_.contains(id() + "_" + name); }
  template <class T>
  std::vector<T> array(const std::string& name) const {
    return arrays_.at(id() + "_" + name).as<T>();
  }

 private:
  const nlohmann::json& entry_;
  const testkit::NpzFile& arrays_;
};

/// Calls `body` for each case of the set. False: the set is not installed.
bool for_each_golden_case(const std::function<void(const GoldenCase&)>& body);

/// A request with the arrays it refers to.
struct OwnedRequest {
  std::vector<float> weight, bias, mean;
  ConvRequest request;
};

/// The request of a planner case. Throws: bad_option, E_MODE.
void read_request(const GoldenCase& golden, OwnedRequest& owned);

}  // namespace weightmill

#pragma once

#include <string>
#include <utility>
#include <vector>

#include <weightmill/model/weight_quantization.h>

namespace weightmill {

/// Which operators' weights a user wants quantized.
class WeightChoice {
 public:
  /// `known`: the types of operators that can be quantized; `usual`: those that are where the options name none.
  /// `names`: of the model's operators with float weights. All must outlive the object.
  /// Throws: bad_option for a type that is not known and for a name or pattern that matches no operator (suggests one).
  WeightChoice(const WeightQuantizeOptions& options, const std::vector<std::string>& known,
               const std::vector<std::string>& usual, const std::vector<std::string>& names);

  /// Why `weight` stays as it is, in its `reason` and `excluded_by`; both stay empty if it is wanted.
  void judge(QuantizedWeight& weight) const;

 private:
  const WeightQuantizeOptions& options_;
  const std::vector<std::string>& types_;
};

/// Adds the notes that a finished report has, and refuses what may not be written.
/// Throws: unsupported if no weight was quantized, or if one was left and `fail_on_left` forbids that (names it and why).
void conclude(WeightQuantizeReport& report, const std::string& model);

}  // namespace weightmill

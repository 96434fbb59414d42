#pragma once

#include <string>
#include <vector>

#include "verify.h"

namespace weightmill::verify {

/// What is wrong with one layer: all of it counted, the first of it kept.
class Findings {
 public:
  Findings(int layer, std::string name) : layer_(layer), name_(std::move(name)) {}
  /// `place` is within the layer: "slice 0, core 1".
  void add(const std::string& place, std::string found, std::string wanted);
  std::uint64_t count() const noexcept { return count_; }
  std::vector<Finding> release() { return std::move(list_); }

 private:
  int layer_;
  std::string name_;
  std::uint64_t count_ = 0;
  std::vector<Finding> list_;
};

}  // namespace weightmill::verify

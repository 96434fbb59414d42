#include "findings.h"

namespace weightmill::verify {

void Findings::add(const std::string& place, std::string found, std::string wanted) {
  ++count_;
  if (list_.size() >= VerifyReport::kMaxListed) return;
  list_.push_back({layer_, place.empty() ? name_ : name_ + ", " + place, std::move(found), std::move(wanted)});
}

}  // namespace weightmill::verify

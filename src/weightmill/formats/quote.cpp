#include "quote.h"

#include <algorithm>

namespace weightmill {
namespace {

constexpr std::size_t kMaxShown = 80;  // a message stays one line of a terminal or two

}  // namespace

std::string quote(std::string_view name) {
  std::string shown(name.substr(0, kMaxShown));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return "'" + shown + (name.size() > kMaxShown ? "…'" : "'");
}

}  // namespace weightmill

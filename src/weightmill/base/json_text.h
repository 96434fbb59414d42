#pragma once

#include <string>

namespace weightmill {

/// A JSON document as text: `indent` spaces to a level, or one line for a negative number. Names come from files: what
/// is no UTF-8 in them is replaced, not refused.
template <class Json>
std::string json_text(const Json& json, int indent = 1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace weightmill

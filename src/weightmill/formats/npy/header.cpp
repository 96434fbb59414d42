#include "header.h"

#include <charconv>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include <weightmill/base/error.h>

#include "quote.h"

namespace weightmill::npy {
namespace {

/// numpy's own limit.
constexpr std::size_t kMaxAxes = 64;

/// Walks through the text, which is refused at the first thing that is not as it must be.
class Reader {
 public:
  Reader(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  Header header() {
    Header header;
    std::set<std::string> seen;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      if (!seen.insert(key).second) refuse("says " + quote(key) + " twice");
      expect(':');
      value(key, header);
      if (!accept(',') && !next_is('}')) refuse("has no ',' or '}'");
    }
    skip_spaces();
    if (!text_.empty()) refuse("goes on behind '}'");
    if (seen.size() != 3) refuse("lacks one of descr, fortran_order and shape");
    return header;
  }

 private:
  void value(const std::string& key, Header& header) {
    if (key == "descr") {
      if (next_is('[')) fail(ErrorCode::unsupported, where_, "holds records: save one field of them, a['name'].copy()");
      header.descr = string();
    } else if (key == "fortran_order") {
      header.fortran_order = truth();
    } else if (key == "shape") {
      header.shape = shape();
    } else {
      refuse("says " + quote(key) + ", which the format does not have");
    }
  }

  std::string string() {
    const char mark = next_is('"') ? '"' : '\'';
    expect(mark);
    const std::size_t end = text_.find(mark);
    if (end == std::string_view::npos) refuse("has a text without end");
    std::string content(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return content;
  }

  bool truth() {
    skip_spaces();
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return word == "True";
    }
    refuse("has a fortran_order that is neither True nor False");
  }

  Shape shape() {
    Shape extents;
    expect('(');
    while (!accept(')')) {
      extents.push_back(number());
      if (extents.size() > kMaxAxes) refuse(fmt::format("has more than {} axes", kMaxAxes));
      if (!accept(',') && !next_is(')')) refuse("has no ',' or ')' in its shape");
    }
    return extents;
  }

  std::int64_t number() {
    skip_spaces();
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) refuse("has a shape with something else than numbers from 0 on");
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return value;
  }

  void skip_spaces() {
    const std::size_t first = text_.find_first_not_of(" \t\r\n");
    text_.remove_prefix(first == std::string_view::npos ? text_.size() : first);
  }

  bool next_is(char wanted) {
    skip_spaces();
    return !text_.empty() && text_.front() == wanted;
  }

  bool accept(char wanted) {
    if (!next_is(wanted)) return false;
    text_.remove_prefix(1);
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) refuse(fmt::format("has no '{}' where one must be", wanted));
  }

  [[noreturn]] void refuse(std::string_view why) const {
    fail(ErrorCode::bad_file, where_, fmt::format("its header {}: it is no sound .npy file", why));
  }

  std::string_view text_;
  std::string_view where_;
};

}  // namespace

Header read_header(std::string_view text, std::string_view where) { return Reader(text, where).header(); }

}  // namespace weightmill::npy

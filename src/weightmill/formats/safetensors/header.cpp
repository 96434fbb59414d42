#include "header.h"

#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <weightmill/base/error.h>

#include "quote.h"
#include "safetensors/dtypes.h"

namespace weightmill::safetensors {
namespace {

using nlohmann::json;

/// Takes the events of the JSON parser, which needs no recursion, and allows only what the format has:
/// {"NAME": {"dtype": "…", "shape": [n, …], "data_offsets": [n, n]}, …, "__metadata__": {"KEY": "VALUE", …}}.
/// All values are taken when their key has been seen; each kind of event is right in one state or two.
class HeaderHandler : public nlohmann::json_sax<json> {
 public:
  explicit HeaderHandler(std::string_view where) : where_(where) {}
  Header take() { return std::move(header_); }

  bool key(string_t& text) override {
    if (state_ == State::top) return start_entry(text);
    key_ = text;
    if (state_ == State::metadata) {
      if (header_.metadata.contains(text)) refuse(fmt::format("has metadata {} twice", quote(text)));
      return true;
    }
    if (!fields_.insert(text).second) refuse(fmt::format("tensor {} has {} twice", quote(entry().name), quote(text)));
    return true;
  }

  bool start_object(std::size_t) override {
    if (state_ == State::before) return move_to(State::top);
    if (state_ == State::top) return move_to(in_metadata_ ? State::metadata : State::tensor);
    return unexpected("an object");
  }

  bool end_object() override {
    if (state_ == State::tensor) finish_entry();
    return move_to(state_ == State::top ? State::after : State::top);
  }

  bool start_array(std::size_t) override {
    if (state_ == State::tensor && (key_ == "shape" || key_ == "data_offsets")) return move_to(State::list);
    return unexpected("a list");
  }

  bool end_array() override {
    if (key_ == "data_offsets") {
      if (numbers_.size() != 2)
        refuse(fmt::format("tensor {} has {} data_offsets, wanted 2", quote(entry().name), numbers_.size()));
      entry().begin = static_cast<std::uint64_t>(numbers_[0]);
      entry().end = static_cast<std::uint64_t>(numbers_[1]);
    } else {
      entry().shape = numbers_;
    }
    numbers_.clear();
    return move_to(State::tensor);
  }

  bool string(string_t& text) override {
    if (state_ == State::metadata) {
      header_.metadata[key_] = text;
      return true;
    }
    if (state_ != State::tensor || key_ != "dtype") return unexpected("a string");
    const auto dtype = dtype_of(text);
    if (!dtype) {
      fail(ErrorCode::unsupported, where_,
           fmt::format("tensor {} has type {}, which this program does not know", quote(entry().name), quote(text)));
    }
    entry().dtype = *dtype;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ != State::list) return unexpected("a number");
    if (!std::in_range<std::int64_t>(value))
      refuse(fmt::format("tensor {} has a number of {}", quote(entry().name), value));
    numbers_.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a truth value"); }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return unexpected("a fraction"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    refuse(fmt::format("is no JSON from byte {} of the header on", position));
  }

 private:
  enum class State { before, top, metadata, tensor, list, after };

  HeaderEntry& entry() { return header_.entries.back(); }

  bool start_entry(const std::string& name) {
    in_metadata_ = name == "__metadata__";
    if (!names_.insert(name).second) refuse(fmt::format("has {} twice", quote(name)));
    if (!in_metadata_) header_.entries.push_back({name, DType::u8, {}, 0, 0});
    fields_.clear();
    return true;
  }

  void finish_entry() {
    if (fields_ != std::set<std::string>{"data_offsets", "dtype", "shape"}) {
      refuse(fmt::format("tensor {} lacks one of dtype, shape and data_offsets, or has more", quote(entry().name)));
    }
  }

  bool move_to(State state) {
    state_ = state;
    return true;
  }

  bool unexpected(std::string_view what) {
    refuse(fmt::format("has {} in its header, at {}, where the format has none", what,
                       quote(header_.entries.empty() ? key_ : entry().name)));
  }

  [[noreturn]] void refuse(const std::string& why) const { fail(ErrorCode::bad_file, where_, why); }

  std::string_view where_;
  Header header_;
  State state_ = State::before;
  bool in_metadata_ = false;
  std::string key_;
  std::set<std::string> names_;   ///< of tensors seen
  std::set<std::string> fields_;  ///< of the tensor at hand
  Shape numbers_;
};

}  // namespace

Header read_header(std::span<const std::uint8_t> text, std::string_view where) {
  HeaderHandler handler(where);
  json::sax_parse(text.begin(), text.end(), &handler);
  return handler.take();
}

}  // namespace weightmill::safetensors

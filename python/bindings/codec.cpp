#include <array>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/codec/codec.h>

#include "arrays.h"
#include "words.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;
namespace mlw = weightmill::mlw;

namespace {

using Weights = nb::ndarray<const std::int16_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::span<const std::int16_t> span_of(const Weights& weights) { return {weights.data(), weights.size()}; }

/// Runs `work` without the GIL.
template <class Work>
auto released(const Work& work) {
  const nb::gil_scoped_release release;
  return work();
}

nb::bytes encode(const Weights& weights, const std::string& effort, const std::string& forms) {
  const mlw::Effort chosen = effort_named(effort);
  const mlw::Forms chosen_forms = forms_named(forms);
  return to_bytes(released([&] { return mlw::encode(span_of(weights), chosen, chosen_forms); }));
}

auto decode(nb::handle stream, std::size_t max_weights) {
  const ByteView view(stream);
  return to_numpy(released([&] { return mlw::decode(view.bytes(), max_weights); }));
}

nb::bytes encode_fast(const Weights& weights, bool force_raw) {
  const auto stream = released([&] { return mlw::encode_fast(span_of(weights), force_raw); });
  if (!stream) {
    weightmill::fail(weightmill::ErrorCode::unsupported, "fast format",
                     "8 bits cannot hold these weights: use encode()");
  }
  return to_bytes(*stream);
}

auto decode_fast(nb::handle stream, std::size_t n_weights) {
  const ByteView view(stream);
  return to_numpy(released([&] { return mlw::decode_fast(view.bytes(), n_weights); }));
}

nb::dict to_dict(const mlw::StreamStatistics& statistics) {
  nb::dict result;
  result["weights"] = statistics.weights;
  result["coded_indices"] = statistics.coded_indices;
  result["streams"] = statistics.streams;
  result["slices"] = statistics.slices;
  result["palettes"] = statistics.palettes;
  result["palette_entries"] = statistics.palette_entries;
  result["zero_run_slices"] = statistics.zero_run_slices;
  result["passes"] = statistics.passes;
  result["header_bits"] = statistics.header_bits;
  result["end_bits"] = statistics.end_bits;
  nb::list weight_codes, run_codes;
  for (const auto n : statistics.slices_of_weight_code) weight_codes.append(n);
  for (const auto n : statistics.slices_of_run_code) run_codes.append(n);
  result["slices_of_weight_code"] = weight_codes;
  result["slices_of_run_code"] = run_codes;
  return result;
}

nb::dict stream_statistics(nb::handle stream) {
  const ByteView view(stream);
  return to_dict(released([&] { return mlw::decode_with_statistics(view.bytes()); }).statistics);
}

/// A list element as an integer; nothing where it is none or too large for a C long.
std::optional<long> integer_of(PyObject* element) {
  nb::object held;  // an element with an __index__ of its own may take itself out of the list
  if (!PyLong_CheckExact(element)) held = nb::borrow(element);
  const long value = PyLong_AsLong(element);
  if (value != -1 || PyErr_Occurred() == nullptr) return value;
  PyErr_Clear();
  return std::nullopt;
}

/// The weights of a Python list. Throws ValueError with the texts of `ethosu.mlw_codec`; an integer out of range counts
/// before anything that is no integer.
std::vector<std::int16_t> weights_of(const nb::list& list) {
  std::vector<std::int16_t> weights;
  weights.reserve(nb::len(list));
  bool all_integers = true;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.ptr()); ++i) {  // asked anew: an __index__ may change the list
    const std::optional<long> value = integer_of(PyList_GET_ITEM(list.ptr(), i));
    all_integers = all_integers && value.has_value();
    if (value && (*value < -255 || *value > 255)) throw nb::value_error("Input value out of bounds");
    weights.push_back(static_cast<std::int16_t>(value.value_or(0)));
  }
  if (!all_integers) throw nb::value_error("Invalid input");
  return weights;
}

nb::bytearray encode_list(const nb::list& list) {
  const std::vector<std::int16_t> weights = weights_of(list);
  const auto stream = released([&] { return mlw::encode(weights, mlw::Effort::reference); });
  return nb::bytearray(stream.data(), stream.size());
}

/// The Python integers -255 to 255, made once: a decoded list only counts references.
const std::array<PyObject*, 511>& small_integers() {
  static const auto integers = [] {
    std::array<PyObject*, 511> made;
    for (int i = 0; i < 511; ++i) made[static_cast<std::size_t>(i)] = nb::int_(i - 255).release().ptr();  // never freed
    return made;
  }();
  return integers;
}

nb::list decode_to_list(const nb::bytearray& stream) {
  const ByteView view(stream);
  const auto weights = released([&] { return mlw::decode(view.bytes()); });
  PyObject* const* zero = small_integers().data() + 255;
  nb::list list = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(weights.size())));
  if (!list.is_valid()) throw nb::python_error();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    PyObject* integer = zero[weights[i]];
    Py_INCREF(integer);
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), integer);
  }
  return list;
}

}  // namespace

void bind_codec(nb::module_& m) {
  m.def("encode", &encode, nb::arg("weights").noconvert(), nb::arg("effort"), nb::arg("forms"),
        "int16 [N] -> bytes. Raises Error.");
  m.def("decode", &decode, nb::arg("stream"), nb::arg("max_weights"), "bytes-like -> int16 [N]. Raises Error.");
  m.def("encode_fast", &encode_fast, nb::arg("weights").noconvert(), nb::arg("force_raw"),
        "int16 [N] -> bytes. Raises Error.");
  m.def("decode_fast", &decode_fast, nb::arg("stream"), nb::arg("n_weights"), "bytes-like -> int16 [N]. Raises Error.");
  m.def("stream_statistics", &stream_statistics, nb::arg("stream"), "bytes-like -> dict. Raises Error.");
  m.def("mlw_encode_list", &encode_list, nb::arg("weights"), "list of int -> bytearray. Raises ValueError.");
  m.def("mlw_decode_list", &decode_to_list, nb::arg("stream"), "bytearray -> list of int. Raises Error.");
  m.attr("max_weights") = mlw::kDefaultMaxWeights;
}

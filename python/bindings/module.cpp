#include "module.h"

#include <weightmill/base/error.h>

namespace nb = nanobind;

namespace {

/// Turns weightmill::Error into the Python class weightmill.Error (a ValueError) with its `code` as a word.
void bind_error(nb::module_& m) {
  static nb::object error_class = nb::module_::import_("weightmill._error").attr("Error");
  m.attr("Error") = error_class;
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const weightmill::Error& error) {
      nb::object instance = error_class(to_text(error.what()), to_text(weightmill::name_of(error.code)));
      PyErr_SetObject(error_class.ptr(), instance.ptr());
    }
  });
}

}  // namespace

nb::str to_text(std::string_view text) {
  return nb::steal<nb::str>(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

NB_MODULE(_weightmill, m) {
  m.doc() = "Bindings of the Weightmill C++ library; use the package `weightmill`.";
  bind_error(m);
  bind_formats(m);
  bind_squeeze(m);
  bind_codec(m);
  bind_simulate(m);
  bind_pack(m);
  bind_quantize(m);
  bind_fold(m);
  bind_quantize_weights(m);
  bind_pipeline(m);
}

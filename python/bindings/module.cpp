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
      const std::string code(weightmill::name_of(error.code));
      nb::object instance = error_class(error.what(), code.c_str());
      PyErr_SetObject(error_class.ptr(), instance.ptr());
    }
  });
}

}  // namespace

NB_MODULE(_weightmill, m) {
  m.doc() = "Bindings of the Weightmill C++ library; use the package `weightmill`.";
  bind_error(m);
  bind_formats(m);
  bind_codec(m);
  bind_simulate(m);
  bind_pack(m);
}

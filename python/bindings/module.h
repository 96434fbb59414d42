#pragma once

#include <nanobind/nanobind.h>

// One function for each file of bindings. A binding checks types and layout, releases the GIL, calls the door and wraps the
// result: no arithmetic and no defaults of its own.
void bind_formats(nanobind::module_& m);
void bind_codec(nanobind::module_& m);
void bind_simulate(nanobind::module_& m);
void bind_pack(nanobind::module_& m);

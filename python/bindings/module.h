#pragma once

#include <string_view>

#include <nanobind/nanobind.h>

// One function for each file of bindings. A binding checks types and layout, releases the GIL, calls the door and wraps the
// result: no arithmetic and no defaults of its own.

/// Text out of a file or about one, which need not be sound UTF-8: what is broken becomes U+FFFD.
nanobind::str to_text(std::string_view text);

void bind_formats(nanobind::module_& m);
void bind_squeeze(nanobind::module_& m);
void bind_codec(nanobind::module_& m);
void bind_simulate(nanobind::module_& m);
void bind_pack(nanobind::module_& m);
void bind_quantize(nanobind::module_& m);
void bind_fold(nanobind::module_& m);
void bind_quantize_weights(nanobind::module_& m);
void bind_pipeline(nanobind::module_& m);

#include <string>
#include <vector>

#include <weightmill/base/error.h>
#include <weightmill/base/json_text.h>
#include <weightmill/base/parallel.h>
#include <weightmill/pipeline/squeeze.h>

#include "arrays.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace weightmill;

namespace {

SqueezeOptions options_of(const std::string& effort, const std::string& forms, bool keep_dead, int jobs) {
  return {stream_encoder(effort, forms), keep_dead, resolve_jobs(jobs), {}};
}

std::string squeeze_path(const std::string& from, const std::string& to, const std::string& effort,
                         const std::string& forms, bool keep_dead, int jobs) {
  const nb::gil_scoped_release release;
  return json_text(to_json(squeeze_file(from, to, options_of(effort, forms, keep_dead, jobs))), -1);
}

nb::tuple squeeze_file_bytes(nb::handle file, const std::string& effort, const std::string& forms, bool keep_dead,
                             int jobs) {
  const ByteView view(file);
  const SqueezedBytes squeezed = [&] {
    const nb::gil_scoped_release release;
    return squeeze_bytes(view.bytes(), "model", options_of(effort, forms, keep_dead, jobs));
  }();
  return nb::make_tuple(to_bytes(squeezed.bytes), json_text(to_json(squeezed.report), -1));
}

nb::tuple squeeze_blobs(nb::handle payload, nb::handle read_only, const std::string& effort, const std::string& forms,
                        bool keep_dead, int jobs) {
  const ByteView first(payload), second(read_only);
  const SqueezedPair squeezed = [&] {
    const nb::gil_scoped_release release;
    return squeeze_pair(first.bytes(), second.bytes(), "payload", options_of(effort, forms, keep_dead, jobs));
  }();
  return nb::make_tuple(to_bytes(squeezed.blobs.payload), to_bytes(squeezed.blobs.read_only));
}

std::string inspect_path(const std::string& path, int jobs) {
  const nb::gil_scoped_release release;
  return json_text(to_json(inspect_compiled(path, resolve_jobs(jobs))), -1);
}

std::optional<std::string> compare_paths(const std::string& first, const std::string& second) {
  const nb::gil_scoped_release release;
  return compare_compiled(first, second);
}

}  // namespace

void bind_squeeze(nb::module_& m) {
  m.def("squeeze_path", &squeeze_path, nb::arg("source"), nb::arg("target"), nb::arg("effort"), nb::arg("forms"),
        nb::arg("keep_dead").noconvert(), nb::arg("jobs").noconvert(),
        "Compiled file -> smaller file; the report as JSON text. Raises Error.");
  m.def("squeeze_file_bytes", &squeeze_file_bytes, nb::arg("file"), nb::arg("effort"), nb::arg("forms"),
        nb::arg("keep_dead").noconvert(), nb::arg("jobs").noconvert(),
        "Bytes of a compiled file -> (bytes, report as JSON text). Raises Error.");
  m.def("squeeze_blobs", &squeeze_blobs, nb::arg("payload"), nb::arg("read_only"), nb::arg("effort"), nb::arg("forms"),
        nb::arg("keep_dead").noconvert(), nb::arg("jobs").noconvert(),
        "Driver payload and read-only data -> the same, smaller. Raises Error.");
  m.def("inspect_compiled_path", &inspect_path, nb::arg("path"), nb::arg("jobs").noconvert(),
        "Compiled file -> report as JSON text. Raises Error.");
  m.def("compare_compiled_paths", &compare_paths, nb::arg("first"), nb::arg("second"),
        "Two compiled files -> None, or the first difference. Raises Error.");
}

#include <optional>
#include <string>

#include <weightmill/base/error.h>
#include <weightmill/base/json_text.h>
#include <weightmill/base/parallel.h>
#include <weightmill/formats/manifest.h>
#include <weightmill/pipeline/pack.h>
#include <weightmill/report/report.h>

#include "arrays.h"
#include "words.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace weightmill;

namespace {

PackedFolder pack_model(const std::string& model, const std::string& accelerator, const std::string& effort,
                        const std::string& forms, const std::string& scaling, const std::string& format,
                        int ofm_block_depth, int ofm_depth_step, int jobs) {
  PackOptions options;
  options.effort = effort_named(effort);
  options.forms = forms_named(forms);
  options.scaling = named<ScalingRule>(
      "scaling", scaling, {{"2020", ScalingRule::v2020}, {"vela5", ScalingRule::vela5}, {"regor", ScalingRule::regor}});
  options.format = named<FormatChoice>("format", format,
                                       {{"smallest", FormatChoice::smallest},
                                        {"standard", FormatChoice::standard},
                                        {"sparse", FormatChoice::sparse},
                                        {"fast", FormatChoice::fast}});
  options.ofm_block_depth = ofm_block_depth;
  options.ofm_depth_step = ofm_depth_step;
  options.jobs = jobs;
  const nb::gil_scoped_release release;
  return pack_file(model, accelerator, options);
}

std::string verify_folder(const std::string& folder, const std::optional<std::string>& model, int jobs) {
  const nb::gil_scoped_release release;
  const auto path = model ? std::optional<std::filesystem::path>(*model) : std::nullopt;
  return json_text(to_json(verify_packed_folder(folder, path, {resolve_jobs(jobs), {}})), -1);
}

std::string verify_result(const PackedFolder& packed, const std::string& model, int jobs) {
  const nb::gil_scoped_release release;
  return json_text(to_json(verify_packed_model(packed, model, {resolve_jobs(jobs), {}})), -1);
}

nb::bytes blob_of(const PackedFolder& packed, const std::string& name) {
  return to_bytes(packed_blob(packed.packed, name));
}

}  // namespace

void bind_pipeline(nb::module_& m) {
  nb::class_<PackedFolder>(m, "Packed", "What pack() made: bytes and where everything is.")
      .def(
          "manifest_json", [](const PackedFolder& p) { return json_text(to_manifest(p.packed, p.source), -1); },
          "The manifest as JSON text.")
      .def(
          "report_json", [](const PackedFolder& p) { return json_text(to_json(summarize(p.packed)), -1); },
          "The table as JSON text.")
      .def("blob", &blob_of, nb::arg("name"), "Bytes of a blob that the manifest names. Raises Error.")
      .def(
          "write",
          [](const PackedFolder& p, const std::string& folder, bool c_arrays) {
            write_packed_folder(p, folder, c_arrays);
          },
          nb::arg("folder"), nb::arg("c_arrays"), nb::call_guard<nb::gil_scoped_release>(),
          "Writes the folder. Raises Error.");
  m.def("pack_model", &pack_model, nb::arg("model"), nb::arg("accelerator"), nb::arg("effort"), nb::arg("forms"),
        nb::arg("scaling"), nb::arg("format"), nb::arg("ofm_block_depth").noconvert(),
        nb::arg("ofm_depth_step").noconvert(), nb::arg("jobs").noconvert(),
        "Path of an integer TFLite model -> Packed. Raises Error.");
  m.def("verify_folder", &verify_folder, nb::arg("folder"), nb::arg("model").none(), nb::arg("jobs").noconvert(),
        "Packed folder -> report as JSON text. Raises Error.");
  m.def("verify_result", &verify_result, nb::arg("packed"), nb::arg("model"), nb::arg("jobs").noconvert(),
        "Packed -> report as JSON text. Raises Error.");
}

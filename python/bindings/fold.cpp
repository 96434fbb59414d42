#include <weightmill/base/json_text.h>
#include <weightmill/pipeline/fold.h>
#include <weightmill/report/fold_report.h>

#include "module.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace {

std::string fold(const std::filesystem::path& model, const std::filesystem::path& output, const std::string& semantics,
                 bool fail_on_left, bool fold_16_bit, bool zero_points_of_chains, bool compress_weights,
                 const std::string& external_data, int jobs) {
  const nb::gil_scoped_release release;
  weightmill::FoldOptions options;
  options.semantics = weightmill::fold_semantics(semantics);
  options.fail_on_left = fail_on_left;
  options.fold_16_bit = fold_16_bit;
  options.zero_points_of_chains = zero_points_of_chains;
  options.compress_weights = compress_weights;
  options.external_data = weightmill::external_data(external_data);
  options.jobs = jobs;
  return weightmill::json_text(to_json(weightmill::fold_file(model, output, options)), -1);
}

}  // namespace

void bind_fold(nb::module_& m) {
  m.def("fold", &fold, nb::arg("model"), nb::arg("output"), nb::arg("semantics"), nb::arg("fail_on_left"),
        nb::arg("fold_16_bit"), nb::arg("zero_points_of_chains"), nb::arg("compress_weights"), nb::arg("external_data"),
        nb::arg("jobs"), "Folds a model file; the report as JSON. An empty output writes nothing. Raises Error.");
}

#include <weightmill/base/json_text.h>
#include <weightmill/pipeline/quantize.h>
#include <weightmill/report/quantize_report.h>

#include "module.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace {

std::string quantize_weights(const std::filesystem::path& model, const std::filesystem::path& output,
                             const std::string& weight_type, const std::string& scale_method, bool per_channel,
                             std::int64_t block_size, const std::vector<std::string>& op_types,
                             const std::vector<std::string>& exclude, double min_sqnr_db, bool fail_on_left,
                             const std::string& external_data, int jobs) {
  const nb::gil_scoped_release release;
  weightmill::WeightQuantizeOptions options;
  options.weight_type = weightmill::weight_type(weight_type);
  options.scale_method = weightmill::scale_method(scale_method);
  options.per_channel = per_channel;
  options.block_size = block_size;
  options.op_types = op_types;
  options.exclude = exclude;
  options.min_sqnr_db = min_sqnr_db;
  options.fail_on_left = fail_on_left;
  options.external_data = weightmill::external_data(external_data);
  options.jobs = jobs;
  return weightmill::json_text(to_json(weightmill::quantize_weights(model, output, options)), -1);
}

}  // namespace

void bind_quantize_weights(nb::module_& m) {
  m.def("quantize_weights", &quantize_weights, nb::arg("model"), nb::arg("output"), nb::arg("weight_type"),
        nb::arg("scale_method"), nb::arg("per_channel"), nb::arg("block_size"), nb::arg("op_types"), nb::arg("exclude"),
        nb::arg("min_sqnr_db"), nb::arg("fail_on_left"), nb::arg("external_data"), nb::arg("jobs"),
        "Quantizes the weights of a model file; the report as JSON. An empty output writes nothing. Raises Error.");
}

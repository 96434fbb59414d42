#include "report.h"

namespace weightmill {

LayerCheck sum_of(const VerifyReport& report) {
  LayerCheck sum;
  for (const LayerCheck& check : report.layers) {
    sum.n_streams += check.n_streams;
    sum.n_weights += check.n_weights;
    sum.n_padding += check.n_padding;
    sum.n_records += check.n_records;
    sum.n_findings += check.n_findings;
  }
  return sum;
}

nlohmann::ordered_json to_json(const VerifyReport& report) {
  const LayerCheck sum = sum_of(report);
  nlohmann::ordered_json json{{"schema", "weightmill.verify/1"},
                              {"identical", report.n_findings == 0},
                              {"n_layers", report.layers.size()},
                              {"n_streams", sum.n_streams},
                              {"n_weights", sum.n_weights},
                              {"n_padding", sum.n_padding},
                              {"n_records", sum.n_records},
                              {"n_findings", report.n_findings},
                              {"findings", nlohmann::ordered_json::array()}};
  for (const Finding& finding : report.findings) {
    json["findings"].push_back(
        {{"layer", finding.layer}, {"where", finding.where}, {"found", finding.found}, {"wanted", finding.wanted}});
  }
  return json;
}

}  // namespace weightmill

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <weightmill/base/json_text.h>
#include <weightmill/formats/packed_files.h>
#include <weightmill/pack/accelerator.h>

#include "console.h"
#include "verbs.h"

namespace weightmill::cli {
namespace {

std::string text_of(const BlockShape& shape) { return fmt::format("{}x{}x{}", shape.width, shape.height, shape.depth); }

void print_table() {
  std::vector<std::vector<std::string>> rows;
  for (const Accelerator& a : accelerators()) {
    std::vector<std::string> ublocks;
    for (const BlockShape& ublock : a.ofm_ublocks) ublocks.push_back(text_of(ublock));
    rows.push_back({a.name, std::to_string(a.macs_per_cycle), std::to_string(a.cores),
                    fmt::format("{}", fmt::join(ublocks, " ")), text_of(a.ifm_ublock), text_of(a.largest_ofm_block)});
  }
  fmt::print("{}",
             format_table({"target", "MACs/cycle", "cores", "ofm ublocks (WxHxD)", "ifm ublock", "largest ofm block"},
                          rows, "<>><<<"));
}

void print_json() {
  nlohmann::ordered_json json{{"schema", "weightmill.targets/1"}, {"targets", nlohmann::ordered_json::array()}};
  for (const Accelerator& a : accelerators()) json["targets"].push_back(to_json(a));
  fmt::print("{}\n", json_text(json));
}

}  // namespace

void add_targets(Verbs& verbs) {
  auto common = std::make_shared<Common>();
  CLI::App& verb = verbs.add("targets", "The accelerators and what their weight path looks like", *common, [common] {
    if (common->json)
      print_json();
    else
      print_table();
    return 0;
  });
  verb.footer("Example:\n  weightmill targets --json\n");
}

}  // namespace weightmill::cli

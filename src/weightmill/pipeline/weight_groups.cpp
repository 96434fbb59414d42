#include "weight_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace weightmill {
namespace {

bool same_plan(const ScalePlan& a, const ScalePlan& b) {
  return a.code_type == b.code_type && a.axis == b.axis && a.grouped == b.grouped && a.block_size == b.block_size;
}

}  // namespace

void leave_shared(std::span<const WeightSource> sources, std::vector<QuantizedWeight>& rows) {
  std::map<std::size_t, std::string> readers;  // of each source, one that keeps it in float
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!sources[i].other_reader.empty()) readers.emplace(sources[i].id, sources[i].other_reader);
    if (!rows[i].reason.empty()) readers.emplace(sources[i].id, rows[i].op + " " + rows[i].node);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto reader = readers.find(sources[i].id);
    if (reader == readers.end() || !rows[i].reason.empty()) continue;
    rows[i].reason = fmt::format("{} reads it too and keeps it in float", reader->second);
  }
}

std::vector<WeightGroup> group_weights(std::span<const WeightSource> sources, std::span<const QuantizedWeight> rows,
                                       const std::function<ScalePlan(std::size_t)>& plan_of,
                                       const std::function<bool(std::size_t, std::size_t)>& same_elements) {
  std::vector<WeightGroup> groups;
  std::multimap<std::size_t, std::size_t> by_source;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].reason.empty()) continue;
    ScalePlan plan = plan_of(i);
    const auto [begin, end] = by_source.equal_range(sources[i].id);
    const auto known = std::find_if(begin, end, [&](const auto& entry) {
      const WeightGroup& group = groups[entry.second];
      return same_plan(group.plan, plan) && same_elements(group.rows.front(), i);
    });
    if (known != end) {
      groups[known->second].rows.push_back(i);
    } else {
      by_source.emplace(sources[i].id, groups.size());
      groups.push_back({{i}, std::move(plan)});
    }
  }
  return groups;
}

void record(const WeightGroup& group, const CodedWeight& coded, std::vector<QuantizedWeight>& rows) {
  for (const std::size_t member : group.rows) {
    QuantizedWeight& row = rows[member];
    row.outcome = WeightOutcome::quantized;
    row.type_after = group.plan.code_type;
    row.bytes_after = member == group.rows.front() ? group.plan.size_bytes(row.shape) : 0;
    row.granularity = group.plan.granularity;
    row.n_scales = coded.scales->scale.size();
    row.note = group.plan.note;
    row.sqnr_db = coded.error.sqnr_db();
    row.worst_sqnr_db = coded.worst_sqnr_db;
    row.max_error_steps = coded.error.max_steps;
    row.zero_channels = coded.scales->zero;
    row.negligible_channels = coded.scales->negligible;
  }
}

void count_sources_once(std::span<const WeightSource> sources, std::vector<QuantizedWeight>& rows) {
  std::set<std::size_t> counted;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (counted.insert(sources[i].id).second) continue;
    rows[i].bytes_before = 0;
    if (rows[i].outcome == WeightOutcome::left) rows[i].bytes_after = 0;
  }
}

}  // namespace weightmill

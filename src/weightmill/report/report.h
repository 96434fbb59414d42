#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <weightmill/model/packed.h>
#include <weightmill/model/verify_report.h>

namespace weightmill {

/// One line of the table that `pack` prints.
struct PackRow {
  std::string op_name;
  std::string name;  ///< of the weight tensor
  std::array<int, 4> ohwi{};
  std::string traversal;           ///< with the format where that is not standard: "depth_first, sparse"
  std::uint64_t n_weights = 0;     ///< of the model
  std::uint64_t n_ordered = 0;     ///< with the order's padding
  std::uint64_t source_bytes = 0;  ///< of the weights in the model
  std::uint64_t stream_bytes = 0;  ///< 0 where the streams are another layer's
  std::uint64_t record_bytes = 0;
  std::size_t n_streams = 0;
  int same_as = -1;

  /// Bits of the streams for each weight of the model; 0 where there are no streams of its own.
  double bits_per_weight() const noexcept;
};

/// What `pack` did, layer by layer and in sum.
struct PackReport {
  std::string accelerator;
  std::string effort;
  std::string scaling;
  std::vector<PackRow> rows;
  PackRow total;  ///< sums; names are empty
  std::vector<NotPacked> not_packed;
};

PackReport summarize(const Packed& packed);

/// Schema "weightmill.pack/1".  [docs/cli.md]
nlohmann::ordered_json to_json(const PackReport& report);

/// The counts of all layers together.
LayerCheck sum_of(const VerifyReport& report);

/// Schema "weightmill.verify/1".  [docs/cli.md]
nlohmann::ordered_json to_json(const VerifyReport& report);

}  // namespace weightmill

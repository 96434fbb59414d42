#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weightmill {

/// One thing that is not as it must be.
struct Finding {
  int layer = -1;         ///< index of the packed layer; -1: of the whole file
  std::string where;      ///< "layer 3 (CONV_2D conv/w), slice 0, core 1, weight 17 (o 2, y 0, x 1, i 5)"
  std::string found;
  std::string wanted;
};

/// What was compared for one packed layer.
struct LayerCheck {
  std::uint64_t n_streams = 0;
  std::uint64_t n_weights = 0;   ///< of the model, each found in the streams
  std::uint64_t n_padding = 0;   ///< zeros in the streams that stand for no weight
  std::uint64_t n_records = 0;   ///< scale-and-bias records
  std::uint64_t n_findings = 0;
};

/// The outcome of a comparison. Nothing was wrong if `n_findings` is 0.
struct VerifyReport {
  std::vector<LayerCheck> layers;  ///< as Packed::layers
  std::vector<Finding> findings;   ///< the first of each layer, at most kMaxListed a layer
  std::uint64_t n_findings = 0;    ///< all of them

  static constexpr std::size_t kMaxListed = 8;
};

}  // namespace weightmill

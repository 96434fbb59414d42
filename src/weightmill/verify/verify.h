#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <weightmill/base/progress.h>
#include <weightmill/model/graph.h>
#include <weightmill/model/packed.h>

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

struct VerifyOptions {
  unsigned jobs = 1;
  Progress progress;
};

/// Proves that `packed` holds the weights, zero points, scales and biases of `model`, byte for byte.
///
/// Every stream is decoded and each position of it compared with the weight that the NPU's order puts there, or with zero
/// where the order pads; every weight must be met; every record is parsed and compared with the bias and with the multiplier
/// and shift worked out anew from the tensors' scales; no byte of the blobs may lie outside a stream, a record or their
/// zero padding. Order and scales are worked out by code of this room alone: it shares none with the packer.
/// Streams that do not decode, offsets outside and the like are findings, not errors.
/// Source: docs/weight-stream.md, docs/brick-order.md, docs/scale-records.md.
VerifyReport verify_packed(const Packed& packed, const Model& model, const VerifyOptions& options = {});

/// The same without the model: everything decodes, counts, offsets and paddings are as stated.
VerifyReport verify_packed(const Packed& packed, const VerifyOptions& options = {});

}  // namespace weightmill

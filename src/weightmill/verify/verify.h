#pragma once

#include <weightmill/base/progress.h>
#include <weightmill/model/graph.h>
#include <weightmill/model/packed.h>
#include <weightmill/model/verify_report.h>

namespace weightmill {

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

#pragma once

#include <cstdint>

#include <weightmill/base/progress.h>
#include <weightmill/codec/codec.h>
#include <weightmill/model/graph.h>
#include <weightmill/model/packed.h>

namespace weightmill {

/// Which of U85's stream formats a layer may have.
enum class FormatChoice : std::uint8_t {
  smallest,  ///< of those that the layer's weights and operator allow; the plainest of equals
  standard,  ///< no other
  sparse,    ///< where the weights are 2:4 sparse, else standard
  fast,      ///< where operator and range of the weights allow it, else standard
};

struct PackOptions {
  mlw::Effort effort = mlw::Effort::best;
  mlw::Forms forms = mlw::Forms::proven;
  ScalingRule scaling = ScalingRule::vela5;
  int ofm_block_depth = 0;  ///< output channels of a block, of the whole NPU; 0: 64, or what a layer with fewer needs
  int ofm_depth_step = 0;   ///< output channels that are brought in at once; 0: all of a layer's
  FormatChoice format = FormatChoice::smallest;
  int jobs = 1;  ///< threads; 0: the machine's
  Progress progress;
};

/// Packs all weights of an integer model for `accelerator`: streams, scale-and-bias records, and where everything is.
///
/// What cannot be packed is listed in `not_packed` with the reason. Equal weights that are used in the same way are
/// packed once. The result is the same for any number of jobs. Beside the model's mapped pages, of which it gives back
/// those it has read, and the result, it needs memory for `jobs` streams and at most one layer of widened weights.
/// Throws: bad_request if an option makes no sense; bad_file if the model contradicts itself.
Packed pack(const Model& model, const Accelerator& accelerator, const PackOptions& options);

}  // namespace weightmill

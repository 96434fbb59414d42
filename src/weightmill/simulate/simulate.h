#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <weightmill/simulate/layer.h>

namespace weightmill {

/// Codes of an activation: [batch, spatial axes, channels], row-major, native byte order.
struct ActivationView {
  DType dtype = DType::i8;
  Shape shape;
  std::span<const std::uint8_t> bytes;
};

struct Simulation {
  DType dtype = DType::i8;
  Shape shape;
  std::vector<std::uint8_t> bytes;  ///< as ActivationView
  RequantCounts counts;             ///< over all outputs

  ActivationView view() const { return {dtype, shape, bytes}; }
};

/// Runs one layer in integers: weights are packed once, run() may be called any number of times, from any thread.
class Simulator {
 public:
  /// Throws: bad_request if the layer's fields contradict each other or leave their limits (names the layer and the
  /// field); unsupported for a type outside those IntegerLayer lists.
  explicit Simulator(IntegerLayer layer);
  ~Simulator();
  Simulator(Simulator&&) noexcept;

  /// `input` is [N, h, w, G * I] (or with d); a dense layer (all extents of the kernel 1) takes any rank >= 1 and
  /// keeps all axes but the last. The result is the same for any number of `jobs`.
  /// Throws: bad_request if type or shape do not fit the layer, the kernel does not fit the padded input, or the
  /// padded input or the output would have more than 2^31 elements.
  Simulation run(const ActivationView& input, unsigned jobs) const;

 private:
  struct Prepared;
  std::unique_ptr<const Prepared> prepared_;
};

/// Simulator(layer).run(input, jobs).
Simulation simulate(const IntegerLayer& layer, const ActivationView& input, unsigned jobs);

/// Runs the layers one after the other, each on what the one before made: types must follow on one another, zero points
/// are the caller's affair. counts[k] are those of layer k.
/// Throws: as Simulator; bad_request if there is no layer.
struct ChainSimulation {
  Simulation output;
  std::vector<RequantCounts> counts;
};
ChainSimulation simulate_chain(std::span<const IntegerLayer> layers, const ActivationView& input, unsigned jobs);

}  // namespace weightmill

#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <weightmill/fold/fake_quantize.h>
#include <weightmill/formats/openvino.h>
#include <weightmill/model/fold.h>

namespace weightmill {

/// FakeQuantize over a constant.
struct IrFakeQuantize {
  FakeQuantize operation;
  std::size_t layer = 0;
};

/// FakeQuantize -> Convert(integer) -> Convert(float) -> [Subtract] -> Multiply over a constant.
struct IrQuantizedChain {
  QuantizedChain chain;
  std::size_t fake_quantize = 0;
  std::size_t convert_low = 0;   ///< to integers: becomes the Const
  std::size_t convert_high = 0;  ///< back to float
  std::optional<std::size_t> subtract;
};

/// Integer Const -> Convert -> Subtract.
struct IrIntegerChain {
  IntegerChain chain;
  std::size_t constant = 0;
  std::size_t convert = 0;
  std::size_t subtract = 0;
};

/// A place in a graph where a constant may become integers, or lose its zero point.
struct IrCandidate {
  std::size_t graph = 0;
  std::variant<std::monostate, IrFakeQuantize, IrQuantizedChain, IrIntegerChain>
      what;  ///< monostate: row.reason says why not
  FoldedTensor row;
  std::vector<std::size_t> constants;         ///< all Consts that it reads
  std::vector<std::vector<std::uint8_t>> owned;  ///< limits that were converted
};

/// All candidates of a graph, in the file's order.  [docs/folding.md §1]
std::vector<IrCandidate> find_candidates(const Ir& ir, std::size_t graph, const FoldOptions& options);

}  // namespace weightmill

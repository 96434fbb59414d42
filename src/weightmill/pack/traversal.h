#pragma once

#include <array>

#include <weightmill/model/accelerator.h>
#include <weightmill/model/packed.h>

namespace weightmill {

/// U55, U65: which traversal keeps more of the multipliers busy, by the classic utilisation formula.
/// `ohwi`: the weights. `ifm_bits`: 8, 16 or 32.  [docs/brick-order.md §4]
Traversal choose_traversal(NpuBlockType type, const std::array<int, 4>& ohwi, int ifm_bits);

/// U85: the same with U85's rounding.  [docs/brick-order.md §4]
Traversal choose_traversal_u85(NpuBlockType type, const std::array<int, 4>& ohwi, bool sparse);

/// U85: the ofm ublock that an operator runs with: of those the hardware allows for it, the first that pads the ofm
/// least. `ofm` extents below 1 count as 1.
BlockShape choose_ofm_ublock(const Accelerator& accelerator, Traversal traversal, const std::array<int, 4>& ohwi,
                             int ifm_bits, BlockShape ofm);

/// U85: input channels of a block.
int choose_ifm_block_depth(const Accelerator& accelerator, Traversal traversal, int ofm_ublock_depth, int ifm_bits,
                           bool sparse);

}  // namespace weightmill

#pragma once

#include <weightmill/model/fixed_point.h>
#include <weightmill/model/packed.h>

namespace weightmill::verify {

/// Multiplier and shift of the positive number x, worked out on its binary digits: the 31 leading bits of x, rounded
/// half up, with the shift that puts the point back; (0, 31) for 0. Not yet limited to what a record can hold.
FixedPoint leading_bits(double x);

/// What `rule` puts into the record of a channel with weight scale `weight_scale`.  [docs/scale-records.md]
FixedPoint expected_rescale(const PackedLayer& layer, float weight_scale, bool bias_is_64_bit);

}  // namespace weightmill::verify

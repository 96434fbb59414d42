#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <weightmill/model/accelerator.h>
#include <weightmill/model/dtype.h>
#include <weightmill/model/packed.h>

namespace weightmill {

/// Bytes of a scale-and-bias record, on every Ethos-U.
inline constexpr int kRecordBytes = 10;

using RecordBytes = std::array<std::uint8_t, kRecordBytes>;

/// One record.  [docs/scale-records.md §1]
/// Throws: bad_request if bias, multiplier or shift does not fit its field (names the field, its range and the value).
RecordBytes pack_record(const ChannelRecord& record, RecordFormat format);

/// The inverse. Bits that no field owns must be zero.
/// Throws: bad_stream if they are not.
ChannelRecord unpack_record(std::span<const std::uint8_t, kRecordBytes> bytes, RecordFormat format);

/// What the rescale factors of a layer follow from.
struct ScaleRequest {
  ScalingRule rule = ScalingRule::vela5;
  DType ifm_dtype = DType::i8;          ///< i8, u8 or i16
  float ifm_scale = 1, ofm_scale = 1;   ///< real units per step
  std::span<const float> weight_scale;  ///< one, or one for each channel
  bool fully_connected = false;
  bool bias_is_64_bit = false;
  bool rescale_for_activation = false;  ///< fused sigmoid or tanh; rule 2020 alone looks at it
  bool reduced_always = false;          ///< U85 with a 48-bit accumulator has room for no other multiplier
};

/// The real rescale factors, one for each of `weight_scale`.  [docs/scale-records.md §3]
/// Throws: unsupported if the feature map is no int8, uint8 or int16.
std::vector<double> rescale_factors(const ScaleRequest& request);

/// The same as multiplier and shift, one for each of `n_channels` (a single weight scale is repeated).
/// Throws: as rescale_factors; bad_request if the number of weight scales is neither 1 nor n_channels, or a factor is
/// infinite or not a number.
std::vector<FixedPoint> channel_scales(const ScaleRequest& request, std::size_t n_channels);

/// Records of a layer as they lie in memory.
struct PackedRecords {
  std::vector<std::uint8_t> bytes;
  std::vector<std::vector<PackedScales>> slices;  ///< for each depth slice, its cores' records
};

/// U55, U65: for each depth slice of `depth_step` channels, core after core, each padded with zeros to 16 bytes. A core
/// has every cores-th channel; one beyond the slice is repeated there as the classic flow does.  [docs/scale-records.md
/// §4] Throws: bad_request if depth_step or cores is not positive, or a record does not fit (names the channel).
PackedRecords pack_records(std::span<const ChannelRecord> channels, int depth_step, int cores);

/// U85: for each depth slice, the records of all cores, then zero records up to a multiple of the ofm ublock's depth
/// (at least 16), then zeros to 16 bytes.  [docs/scale-records.md §5] Throws: as pack_records.
PackedRecords pack_records_u85(std::span<const ChannelRecord> channels, int depth_step, int ofm_ublock_depth,
                               RecordFormat format);

}  // namespace weightmill

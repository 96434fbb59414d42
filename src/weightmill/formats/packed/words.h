#pragma once

#include <array>
#include <span>
#include <string_view>

#include <weightmill/model/packed.h>

namespace weightmill::formats {

/// All values of an enumeration that has a name_of(), so that a word can be looked up.
template <class Enum>
std::span<const Enum> all_values();

template <>
inline std::span<const Traversal> all_values<Traversal>() {
  static constexpr std::array values{Traversal::depth_first, Traversal::part_kernel_first, Traversal::depthwise};
  return values;
}
template <>
inline std::span<const NpuBlockType> all_values<NpuBlockType>() {
  static constexpr std::array values{NpuBlockType::convolution, NpuBlockType::depthwise, NpuBlockType::vector_product};
  return values;
}
template <>
inline std::span<const StreamFormat> all_values<StreamFormat>() {
  static constexpr std::array values{StreamFormat::standard, StreamFormat::sparse, StreamFormat::fast,
                                     StreamFormat::fast_sparse};
  return values;
}
template <>
inline std::span<const ScalingRule> all_values<ScalingRule>() {
  static constexpr std::array values{ScalingRule::v2020, ScalingRule::vela5, ScalingRule::regor};
  return values;
}
template <>
inline std::span<const RecordFormat> all_values<RecordFormat>() {
  static constexpr std::array values{RecordFormat::bias40_scale32, RecordFormat::bias32_scale31,
                                     RecordFormat::bias48_scale15};
  return values;
}
template <>
inline std::span<const DType> all_values<DType>() {
  static constexpr std::array values{DType::i4, DType::i8, DType::i16, DType::i32, DType::i64,
                                     DType::u4, DType::u8, DType::u16, DType::u32, DType::u64};
  return values;
}
template <>
inline std::span<const NpuFamily> all_values<NpuFamily>() {
  static constexpr std::array values{NpuFamily::u55, NpuFamily::u65, NpuFamily::u85};
  return values;
}
template <>
inline std::span<const OpKind> all_values<OpKind>() {
  static constexpr std::array values{OpKind::conv_2d,
                                     OpKind::depthwise_conv_2d,
                                     OpKind::transpose_conv_2d,
                                     OpKind::fully_connected,
                                     OpKind::conv_3d,
                                     OpKind::lstm,
                                     OpKind::unidirectional_sequence_lstm,
                                     OpKind::svdf,
                                     OpKind::other};
  return values;
}

}  // namespace weightmill::formats

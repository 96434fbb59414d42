#include "graph.h"

namespace weightmill {

std::string_view name_of(OpKind kind) noexcept {
  switch (kind) {
    case OpKind::conv_2d: return "conv_2d";
    case OpKind::depthwise_conv_2d: return "depthwise_conv_2d";
    case OpKind::transpose_conv_2d: return "transpose_conv_2d";
    case OpKind::fully_connected: return "fully_connected";
    case OpKind::conv_3d: return "conv_3d";
    case OpKind::lstm: return "lstm";
    case OpKind::unidirectional_sequence_lstm: return "unidirectional_sequence_lstm";
    case OpKind::svdf: return "svdf";
    case OpKind::other: return "other";
  }
  return "other";
}

std::vector<std::size_t> weight_inputs(OpKind kind) {
  switch (kind) {
    case OpKind::conv_2d:
    case OpKind::depthwise_conv_2d:
    case OpKind::transpose_conv_2d:
    case OpKind::fully_connected:
    case OpKind::conv_3d: return {1};
    case OpKind::svdf: return {1, 2};
    case OpKind::lstm:
    case OpKind::unidirectional_sequence_lstm: return {1, 2, 3, 4, 5, 6, 7, 8};
    case OpKind::other: return {};
  }
  return {};
}

}  // namespace weightmill

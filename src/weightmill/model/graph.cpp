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

}  // namespace weightmill

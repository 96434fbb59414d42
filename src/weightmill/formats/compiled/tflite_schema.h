#pragma once

#include "compiled/flatbuffer_map.h"

namespace weightmill {

/// The root table of a TFLite file with every field of it that holds offsets, down to the leaves.
/// [docs/compiled-models.md §1]
const TableSchema& tflite_model_schema();

}  // namespace weightmill

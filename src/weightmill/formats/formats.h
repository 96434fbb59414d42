#pragma once

#include <filesystem>

#include <weightmill/model/graph.h>

namespace weightmill {

/// Reads a model file, whatever its format: the content decides, not the name.
///
/// Weights stay views of the mapped file, which `Model::file` keeps alive: opening costs time and memory for the graph
/// only. Reads: TFLite (see tflite.h).
/// Throws: bad_file if the file cannot be read, is of no known format or breaks its format (names what is broken);
/// unsupported if it is well-formed but beyond this program.
Model read_model(const std::filesystem::path& path);

}  // namespace weightmill

#pragma once

#include <filesystem>

namespace weightmill {

// What a model file is, from its content. Throw: bad_file if it cannot be read.

/// The first letter is '<', perhaps behind a byte order mark and blanks.
bool is_xml(const std::filesystem::path& path);
/// A TFLite file says so in bytes 4 to 7.
bool is_tflite(const std::filesystem::path& path);

}  // namespace weightmill

#include "formats.h"

#include <memory>
#include <utility>

#include <weightmill/base/error.h>

#include "tflite.h"

namespace weightmill {

Model read_model(const std::filesystem::path& path) {
  auto file = std::make_shared<const MappedFile>(path);
  if (!is_tflite(file->bytes())) {
    fail(ErrorCode::bad_file, file->name(),
         "is no model that this program reads: wanted a TFLite file, which has 'TFL3' at bytes 4 to 7");
  }
  Model model = parse_tflite(file->bytes(), file->name());
  model.path = path;
  model.file = std::move(file);
  return model;
}

}  // namespace weightmill

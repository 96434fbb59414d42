#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <onnx_file.pb.h>

#include "payload.h"

namespace weightmill {

/// Opens the files in which an ONNX model keeps the data of its tensors. Only files inside the model's directory are
/// read: a model from elsewhere must not be able to look around on this machine.
class ExternalFiles {
 public:
  /// `model`: path of the model file; where it is a symbolic link, the directory it leads to counts as well.
  explicit ExternalFiles(const std::filesystem::path& model);

  /// The bytes of a tensor with data_location EXTERNAL; nothing is read yet. `needed_bytes`: what its type and shape
  /// ask for, nothing where the type is not known.
  /// Throws: bad_file if location, offset or length are missing or malformed, the path is absolute or leads out of the
  /// model's directory (also through `..` or symbolic links), the file is missing or too short, or `length` contradicts
  /// the shape (names tensor, file, directory and sizes).
  Payload open(const onnx_file::TensorProto& tensor, std::optional<std::uint64_t> needed_bytes);

  /// The files that have been opened.
  std::vector<std::filesystem::path> files() const;
  std::uint64_t size_bytes() const;

 private:
  std::shared_ptr<const MappedFile> map_file(const std::string& tensor, const std::string& location);
  void check_inside(const std::string& tensor, const std::string& location, const std::filesystem::path& file) const;

  std::filesystem::path directory_;            ///< as the user wrote it, for messages
  std::vector<std::filesystem::path> inside_;  ///< canonical directories that may be read
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace weightmill

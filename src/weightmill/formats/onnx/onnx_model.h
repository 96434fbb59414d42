#pragma once

#include <functional>

#include <onnx_file.pb.h>

#include "constants.h"
#include "external_files.h"
#include "graph_index.h"
#include "onnx.h"
#include "payload.h"
#include "tile_cache.h"

namespace weightmill {

/// What an OnnxModel holds. Each TensorProto.raw_data in `proto`, also of a tensor that was external, holds the number
/// of its payload.
struct OnnxModel::Impl {
  explicit Impl(const std::filesystem::path& path);

  std::filesystem::path path;
  std::shared_ptr<const MappedFile> file;
  onnx_file::ModelProto proto;
  PayloadTable payloads;
  ExternalFiles external;
  bool had_external_data = false;
  std::shared_ptr<TileCache> tiles = std::make_shared<TileCache>();
  std::uint64_t n_readers = 0;

  GraphIndex index() { return GraphIndex(proto, path.string()); }
};

/// Where a TensorProto stands.
enum class TensorPlace { initializer, elsewhere };

/// Calls visit(tensor, place) for each TensorProto of a model, wherever it can stand.
void for_each_tensor(onnx_file::ModelProto& model,
                     const std::function<void(onnx_file::TensorProto&, TensorPlace place)>& visit);

/// The operator set version of the default domain that the graph or function of `scope` runs under; 0 if it names none.
std::int64_t opset_of(const onnx_file::ModelProto& model, const GraphIndex& index, int scope);

}  // namespace weightmill

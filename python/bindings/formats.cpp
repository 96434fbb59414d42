#include <memory>
#include <utility>

#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <weightmill/base/error.h>
#include <weightmill/formats/formats.h>
#include <weightmill/formats/npy.h>
#include <weightmill/formats/safetensors.h>

#include "module.h"

namespace nb = nanobind;

namespace {

using weightmill::Model;
using Bytes = nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>>;

/// An array that views `bytes`, which live as long as `owner`.
Bytes view(std::span<const std::uint8_t> bytes, const nb::object& owner) {
  static constexpr std::uint8_t kNothing = 0;
  return Bytes(bytes.empty() ? &kNothing : bytes.data(), {bytes.size()}, owner);
}

nb::object tensor_record(const weightmill::Tensor& tensor, const nb::object& owner) {
  nb::dict record;
  record["name"] = to_text(tensor.name);
  record["dtype"] =
      to_text(tensor.dtype == weightmill::DType::other ? std::string_view(tensor.format_dtype) : name_of(tensor.dtype));
  record["shape"] = nb::tuple(nb::cast(tensor.shape));
  record["shape_signature"] = nb::tuple(nb::cast(tensor.shape_signature));
  record["scale"] = nb::cast(tensor.quantization.scale);
  record["zero_point"] = nb::cast(tensor.quantization.zero_point);
  record["axis"] = tensor.quantization.axis;
  record["quantization_details"] = to_text(tensor.quantization_details);
  record["variable"] = tensor.variable;
  record["sparse"] = tensor.sparse;
  record["buffer"] = tensor.buffer;
  record["data"] = tensor.constant ? nb::cast(view(tensor.data, owner)) : nb::none();
  return record;
}

nb::object node_record(const weightmill::Node& node, const nb::object& owner) {
  nb::dict record;
  record["op_name"] = to_text(node.op_name);
  record["custom"] = node.custom;
  record["version"] = node.version;
  record["inputs"] = nb::cast(node.inputs);
  record["outputs"] = nb::cast(node.outputs);
  record["intermediates"] = nb::cast(node.intermediates);
  record["custom_options"] = view(node.custom_options, owner);
  return record;
}

template <class T>
nb::list to_list(const std::vector<T>& things, nb::object (*record)(const T&, const nb::object&),
                 const nb::object& owner) {
  nb::list list;
  for (const T& thing : things) list.append(record(thing, owner));
  return list;
}

nb::object subgraph_record(const weightmill::Subgraph& subgraph, const nb::object& owner) {
  nb::dict record;
  record["name"] = to_text(subgraph.name);
  record["tensors"] = to_list(subgraph.tensors, &tensor_record, owner);
  record["nodes"] = to_list(subgraph.nodes, &node_record, owner);
  record["inputs"] = nb::cast(subgraph.inputs);
  record["outputs"] = nb::cast(subgraph.outputs);
  return record;
}

nb::dict arguments_record(const std::vector<weightmill::Signature::Argument>& arguments) {
  nb::dict record;
  for (const auto& argument : arguments) record[to_text(argument.name)] = argument.tensor;
  return record;
}

nb::object signature_record(const weightmill::Signature& signature, const nb::object&) {
  nb::dict record;
  record["key"] = to_text(signature.key);
  record["subgraph"] = signature.subgraph;
  record["inputs"] = arguments_record(signature.inputs);
  record["outputs"] = arguments_record(signature.outputs);
  return record;
}

nb::object metadata_record(const weightmill::Metadata& metadata, const nb::object& owner) {
  return nb::make_tuple(to_text(metadata.name), view(metadata.data, owner));
}

/// Keeps what was read, and with it the mapped file, until the last array that views it is gone.
template <class T>
nb::object owner_of(const std::shared_ptr<const T>& thing) {
  auto held = std::make_unique<std::shared_ptr<const T>>(thing);
  nb::capsule capsule(held.get(), [](void* p) noexcept { delete static_cast<std::shared_ptr<const T>*>(p); });
  held.release();
  return capsule;
}

nb::dict read_model(const std::filesystem::path& path) {
  std::shared_ptr<const Model> model;
  {
    nb::gil_scoped_release release;
    model = std::make_shared<const Model>(weightmill::read_model(path));
  }
  const nb::object owner = owner_of(model);
  nb::dict record;
  record["description"] = to_text(model->description);
  record["subgraphs"] = to_list(model->subgraphs, &subgraph_record, owner);
  record["metadata"] = to_list(model->metadata, &metadata_record, owner);
  record["signatures"] = to_list(model->signatures, &signature_record, owner);
  return record;
}

weightmill::DType dtype_named(const std::string& name) {
  for (int i = 0; i < static_cast<int>(weightmill::DType::other); ++i) {
    if (name_of(static_cast<weightmill::DType>(i)) == name) return static_cast<weightmill::DType>(i);
  }
  weightmill::fail(weightmill::ErrorCode::bad_request, name, "is no type of this program");
}

/// Name, dtype, shape and the bytes of a tensor.
using NamedBytes =
    std::tuple<std::string, std::string, weightmill::Shape, nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig>>;

void write_safetensors(const std::filesystem::path& path, const std::vector<NamedBytes>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<weightmill::SafetensorsSource> sources;
  for (const auto& [name, dtype, shape, bytes] : tensors) {
    sources.push_back({name, dtype_named(dtype), shape, {bytes.data(), bytes.size()}});
  }
  nb::gil_scoped_release release;
  weightmill::write_safetensors(path, sources, metadata);
}

nb::tuple read_safetensors(const std::filesystem::path& path) {
  const auto file = std::make_shared<const weightmill::Safetensors>(weightmill::read_safetensors(path));
  const nb::object owner = owner_of(file);
  nb::list tensors;
  for (const auto& tensor : file->tensors) {
    tensors.append(nb::make_tuple(to_text(tensor.name), to_text(name_of(tensor.dtype)),
                                  nb::tuple(nb::cast(tensor.shape)), view(tensor.data, owner)));
  }
  return nb::make_tuple(tensors, nb::cast(file->metadata));
}

nb::tuple read_npy(const std::filesystem::path& path) {
  const auto array = std::make_shared<const weightmill::NpyArray>(weightmill::read_npy(path));
  return nb::make_tuple(to_text(name_of(array->dtype)), nb::tuple(nb::cast(array->shape)),
                        view(array->data, owner_of(array)));
}

void write_npy(const std::filesystem::path& path, const std::string& dtype, const weightmill::Shape& shape,
               nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig> bytes) {
  weightmill::write_npy(path, dtype_named(dtype), shape, {bytes.data(), bytes.size()});
}

}  // namespace

void bind_formats(nb::module_& m) {
  m.def("read_model", &read_model, nb::arg("path"),
        "A model file as dictionaries; weightmill.load wraps them. Raises Error.");
  m.def("write_safetensors", &write_safetensors, nb::arg("path"), nb::arg("tensors").noconvert(), nb::arg("metadata"),
        "Tensors as (name, dtype, shape, bytes as uint8) to a file. Raises Error.");
  m.def("read_safetensors", &read_safetensors, nb::arg("path"),
        "-> (tensors as written by write_safetensors, metadata). Raises Error.");
  m.def("write_npy", &write_npy, nb::arg("path"), nb::arg("dtype"), nb::arg("shape"), nb::arg("bytes").noconvert(),
        "An array as dtype, shape and bytes to a .npy file. Raises Error.");
  m.def("read_npy", &read_npy, nb::arg("path"), "-> (dtype, shape, bytes as uint8). Raises Error.");
}

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weightmill/model/dtype.h>
#include <weightmill/model/shape.h>

namespace weightmill {

/// An element type of OpenVINO.
struct IrType {
  std::string_view name;       ///< in `element_type` and `destination_type`: "f32"
  std::string_view precision;  ///< of a port: "FP32"
  DType dtype;                 ///< DType::other where this program does not compute with it
  unsigned group_elements;     ///< this many elements …
  unsigned group_bytes;        ///< … take this many bytes; 0: no fixed size
};

/// Nothing for an unknown word.
const IrType* ir_type(std::string_view name) noexcept;
/// Of the types that this program computes with.
const IrType& ir_type(DType dtype);

/// Bytes of `count` elements, rounded up to whole groups. Requires group_bytes != 0.
/// Throws: bad_file if that does not fit 64 bits (names `where`).
std::uint64_t ir_size_bytes(const IrType& type, std::uint64_t count, std::string_view where);

/// Where a layer's input comes from.
struct IrSource {
  std::size_t layer = 0;
  int port = 0;  ///< the id of its output port
};

/// Who reads a layer's output.
struct IrUse {
  std::size_t layer = 0;
  std::size_t input = 0;  ///< which of its inputs, from 0
};

struct IrPayload {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

struct IrLayer {
  std::string name;
  std::string type;  ///< "Const", "FakeQuantize" …
  std::vector<IrSource> inputs;
  std::size_t n_outputs = 0;
  std::vector<IrUse> uses;
  std::optional<IrPayload> payload;  ///< of a Const; within the .bin
  bool constant = false;             ///< nothing but constants lie behind it
};

/// A graph: the model's own, or the body of a layer (If, Loop, TensorIterator).
struct IrGraph {
  std::vector<IrLayer> layers;  ///< in the file's order
};

/// A Const with its bytes.
struct IrConstant {
  const IrType* type = nullptr;  ///< null: a type that this program does not know
  Shape shape;
  std::uint64_t n_elements = 0;
  std::span<const std::uint8_t> bytes;  ///< the elements; the payload may be longer
};

/// Const(codes) -> Convert -> [Subtract(zero_point)] -> Multiply(scale) in a FakeQuantize's place.
struct IrDequantization {
  DType code_type = DType::i8;
  DType float_type = DType::f32;
  Shape codes_shape;
  Shape affine_shape;  ///< of scale and zero point
  IrPayload codes;
  IrPayload scale;
  std::optional<IrPayload> zero_point;
  std::string codes_name, convert_name, zero_point_name, subtract_name, scale_name;
  std::string multiply_name;  ///< empty: the FakeQuantize's own
};

/// Const(codes) -> Convert -> [Subtract(Const(zero_point) -> Convert)] -> Multiply(Const(scale)) -> [Reshape] ->
/// [Convert] in the place of float weights. All but the last computes in float32.  [docs/weight-only.md §5]
struct IrQuantizedWeight {
  std::string name;            ///< the new layers are NAME/codes, NAME/scale and so on
  std::size_t before = 0;      ///< the layer that they stand in front of
  std::vector<IrUse> readers;  ///< what reads them from now on
  DType code_type = DType::i8;
  DType float_type = DType::f32;  ///< what the readers take
  Shape codes_shape;              ///< one axis more than `shape` where there are blocks
  Shape scale_shape;              ///< of scale and zero point: codes_shape with 1 along axes that share them
  Shape shape;                    ///< as the readers take it
  IrPayload codes;                ///< of code_type
  IrPayload scale;                ///< float32
  std::optional<IrPayload> zero_point;    ///< of code_type
  std::optional<IrPayload> target_shape;  ///< `shape` as int64, where codes_shape is another
};

/// An OpenVINO IR of version 10 or 11: the graph of the .xml with the payloads of the .bin, and edits on it. What is
/// not edited stays as it was, attributes and their order included; white space between elements is OpenVINO's own.
class Ir {
 public:
  /// Reads `xml`; `bin` must outlive the result. The names are how messages call the files.
  /// Throws: bad_file if the XML is broken, an id, edge or port is missing, doubled or of no use, there is a cycle, a
  /// layer has a wrong number of ports, or a payload lies outside `bin` (names the layer, what was found and what was
  /// wanted); unsupported for other IR versions.
  Ir(std::span<const std::uint8_t> xml, std::string_view xml_name, std::span<const std::uint8_t> bin,
     std::string_view bin_name);
  ~Ir();
  Ir(Ir&&) noexcept;
  Ir& operator=(Ir&&) = delete;
  Ir(const Ir&) = delete;
  Ir& operator=(const Ir&) = delete;

  std::size_t n_graphs() const noexcept;
  const IrGraph& graph(std::size_t g) const;

  /// An attribute of a layer's <data>; nothing where it is missing.
  std::optional<std::string> attribute(std::size_t g, std::size_t layer, const char* key) const;
  /// Requires: the layer is a Const.
  IrConstant constant(std::size_t g, std::size_t layer) const;

  // Edits. `graph()` goes on describing the file as it was read.

  void set_payload(std::size_t g, std::size_t layer, const IrPayload& payload);
  /// The FakeQuantize becomes the Multiply: its consumers, its id and its output's names stay.
  void dequantize(std::size_t g, std::size_t fake_quantize, const IrDequantization& dequantization);
  /// The readers read integers from now on. What they read before stays where it is.
  void dequantize_weight(std::size_t g, const IrQuantizedWeight& weight);
  /// A layer with one output becomes a Const of the same name.
  void make_constant(std::size_t g, std::size_t layer, DType type, const Shape& shape, const IrPayload& payload);
  /// The consumers of `layer`'s output read `source`'s instead.
  void bypass(std::size_t g, std::size_t layer, std::size_t source);
  /// Takes a layer out, with the edges into it. Requires that nobody reads it any more.
  void remove(std::size_t g, std::size_t layer);

  /// The edited XML.
  std::string xml() const;

 private:
  struct Document;
  std::unique_ptr<Document> document_;
};

/// Whether `file` looks like the XML of an IR: `<net` is its first element.
bool is_ir(std::span<const std::uint8_t> file) noexcept;

}  // namespace weightmill

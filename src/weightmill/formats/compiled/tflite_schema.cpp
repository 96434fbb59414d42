#include "compiled/tflite_schema.h"

namespace weightmill {
namespace {

using Field = TableSchema::Field;

Field vector_of(unsigned id, unsigned element_bytes) {
  return {id, Field::Kind::vector, element_bytes, nullptr, std::nullopt};
}
Field string_at(unsigned id) { return vector_of(id, 1); }

/// A vector of tables that are all of kind `schema`.
template <const TableSchema& schema>
Field tables_of(unsigned id) {
  return {id, Field::Kind::tables, 4, [](unsigned) { return &schema; }, std::nullopt};
}
template <const TableSchema& schema>
Field table_of(unsigned id) {
  return {id, Field::Kind::table, 4, [](unsigned) { return &schema; }, std::nullopt};
}
Field union_of(unsigned id, unsigned type_field, const TableSchema* (*pick)(unsigned)) {
  return {id, Field::Kind::table, 4, pick, type_field};
}

constexpr unsigned kAnyField = 0xFFFF;  // tables of numbers: whatever else they have is a number too

const TableSchema kOperatorCode{"an OperatorCode", 3, {string_at(1)}};

const TableSchema kCustomQuantization{"a CustomQuantization", 0, {string_at(0)}};
const TableSchema kBlockwiseQuantization{"a BlockwiseQuantization", 3, {vector_of(3, 4)}};
const TableSchema* quantization_details(unsigned type) {
  return type == 1 ? &kCustomQuantization : type == 2 ? &kBlockwiseQuantization : nullptr;
}
const TableSchema kQuantization{"a QuantizationParameters", 6,
                                {vector_of(0, 4), vector_of(1, 4), vector_of(2, 4), vector_of(3, 8),
                                 union_of(5, 4, quantization_details)}};

const TableSchema kInt32Vector{"an Int32Vector", 0, {vector_of(0, 4)}};
const TableSchema kUint16Vector{"a Uint16Vector", 0, {vector_of(0, 2)}};
const TableSchema kUint8Vector{"a Uint8Vector", 0, {vector_of(0, 1)}};
const TableSchema* sparse_index_vector(unsigned type) {
  return type == 1 ? &kInt32Vector : type == 2 ? &kUint16Vector : type == 3 ? &kUint8Vector : nullptr;
}
const TableSchema kDimensionMetadata{"a DimensionMetadata", 5, {union_of(3, 2, sparse_index_vector),
                                                                union_of(5, 4, sparse_index_vector)}};
const TableSchema kSparsity{
    "a SparsityParameters", 2, {vector_of(0, 4), vector_of(1, 4), tables_of<kDimensionMetadata>(2)}};

const TableSchema kVariantSubType{"a VariantSubType", 2, {vector_of(0, 4)}};
const TableSchema kTensor{"a Tensor",
                          9,
                          {vector_of(0, 4), string_at(3), table_of<kQuantization>(4), table_of<kSparsity>(6),
                           vector_of(7, 4), tables_of<kVariantSubType>(9)}};

const TableSchema kPlainOptions{"operator options", kAnyField, {}};
const TableSchema kConcatEmbeddingsOptions{"ConcatEmbeddingsOptions", kAnyField, {vector_of(1, 4), vector_of(2, 4)}};
const TableSchema kFullyConnectedOptions{"FullyConnectedOptions", kAnyField, {vector_of(5, 1)}};
const TableSchema kShapeOptions{"ReshapeOptions or SqueezeOptions", kAnyField, {vector_of(0, 4)}};
const TableSchema kVarHandleOptions{"VarHandleOptions", kAnyField, {string_at(0), string_at(1)}};
const TableSchema kBucketizeOptions{"BucketizeOptions", kAnyField, {vector_of(0, 4)}};
const TableSchema* builtin_options(unsigned type) {
  constexpr unsigned kLastKnown = 126;
  switch (type) {
    case 3: return &kConcatEmbeddingsOptions;
    case 8: return &kFullyConnectedOptions;
    case 17:
    case 30: return &kShapeOptions;
    case 111: return &kVarHandleOptions;
    case 115: return &kBucketizeOptions;
    default: return type >= 1 && type <= kLastKnown ? &kPlainOptions : nullptr;
  }
}
const TableSchema* second_options(unsigned) { return nullptr; }  // StableHLO and newer: not known here
const TableSchema kOperator{"an Operator",
                            13,
                            {vector_of(1, 4), vector_of(2, 4), union_of(4, 3, builtin_options), vector_of(5, 1),
                             vector_of(7, 1), vector_of(8, 4), union_of(12, 11, second_options)}};

const TableSchema kSubGraph{
    "a SubGraph", 5, {tables_of<kTensor>(0), vector_of(1, 4), vector_of(2, 4), tables_of<kOperator>(3), string_at(4)}};
const TableSchema kBuffer{"a Buffer", 2, {vector_of(0, 1)}};
const TableSchema kMetadata{"a Metadata", 1, {string_at(0)}};
const TableSchema kTensorMap{"a TensorMap", 1, {string_at(0)}};
const TableSchema kSignatureDef{
    "a SignatureDef", 4, {tables_of<kTensorMap>(0), tables_of<kTensorMap>(1), string_at(2)}};
const TableSchema kModel{"the Model", 7,
                         {tables_of<kOperatorCode>(1), tables_of<kSubGraph>(2), string_at(3), tables_of<kBuffer>(4),
                          vector_of(5, 4), tables_of<kMetadata>(6), tables_of<kSignatureDef>(7)}};

}  // namespace

const TableSchema& tflite_model_schema() { return kModel; }

}  // namespace weightmill

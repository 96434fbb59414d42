#include "compiled/flatbuffer_map.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

std::uint64_t read_little_endian(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
  return value;
}

void put_u32(std::vector<std::uint8_t>& bytes, std::size_t position, std::size_t value) {
  for (unsigned i = 0; i < 4; ++i) bytes[position + i] = static_cast<std::uint8_t>(value >> (8 * i));
}

/// Where a position is after the edits.
class Shift {
 public:
  explicit Shift(const std::vector<ByteEdit>& edits) {
    for (const ByteEdit& edit : edits) {
      total_ += static_cast<std::int64_t>(edit.bytes.size()) - static_cast<std::int64_t>(edit.end - edit.begin);
      ends_.push_back(edit.end);
      totals_.push_back(total_);
    }
  }
  std::size_t operator()(std::size_t position) const {
    const auto at = std::upper_bound(ends_.begin(), ends_.end(), position);
    if (at == ends_.begin()) return position;
    return static_cast<std::size_t>(static_cast<std::int64_t>(position) +
                                    totals_[static_cast<std::size_t>(at - ends_.begin()) - 1]);
  }

 private:
  std::int64_t total_ = 0;
  std::vector<std::size_t> ends_;
  std::vector<std::int64_t> totals_;
};

std::vector<std::uint8_t> replace_bytes(std::span<const std::uint8_t> bytes, const std::vector<ByteEdit>& edits) {
  std::vector<std::uint8_t> result;
  result.reserve(bytes.size());
  std::size_t from = 0;
  const auto keep_until = [&](std::size_t end) {
    result.insert(result.end(), bytes.begin() + static_cast<std::ptrdiff_t>(from),
                  bytes.begin() + static_cast<std::ptrdiff_t>(end));
  };
  for (const ByteEdit& edit : edits) {
    keep_until(edit.begin);
    result.insert(result.end(), edit.bytes.begin(), edit.bytes.end());
    from = edit.end;
  }
  keep_until(bytes.size());
  return result;
}

}  // namespace

void FlatFile::require(std::size_t position, std::size_t size_bytes) const {
  if (position <= bytes_.size() && size_bytes <= bytes_.size() - position) return;
  fail(ErrorCode::bad_file, name_,
       fmt::format("an offset leads to byte {}, outside the file of {} bytes; it is damaged or truncated",
                   position, bytes_.size()));
}

std::uint8_t FlatFile::u8(std::size_t position) const {
  require(position, 1);
  return bytes_[position];
}
std::uint16_t FlatFile::u16(std::size_t position) const {
  require(position, 2);
  return static_cast<std::uint16_t>(read_little_endian(bytes_.subspan(position, 2)));
}
std::uint32_t FlatFile::u32(std::size_t position) const {
  require(position, 4);
  return static_cast<std::uint32_t>(read_little_endian(bytes_.subspan(position, 4)));
}
std::uint64_t FlatFile::u64(std::size_t position) const {
  require(position, 8);
  return read_little_endian(bytes_.subspan(position, 8));
}

std::size_t FlatFile::target(std::size_t location) const {
  const std::size_t target = location + u32(location);
  require(target, 4);
  return target;
}

FlatFile::Table FlatFile::table(std::size_t position) const {
  const std::int64_t vtable = static_cast<std::int64_t>(position) - static_cast<std::int32_t>(u32(position));
  if (vtable < 0) fail(ErrorCode::bad_file, name_, fmt::format("the table at byte {} has no description", position));
  Table table;
  table.position = position;
  table.vtable = static_cast<std::size_t>(vtable);
  table.vtable_size = u16(table.vtable);
  table.size = u16(table.vtable + 2);
  if (table.vtable_size < 4 || table.size < 4) {
    fail(ErrorCode::bad_file, name_, fmt::format("the table at byte {} has a broken description", position));
  }
  require(table.vtable, table.vtable_size);
  require(table.position, table.size);
  return table;
}

FlatFile::Vector FlatFile::vector(std::size_t position, std::size_t element_bytes) const {
  const Vector vector{position, u32(position)};
  require(position + 4, vector.length * element_bytes);
  return vector;
}

std::optional<std::size_t> FlatFile::field(const Table& table, unsigned id, std::size_t size_bytes) const {
  const std::size_t entry = 4 + std::size_t{2} * id;
  if (entry + 2 > table.vtable_size) return std::nullopt;
  const std::size_t offset = u16(table.vtable + entry);
  if (offset == 0) return std::nullopt;
  if (offset + size_bytes > table.size) {
    fail(ErrorCode::bad_file, name_,
         fmt::format("field {} of the table at byte {} is outside the table", id, table.position));
  }
  return table.position + offset;
}

FlatFile::Vector FlatFile::vector_field(const Table& table, unsigned id, std::size_t element_bytes) const {
  const auto location = field(table, id, 4);
  return location ? vector(target(*location), element_bytes) : Vector{};
}

std::uint64_t FlatFile::number(const Table& table, unsigned id, std::size_t size_bytes, std::uint64_t absent) const {
  const auto position = field(table, id, size_bytes);
  return position ? read_little_endian(bytes_.subspan(*position, size_bytes)) : absent;
}

FlatbufferMap::FlatbufferMap(const FlatFile& file, const TableSchema& root) : file_(file) {
  parts_.push_back({0, 8});  // root offset and file identifier
  add_table(0, root);
  for (const Offset& offset : offsets_) targets_.push_back(offset.target);
  std::sort(targets_.begin(), targets_.end());
}

void FlatbufferMap::add_offset(std::size_t location) {
  if (!seen_locations_.insert(location).second) {
    fail(ErrorCode::bad_file, file_.name(),
         fmt::format("the offset at byte {} belongs to two parts of the file", location));
  }
  offsets_.push_back({location, file_.target(location)});
}

void FlatbufferMap::add_table(std::size_t location, const TableSchema& schema) {
  add_offset(location);
  const FlatFile::Table table = file_.table(offsets_.back().target);
  if (!seen_tables_.emplace(table.position, &schema).second) return;
  tables_.push_back(table);
  parts_.push_back({table.position, table.position + table.size});
  parts_.push_back({table.vtable, table.vtable + table.vtable_size});
  follow(table, schema);
}

void FlatbufferMap::require_known_fields(const FlatFile::Table& table, const TableSchema& schema) const {
  for (std::size_t id = schema.last_field + 1; 4 + 2 * id + 2 <= table.vtable_size; ++id) {
    if (file_.u16(table.vtable + 4 + 2 * id) == 0) continue;
    fail(ErrorCode::unsupported, file_.name(),
         fmt::format("{} has field {}, of a newer schema; the last one known here is {}", schema.name, id,
                     schema.last_field));
  }
}

void FlatbufferMap::follow(const FlatFile::Table& table, const TableSchema& schema) {
  require_known_fields(table, schema);
  for (const TableSchema::Field& field : schema.fields) follow_field(table, schema, field);
}

void FlatbufferMap::follow_field(const FlatFile::Table& table, const TableSchema& schema,
                                 const TableSchema::Field& field) {
  const auto location = file_.field(table, field.id, 4);
  if (!location) return;
  const unsigned type = field.type_field ? static_cast<unsigned>(file_.number(table, *field.type_field, 1)) : 0;
  const TableSchema* child = field.pick != nullptr ? field.pick(type) : nullptr;
  if (field.pick != nullptr && child == nullptr) {
    fail(ErrorCode::unsupported, file_.name(),
         fmt::format("{} has options of type {}, which is not known here", schema.name, type));
  }
  if (field.kind == TableSchema::Field::Kind::table) return add_table(*location, *child);
  add_offset(*location);
  const std::size_t element_bytes = field.kind == TableSchema::Field::Kind::tables ? 4 : field.element_bytes;
  const FlatFile::Vector vector = file_.vector(offsets_.back().target, element_bytes);
  parts_.push_back({vector.position, vector.data() + vector.length * element_bytes});
  if (field.kind == TableSchema::Field::Kind::vector) return;
  for (std::size_t i = 0; i < vector.length; ++i) add_table(vector.data() + 4 * i, *child);
}

std::size_t FlatbufferMap::n_references(std::size_t position) const {
  const auto [first, last] = std::equal_range(targets_.begin(), targets_.end(), position);
  return static_cast<std::size_t>(last - first);
}

void FlatbufferMap::require_free(const std::vector<ByteEdit>& edits) const {
  for (const Part& part : parts_) {
    const auto edit =
        std::partition_point(edits.begin(), edits.end(), [&](const ByteEdit& e) { return e.end <= part.begin; });
    if (edit == edits.end() || edit->begin >= part.end) continue;
    if (part.begin == edit->begin && part.end <= edit->end) continue;  // the part that is edited
    fail(ErrorCode::unsupported, file_.name(),
         fmt::format("bytes {} to {} are used for two things", part.begin, part.end));
  }
}

std::vector<std::uint8_t> FlatbufferMap::apply(const std::vector<ByteEdit>& edits) const {
  require_free(edits);
  const Shift shift(edits);
  std::vector<std::uint8_t> result = replace_bytes(file_.bytes(), edits);
  for (const Offset& offset : offsets_) {
    put_u32(result, shift(offset.location), shift(offset.target) - shift(offset.location));
  }
  for (const FlatFile::Table& table : tables_) {
    put_u32(result, shift(table.position), shift(table.position) - shift(table.vtable));
  }
  return result;
}

}  // namespace weightmill

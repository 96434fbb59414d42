#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weightmill {

/// Which fields of a kind of flatbuffer table hold offsets, so that all of them can be found.
struct TableSchema {
  struct Field {
    enum class Kind : std::uint8_t {
      vector,  ///< of numbers, or a string
      table,   ///< of the kind that pick() names
      tables,  ///< a vector of tables of that kind
    };
    unsigned id = 0;
    Kind kind = Kind::vector;
    unsigned element_bytes = 1;                           ///< of a vector
    const TableSchema* (*pick)(unsigned type) = nullptr;  ///< nullptr: this type is not known
    std::optional<unsigned> type_field;                   ///< of a union: the uint8 field that says the type
  };
  const char* name;
  unsigned last_field;  ///< a present field behind it may hold an offset that is not known here
  std::vector<Field> fields;
};

/// A flatbuffer in the raw, with every read checked.
class FlatFile {
 public:
  struct Table {
    std::size_t position = 0, vtable = 0;
    std::size_t size = 0, vtable_size = 0;
  };
  struct Vector {
    std::size_t position = 0;  ///< of the length word
    std::size_t length = 0;    ///< elements
    std::size_t data() const { return position + 4; }
  };

  FlatFile(std::span<const std::uint8_t> bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  std::span<const std::uint8_t> bytes() const { return bytes_; }
  const std::string& name() const { return name_; }

  /// All of these throw bad_file if what they read is not inside the file.
  std::uint8_t u8(std::size_t position) const;
  std::uint16_t u16(std::size_t position) const;
  std::uint32_t u32(std::size_t position) const;
  std::uint64_t u64(std::size_t position) const;
  /// Where the unsigned offset at `location` points.
  std::size_t target(std::size_t location) const;
  Table table(std::size_t position) const;
  Vector vector(std::size_t position, std::size_t element_bytes) const;
  /// The position of field `id`, `size_bytes` wide, or nothing where the table does not have it.
  std::optional<std::size_t> field(const Table& table, unsigned id, std::size_t size_bytes) const;
  /// The vector in field `id`; an absent one has length 0.
  Vector vector_field(const Table& table, unsigned id, std::size_t element_bytes) const;
  /// A number in field `id`, or `absent`.
  std::uint64_t number(const Table& table, unsigned id, std::size_t size_bytes, std::uint64_t absent = 0) const;

 private:
  void require(std::size_t position, std::size_t size_bytes) const;

  std::span<const std::uint8_t> bytes_;
  std::string name_;
};

/// Replaces bytes [begin, end) of a file.
struct ByteEdit {
  std::size_t begin = 0, end = 0;
  std::vector<std::uint8_t> bytes;
};

/// Every offset and table of a flatbuffer, so that parts of it can change their length in place.
class FlatbufferMap {
 public:
  /// Follows all offsets from the root. Throws: bad_file if one leads outside the file or parts overlap; unsupported if
  /// a table has fields that `root` does not know.
  FlatbufferMap(const FlatFile& file, const TableSchema& root);

  /// How many offsets point to `position`.
  std::size_t n_references(std::size_t position) const;

  /// The file with the edits made and every offset and table following. An edit may begin where an offset points to and
  /// must change the length by a multiple of 16, which keeps all alignments. Edits are in order and do not overlap.
  /// Throws: unsupported if anything that the map knows reaches into an edit.
  std::vector<std::uint8_t> apply(const std::vector<ByteEdit>& edits) const;

 private:
  struct Offset {
    std::size_t location, target;
  };
  struct Part {
    std::size_t begin, end;
  };

  void follow(const FlatFile::Table& table, const TableSchema& schema);
  void follow_field(const FlatFile::Table& table, const TableSchema& schema, const TableSchema::Field& field);
  void add_offset(std::size_t location);
  void add_table(std::size_t location, const TableSchema& schema);
  void require_known_fields(const FlatFile::Table& table, const TableSchema& schema) const;
  void require_free(const std::vector<ByteEdit>& edits) const;

  const FlatFile& file_;
  std::vector<Offset> offsets_;
  std::vector<std::size_t> targets_;  // of the offsets, sorted
  std::vector<FlatFile::Table> tables_;
  std::vector<Part> parts_;
  std::set<std::size_t> seen_locations_;
  std::set<std::pair<std::size_t, const TableSchema*>> seen_tables_;
};

}  // namespace weightmill

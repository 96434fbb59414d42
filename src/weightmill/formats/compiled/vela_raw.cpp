#include "compiled/vela_raw.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <zlib.h>

#include <weightmill/base/bits.h>
#include <weightmill/base/error.h>

namespace weightmill {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::uint32_t kLocalTag = 0x04034b50, kCentralTag = 0x02014b50, kEndTag = 0x06054b50;
constexpr std::size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22;  // without names, extra fields and comment
constexpr std::string_view kPayloadMember = "cmd_data.npy", kReadOnlyMember = "weight_data.npy";

[[noreturn]] void fail_file(std::string_view name, std::string_view why) { fail(ErrorCode::bad_file, name, why); }

/// A number of `size` bytes, little endian. Throws: bad_file if it is not inside the file.
std::uint32_t number(Bytes file, std::size_t at, std::size_t size, std::string_view name) {
  if (at > file.size() || size > file.size() - at)
    fail_file(name, fmt::format("the archive ends early, at byte {}", file.size()));
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::uint32_t{file[at + i]} << (8 * i);
  return value;
}

Bytes part(Bytes file, std::size_t at, std::size_t size, std::string_view name) {
  if (at > file.size() || size > file.size() - at)
    fail_file(name, fmt::format("a member at byte {} is not all in the archive", at));
  return file.subspan(at, size);
}

void put(std::vector<std::uint8_t>& bytes, std::size_t at, std::uint32_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
}

template <class Range>
void append(std::vector<std::uint8_t>& bytes, const Range& more) {
  const std::size_t at = bytes.size();
  bytes.resize(at + more.size());
  std::copy(more.begin(), more.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
}

/// A member of the archive.
struct Member {
  std::string name;
  std::size_t central = 0, central_bytes = 0;  // its entry in the directory
  std::size_t local = 0;                       // its header before the data
  std::uint32_t method = 0, crc = 0;
  std::size_t size = 0;
};

struct Archive {
  Bytes file;
  std::vector<Member> members;
  std::size_t directory = 0, end = 0;
};

std::size_t find_end(Bytes file, std::string_view name) {
  constexpr std::size_t kMaxComment = 0xFFFF;
  for (std::size_t back = kEndBytes; back <= std::min(file.size(), kEndBytes + kMaxComment); ++back) {
    if (number(file, file.size() - back, 4, name) == kEndTag) return file.size() - back;
  }
  fail_file(name, "the archive has no directory; it is truncated");
}

Member read_member(Bytes file, std::size_t at, std::string_view name) {
  if (number(file, at, 4, name) != kCentralTag) fail_file(name, "the archive's directory is broken");
  Member member;
  const std::size_t name_bytes = number(file, at + 28, 2, name);
  member.central = at;
  member.central_bytes = kCentralBytes + name_bytes + number(file, at + 30, 2, name) + number(file, at + 32, 2, name);
  const Bytes text = part(file, at + kCentralBytes, name_bytes, name);
  part(file, at, member.central_bytes, name);
  member.name.assign(text.begin(), text.end());
  member.method = number(file, at + 10, 2, name);
  member.crc = number(file, at + 16, 4, name);
  member.size = number(file, at + 24, 4, name);
  member.local = number(file, at + 42, 4, name);
  return member;
}

Archive read_archive(Bytes file, std::string_view name) {
  Archive archive{file, {}, 0, find_end(file, name)};
  const std::size_t count = number(file, archive.end + 10, 2, name);
  archive.directory = number(file, archive.end + 16, 4, name);
  std::size_t at = archive.directory;
  for (std::size_t i = 0; i < count; ++i) {
    archive.members.push_back(read_member(file, at, name));
    at += archive.members.back().central_bytes;
  }
  if (at > archive.end) fail_file(name, "the archive's directory is broken");
  std::sort(archive.members.begin(), archive.members.end(),
            [](const Member& a, const Member& b) { return a.local < b.local; });
  for (std::size_t i = 0; i < archive.members.size(); ++i) {
    const std::size_t next = i + 1 < archive.members.size() ? archive.members[i + 1].local : archive.directory;
    if (archive.members[i].local + kLocalBytes > next) fail_file(name, "members of the archive overlap");
  }
  return archive;
}

std::string where_of(std::string_view name, std::string_view member) { return fmt::format("{}, {}", name, member); }

Bytes stored_data(const Archive& archive, std::string_view wanted, std::string_view name) {
  const auto is_wanted = [&](const Member& member) { return member.name == wanted; };
  const auto member = std::find_if(archive.members.begin(), archive.members.end(), is_wanted);
  if (member == archive.members.end())
    fail_file(name, fmt::format("has no {}; was it made with Vela's --output-format raw?", wanted));
  if (std::count_if(archive.members.begin(), archive.members.end(), is_wanted) > 1) {
    fail_file(name, fmt::format("has two members {}", wanted));
  }
  const std::string where = where_of(name, wanted);
  if (number(archive.file, member->local, 4, where) != kLocalTag) fail_file(where, "its header is broken");
  if (member->method != 0) fail(ErrorCode::unsupported, where, "is compressed; save it with numpy.savez");
  const std::size_t header = kLocalBytes + number(archive.file, member->local + 26, 2, where) +
                             number(archive.file, member->local + 28, 2, where);
  const Bytes data = part(archive.file, member->local + header, member->size, where);
  if (crc32(0, data.data(), static_cast<uInt>(data.size())) != member->crc) fail_file(where, "its checksum is wrong");
  return data;
}

/// The text of a .npy header.
std::string_view header_text(Bytes npy, std::size_t& data_offset, std::string_view where) {
  constexpr std::uint8_t kMagic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
  if (npy.size() < 10 || !std::equal(std::begin(kMagic), std::end(kMagic), npy.begin()))
    fail_file(where, "is no .npy array");
  const std::size_t width = npy[6] == 1 ? 2 : 4;
  const std::size_t length = number(npy, 8, width, where);
  const Bytes text = part(npy, 8 + width, length, where);
  data_offset = 8 + width + length;
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

/// How Vela's two cores write bytes: as one byte string of N bytes, or as N numbers of one byte.
enum class ArrayForm : std::uint8_t { byte_string, uint8 };

std::string dictionary_of(ArrayForm form, std::size_t size) {
  return form == ArrayForm::byte_string
             ? fmt::format("{{'descr': '|S{}', 'fortran_order': False, 'shape': (), }}", size)
             : fmt::format("{{'descr': '|u1', 'fortran_order': False, 'shape': ({},), }}", size);
}

struct ByteArray {
  Bytes bytes;  // trailing zeros included
  ArrayForm form = ArrayForm::byte_string;
};

ByteArray byte_array(Bytes npy, std::string_view where) {
  std::size_t offset = 0;
  const std::string_view header = header_text(npy, offset, where);
  const std::size_t size = npy.size() - offset;
  for (const ArrayForm form : {ArrayForm::byte_string, ArrayForm::uint8}) {
    if (header.starts_with(dictionary_of(form, size))) return {npy.subspan(offset), form};
  }
  fail_file(where, fmt::format("is neither a byte string nor an array of bytes of its length, {}", size));
}

std::vector<std::uint8_t> npy_of(Bytes bytes, ArrayForm form) {
  constexpr std::size_t kAlignment = 64, kFixed = 10;  // of the data, as numpy pads it; bytes before the dictionary
  std::string header = dictionary_of(form, bytes.size());
  header.resize(ceil_to(header.size() + 1 + kFixed, kAlignment) - kFixed - 1, ' ');
  header += '\n';
  std::vector<std::uint8_t> npy{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<std::uint8_t>(header.size()),
                                static_cast<std::uint8_t>(header.size() >> 8)};
  append(npy, header);
  append(npy, bytes);
  return npy;
}

/// A member's header and data, stored. The directory entry follows: `central` gets the new sizes.
std::vector<std::uint8_t> stored_member(const Archive& archive, const Member& member, Bytes data,
                                        std::vector<std::uint8_t>& central) {
  constexpr std::uint32_t kSizesFollowData = 8;
  const auto size = static_cast<std::uint32_t>(data.size());
  const auto crc = static_cast<std::uint32_t>(crc32(0, data.data(), static_cast<uInt>(data.size())));
  std::vector<std::uint8_t> bytes(archive.file.begin() + static_cast<std::ptrdiff_t>(member.local),
                                  archive.file.begin() + static_cast<std::ptrdiff_t>(member.local + kLocalBytes));
  put(bytes, 6, (bytes[6] | std::uint32_t{bytes[7]} << 8) & ~kSizesFollowData, 2);
  put(bytes, 14, crc, 4);
  put(bytes, 18, size, 4);
  put(bytes, 22, size, 4);
  put(bytes, 26, static_cast<std::uint32_t>(member.name.size()), 2);
  put(bytes, 28, 0, 2);  // the extra field has sizes of its own
  append(bytes, member.name);
  append(bytes, data);
  central.resize(kCentralBytes + member.name.size());
  put(central, 8, (central[8] | std::uint32_t{central[9]} << 8) & ~kSizesFollowData, 2);
  put(central, 16, crc, 4);
  put(central, 20, size, 4);
  put(central, 24, size, 4);
  put(central, 30, 0, 4);  // no extra field, no comment
  return bytes;
}

ByteArray array_in(const Archive& archive, std::string_view member, std::string_view name) {
  return byte_array(stored_data(archive, member, name), where_of(name, member));
}

}  // namespace

bool is_zip(Bytes file) noexcept {
  constexpr std::uint8_t kStart[] = {'P', 'K', 3, 4};
  return file.size() >= 4 && std::equal(std::begin(kStart), std::end(kStart), file.begin());
}

CompiledParts open_vela_raw(Bytes file, std::string_view name) {
  const Archive archive = read_archive(file, name);
  return {array_in(archive, kPayloadMember, name).bytes, array_in(archive, kReadOnlyMember, name).bytes};
}

std::vector<std::uint8_t> replace_vela_raw(Bytes file, std::string_view name, Bytes payload, Bytes read_only) {
  const Archive archive = read_archive(file, name);
  const ArrayForm payload_form = array_in(archive, kPayloadMember, name).form;
  const ArrayForm read_only_form = array_in(archive, kReadOnlyMember, name).form;
  std::vector<std::uint8_t> result, directory;
  for (std::size_t i = 0; i < archive.members.size(); ++i) {
    const Member& member = archive.members[i];
    const std::size_t next = i + 1 < archive.members.size() ? archive.members[i + 1].local : archive.directory;
    const Bytes entry = file.subspan(member.central, member.central_bytes),
                whole = file.subspan(member.local, next - member.local);
    std::vector<std::uint8_t> central(entry.begin(), entry.end()), bytes(whole.begin(), whole.end());
    if (member.name == kPayloadMember) bytes = stored_member(archive, member, npy_of(payload, payload_form), central);
    if (member.name == kReadOnlyMember)
      bytes = stored_member(archive, member, npy_of(read_only, read_only_form), central);
    put(central, 42, static_cast<std::uint32_t>(result.size()), 4);
    append(result, bytes);
    append(directory, central);
  }
  std::vector<std::uint8_t> end(file.begin() + static_cast<std::ptrdiff_t>(archive.end), file.end());
  put(end, 12, static_cast<std::uint32_t>(directory.size()), 4);
  put(end, 16, static_cast<std::uint32_t>(result.size()), 4);
  append(result, directory);
  append(result, end);
  return result;
}

}  // namespace weightmill

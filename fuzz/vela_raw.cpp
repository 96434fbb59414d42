// Vela's raw output, a .npz: as it comes, and with the checksums of its members made right, behind which most of the
// reader lies.
#include <zlib.h>

#include "carrier.h"

namespace {

std::size_t number(carrier::Bytes bytes, std::size_t at, std::size_t size) {
  std::size_t value = 0;
  for (std::size_t i = 0; i < size && at + i < bytes.size(); ++i) value |= std::size_t{bytes[at + i]} << (8 * i);
  return value;
}

/// Offsets in an entry of the archive's directory and in a member's own header.
constexpr std::size_t kCrc = 16, kSize = 24, kLocal = 42, kEntryBytes = 46;
constexpr std::size_t kNameBytes = 26, kExtraBytes = 28, kHeaderBytes = 30;

void mend_checksum(std::vector<std::uint8_t>& bytes, std::size_t entry) {
  const std::size_t local = number(bytes, entry + kLocal, 4), size = number(bytes, entry + kSize, 4);
  const std::size_t data =
      local + kHeaderBytes + number(bytes, local + kNameBytes, 2) + number(bytes, local + kExtraBytes, 2);
  if (data > bytes.size() || size > bytes.size() - data) return;
  const uLong crc = crc32(0, bytes.data() + data, static_cast<uInt>(size));
  for (std::size_t i = 0; i < 4; ++i) bytes[entry + kCrc + i] = static_cast<std::uint8_t>(crc >> (8 * i));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kEntryTag = 0x02014b50;
  std::vector<std::uint8_t> bytes(data, data + size);
  carrier::check(bytes);
  for (std::size_t at = 0; at + kEntryBytes <= bytes.size(); ++at) {
    if (number(bytes, at, 4) == kEntryTag) mend_checksum(bytes, at);
  }
  carrier::check(bytes);
  return 0;
}

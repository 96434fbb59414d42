#include "sha256.h"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace weightmill {
namespace {

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

TEST(Sha256, EqualsThePublishedExamples) {
  EXPECT_EQ(sha256_hex({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex(bytes_of("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::vector<std::uint8_t>(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnThePieces) {
  const std::vector<std::uint8_t> data(300, 0x5a);
  for (std::size_t cut = 0; cut <= data.size(); ++cut) {
    Sha256 sha;
    sha.update(std::span(data).first(cut));
    sha.update(std::span(data).subspan(cut));
    EXPECT_EQ(sha.hex_digest(), sha256_hex(data)) << cut;
  }
}

}  // namespace
}  // namespace weightmill

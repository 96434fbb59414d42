#include "payload_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <gtest/gtest.h>

namespace weightmill {
namespace {

namespace fs = std::filesystem;

class PayloadFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("payload_file_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static PayloadFile::Fill counting_from(std::uint8_t first) {
    return [first](std::uint64_t offset, std::span<std::uint8_t> block) {
      for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::uint8_t>(first + (offset + i) % 251);
    };
  }
  std::vector<std::uint8_t> content(const fs::path& path) const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path folder_;
};

TEST_F(PayloadFileTest, StoresEqualPayloadsOnce) {
  PayloadFile file(folder_ / "a.bin");
  const std::uint64_t size = 3 * PayloadFile::kBlockBytes + 17;
  EXPECT_EQ(file.store(5, 1, counting_from(1)), 0u);
  EXPECT_EQ(file.store(size, 2, counting_from(2)), 5u);
  EXPECT_EQ(file.store(size, 1, counting_from(2)), 5u);
  EXPECT_EQ(file.store(size, 2, counting_from(3)), 5u + size);
  EXPECT_EQ(file.store(5, 2, counting_from(1)), 0u);
  EXPECT_EQ(file.store(6, 2, counting_from(1)), 5u + 2 * size) << "longer is not equal";
  EXPECT_EQ(file.size_bytes(), 11u + 2 * size);
  file.commit();
  EXPECT_EQ(content(folder_ / "a.bin").size(), 11u + 2 * size);
}

TEST_F(PayloadFileTest, ThreadsChangeNoByte) {
  for (const unsigned jobs : {1u, 2u, 7u}) {
    PayloadFile file(folder_ / ("jobs" + std::to_string(jobs)));
    file.store(10 * PayloadFile::kBlockBytes + 3, jobs, counting_from(9));
    file.commit();
  }
  EXPECT_EQ(content(folder_ / "jobs1"), content(folder_ / "jobs2"));
  EXPECT_EQ(content(folder_ / "jobs1"), content(folder_ / "jobs7"));
}

TEST_F(PayloadFileTest, ARefusedPayloadLeavesNoTrace) {
  PayloadFile file(folder_ / "b.bin");
  file.store(9, 1, counting_from(1));
  EXPECT_EQ(file.store(1000, 1, counting_from(2), [] { return false; }), std::nullopt);
  EXPECT_EQ(file.size_bytes(), 9u);
  EXPECT_EQ(file.store(1000, 1, counting_from(2)), 9u);
}

TEST_F(PayloadFileTest, AFillThatThrowsLeavesNoFile) {
  {
    PayloadFile file(folder_ / "c.bin");
    const auto fill = [](std::uint64_t, std::span<std::uint8_t>) { throw std::runtime_error("no"); };
    EXPECT_THROW(file.store(1000, 2, fill), std::runtime_error);
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(PayloadFileTest, DigestSeesEveryByte) {
  for (std::size_t n : {1u, 31u, 32u, 33u, 100u}) {
    std::vector<std::uint8_t> bytes(n, 7);
    const std::uint64_t before = quick_digest(bytes);
    for (std::size_t i = 0; i < n; ++i) {
      ++bytes[i];
      EXPECT_NE(quick_digest(bytes), before) << n << " " << i;
      --bytes[i];
    }
  }
}

}  // namespace
}  // namespace weightmill

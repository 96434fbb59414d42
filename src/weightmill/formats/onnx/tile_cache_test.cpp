#include "tile_cache.h"

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include <weightmill/base/parallel.h>

namespace weightmill {
namespace {

/// A file of float32 that counts its elements, seen in another order of its axes.
class TurnedFile {
 public:
  explicit TurnedFile(std::uint64_t n) : path_(own_path()) {
    std::vector<float> values(n);
    for (std::uint64_t i = 0; i < n; ++i) values[i] = static_cast<float>(i);
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(n * sizeof(float)));
    file_ = std::make_shared<const MappedFile>(path_);
  }
  ~TurnedFile() { std::filesystem::remove(path_); }

  OnnxConstant seen(Shape shape, std::vector<std::int64_t> strides) const {
    OnnxConstant constant;
    constant.stored_dtype = constant.dtype = DType::f32;
    constant.shape = std::move(shape);
    constant.strides = std::move(strides);
    constant.bytes = file_->bytes();
    constant.file = file_;
    return constant;
  }

 private:
  /// Tests of one program may run side by side, each in a process of its own.
  static std::filesystem::path own_path() {
    return std::filesystem::path(testing::TempDir()) / ("tile_cache_test_" + std::to_string(::getpid()) + ".bin");
  }

  std::filesystem::path path_;
  std::shared_ptr<const MappedFile> file_;
};

TEST(TileCache, GivesWhatReadFloatsGivesOnSeveralThreads) {
  constexpr std::uint64_t n = 5'000'000;
  const TurnedFile file(n);
  for (const OnnxConstant& constant :
       {file.seen({5000, 1000}, {1, 5000}), file.seen({1000, 5000}, {1, 1000}),
        file.seen({5, 1000, 1000}, {1'000'000, 1, 1000}), file.seen({1250, 4000}, {1, 1250})}) {
    ASSERT_TRUE(TileCache::helps(constant));
    TileCache cache;
    std::atomic<int> n_wrong = 0;
    parallel_for(60, 3, [&](std::size_t i) {
      const std::uint64_t first = i * 83'333, count = std::min<std::uint64_t>(83'333, n - first);
      std::vector<float> got(count), want(count);
      cache.read(constant, 1, first, got);
      read_floats(constant, first, want);
      if (got != want) ++n_wrong;
    });
    EXPECT_EQ(n_wrong, 0) << to_string(constant.shape);
  }
}

TEST(TileCache, OnlyHelpsWhereTheLastTwoAxesAreTurned) {
  const TurnedFile file(5'000'000);
  EXPECT_FALSE(TileCache::helps(file.seen({5000, 1000}, {1000, 1})));
  EXPECT_FALSE(TileCache::helps(file.seen({5'000'000}, {1})));
  EXPECT_FALSE(TileCache::helps(file.seen({1, 5'000'000}, {1, 1})));
  OnnxConstant small = file.seen({500, 100}, {1, 500});
  small.bytes = small.bytes.first(200'000);
  EXPECT_FALSE(TileCache::helps(small));
}

}  // namespace
}  // namespace weightmill

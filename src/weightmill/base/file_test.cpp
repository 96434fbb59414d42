#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/resource.h>
#include <csignal>

#include "atomic_file.h"
#include "error.h"
#include "mapped_file.h"

namespace weightmill {
namespace {

namespace fs = std::filesystem;

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "weightmill-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string read(const fs::path& path) const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t n_entries() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {})); }
  fs::path folder_;
};

TEST_F(Files, AppearOnlyOnCommit) {
  {
    AtomicFile file(folder_ / "a");
    file.write("hello ");
    file.write("world");
    EXPECT_FALSE(fs::exists(folder_ / "a"));
    file.commit();
  }
  EXPECT_EQ(read(folder_ / "a"), "hello world");
  EXPECT_EQ(n_entries(), 1u);
}

TEST_F(Files, LeaveNothingWithoutCommit) {
  write_file(folder_ / "a", "old");
  { AtomicFile(folder_ / "a").write("new"); }
  EXPECT_EQ(read(folder_ / "a"), "old");
  EXPECT_EQ(n_entries(), 1u);
}

TEST_F(Files, ArePreparedBeforeTheyGetTheirName) {
  write_file(folder_ / "a", "old");
  {
    AtomicFile file(folder_ / "a");
    file.write("new");
    file.prepare();
    EXPECT_EQ(read(folder_ / "a"), "old");
    file.commit();
    EXPECT_EQ(read(folder_ / "a"), "new");
    AtomicFile given_up(folder_ / "b");
    given_up.prepare();
  }
  EXPECT_EQ(n_entries(), 1u);
}

TEST_F(Files, AreRemovedByTheSignalHandlersCall) {
  AtomicFile file(folder_ / "a");
  AtomicFile moved(std::move(file));
  EXPECT_EQ(n_entries(), 1u);
  remove_unfinished_files();
  EXPECT_EQ(n_entries(), 0u);
}

TEST_F(Files, FollowTheUmask) {
  const mode_t old = ::umask(027);
  write_file(folder_ / "a", "x");
  ::umask(old);
  struct stat info{};
  ASSERT_EQ(::stat((folder_ / "a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0640u);
}

TEST_F(Files, SayWhyTheyCannotBeWritten) {
  EXPECT_THROW(write_file(folder_ / "missing" / "a", "x"), Error);
  EXPECT_THROW(write_file(folder_, "x"), Error);
}

TEST_F(Files, DoNotTakeThePlaceOfPipesAndLoops) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(write_file(folder_ / "pipe", "x"), Error);
  EXPECT_TRUE(fs::is_fifo(folder_ / "pipe"));
  fs::create_symlink("loop", folder_ / "loop");
  EXPECT_THROW(write_file(folder_ / "loop", "x"), Error);
  EXPECT_THROW(write_file(folder_ / std::string(300, 'x'), "x"), Error);
}

TEST_F(Files, SurviveAFullDisk) {
  // A file-size limit fails like a full disk does: in the middle of a write.
  write_file(folder_ / "a", "old");
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  ::getrlimit(RLIMIT_FSIZE, &old_limit);
  const rlimit small{1000, old_limit.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(write_file(folder_ / "a", std::string(5000, 'x')), Error);
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(read(folder_ / "a"), "old");
  EXPECT_EQ(n_entries(), 1u);
}

TEST_F(Files, MapTheirBytes) {
  write_file(folder_ / "a", std::string(100'000, 'z'));
  const MappedFile file(folder_ / "a");
  ASSERT_EQ(file.bytes().size(), 100'000u);
  file.release(0, 100'000);
  EXPECT_EQ(file.bytes()[99'999], 'z');
}

TEST_F(Files, MapEmptyAndRefuseTheRest) {
  write_file(folder_ / "a", "");
  EXPECT_TRUE(MappedFile(folder_ / "a").bytes().empty());
  EXPECT_THROW(MappedFile(folder_ / "missing"), Error);
  EXPECT_THROW(MappedFile{folder_}, Error);
}

}  // namespace
}  // namespace weightmill

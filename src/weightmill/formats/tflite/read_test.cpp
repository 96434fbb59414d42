#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include <weightmill/base/error.h>
#include <testkit/golden.h>

#include "formats.h"

namespace weightmill {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> tflite_models() {
  std::vector<fs::path> paths;
  if (!fs::exists(testkit::models_dir())) return paths;
  for (const auto& entry : fs::recursive_directory_iterator(testkit::models_dir())) {
    if (entry.path().extension() == ".tflite") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(ReadModel, ReadsEveryRealModel) {
  const auto paths = tflite_models();
  if (paths.empty()) GTEST_SKIP() << "models not installed: set WEIGHTMILL_MODELS_DIR";
  for (const fs::path& path : paths) {
    SCOPED_TRACE(path);
    const Model model = read_model(path);
    ASSERT_FALSE(model.subgraphs.empty());
    EXPECT_FALSE(model.subgraphs[0].nodes.empty());
    EXPECT_TRUE(std::any_of(model.subgraphs[0].tensors.begin(), model.subgraphs[0].tensors.end(),
                            [](const Tensor& tensor) { return tensor.constant; }));
  }
}

}  // namespace
}  // namespace weightmill

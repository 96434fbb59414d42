#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <testkit/golden.h>
#include <weightmill/base/parallel.h>
#include <weightmill/base/sha256.h>
#include <weightmill/formats/formats.h>
#include <weightmill/pack/accelerator.h>
#include <weightmill/pack/pack.h>
#include <weightmill/report/report.h>
#include <weightmill/verify/verify.h>

namespace weightmill {
namespace {

namespace fs = std::filesystem;

fs::path table_path() { return fs::path(WEIGHTMILL_SOURCE_DIR) / "testdata/pack_table/table.csv"; }

constexpr const char* kHeader =
    "model_sha256,file,accelerator,layers,weights,ordered,stream_bytes,record_bytes,bits_per_weight,traversals,layer_"
    "bytes,sha256";

std::string traversal_letters(const PackedLayer& layer) {
  const std::string letter = layer.traversal == Traversal::depthwise           ? "W"
                             : layer.traversal == Traversal::part_kernel_first ? "P"
                                                                               : "D";
  switch (layer.format) {
    case StreamFormat::standard:
      return letter;
    case StreamFormat::sparse:
      return letter + "s";
    case StreamFormat::fast:
      return letter + "f";
    case StreamFormat::fast_sparse:
      return letter + "x";
  }
  return letter;
}

/// The golden line of one model on one accelerator, from the third column on.
std::string line_of(const Packed& packed) {
  const PackReport report = summarize(packed);
  std::string traversals, layer_bytes;
  Sha256 sha;
  for (std::size_t i = 0; i < packed.layers.size(); ++i) {
    traversals += traversal_letters(packed.layers[i]);
    layer_bytes += fmt::format("{}{}", i == 0 ? "" : " ", report.rows[i].stream_bytes);
    sha.update(packed.layers[i].weights);
    sha.update(packed.layers[i].scales);
  }
  const PackRow& total = report.total;
  return fmt::format("{},{},{},{},{},{},{:.4f},{},{},{}", packed.accelerator.name, packed.layers.size(),
                     total.n_weights, total.n_ordered, total.stream_bytes, total.record_bytes, total.bits_per_weight(),
                     traversals, layer_bytes, sha.hex_digest());
}

std::vector<fs::path> model_files() {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(testkit::models_dir(), error)) {
    if (entry.path().extension() == ".tflite") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Model digest and accelerator: what a line is about.
std::string key_of(const std::string& line) {
  std::istringstream cells(line);
  std::string digest, file, accelerator;
  std::getline(cells, digest, ','), std::getline(cells, file, ','), std::getline(cells, accelerator, ',');
  return digest + " " + accelerator;
}

/// Golden lines by what they are about.
std::map<std::string, std::string> read_table() {
  std::map<std::string, std::string> lines;
  std::ifstream in(table_path());
  for (std::string line; std::getline(in, line);) lines[key_of(line)] = line;
  return lines;
}

/// Sanitizers are slow: one accelerator of each family is enough for them.
bool is_tested(const Accelerator& accelerator) {
#ifdef __SANITIZE_ADDRESS__
  return accelerator.name == "ethos-u55-128" || accelerator.name == "ethos-u65-512" ||
         accelerator.name == "ethos-u85-1024";
#else
  return !accelerator.name.empty();
#endif
}

/// Lines of one model on all accelerators, each verified.
std::vector<std::string> verified_lines(const fs::path& path) {
  const Model model = read_model(path);
  const std::string digest = sha256_hex(model.file->bytes());
  std::vector<std::string> lines;
  for (const Accelerator& accelerator : accelerators()) {
    if (!is_tested(accelerator)) continue;
    SCOPED_TRACE(path.filename().string() + " on " + accelerator.name);
    PackOptions options;
    options.effort = mlw::Effort::reference;
    options.jobs = 0;
    const Packed packed = pack(model, accelerator, options);
    if (packed.layers.empty()) return {};
    const VerifyReport report = verify_packed(packed, model, {resolve_jobs(0), {}});
    EXPECT_EQ(report.n_findings, 0u) << (report.findings.empty()
                                             ? ""
                                             : report.findings[0].where + ": " + report.findings[0].found);
    lines.push_back(fmt::format("{},{},{}", digest, path.filename().string(), line_of(packed)));
  }
  return lines;
}

TEST(PackModels, EveryModelOnEveryAcceleratorVerifiesAndEqualsTheTable) {
  const auto files = model_files();
  if (files.empty()) GTEST_SKIP() << "models not installed: set WEIGHTMILL_MODELS_DIR";
  const auto golden = read_table();
  const bool update = std::getenv("WEIGHTMILL_UPDATE_GOLDEN") != nullptr;
  std::string table = std::string(kHeader) + "\n";
  std::size_t n_lines = 0, n_known = 0;
  for (const fs::path& file : files) {
    for (const std::string& line : verified_lines(file)) {
      table += line + "\n";
      ++n_lines;
      const auto known = golden.find(key_of(line));
      if (known == golden.end() || update) continue;
      ++n_known;
      EXPECT_EQ(line, known->second);
    }
  }
  if (update) std::ofstream(table_path()) << table;
  RecordProperty("lines", static_cast<int>(n_lines));
  RecordProperty("in_table", static_cast<int>(n_known));
  EXPECT_GT(n_lines, 0u);
}

TEST(PackModels, ThreadsChangeNothing) {
  const auto files = model_files();
  if (files.empty()) GTEST_SKIP() << "models not installed: set WEIGHTMILL_MODELS_DIR";
  for (const fs::path& file : files) {
    const Model model = read_model(file);
    PackOptions options;
    options.ofm_depth_step = 16;
    const std::string one = line_of(pack(model, find_accelerator("ethos-u65-512"), options));
    options.jobs = 5;
    EXPECT_EQ(line_of(pack(model, find_accelerator("ethos-u65-512"), options)), one) << file;
  }
}

TEST(PackModels, EveryOptionVerifies) {
  const auto files = model_files();
  if (files.empty()) GTEST_SKIP() << "models not installed: set WEIGHTMILL_MODELS_DIR";
  // Small models, so that many options fit into the time of a test.
  for (const fs::path& file : files) {
    if (fs::file_size(file) > 200'000) continue;
    const Model model = read_model(file);
    for (const char* name : {"ethos-u55-32", "ethos-u65-512", "ethos-u85-128", "ethos-u85-1024"}) {
      for (const ScalingRule scaling : {ScalingRule::v2020, ScalingRule::vela5, ScalingRule::regor}) {
        for (const FormatChoice format : {FormatChoice::standard, FormatChoice::fast, FormatChoice::smallest}) {
          for (const int step : {0, 16, 40}) {
            PackOptions options;
            options.effort = scaling == ScalingRule::regor ? mlw::Effort::regor
                             : step == 0                   ? mlw::Effort::reference
                                                           : mlw::Effort::best;
            options.forms = step == 16 ? mlw::Forms::proven : mlw::Forms::all;
            options.scaling = scaling, options.format = format, options.ofm_depth_step = step;
            options.ofm_block_depth = step == 40 ? 24 : 0;
            const auto& accelerator = find_accelerator(name);
            if (accelerator.family != NpuFamily::u85 && format != FormatChoice::standard) continue;
            if (accelerator.family == NpuFamily::u85 && scaling == ScalingRule::v2020)
              continue;  // U85 is younger than these rules
            const VerifyReport report = verify_packed(pack(model, accelerator, options), model, {resolve_jobs(0), {}});
            EXPECT_EQ(report.n_findings, 0u)
                << file.filename() << " " << name << " " << name_of(scaling) << " format " << static_cast<int>(format)
                << " step " << step << ": "
                << (report.findings.empty() ? "" : report.findings[0].where + ": " + report.findings[0].found);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace weightmill

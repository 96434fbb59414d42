#include "squeeze.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include <weightmill/base/atomic_file.h>
#include <weightmill/base/error.h>
#include <weightmill/base/mapped_file.h>
#include <weightmill/base/named.h>
#include <weightmill/codec/codec.h>
#include <weightmill/formats/compiled.h>
#include <weightmill/squeeze/compare.h>

namespace weightmill {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;
using ByteSpan = std::span<const std::uint8_t>;

bool same_bytes(ByteSpan a, ByteSpan b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

/// The operators that share read-only tensor `index`, and which of the file's they are.
NpuPrograms programs_of(const CompiledFile& file, std::size_t index, std::vector<std::size_t>* which = nullptr) {
  NpuPrograms programs{{}, file.read_only[index]};
  for (std::size_t i = 0; i < file.operators.size(); ++i) {
    if (file.operators[i].read_only != index) continue;
    programs.programs.push_back({file.operators[i].name, file.operators[i].payload});
    if (which != nullptr) which->push_back(i);
  }
  return programs;
}

/// The carrier must give back what was put into it.
void require_parts(ByteSpan file, std::string_view name, const std::vector<Bytes>& payloads,
                   const std::vector<Bytes>& read_only) {
  const CompiledFile written = open_compiled(file, name);
  bool is_same = written.operators.size() == payloads.size() && written.read_only.size() == read_only.size();
  for (std::size_t i = 0; is_same && i < payloads.size(); ++i)
    is_same = same_bytes(written.operators[i].payload, payloads[i]);
  for (std::size_t i = 0; is_same && i < read_only.size(); ++i)
    is_same = same_bytes(written.read_only[i], read_only[i]);
  if (!is_same)
    fail(ErrorCode::internal, name, "the rewritten file does not hold what was put into it; nothing is written");
}

/// Operators that the NPU does not run, side by side.
class CpuComparison {
 public:
  using Operator = CompiledFile::CpuOperator;

  std::optional<std::string> first_difference(const std::vector<Operator>& a, const std::vector<Operator>& b) {
    if (a.size() != b.size()) {
      return fmt::format("{} CPU operators in the first, {} in the second", a.size(), b.size());
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (auto difference = first_difference(a[i], b[i])) return fmt::format("{}: {}", a[i].name, *difference);
    }
    return std::nullopt;
  }

 private:
  std::optional<std::string> first_difference(const Operator& a, const Operator& b) {
    if (a.code != b.code || !same_bytes(a.custom_code, b.custom_code)) return "another CPU operator in the second";
    if (!same_bytes(a.custom_options, b.custom_options)) return "its custom options differ";
    if (a.constants.size() != b.constants.size()) return "another number of constant inputs in the second";
    for (std::size_t i = 0; i < a.constants.size(); ++i) {
      if (!is_same(a.constants[i], b.constants[i])) return fmt::format("its input {} differs", a.constants[i].input);
    }
    return std::nullopt;
  }

  bool is_same(const Operator::Constant& a, const Operator::Constant& b) {
    if (a.input != b.input || a.type != b.type || !same_bytes(a.shape, b.shape)) return false;
    if (a.data.size() != b.data.size()) return false;
    const std::pair key(a.data.data(), b.data.data());  // operators may share a constant: it is compared once
    if (same_.contains(key)) return true;
    if (!same_bytes(a.data, b.data)) return false;
    same_.insert(key);
    return true;
  }

  std::set<std::pair<const std::uint8_t*, const std::uint8_t*>> same_;
};

bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code ignored;
  return fs::weakly_canonical(a, ignored) == fs::weakly_canonical(b, ignored) || fs::equivalent(a, b, ignored);
}

template <class Bytes1>
Bytes to_vector(const Bytes1& bytes) {
  return Bytes(bytes.begin(), bytes.end());
}

}  // namespace

StreamEncoder stream_encoder(std::string_view effort, std::string_view forms) {
  using Weights = std::span<const std::int16_t>;
  const mlw::Forms chosen_forms = named("forms", forms, mlw::kFormsNames);
  if (effort == "vela") {
    return [](Weights weights) {
      Bytes reference = mlw::encode(weights, mlw::Effort::reference), regor = mlw::encode(weights, mlw::Effort::regor);
      return regor.size() < reference.size() ? regor : reference;
    };
  }
  const mlw::Effort chosen = named("effort", effort, mlw::kEffortNames, ", vela");
  return [chosen, chosen_forms](Weights weights) { return mlw::encode(weights, chosen, chosen_forms); };
}

SqueezedBytes squeeze_bytes(ByteSpan bytes, std::string_view name, const SqueezeOptions& options) {
  const CompiledFile file = open_compiled(bytes, name);
  SqueezeReport report{bytes.size(), bytes.size(), file.operators.size(), {}};
  std::vector<Bytes> payloads(file.operators.size()), read_only;
  for (std::size_t i = 0; i < file.read_only.size(); ++i) {
    std::vector<std::size_t> which;
    Squeezed squeezed = squeeze(programs_of(file, i, &which), options);
    for (std::size_t j = 0; j < which.size(); ++j) payloads[which[j]] = std::move(squeezed.payloads[j]);
    read_only.push_back(std::move(squeezed.read_only));
    report.summary += squeezed.summary;
  }
  Bytes result = replace_compiled(bytes, name, payloads, read_only);
  if (result.size() >= bytes.size()) return {to_vector(bytes), report};
  require_parts(result, name, payloads, read_only);
  report.bytes_after = result.size();
  return {std::move(result), report};
}

SqueezeReport squeeze_file(const fs::path& from, const fs::path& to, const SqueezeOptions& options) {
  const MappedFile file(from);
  const SqueezedBytes squeezed = squeeze_bytes(file.bytes(), from.string(), options);
  const bool is_in_place = !to.empty() && is_same_file(from, to);
  if (!to.empty() && (squeezed.report.is_smaller() || !is_in_place)) write_file(to, squeezed.bytes);
  return squeezed.report;
}

SqueezedPair squeeze_pair(ByteSpan payload, ByteSpan read_only, std::string_view name, const SqueezeOptions& options) {
  SqueezedPair result{{to_vector(payload), to_vector(read_only)}, {}};
  result.report.bytes_before = result.report.bytes_after = payload.size() + read_only.size();
  result.report.n_npu_operators = 1;
  Squeezed squeezed = squeeze({{{std::string(name), payload}}, read_only}, options);
  result.report.summary = squeezed.summary;
  const std::uint64_t bytes_after = squeezed.payloads[0].size() + squeezed.read_only.size();
  if (bytes_after >= result.report.bytes_before) return result;
  result.report.bytes_after = bytes_after;
  result.blobs = {std::move(squeezed.payloads[0]), std::move(squeezed.read_only)};
  return result;
}

SqueezeReport squeeze_pair_files(const fs::path& payload, const fs::path& read_only, const fs::path& payload_to,
                                 const fs::path& read_only_to, const SqueezeOptions& options) {
  if (!payload_to.empty() && is_same_file(payload_to, read_only_to)) {
    fail(ErrorCode::bad_option, payload_to.string(), "both blobs would go there; name two files");
  }
  const MappedFile first(payload), second(read_only);
  const SqueezedPair squeezed = squeeze_pair(first.bytes(), second.bytes(), payload.string(), options);
  if (!payload_to.empty()) {
    AtomicFile payload_file(payload_to), read_only_file(read_only_to);
    payload_file.write(squeezed.blobs.payload);
    read_only_file.write(squeezed.blobs.read_only);
    payload_file.prepare();  // both lie on the disk before the first is renamed into place
    read_only_file.prepare();
    payload_file.commit();
    read_only_file.commit();
  }
  return squeezed.report;
}

CompiledFileReport inspect_compiled(const fs::path& path, unsigned jobs) {
  static constexpr const char* kFormats[] = {"tflite", "vela-raw", "vela-bin-stream"};
  const MappedFile mapped(path);
  const CompiledFile file = open_compiled(mapped.bytes(), path.string());
  CompiledFileReport report{path.filename().string(), kFormats[static_cast<std::size_t>(file.format)],
                            mapped.bytes().size(),    file.operators.size(),
                            file.cpu_operators.size(), {}};
  for (std::size_t i = 0; i < file.read_only.size(); ++i)
    report.groups.push_back(inspect_programs(programs_of(file, i), jobs));
  return report;
}

bool is_compiled_file(const fs::path& path) { return is_compiled(MappedFile(path).bytes()); }

std::optional<std::string> compare_compiled(const fs::path& first, const fs::path& second) {
  const MappedFile bytes_a(first), bytes_b(second);
  const CompiledFile a = open_compiled(bytes_a.bytes(), first.string()),
                     b = open_compiled(bytes_b.bytes(), second.string());
  if (a.read_only.size() != b.read_only.size()) {
    return fmt::format("{} read-only tensors in the first, {} in the second", a.read_only.size(), b.read_only.size());
  }
  if (auto difference = CpuComparison().first_difference(a.cpu_operators, b.cpu_operators)) return difference;
  for (std::size_t i = 0; i < a.read_only.size(); ++i) {
    if (auto difference = compare_programs(programs_of(a, i), programs_of(b, i))) return difference;
  }
  return std::nullopt;
}

}  // namespace weightmill

#include "fold_ir.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include <weightmill/base/error.h>
#include <weightmill/base/parallel.h>

#include "ir_candidates.h"
#include "ir_files.h"
#include "reading_limit.h"

namespace weightmill {
namespace {

namespace fs = std::filesystem;

class IrFolder {
 public:
  IrFolder(Ir& ir, IrPayloads& payloads, const FoldOptions& options, PayloadFile& out)
      : ir_(ir),
        payloads_(payloads),
        options_(options),
        jobs_(resolve_jobs(options.jobs)),
        out_(out),
        constants_(ir, payloads, out, jobs_) {
    reading_.jobs = jobs_;
    reading_.consumed = [this](std::size_t bytes) { payloads_.consumed(bytes); };
  }

  /// Folds a graph's candidates and writes all its payloads.
  void run(std::size_t g, std::vector<IrCandidate>& candidates);
  std::size_t n_changed() const { return n_changed_; }

 private:
  using Outcome = std::optional<std::string>;  ///< why it was left, or nothing: it was folded

  void settle(IrCandidate& candidate, IrLiveness& alive);
  Outcome fold(IrCandidate& candidate, const IrFakeQuantize& found, IrLiveness& alive);
  Outcome fold(IrCandidate& candidate, const IrQuantizedChain& found, IrLiveness& alive);
  Outcome fold(IrCandidate& candidate, const IrIntegerChain& found, IrLiveness& alive);
  Outcome fold(IrCandidate& candidate, const std::monostate&, IrLiveness&) { return candidate.row.reason; }

  std::variant<IrPayload, Left> store_codes(const ConstantFold& fold, std::uint64_t source_bytes, FoldedTensor& row);
  template <class Write>
  IrPayload store_affine(const FakeQuantizeFold& fold, const Write& write);
  IrDequantization named(const IrCandidate& candidate) const;

  Ir& ir_;
  IrPayloads& payloads_;
  const FoldOptions& options_;
  unsigned jobs_;
  PayloadFile& out_;
  IrConstantCopier constants_;
  Reading reading_;
  std::size_t n_changed_ = 0;
};

void IrFolder::run(std::size_t g, std::vector<IrCandidate>& candidates) {
  const IrGraph& graph = ir_.graph(g);
  IrLiveness alive(graph);
  std::vector<std::vector<std::size_t>> readers(graph.layers.size());
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    for (const std::size_t constant : candidates[c].constants) readers[constant].push_back(c);
  }
  std::vector<bool> settled(candidates.size());
  for (std::size_t layer = 0; layer < graph.layers.size(); ++layer) {
    if (!graph.layers[layer].payload) continue;
    for (const std::size_t c : readers[layer]) {
      if (!settled[c]) settle(candidates[c], alive);
      settled[c] = true;
    }
    const bool rewritten = std::ranges::any_of(readers[layer], [&](std::size_t c) {
      const auto* chain = std::get_if<IrIntegerChain>(&candidates[c].what);
      return chain != nullptr && chain->constant == layer && candidates[c].row.outcome == FoldOutcome::zero_point;
    });
    if (!alive.dead(layer) && !rewritten) constants_.copy(g, layer);
  }
  for (const std::size_t layer : alive.dead()) ir_.remove(g, layer);
}

void IrFolder::settle(IrCandidate& candidate, IrLiveness& alive) {
  const Outcome left = std::visit([&](const auto& found) { return fold(candidate, found, alive); }, candidate.what);
  if (left) {
    candidate.row.reason = *left;
    return;
  }
  ++n_changed_;
  candidate.row.outcome =
      std::holds_alternative<IrIntegerChain>(candidate.what) ? FoldOutcome::zero_point : FoldOutcome::folded;
}

std::variant<IrPayload, Left> IrFolder::store_codes(const ConstantFold& fold, std::uint64_t source_bytes,
                                                    FoldedTensor& row) {
  const std::uint64_t n = n_elements(fold.shape(), row.name);
  const std::uint64_t size = code_bytes(fold.code_type(), n);
  const unsigned bits = size_bits(fold.code_type());
  BlockResult result;
  result.error = fold.error();
  std::mutex mutex;
  std::string objection;
  const auto fill = [&](std::uint64_t offset, std::span<std::uint8_t> block) {
    const std::uint64_t first = offset * 8 / bits;
    const std::uint64_t count = std::min<std::uint64_t>(n - first, block.size() * 8 / bits);
    const BlockResult own = fold.codes(first, count, block);
    payloads_.consumed(static_cast<std::size_t>(count * source_bytes / std::max<std::uint64_t>(n, 1)));
    const std::scoped_lock lock(mutex);
    result.merge(own);
  };
  const auto offset = out_.store(size, jobs_, fill, [&] { return (objection = fold.objection(result)).empty(); });
  if (!offset) return Left{objection};
  row.type_after = fold.code_type();
  row.bytes_after = size;
  row.max_error_steps = result.error.max_steps;
  row.bound_steps = result.error.bound_steps;
  row.zero_point_dropped = fold.zero_point() == ZeroPoint::dropped;
  row.zero_point_kept = fold.zero_point() == ZeroPoint::kept;
  return IrPayload{*offset, size};
}

template <class Write>
IrPayload IrFolder::store_affine(const FakeQuantizeFold& fold, const Write& write) {
  const unsigned width = size_bits(fold.affine_type()) / 8;
  const std::uint64_t size = n_elements(fold.affine_shape(), "scale") * width;
  const auto offset = out_.store(size, jobs_, [&](std::uint64_t at, std::span<std::uint8_t> block) {
    write(at / width, block.size() / width, block);
  });
  return {offset.value(), size};
}

/// Names of the new layers; the Python pass's own where that is followed.
IrDequantization IrFolder::named(const IrCandidate& candidate) const {
  IrDequantization parts;
  const std::string& name = candidate.row.name;
  if (options_.semantics == FoldSemantics::mo2021) {
    parts.codes_name = candidate.row.constant + "/quantized";
    parts.convert_name = parts.codes_name + "/to_f32";
    parts.zero_point_name = name + "/zero_point";
    parts.subtract_name = name + "/minus_zp";
    parts.scale_name = name + "/scale";
    parts.multiply_name = name + "/mulpiply_by_scale";
    return parts;
  }
  parts.codes_name = name + "/codes";
  parts.convert_name = name + "/to_float";
  parts.zero_point_name = name + "/zero_point";
  parts.subtract_name = name + "/minus_zero_point";
  parts.scale_name = name + "/scale";
  return parts;
}

IrFolder::Outcome IrFolder::fold(IrCandidate& candidate, const IrFakeQuantize& found, IrLiveness& alive) {
  auto plan = plan_fake_quantize(found.operation, options_, reading_);
  if (const auto* left = std::get_if<Left>(&plan)) return left->reason;
  const FakeQuantizeFold& fold = *std::get<std::unique_ptr<FakeQuantizeFold>>(plan);
  const auto codes = store_codes(fold, found.operation.weights.bytes.size(), candidate.row);
  if (const auto* left = std::get_if<Left>(&codes)) return left->reason;
  IrDequantization parts = named(candidate);
  parts.code_type = fold.code_type();
  parts.float_type = fold.affine_type();
  parts.codes_shape = fold.shape();
  parts.affine_shape = fold.affine_shape();
  parts.codes = std::get<IrPayload>(codes);
  if (fold.zero_point() == ZeroPoint::kept) {
    parts.zero_point = store_affine(fold, [&](auto first, auto n, auto out) { fold.zero_points(first, n, out); });
  }
  parts.scale = store_affine(fold, [&](auto first, auto n, auto out) { fold.scales(first, n, out); });
  ir_.dequantize(candidate.graph, found.layer, parts);
  for (const IrSource& source : ir_.graph(candidate.graph).layers[found.layer].inputs) alive.drop_use(source.layer);
  return std::nullopt;
}

IrFolder::Outcome IrFolder::fold(IrCandidate& candidate, const IrQuantizedChain& found, IrLiveness& alive) {
  auto plan = plan_quantized_chain(found.chain, options_, reading_);
  if (const auto* left = std::get_if<Left>(&plan)) return left->reason;
  const ConstantFold& fold = *std::get<std::unique_ptr<ConstantFold>>(plan);
  const auto codes = store_codes(fold, found.chain.quantize.weights.bytes.size(), candidate.row);
  if (const auto* left = std::get_if<Left>(&codes)) return left->reason;
  ir_.make_constant(candidate.graph, found.convert_low, fold.code_type(), fold.shape(), std::get<IrPayload>(codes));
  alive.drop_use(found.fake_quantize);
  if (fold.zero_point() == ZeroPoint::dropped) {
    ir_.bypass(candidate.graph, *found.subtract, found.convert_high);
    alive.drop_reader(*found.subtract, found.convert_high);
  }
  return std::nullopt;
}

IrFolder::Outcome IrFolder::fold(IrCandidate& candidate, const IrIntegerChain& found, IrLiveness& alive) {
  auto plan = plan_integer_chain(found.chain, options_, reading_);
  if (const auto* left = std::get_if<Left>(&plan)) return left->reason;
  const ConstantFold& fold = *std::get<std::unique_ptr<ConstantFold>>(plan);
  const auto codes = store_codes(fold, found.chain.codes.bytes.size(), candidate.row);
  if (const auto* left = std::get_if<Left>(&codes)) return left->reason;
  ir_.set_payload(candidate.graph, found.constant, std::get<IrPayload>(codes));
  ir_.bypass(candidate.graph, found.subtract, found.convert);
  alive.drop_reader(found.subtract, found.convert);
  return std::nullopt;
}

void refuse_left(const std::string& name, const FoldReport& report) {
  const auto left = std::ranges::find(report.tensors, FoldOutcome::left, &FoldedTensor::outcome);
  if (left == report.tensors.end()) return;
  fail(ErrorCode::unsupported, name,
       fmt::format("{} of {} fake-quantized constants cannot be folded; the first is {}: {}",
                   report.count(FoldOutcome::left), report.tensors.size(), left->name, left->reason));
}

/// The rows of the report: all FakeQuantize over constants, and the chains that changed.
void add_rows(std::vector<IrCandidate>& candidates, FoldReport& report) {
  for (IrCandidate& candidate : candidates) {
    const bool chain = std::holds_alternative<IrIntegerChain>(candidate.what);
    if (!chain || candidate.row.outcome != FoldOutcome::left) report.tensors.push_back(std::move(candidate.row));
  }
}

/// Copies both files byte for byte.
std::uint64_t copy_as_it_is(const IrInput& input, const fs::path& out, unsigned jobs, const Progress& progress) {
  PayloadFile payloads = open_payloads(out);
  const auto bytes = input.bin;
  IrPayloads source(input, "copying", progress);
  payloads.store(bytes.size(), jobs, [&](std::uint64_t offset, std::span<std::uint8_t> block) {
    std::memcpy(block.data(), bytes.data() + offset, block.size());
    source.consumed(block.size());
  });
  commit_ir(out, {reinterpret_cast<const char*>(input.xml.data()), input.xml.size()}, payloads);
  return input.size_bytes();
}

/// Throws: bad_file if the .bin would be read many times over.
void check_work(const IrInput& input, const Ir& ir, const std::vector<std::vector<IrCandidate>>& candidates) {
  std::uint64_t n_bytes = constant_bytes(ir);
  for (const std::vector<IrCandidate>& of_graph : candidates) {
    for (const IrCandidate& candidate : of_graph) n_bytes += candidate.row.bytes_before;
  }
  if (!reads_too_often(n_bytes, input.bin.size())) return;
  fail(
      ErrorCode::bad_file, input.xml_name,
      fmt::format("its layers overlap in {}: {} bytes would be read of {}", input.bin_name, n_bytes, input.bin.size()));
}

/// Folds what can be folded and writes the result; returns its size, or nothing where there was nothing to change.
std::optional<std::uint64_t> fold_and_write(const IrInput& input, Ir& ir, const fs::path& out,
                                            const FoldOptions& options, const Progress& progress, FoldReport& report) {
  std::vector<std::vector<IrCandidate>> candidates;
  std::size_t n_candidates = 0;
  for (std::size_t g = 0; g < ir.n_graphs(); ++g) {
    candidates.push_back(find_candidates(ir, g, options));
    n_candidates += candidates.back().size();
  }
  if (n_candidates == 0) return std::nullopt;
  check_work(input, ir, candidates);
  IrPayloads source(input, "folding", progress);
  PayloadFile payloads = open_payloads(out);
  IrFolder folder(ir, source, options, payloads);
  for (std::size_t g = 0; g < ir.n_graphs(); ++g) {
    folder.run(g, candidates[g]);
    add_rows(candidates[g], report);
  }
  if (options.fail_on_left) refuse_left(input.xml_name, report);
  if (folder.n_changed() == 0) return std::nullopt;
  const std::string xml = ir.xml();
  commit_ir(out, xml, payloads);
  return xml.size() + payloads.size_bytes();
}

FoldReport fold_input(const IrInput& input, const fs::path& out, const FoldOptions& options, const Progress& progress) {
  FoldReport report;
  report.format = "openvino";
  report.semantics = options.semantics;
  report.bytes_before = input.size_bytes();
  Ir ir = input.parse();
  std::optional<std::uint64_t> written;
  if (options.compress_weights) written = fold_and_write(input, ir, out, options, progress, report);
  if (!written) {
    report.notes.push_back("nothing was folded: the model is copied as it is");
    written = copy_as_it_is(input, out, resolve_jobs(options.jobs), progress);
  }
  report.bytes_after = *written;
  return report;
}

}  // namespace

FoldReport fold_ir(const fs::path& in, const fs::path& out, const FoldOptions& options, const Progress& progress) {
  if (!out.empty()) check_ir_paths(in, out);
  FoldReport report = fold_input(IrInput(in), out, options, progress);
  report.input = in.filename().string();
  report.output = out.filename().string();
  return report;
}

FoldReport plan_fold_ir(std::span<const std::uint8_t> xml, std::span<const std::uint8_t> bin,
                        const FoldOptions& options) {
  return fold_input(IrInput(xml, bin), {}, options, {});
}

}  // namespace weightmill

#include "stream_table.h"

#include <algorithm>
#include <bitset>

#include <zlib.h>

#include <weightmill/base/parallel.h>

#include "analysis.h"
#include "stream_coding.h"

namespace weightmill {
namespace {

constexpr std::int16_t kLargestWeight = 255;

std::uint32_t crc32_of(const std::vector<std::int16_t>& weights) {
  uLong crc = crc32(0, nullptr, 0);
  constexpr std::size_t kBlock = 4096;
  std::uint8_t bytes[2 * kBlock];
  for (std::size_t from = 0; from < weights.size(); from += kBlock) {
    const std::size_t n = std::min(kBlock, weights.size() - from);
    for (std::size_t i = 0; i < n; ++i) {
      const auto bits = static_cast<std::uint16_t>(weights[from + i]);
      bytes[2 * i] = static_cast<std::uint8_t>(bits);
      bytes[2 * i + 1] = static_cast<std::uint8_t>(bits >> 8);
    }
    crc = crc32(crc, bytes, static_cast<uInt>(2 * n));
  }
  return static_cast<std::uint32_t>(crc);
}

void count_weights(StreamRow& row, const std::vector<std::int16_t>& weights) {
  std::bitset<2 * kLargestWeight + 1> seen;
  for (const std::int16_t weight : weights) seen.set(static_cast<std::size_t>(weight + kLargestWeight));
  row.weights = weights.size();
  row.distinct = seen.count();
  row.zeros = static_cast<std::uint64_t>(std::count(weights.begin(), weights.end(), std::int16_t{0}));
  row.crc32 = crc32_of(weights);
}

StreamRow row_of(const Analysis& analysis, const Stream& stream) {
  const DecodedStream decoded = decode_stream(analysis, stream);
  StreamRow row;
  row.program = analysis.programs[stream.program].name;
  row.offset = stream.offset;
  row.size_bytes = stream.size;
  row.op = stream.opcode == Opcode::depthwise ? "depthwise" : "conv";
  row.first_op = stream.number;
  row.core = stream.core;
  row.region = stream.region;
  row.uses = stream.n_uses;
  row.format = stream.is_fast ? "fast" : "mlw";
  row.sparse = stream.is_sparse;
  row.passes = decoded.passes;
  count_weights(row, decoded.weights);
  return row;
}

TensorCoverage tensor_coverage(const Analysis& analysis) {
  const Coverage classes = coverage_of(analysis);
  TensorCoverage coverage{analysis.read_only.size(), classes.weights, classes.scales, classes.copied, classes.constants,
                          classes.rest, classes.rest_nonzero, {}};
  for (const Range& range : dead_granules(analysis)) coverage.dead.emplace_back(range.begin, range.end);
  return coverage;
}

std::uint64_t count_hw_ops(const Analysis& analysis, const Program& program) {
  Walker walker(program, analysis.read_only.size());
  Operation operation;
  std::uint64_t count = 0;
  while (walker.next(operation))
    count = std::max<std::uint64_t>(count, operation.is_counted ? operation.number + 1 : 0);
  return count;
}

}  // namespace

CompiledReport inspect_programs(const NpuPrograms& programs, unsigned jobs) {
  static constexpr const char* kProducts[] = {"U55", "U65", "U85"};
  const Analysis analysis = analyze(programs);
  CompiledReport report;
  report.n_programs = analysis.programs.size();
  for (const Program& program : analysis.programs) {
    report.product = kProducts[static_cast<std::size_t>(program.payload.product())];
    report.payload = program.payload.format == Payload::Format::cop1 ? "COP1" : "COP2";
    report.configuration = program.payload.configuration;
    report.architecture = program.payload.architecture;
    report.command_words.push_back(program.payload.commands().size() / 4);
    report.hw_ops.push_back(count_hw_ops(analysis, program));
  }
  report.coverage = tensor_coverage(analysis);
  report.streams.resize(analysis.streams.size());
  parallel_for(report.streams.size(), jobs,
               [&](std::size_t i) { report.streams[i] = row_of(analysis, analysis.streams[i]); });
  return report;
}

}  // namespace weightmill

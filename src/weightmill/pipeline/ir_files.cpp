#include "ir_files.h"

#include <cstring>

#include <weightmill/base/atomic_file.h>
#include <weightmill/base/error.h>

namespace weightmill {
namespace {

namespace fs = std::filesystem;

/// Read pages are given back after this many bytes: they stay well below the memory that a verb may take.
constexpr std::size_t kReleaseEvery = std::size_t{16} << 20;

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

}  // namespace

fs::path bin_beside(fs::path xml) { return xml.empty() ? xml : xml.replace_extension(".bin"); }

IrInput::IrInput(const fs::path& path) : xml_file(path), xml_name(path.string()), bin_name(bin_beside(path).string()) {
  xml = xml_file->bytes();
  if (fs::exists(bin_beside(path))) {
    bin = bin_file.emplace(bin_beside(path)).bytes();
  } else {
    bin_name += " (missing)";
  }
}

IrInput::IrInput(std::span<const std::uint8_t> xml_bytes, std::span<const std::uint8_t> bin_bytes)
    : xml_name("the .xml"), bin_name("the .bin"), xml(xml_bytes), bin(bin_bytes) {}

void IrPayloads::consumed(std::size_t n_bytes) {
  const std::size_t before = n_read_.fetch_add(n_bytes);
  const std::size_t after = before + n_bytes;
  if (file_ != nullptr && before / kReleaseEvery != after / kReleaseEvery) file_->release(0, bytes_.size());
  if (progress_) progress_(stage_, after, n_expected_);
}

IrLiveness::IrLiveness(const IrGraph& graph) : graph_(graph) {
  for (const IrLayer& layer : graph.layers) n_uses_.push_back(layer.uses.size());
}

void IrLiveness::drop_use(std::size_t layer) {
  std::vector<std::size_t> waiting{layer};
  while (!waiting.empty()) {
    const std::size_t at = waiting.back();
    waiting.pop_back();
    if (--n_uses_[at] != 0) continue;
    dead_.insert(at);
    for (const IrSource& source : graph_.layers[at].inputs) waiting.push_back(source.layer);
  }
}

void IrLiveness::drop_reader(std::size_t layer, std::size_t bypassed) {
  ++n_uses_[bypassed];
  dead_.insert(layer);
  for (const IrSource& source : graph_.layers[layer].inputs) drop_use(source.layer);
}

void IrConstantCopier::copy(std::size_t g, std::size_t layer) {
  const IrPayload from = *ir_.graph(g).layers[layer].payload;
  const auto [entry, is_new] = copied_.try_emplace({from.offset, from.size}, 0);
  if (is_new) {
    const auto bytes = payloads_.bytes().subspan(from.offset, from.size);
    const auto copy_block = [&](std::uint64_t offset, std::span<std::uint8_t> block) {
      std::memcpy(block.data(), bytes.data() + offset, block.size());
      payloads_.consumed(block.size());
    };
    entry->second = out_.store(from.size, jobs_, copy_block).value();
  }
  ir_.set_payload(g, layer, {entry->second, from.size});
}

std::uint64_t constant_bytes(const Ir& ir) {
  std::uint64_t n_bytes = 0;
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  for (std::size_t g = 0; g < ir.n_graphs(); ++g) {
    for (const IrLayer& layer : ir.graph(g).layers) {
      if (layer.payload && seen.emplace(layer.payload->offset, layer.payload->size).second)
        n_bytes += layer.payload->size;
    }
  }
  return n_bytes;
}

void check_ir_paths(const fs::path& in, const fs::path& out) {
  if (out.extension() != ".xml")
    fail(ErrorCode::bad_option, out.string(), "an OpenVINO IR is written to a name that ends in .xml");
  for (const fs::path& written : {out, bin_beside(out)}) {
    for (const fs::path& read : {in, bin_beside(in)}) {
      if (same_file(written, read)) {
        fail(ErrorCode::bad_option, written.string(), "is the input, which is only read: name another output");
      }
    }
  }
}

PayloadFile open_payloads(const fs::path& out) { return out.empty() ? PayloadFile() : PayloadFile(bin_beside(out)); }

void commit_ir(const fs::path& out, std::string_view xml, PayloadFile& payloads) {
  if (out.empty()) return;
  AtomicFile file(out);
  file.write(xml);
  payloads.commit();
  file.commit(AtomicFile::Flush::no);
}

}  // namespace weightmill

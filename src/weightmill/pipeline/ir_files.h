#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightmill/base/mapped_file.h>
#include <weightmill/base/payload_file.h>
#include <weightmill/base/progress.h>
#include <weightmill/formats/openvino.h>

namespace weightmill {

/// The .bin of an .xml; nothing of nothing.
std::filesystem::path bin_beside(std::filesystem::path xml);

/// Both files of a model, mapped or in memory.
struct IrInput {
  std::optional<MappedFile> xml_file, bin_file;
  std::string xml_name, bin_name;
  std::span<const std::uint8_t> xml, bin;

  /// Throws: bad_file if a file cannot be read; a .bin may be missing.
  explicit IrInput(const std::filesystem::path& path);
  IrInput(std::span<const std::uint8_t> xml_bytes, std::span<const std::uint8_t> bin_bytes);

  std::uint64_t size_bytes() const { return xml.size() + bin.size(); }
  Ir parse() const { return Ir(xml, xml_name, bin, bin_name); }
};

/// The input's payloads, whose pages leave the process as reading goes on.
class IrPayloads {
 public:
  /// All three must outlive the object. `stage`: what the work is called.
  IrPayloads(const IrInput& input, std::string_view stage, const Progress& progress)
      : bytes_(input.bin),
        file_(input.bin_file ? &*input.bin_file : nullptr),
        stage_(stage),
        progress_(progress),
        n_expected_(input.bin.size()) {}
  std::span<const std::uint8_t> bytes() const { return bytes_; }
  /// So many bytes will be read, for the progress; else as many as there are.
  void expect(std::uint64_t n_bytes) { n_expected_ = n_bytes; }
  /// Says that bytes have been read. May be called on several threads.
  void consumed(std::size_t n_bytes);

 private:
  std::span<const std::uint8_t> bytes_;
  const MappedFile* file_;
  std::string_view stage_;
  const Progress& progress_;
  std::uint64_t n_expected_;
  std::atomic<std::size_t> n_read_{0};
};

/// How layers lose their readers.
class IrLiveness {
 public:
  /// `graph` must outlive the object.
  explicit IrLiveness(const IrGraph& graph);
  /// One reader of `layer` is gone. If it was the last one, the layer goes too, and so reads nothing more.
  void drop_use(std::size_t layer);
  /// `layer` goes, while `bypassed`, which it read, gets its readers.
  void drop_reader(std::size_t layer, std::size_t bypassed);
  bool dead(std::size_t layer) const { return dead_.contains(layer); }
  const std::set<std::size_t>& dead() const { return dead_; }

 private:
  const IrGraph& graph_;
  std::vector<std::size_t> n_uses_;
  std::set<std::size_t> dead_;
};

/// Copies constants that stay as they are, the same bytes of the input once.
class IrConstantCopier {
 public:
  /// All must outlive the object.
  IrConstantCopier(Ir& ir, IrPayloads& payloads, PayloadFile& out, unsigned jobs)
      : ir_(ir), payloads_(payloads), out_(out), jobs_(jobs) {}
  /// Requires: the layer is a Const.
  void copy(std::size_t g, std::size_t layer);

 private:
  Ir& ir_;
  IrPayloads& payloads_;
  PayloadFile& out_;
  unsigned jobs_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> copied_;  ///< input offset and size -> output offset
};

/// Bytes of all Consts, those that lie at the same place once.
std::uint64_t constant_bytes(const Ir& ir);

/// Throws: bad_option if `out` does not end in .xml, or if it or its .bin is a file of the input.
void check_ir_paths(const std::filesystem::path& in, const std::filesystem::path& out);

/// The .bin of `out`; without `out` one that keeps nothing.
PayloadFile open_payloads(const std::filesystem::path& out);

/// Writes the XML, then puts both files in place, the XML last. Does nothing without `out`.
/// Throws: bad_file if a file cannot be written.
void commit_ir(const std::filesystem::path& out, std::string_view xml, PayloadFile& payloads);

}  // namespace weightmill

#include "compiled/vela_bin_stream.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <weightmill/base/bits.h>
#include <weightmill/base/error.h>

namespace weightmill {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kNameBytes = 16, kHeaderBytes = 32, kAlignment = 16;
constexpr std::string_view kFirst = "vela_bin_stream", kLast = "vela_end_stream";
constexpr std::string_view kPayloadBlock = "cmd_data", kReadOnlyBlock = "weight_data";
constexpr std::string_view kOtherBlocks[] = {"scratch_size", "scratch_data", "inputs", "outputs"};

struct Block {
  std::string name;
  std::size_t begin = 0, size = 0, end = 0;  // of the header, of the data without filling, behind the filling
  std::size_t data() const { return begin + kHeaderBytes; }
};

[[noreturn]] void fail_at(std::string_view name, std::size_t at, std::string_view why) {
  fail(ErrorCode::bad_file, fmt::format("{}, block at byte {}", name, at), why);
}

bool is_known(std::string_view block) {
  return block == kFirst || block == kLast || block == kPayloadBlock || block == kReadOnlyBlock ||
         std::find(std::begin(kOtherBlocks), std::end(kOtherBlocks), block) != std::end(kOtherBlocks);
}

std::string name_of(Bytes header, std::string_view name, std::size_t at) {
  const auto text = header.first(kNameBytes);
  const auto end = std::find(text.begin(), text.end(), std::uint8_t{0});
  std::string block(text.begin(), end);
  const bool is_filled = std::all_of(end, text.end(), [](std::uint8_t byte) { return byte == 0; });
  if (!is_filled || end == text.end() || !is_known(block)) fail_at(name, at, "has a name that is not known");
  return block;
}

Block read_block(Bytes file, std::size_t at, std::string_view name) {
  if (file.size() - at < kHeaderBytes) fail_at(name, at, "is truncated");
  const Bytes header = file.subspan(at, kHeaderBytes);
  Block block{name_of(header, name, at), at, 0, 0};
  for (unsigned i = 0; i < 4; ++i) block.size |= std::size_t{header[kNameBytes + i]} << (8 * i);
  const auto rest = header.subspan(kNameBytes + 4);
  if (!std::all_of(rest.begin(), rest.end(), [](std::uint8_t byte) { return byte == 0; })) {
    fail_at(name, at, "has a header that does not end with zeros");
  }
  block.end = block.data() + ceil_to(block.size, kAlignment);
  if (block.end > file.size()) fail_at(name, at, fmt::format("{} bytes are more than the file has left", block.size));
  return block;
}

const Block& only(const std::vector<Block>& blocks, std::string_view wanted, std::string_view name) {
  const auto is_wanted = [&](const Block& block) { return block.name == wanted; };
  const auto count = std::count_if(blocks.begin(), blocks.end(), is_wanted);
  if (count != 1) fail(ErrorCode::bad_file, name, fmt::format("has {} blocks {}, wanted one", count, wanted));
  return *std::find_if(blocks.begin(), blocks.end(), is_wanted);
}

std::vector<Block> read_blocks(Bytes file, std::string_view name) {
  std::vector<Block> blocks;
  for (std::size_t at = 0; at < file.size(); at = blocks.back().end) blocks.push_back(read_block(file, at, name));
  if (blocks.empty() || blocks.front().name != kFirst)
    fail(ErrorCode::bad_file, name, fmt::format("does not start with {}", kFirst));
  if (blocks.back().name != kLast || blocks.back().size != 0) {
    fail(ErrorCode::bad_file, name, fmt::format("does not end with {}; it is truncated", kLast));
  }
  for (const std::string_view block : {kFirst, kLast, kPayloadBlock, kReadOnlyBlock}) only(blocks, block, name);
  return blocks;
}

void append_block(std::vector<std::uint8_t>& bytes, Bytes header, Bytes data) {
  const std::size_t begin = bytes.size();
  bytes.insert(bytes.end(), header.begin(), header.end());
  for (unsigned i = 0; i < 4; ++i) bytes[begin + kNameBytes + i] = static_cast<std::uint8_t>(data.size() >> (8 * i));
  bytes.insert(bytes.end(), data.begin(), data.end());
  bytes.resize(ceil_to(bytes.size(), kAlignment));
}

}  // namespace

bool is_vela_bin_stream(Bytes file) noexcept {
  return file.size() >= kFirst.size() && std::equal(kFirst.begin(), kFirst.end(), file.begin());
}

CompiledParts open_vela_bin_stream(Bytes file, std::string_view name) {
  const std::vector<Block> blocks = read_blocks(file, name);
  const Block &payload = only(blocks, kPayloadBlock, name), &read_only = only(blocks, kReadOnlyBlock, name);
  return {file.subspan(payload.data(), payload.size), file.subspan(read_only.data(), read_only.size)};
}

std::vector<std::uint8_t> replace_vela_bin_stream(Bytes file, std::string_view name, Bytes payload, Bytes read_only) {
  std::vector<std::uint8_t> result;
  for (const Block& block : read_blocks(file, name)) {
    const Bytes header = file.subspan(block.begin, kHeaderBytes),
                whole = file.subspan(block.begin, block.end - block.begin);
    if (block.name == kPayloadBlock) {
      append_block(result, header, payload);
    } else if (block.name == kReadOnlyBlock) {
      append_block(result, header, read_only);
    } else {
      result.insert(result.end(), whole.begin(), whole.end());
    }
  }
  return result;
}

}  // namespace weightmill

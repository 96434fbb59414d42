#pragma once

// Small command streams and read-only tensors for tests, written command by command.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <weightmill/codec/codec.h>

#include "payload.h"
#include "programs.h"
#include "registers.h"

namespace weightmill::toy {

using Bytes = std::vector<std::uint8_t>;

inline constexpr std::uint32_t kU55_128 = 0x00001807, kU65_512 = 0x10006009, kU85_256 = 0x20000118,
                               kU85_512 = 0x20001119;

/// Collects command words.
class Commands {
 public:
  Commands& word(std::uint32_t value) {
    words_.push_back(value);
    return *this;
  }
  /// A one-word register write or an operation.
  Commands& set(RegisterId id, std::uint32_t parameter) { return word(id | parameter << 16); }
  Commands& run(Opcode opcode, std::uint32_t parameter = 0) { return set(static_cast<RegisterId>(opcode), parameter); }
  /// A two-word register write; `id` counts from kTwoWords as everywhere.
  Commands& address(RegisterId id, std::uint32_t value, std::uint32_t high = 0) {
    return word(static_cast<std::uint32_t>(id - kTwoWords) | 1u << 14 | high << 16).word(value);
  }
  Commands& stop() { return word(0xFFFF0000); }

  /// Feature maps of 1 x 1 x 8 bytes in region 1, a 1 x 1 kernel: 8 x 32 weights on U55.
  Commands& geometry() {
    for (const auto* map : {&kIfm, &kOfm}) {
      set(map->region, 1)
          .set(map->precision, 1 << 8)
          .set(map->width0_m1, 0)
          .set(map->height0_m1, 0)
          .set(map->height1_m1, 0);
      address(map->base, map == &kIfm ? 0x8000 : 0x9000);
      for (RegisterId axis = 0; axis < 3; ++axis) address(static_cast<RegisterId>(map->stride_x + axis), 8);
    }
    return set(reg::kIfmDepthM1, 7).set(reg::kOfmDepthM1, 7).set(reg::kOfmBlockDepthM1, 7).set(reg::kKernelWidthM1, 0)
        .set(reg::kKernelHeightM1, 0).set(reg::kKernelStride, 0);
  }
  Commands& weights(unsigned core, std::uint32_t base, std::uint32_t size) {
    return address(reg::kWeightBase[core], base).address(static_cast<RegisterId>(reg::kWeightBase[core] + 1), size);
  }
  Commands& scales(std::uint32_t base, std::uint32_t size) {
    return address(reg::kScaleBase[0], base).address(static_cast<RegisterId>(reg::kScaleBase[0] + 1), size);
  }
  Commands& regions(std::uint32_t region) { return set(reg::kWeightRegion, region).set(reg::kScaleRegion, region); }
  /// Copies bytes of the read-only tensor.
  Commands& dma(std::uint32_t source, std::uint32_t region, std::uint32_t destination, std::uint32_t size) {
    set(reg::kDmaSrcRegion, 0).set(reg::kDmaDstRegion, region);
    address(reg::kDmaSrc, source).address(reg::kDmaDst, destination).address(reg::kDmaLength, size);
    return run(Opcode::dma_start);
  }

  const std::vector<std::uint32_t>& words() const { return words_; }

 private:
  std::vector<std::uint32_t> words_;
};

inline Bytes bytes_of(const std::vector<std::uint32_t>& words) {
  Bytes bytes(words.size() * 4);
  for (std::size_t i = 0; i < words.size(); ++i) put_word(bytes, 4 * i, words[i]);
  return bytes;
}

inline Bytes cop1(std::uint32_t configuration, const Commands& commands) {
  const auto n = static_cast<std::uint32_t>(commands.words().size());
  std::vector<std::uint32_t> words{
      0x31504F43, 0x00100001, configuration, 0x10066001, 5, 5, 5, 2 | (n >> 16) << 8 | n << 16};
  words.insert(words.end(), commands.words().begin(), commands.words().end());
  return bytes_of(words);
}

inline Bytes cop2(std::uint32_t configuration, const Commands& commands) {
  const auto rest = static_cast<std::uint32_t>(64 + 4 * commands.words().size() - 16);
  std::vector<std::uint32_t> words{0x32504F43, 1,  rest,          0,          1, rest - 8, 36, 0x4D554556,
                                   1,          20, configuration, 0x10066001, 1, 0,        0,  0xFFFFFFFF};
  words.insert(words.end(), commands.words().begin(), commands.words().end());
  return bytes_of(words);
}

/// `n` weights of a few values, different for each seed.
inline std::vector<std::int16_t> weights(std::size_t n, int seed) {
  std::vector<std::int16_t> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = static_cast<std::int16_t>(static_cast<int>(i * i * 7 + i * static_cast<std::size_t>(seed)) % 23 - 11);
  }
  return values;
}

/// A stream of them, with `filling` granules more than it needs.
inline Bytes stream(std::size_t n, int seed, std::size_t filling = 0) {
  Bytes bytes = mlw::encode(weights(n, seed), mlw::Effort::reference);
  bytes.resize(bytes.size() + 16 * filling, 0xFF);
  return bytes;
}

/// 80 bytes that stand for eight scale records.
inline Bytes scale_records() {
  Bytes bytes(80);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i + 1);
  return bytes;
}

inline Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) {
    const std::size_t at = all.size();
    all.resize(at + part.size());
    std::copy(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return all;
}

/// One operator with its tensor.
struct Model {
  Bytes payload, read_only;
  NpuPrograms programs() const { return {{{"operator 0", payload}}, read_only}; }
};

}  // namespace weightmill::toy

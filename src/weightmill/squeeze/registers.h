#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "payload.h"

namespace weightmill {

/// A register's number: the opcode of the command that writes it, plus kTwoWords for one with a second word.
using RegisterId = std::uint16_t;
inline constexpr RegisterId kTwoWords = 0x400;
inline constexpr std::size_t kRegisterIds = 0x800;

/// Operations: one-word commands below 0x100.  [docs/compiled-models.md §3]
enum class Opcode : std::uint16_t {
  stop = 0x000,
  irq = 0x001,
  conv = 0x002,
  depthwise = 0x003,
  pool = 0x005,
  elementwise = 0x006,
  resize = 0x007,
  dma_start = 0x010,
  dma_wait = 0x011,
  kernel_wait = 0x012,
  pmu_mask = 0x013,
};

namespace reg {

inline constexpr RegisterId kIfmDepthM1 = 0x104, kIfmPrecision = 0x105, kIfmBroadcast = 0x108;
inline constexpr RegisterId kOfmDepthM1 = 0x113, kOfmPrecision = 0x114, kOfmBlockDepthM1 = 0x117;
inline constexpr RegisterId kKernelWidthM1 = 0x120, kKernelHeightM1 = 0x121, kKernelStride = 0x122;
inline constexpr RegisterId kParallelMode = 0x123, kAccFormat = 0x124;
inline constexpr RegisterId kWeightRegion = 0x128, kScaleRegion = 0x129, kWeightFormat = 0x12E;
inline constexpr RegisterId kDmaSrcRegion = 0x130, kDmaDstRegion = 0x131, kDmaSize0 = 0x132, kDmaSize1 = 0x133;
inline constexpr RegisterId kDmaIndexRegion = 0x134;
inline constexpr RegisterId kIfm2Broadcast = 0x180, kIfm2Precision = 0x185;

inline constexpr RegisterId kDmaSrc = kTwoWords + 0x030, kDmaDst = kTwoWords + 0x031, kDmaLength = kTwoWords + 0x032;
inline constexpr RegisterId kDmaSkip0 = kTwoWords + 0x033, kDmaSkip1 = kTwoWords + 0x034;  // U85: source strides
inline constexpr RegisterId kDmaIndex = kTwoWords + 0x037, kDmaIndexMax = kTwoWords + 0x038;
inline constexpr RegisterId kDmaIndexSkip1 = kTwoWords + 0x039;

/// Weight base of core (U55, U65) or weight decoder (U85) 0..3; the length register follows the base.
inline constexpr std::array<RegisterId, 4> kWeightBase{kTwoWords + 0x020, kTwoWords + 0x090, kTwoWords + 0x092,
                                                       kTwoWords + 0x094};
/// Scale base of core 0 and 1; the length register follows the base. 0x092 is a scale register on U65 only.
inline constexpr std::array<RegisterId, 2> kScaleBase{kTwoWords + 0x022, kTwoWords + 0x092};

}  // namespace reg

/// The registers that describe one feature map.
struct FeatureMapRegisters {
  const char* name;
  RegisterId region, precision, width0_m1, height0_m1, height1_m1;
  RegisterId base;      ///< of tile 0; those of tiles 1 to 3 follow
  RegisterId stride_x;  ///< stride_y and stride_c follow
  unsigned log2_element_bit;  ///< where the log2 of the element's bytes stands in `precision`
};
inline constexpr FeatureMapRegisters kIfm{
    "IFM", 0x10F, 0x105, 0x10A, 0x10B, 0x10C, kTwoWords + 0x000, kTwoWords + 0x004, 2};
inline constexpr FeatureMapRegisters kIfm2{
    "IFM2", 0x18F, 0x185, 0x18A, 0x18B, 0x18C, kTwoWords + 0x080, kTwoWords + 0x084, 2};
inline constexpr FeatureMapRegisters kOfm{
    "OFM", 0x11F, 0x114, 0x11A, 0x11B, 0x11C, kTwoWords + 0x010, kTwoWords + 0x014, 1};

/// Whether commands with this number occur on the product, as an operation or a register write.
bool is_known(Product product, RegisterId id);

/// Whether the register is one of those whose value may have to follow when bytes of the read-only tensor move.
bool is_movable(Product product, RegisterId id);

}  // namespace weightmill

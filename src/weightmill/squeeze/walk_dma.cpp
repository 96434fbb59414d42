#include "walk.h"

#include <algorithm>

#include <fmt/format.h>

#include <weightmill/base/error.h>

namespace weightmill {
namespace {

constexpr std::uint64_t kOnChip = 1u << 8;      // in a DMA region register: look-up table memory, no region
constexpr std::uint64_t kIndexed = 1u << 11;    // in a DMA region register, U85
constexpr std::uint64_t kRegionMask = 7;
constexpr std::size_t kMaxStagedPieces = 1024;     // of one DMA: bounds the work on a hostile file

}  // namespace

bool Walker::dma_is_indexed(RegisterId region) const {
  return program_.payload.product() == Product::u85 && (registers_[region] & kIndexed) != 0;
}

/// One range of bytes to another, no rows and no indices.
bool Walker::dma_is_plain() const {
  const bool is_u85 = program_.payload.product() == Product::u85;
  const std::uint64_t dimensions = registers_[is_u85 ? reg::kDmaSrcRegion : reg::kDmaDstRegion] >> 9 & 3;
  return dimensions == 0 && !dma_is_indexed(reg::kDmaSrcRegion) && !dma_is_indexed(reg::kDmaDstRegion);
}

void Walker::describe_dma(Operation& operation) {
  if (registers_[reg::kDmaLength] > UINT32_MAX) {
    fail_at(operation, ErrorCode::bad_file, "DMA0_LEN has bits above its second word");
  }
  read_dma_source(operation);
  if (dma_is_indexed(reg::kDmaSrcRegion) || dma_is_indexed(reg::kDmaDstRegion)) read_dma_index(operation);
  write_dma_destination(operation);
}

/// An upper bound of the bytes from the first that a strided or indexed DMA reads to its last.
std::uint64_t Walker::dma_source_extent() const {
  const std::uint64_t length = registers_[reg::kDmaLength];
  const std::uint64_t rows = registers_[reg::kDmaSize0], planes = registers_[reg::kDmaSize1];
  std::uint64_t row = registers_[reg::kDmaSkip0], plane = registers_[reg::kDmaSkip1];
  if (program_.payload.product() == Product::u65) {  // skips stand between the rows; strides count from start to start
    row = saturating_add(row, length);
    plane = saturating_add(plane, saturating_multiply(rows, row));
  }
  std::uint64_t size = saturating_add(length, saturating_multiply(std::max<std::uint64_t>(rows, 1), row));
  size = saturating_add(size, saturating_multiply(planes, plane));
  if (dma_is_indexed(reg::kDmaSrcRegion)) {
    size = saturating_add(size, saturating_multiply(registers_[reg::kDmaIndexMax], std::max(row, length)));
  }
  return size;
}

void Walker::read_staged(Operation& operation, const Reference& reference) const {
  copies_.append_pieces(reference.region, reference.address, reference.size, operation.staged);
  if (operation.staged.size() > kMaxStagedPieces) {
    fail_at(operation, ErrorCode::unsupported,
            fmt::format("reads more than {} copied pieces at once", kMaxStagedPieces));
  }
}

void Walker::read_dma_source(Operation& operation) {
  const bool is_on_chip = (registers_[reg::kDmaSrcRegion] & kOnChip) != 0;
  const unsigned region = region_of(operation, reg::kDmaSrcRegion, "DMA0_SRC");
  const bool to_chip = (registers_[reg::kDmaDstRegion] & kOnChip) != 0;
  Reference reference{Reference::Role::dma, false, to_chip, 0, static_cast<std::uint8_t>(region), reg::kDmaSrc,
                      reg::kDmaLength, registers_[reg::kDmaSrc], registers_[reg::kDmaLength], 0, std::nullopt};
  if (!dma_is_plain()) {
    reference.role = Reference::Role::fixed_dma;
    reference.size = dma_source_extent();
  }
  if (!is_on_chip && region == 0) {
    if (reference.role == Reference::Role::fixed_dma && reference.address < read_only_size_) {
      reference.size =
          std::min(reference.size, read_only_size_ - reference.address);  // an upper bound: the end clips it
    }
    reference.origin = origin_of(0, reference.address, reference.size);
    if (!reference.origin) {
      fail_at(operation, ErrorCode::bad_file,
              fmt::format("DMA of {} bytes from {} is outside the read-only tensor of {} bytes", reference.size,
                          reference.address, read_only_size_));
    }
  } else if (!is_on_chip) {
    read_staged(operation, reference);
  }
  reference.tight_size = reference.size;
  operation.references.push_back(reference);
}

void Walker::read_dma_index(Operation& operation) {
  constexpr std::uint64_t kIndexBytes = 4;
  const unsigned region = region_of(operation, reg::kDmaIndexRegion, "DMA0_IDX");
  const std::uint64_t count = saturating_multiply(std::max<std::uint64_t>(registers_[reg::kDmaSize0], 1),
                                                  std::max<std::uint64_t>(registers_[reg::kDmaSize1], 1));
  Reference reference{Reference::Role::index, false, false, 0, static_cast<std::uint8_t>(region), reg::kDmaIndex, 0,
                      registers_[reg::kDmaIndex], 0, 0, std::nullopt};
  reference.size = saturating_add(saturating_multiply(count, kIndexBytes),
                                  saturating_multiply(registers_[reg::kDmaSize1], registers_[reg::kDmaIndexSkip1]));
  if (region == 0) {
    if (reference.address >= read_only_size_)
      fail_at(operation, ErrorCode::bad_file, "DMA0_IDX is outside the read-only tensor");
    reference.size = std::min(reference.size, read_only_size_ - reference.address);
    reference.origin = Origin{reference.address, 0, 0};
  } else {
    read_staged(operation, reference);
  }
  reference.tight_size = reference.size;
  operation.references.push_back(reference);
}

void Walker::write_dma_destination(const Operation& operation) {
  if ((registers_[reg::kDmaDstRegion] & kOnChip) != 0) return;
  const unsigned region = region_of(operation, reg::kDmaDstRegion, "DMA0_DST");
  if (region == 0) fail_at(operation, ErrorCode::unsupported, "a DMA writes into the read-only tensor");
  if (!dma_is_plain()) return copies_.overwrite_all(region);
  const std::uint64_t destination = registers_[reg::kDmaDst], size = registers_[reg::kDmaLength];
  const std::uint64_t source = registers_[reg::kDmaSrcRegion];
  if ((source & kOnChip) == 0 && (source & kRegionMask) == 0) {
    copies_.copy(region, destination, registers_[reg::kDmaSrc], size);
  } else {
    copies_.overwrite(region, destination, size);
  }
}

}  // namespace weightmill

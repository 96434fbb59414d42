#include "registers.h"

#include <bitset>
#include <initializer_list>

namespace weightmill {
namespace {

using IdSet = std::bitset<kRegisterIds>;

void add(IdSet& set, RegisterId offset, std::initializer_list<RegisterId> opcodes) {
  for (const RegisterId opcode : opcodes) set.set(static_cast<std::size_t>(offset + opcode));
}

void add_range(IdSet& set, RegisterId first, RegisterId last) {
  for (std::size_t id = first; id <= last; ++id) set.set(id);
}

/// What all products know.
IdSet common_ids() {
  IdSet set;
  add(set, 0, {0x000, 0x001, 0x002, 0x003, 0x005, 0x006, 0x010, 0x011, 0x012, 0x013});
  add(set, 0, {0x107, 0x109, 0x10A, 0x10B, 0x10C, 0x10F, 0x11A, 0x11B, 0x11C, 0x11F, 0x120, 0x121, 0x122, 0x130, 0x131,
               0x180, 0x185, 0x189, 0x18A, 0x18B, 0x18C, 0x18F});
  add_range(set, 0x100, 0x105);
  add_range(set, 0x111, 0x118);
  add_range(set, 0x124, 0x129);
  add(set, 0, {0x12F});
  add_range(set, kTwoWords + 0x000, kTwoWords + 0x006);
  add_range(set, kTwoWords + 0x010, kTwoWords + 0x016);
  add_range(set, kTwoWords + 0x020, kTwoWords + 0x026);
  add_range(set, kTwoWords + 0x030, kTwoWords + 0x032);
  add_range(set, kTwoWords + 0x080, kTwoWords + 0x086);
  return set;
}

IdSet u55_ids() {
  IdSet set = common_ids();
  add(set, 0, {0x10D, 0x12D, 0x181, 0x18D});
  return set;
}

IdSet u65_ids() {
  IdSet set = u55_ids();
  add(set, 0, {0x123, 0x132, 0x133});
  add(set, kTwoWords, {0x033, 0x034, 0x090, 0x091, 0x092, 0x093});
  return set;
}

IdSet u85_ids() {
  IdSet set = common_ids();
  add(set, 0, {0x007, 0x108, 0x12A, 0x12B, 0x12C, 0x12D, 0x12E, 0x132, 0x133, 0x134});
  add(set, kTwoWords, {0x027});
  add_range(set, kTwoWords + 0x033, kTwoWords + 0x039);
  add_range(set, kTwoWords + 0x090, kTwoWords + 0x097);
  return set;
}

IdSet movable_ids(Product product) {
  IdSet set;
  for (const RegisterId id : reg::kWeightBase) add(set, id, {0, 1});  // on U65, 0x092 is core 1's scale base instead
  set.set(reg::kScaleBase[0]);
  add(set, 0, {reg::kDmaSrc, reg::kDmaLength, reg::kDmaIndex});
  add_range(set, kIfm.base, static_cast<RegisterId>(kIfm.base + 3));
  add_range(set, kIfm2.base, static_cast<RegisterId>(kIfm2.base + 3));
  if (product != Product::u85)
    set.reset(static_cast<std::size_t>(reg::kScaleBase[1] + 1));  // SCALE1_LENGTH never changes
  return set;
}

std::size_t index_of(Product product) { return static_cast<std::size_t>(product); }

}  // namespace

bool is_known(Product product, RegisterId id) {
  static const std::array<IdSet, 3> known{u55_ids(), u65_ids(), u85_ids()};
  return known[index_of(product)].test(id);
}

bool is_movable(Product product, RegisterId id) {
  static const std::array<IdSet, 3> movable{movable_ids(Product::u55), movable_ids(Product::u65),
                                            movable_ids(Product::u85)};
  return movable[index_of(product)].test(id);
}

}  // namespace weightmill

#include "external_data.h"

#include <array>

#include <weightmill/base/named.h>

namespace weightmill {
namespace {

constexpr std::array<std::pair<std::string_view, ExternalData>, 3> kPlacements{
    {{"auto", ExternalData::automatic}, {"never", ExternalData::never}, {"always", ExternalData::always}}};

}  // namespace

std::string_view name_of(ExternalData placement) noexcept {
  return kPlacements[static_cast<std::size_t>(placement)].first;  // in the enumerators' order
}

ExternalData external_data(std::string_view word) { return named("external-data", word, kPlacements); }

}  // namespace weightmill

#pragma once

#include <map>
#include <string>

#include <weightmill/codec/codec.h>

namespace weightmill::cli {

inline constexpr const char* kEffortHelp = "Encoder: reference and regor make the bytes of Vela's two cores";

/// The encoders' names.
inline const std::map<std::string, mlw::Effort> kEfforts{{"reference", mlw::Effort::reference},
                                                         {"regor", mlw::Effort::regor}};

}  // namespace weightmill::cli

#pragma once

#include <nlohmann/json.hpp>

#include <weightmill/model/fold.h>

namespace weightmill {

/// Schema "weightmill.fold/1".  [docs/cli.md]
nlohmann::ordered_json to_json(const FoldReport& report);

}  // namespace weightmill

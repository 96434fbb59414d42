#pragma once

#include <string>

#include "options.h"

namespace weightmill::cli {

/// `inspect` of a model compiled for Ethos-U: one row for each weight stream, and what else its read-only tensors hold.
int inspect_compiled_model(const std::string& path, const Common& common);

/// `verify` of two such models: whether they do the same with the same weights.
int verify_compiled_models(const std::string& first, const std::string& second, const Common& common);

}  // namespace weightmill::cli

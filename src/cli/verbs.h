#pragma once

#include "options.h"

namespace weightmill::cli {

/// Shown under `weightmill --help`.
inline constexpr const char* kExample =
    "Example:\n"
    "  weightmill pack okay_nabu.tflite --accelerator-config ethos-u55-128 -o packed/\n"
    "  weightmill verify packed/ okay_nabu.tflite\n";

// One function for each verb, in the file verb_NAME.cpp.
void add_squeeze(Verbs& verbs);

/// All verbs, in the order of the help text.
inline void add_verbs(Verbs& verbs) {
  add_squeeze(verbs);
}

}  // namespace weightmill::cli

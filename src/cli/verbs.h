#pragma once

#include "options.h"

namespace weightmill::cli {

/// Shown under `weightmill --help`.
inline constexpr const char* kExample =
    "Example:\n"
    "  weightmill pack okay_nabu.tflite --accelerator-config ethos-u55-128 -o packed/\n"
    "  weightmill verify packed/ okay_nabu.tflite\n";

// One function for each verb, in the file verb_NAME.cpp.
void add_quantize(Verbs& verbs);
void add_fold(Verbs& verbs);
void add_pack(Verbs& verbs);
void add_squeeze(Verbs& verbs);
void add_verify(Verbs& verbs);
void add_inspect(Verbs& verbs);
void add_codec(Verbs& verbs);
void add_targets(Verbs& verbs);

/// All verbs, in the order of the help text.
inline void add_verbs(Verbs& verbs) {
  add_quantize(verbs);
  add_fold(verbs);
  add_pack(verbs);
  add_squeeze(verbs);
  add_verify(verbs);
  add_inspect(verbs);
  add_codec(verbs);
  add_targets(verbs);
}

}  // namespace weightmill::cli

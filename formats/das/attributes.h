// SPDX-License-Identifier: Apache-2.0
//
// The attributes of DAS's data sets, whatever format they are stored in.
// [janclemenslab/das: src/das/make_dataset.py]

#pragma once

#include "formats/format.h"

namespace npyfs {

inline constexpr const char* kSampleRate = "samplerate_x_Hz";
inline constexpr const char* kLabelRate = "samplerate_y_Hz";
inline constexpr const char* kClassNames = "class_names";
inline constexpr const char* kClassTypes = "class_types";
// The name of a split follows.
inline constexpr const char* kFileNames = "filename_";
inline constexpr const char* kStartSamples = "filename_startsample_";
inline constexpr const char* kEndSamples = "filename_endsample_";

extern const RowAttributes kDasAttributes;

}  // namespace npyfs

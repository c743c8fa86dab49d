// SPDX-License-Identifier: Apache-2.0

#include "formats/das/attributes.h"

#include <array>

namespace npyfs {

namespace {

constexpr std::array<RowAttributes::Common, 2> kCommon = {{{"x", kSampleRate}, {"y", kClassNames}}};

}  // namespace

const RowAttributes kDasAttributes = {.common = kCommon,
                                      .recording_names = kFileNames,
                                      .recording_starts = kStartSamples,
                                      .recording_ends = kEndSamples};

}  // namespace npyfs

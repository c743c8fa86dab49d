// SPDX-License-Identifier: Apache-2.0
//
// TFRecord files, plain or compressed as a whole by gzip or zlib; tf.train.Example and
// SequenceExample inside them. FORMAT.md draws the bytes.

#pragma once

#include "formats/format.h"

namespace npyfs {

extern const Format kTfrecord;

}  // namespace npyfs

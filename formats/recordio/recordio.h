// SPDX-License-Identifier: Apache-2.0
//
// dmlc's and MXNet's RecordIO (.rec), with or without its index (.idx), plain or holding
// ImageRecords. See FORMAT.md.

#pragma once

#include "formats/format.h"

namespace npyfs {

// Initialised when the program starts, in no order that other files may rely on: refer to it, do
// not copy it into a constant.
extern const Format kRecordio;

}  // namespace npyfs

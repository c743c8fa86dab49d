// SPDX-License-Identifier: Apache-2.0
//
// Objects in binary form: their headers, and which of the kinds that look alike a table holds.

#pragma once

#include <cstdint>

#include "formats/kaldi/cursor.h"
#include "formats/kaldi/object.h"

namespace npyfs {

// Whether "\0B" stands at the cursor.
bool at_binary_object(Cursor& cursor);

// Reads the header of the object at the cursor, which begins with "\0B", and moves behind the
// object; its data is not read unless its size depends on it. `int_kind` says what an object is
// that begins with a four-byte number. Throws kCorrupt where it is cut, damaged or of a kind that
// is not understood; `object` then has `began` where its type at least is known, and a
// header_nbytes above 0 where only its data is cut.
void parse_binary_object(Cursor& cursor, ObjectKind int_kind, Object& object);

// What the objects are that begin with a four-byte number: the first one lies at `offset`, and
// those that follow it in the file are looked at too: eight, and a thousand where several kinds fit
// these. All six kinds begin alike; the first in order of likelihood fits if object, key, object...
// follow each other as it says. Throws kIo, kChanged.
ObjectKind guess_int_kind(const ByteSource& source, std::uint64_t offset);

}  // namespace npyfs

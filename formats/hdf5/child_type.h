// SPDX-License-Identifier: Apache-2.0
//
// HDF5 types as numpy's. For the child only.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "formats/bytes/dtype.h"
#include "formats/hdf5/child_handle.h"

namespace npyfs {

struct NpyType {
  enum class Kind {
    kFixed,     // `descr` as it stands
    kText,      // strings of any length: their number of characters is still to be found
    kSequence,  // any number of what `descr` says
  };
  Kind kind = Kind::kFixed;
  std::string descr;
  std::uint32_t itemsize = 0;
  Shape extra;  // axes of the type itself
  // The bytes in the file are those of the array, unless a filter says otherwise.
  bool is_raw = true;
  // As libhdf5 is to read it; of kSequence, one item.
  H5Type memory;

  // Bytes that libhdf5 gives for one element (axes of the type included).
  std::uint64_t nbytes() const;
};

// Nothing for types that no array of numbers, text or bytes can hold; `why` then says what it is.
std::optional<NpyType> to_npy_type(hid_t type, std::string& why);

// Whether these are the names and values that h5py gives to booleans.
bool is_bool_enum(hid_t type);
// Whether this is a compound of two equal floats that h5py takes for a complex number.
bool is_complex(hid_t type);

}  // namespace npyfs

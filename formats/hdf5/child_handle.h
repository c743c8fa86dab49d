// SPDX-License-Identifier: Apache-2.0
//
// Identifiers of libhdf5, closed where their scope ends, and its errors. For the child only.

#pragma once

// The names below mean what they mean in 1.10, whichever release is installed.
#define H5_USE_110_API
#include <hdf5.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace npyfs {

// What the child says where it cannot answer; its parent knows the file and places the text.
class ChildError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The deepest thing that the library has to say of the call that failed last.
std::string last_hdf5_error();

// "<what>: <the library's words>".
ChildError hdf5_failed(const std::string& what);

template <herr_t (*kClose)(hid_t)>
class H5Handle {
 public:
  H5Handle() = default;
  explicit H5Handle(hid_t id) : id_(id) {}
  H5Handle(hid_t id, const std::string& what) : id_(id) {
    if (id_ < 0) {
      throw hdf5_failed("cannot " + what);
    }
  }
  H5Handle(H5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  H5Handle& operator=(H5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~H5Handle() {
    if (id_ >= 0) {
      kClose(id_);
    }
  }

  hid_t id() const { return id_; }
  bool is_open() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
};

using H5File = H5Handle<H5Fclose>;
using H5Object = H5Handle<H5Oclose>;
using H5Type = H5Handle<H5Tclose>;
using H5Space = H5Handle<H5Sclose>;
using H5Properties = H5Handle<H5Pclose>;
using H5Attribute = H5Handle<H5Aclose>;

}  // namespace npyfs

// SPDX-License-Identifier: Apache-2.0
//
// HDFGroup/hdf5: src/H5FDpublic.h says what a driver is, src/H5FDsec2.c what is expected of one.

#include "formats/hdf5/child_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "formats/hdf5/child.h"
#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>
#endif

namespace npyfs {

namespace {

// Begins with what the library keeps of every driver's files.
struct ChildFile {
  H5FD_t library;
  haddr_t end_of_file;
  haddr_t end_of_addresses;
};

// The library's callbacks have no other place for it; the process has one file, and one thread.
ChildFile the_file;
bool is_open = false;

H5FD_t* open_driver(const char* /*name*/, unsigned /*flags*/, hid_t /*access*/, haddr_t /*most*/) {
  struct stat status {};
  if (is_open || ::fstat(kChildFile, &status) != 0) {
    return nullptr;
  }
  is_open = true;
  the_file = {};
  the_file.end_of_file = static_cast<haddr_t>(status.st_size);
  return &the_file.library;
}

herr_t close_driver(H5FD_t* /*file*/) {
  is_open = false;
  return 0;
}

// Data of neighbouring elements is read at once, and a writer may have the file open.
herr_t query_driver(const H5FD_t* /*file*/, unsigned long* features) {
  *features = H5FD_FEAT_ACCUMULATE_METADATA_READ | H5FD_FEAT_DATA_SIEVE |
              H5FD_FEAT_SUPPORTS_SWMR_IO | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t end_of_addresses(const H5FD_t* /*file*/, H5FD_mem_t /*type*/) {
  return the_file.end_of_addresses;
}

herr_t set_end_of_addresses(H5FD_t* /*file*/, H5FD_mem_t /*type*/, haddr_t address) {
  the_file.end_of_addresses = address;
  return 0;
}

haddr_t end_of_file(const H5FD_t* /*file*/, H5FD_mem_t /*type*/) { return the_file.end_of_file; }

// What lies behind the end is zeroes, as for the library's own driver.
herr_t read_driver(H5FD_t* /*file*/, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t address,
                   std::size_t nbytes, void* buffer) {
  if (address > static_cast<haddr_t>(INT64_MAX) - nbytes) {
    return -1;
  }
  auto* out = static_cast<char*>(buffer);
  while (nbytes > 0) {
    const ssize_t n = ::pread(kChildFile, out, nbytes, static_cast<off_t>(address));
    if (n == 0) {
      std::memset(out, 0, nbytes);
      return 0;
    }
    if (n < 0 && errno != EINTR) {
      return -1;
    }
    const auto done = static_cast<std::size_t>(std::max<ssize_t>(n, 0));
    out += done;
    address += done;
    nbytes -= done;
  }
  return 0;
}

herr_t refuse_write(H5FD_t* /*file*/, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t /*address*/,
                    std::size_t /*nbytes*/, const void* /*buffer*/) {
  return -1;
}

hid_t register_driver() {
  constexpr H5FD_mem_t kFreeLists[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
  H5FD_class_t driver{};
#ifdef H5FD_CLASS_VERSION
  driver.version = H5FD_CLASS_VERSION;
  driver.value = H5_VFD_RESERVED;
#endif
  driver.name = "npyfs";
  driver.maxaddr = static_cast<haddr_t>(INT64_MAX);
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.open = open_driver;
  driver.close = close_driver;
  driver.query = query_driver;
  driver.get_eoa = end_of_addresses;
  driver.set_eoa = set_end_of_addresses;
  driver.get_eof = end_of_file;
  driver.read = read_driver;
  driver.write = refuse_write;
  std::copy(std::begin(kFreeLists), std::end(kFreeLists), std::begin(driver.fl_map));
  return H5FDregister(&driver);
}

}  // namespace

H5File open_child_file() {
  static const hid_t kDriver = register_driver();
  const H5Properties access(H5Pcreate(H5P_FILE_ACCESS), "make the properties of a file");
  if (kDriver < 0 || H5Pset_driver(access.id(), kDriver, nullptr) < 0) {
    throw hdf5_failed("cannot read a file that is open already");
  }
  // Absolute: of others the library asks in which folder it is, which it cannot.
  const char* const name = "/file";
  hid_t file = H5Fopen(name, H5F_ACC_RDONLY, access.id());
  if (file < 0) {
    const std::string why = last_hdf5_error();
    // What a writer has open, or left so when it died, opens only like this.
    file = H5Fopen(name, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, access.id());
    if (file < 0) {
      throw ChildError("the HDF5 library cannot open it: " + why);
    }
  }
  return H5File(file);
}

}  // namespace npyfs

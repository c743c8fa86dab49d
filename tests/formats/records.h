// SPDX-License-Identifier: Apache-2.0
//
// What tests of record formats share: opening a file of the test data, and reading what it holds.

#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "formats/format.h"
#include "formats/record_table.h"

namespace npyfs::testing {

inline std::string data_path(const std::string& name) { return NPYFS_TEST_DATA "/" + name; }

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw std::runtime_error("cannot open " + path);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
}

// A folder that vanishes with this.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = std::filesystem::temp_directory_path() / "npyfs-test-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
      throw std::runtime_error("mkdtemp");
    }
    path_ = path;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// A table and what was said while opening it.
struct Opened {
  std::shared_ptr<const RecordTable> table;
  std::vector<std::string> warnings;
};

inline Location locate_file(const std::string& path) {
  Location location;
  location.path = path;
  location.source = FileSource::open(path, path);
  return location;
}

inline Opened open_records(const Format& format, const std::string& path,
                           OpenContext context = {}) {
  Opened opened;
  context.warn = [&opened](const std::string& text) { opened.warnings.push_back(text); };
  opened.table = format.open(locate_file(path), context);
  return opened;
}

// The text of the Error that opening ends with; empty where it succeeds.
inline std::string refusal(const Format& format, const std::string& path,
                           const OpenContext& context = {}) {
  try {
    open_records(format, path, context);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

inline std::string read_extents(const std::vector<Extent>& extents) {
  std::string bytes;
  for (const Extent& extent : extents) {
    const std::size_t begin = bytes.size();
    bytes.resize(begin + extent.nbytes);
    extent.source->read_at(extent.offset, std::as_writable_bytes(std::span(bytes).subspan(begin)));
  }
  return bytes;
}

inline std::string read_record(const RecordTable& table, std::uint64_t record) {
  std::vector<Extent> extents;
  table.stored().front().bytes->locate(record, extents);
  return read_extents(extents);
}

// The bytes of every record, damaged ones as "(damaged)".
inline std::vector<std::string> read_records(const RecordTable& table) {
  std::vector<std::string> records;
  for (std::uint64_t i = 0; i < table.size(); ++i) {
    records.push_back(table.damage(i) != nullptr ? "(damaged)" : read_record(table, i));
  }
  return records;
}

// The data of a .npy file of version 1.
inline std::string npy_data(const std::string& path) {
  const std::string bytes = read_file(path);
  std::uint16_t header = 0;
  std::memcpy(&header, bytes.data() + 8, sizeof header);
  return bytes.substr(std::size_t{10} + header);
}

template <typename T>
std::vector<T> npy_values(const std::string& path) {
  const std::string data = npy_data(path);
  std::vector<T> values(data.size() / sizeof(T));
  std::memcpy(values.data(), data.data(), values.size() * sizeof(T));
  return values;
}

// The items of x.npy in `folder`: cut at x_offsets.npy, or else into `count` equal ones.
inline std::vector<std::string> expected_records(const std::string& folder, std::size_t count) {
  const std::string data = npy_data(folder + "/x.npy");
  std::vector<std::string> records;
  if (std::filesystem::exists(folder + "/x_offsets.npy")) {
    const auto offsets = npy_values<std::int64_t>(folder + "/x_offsets.npy");
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      records.push_back(data.substr(static_cast<std::size_t>(offsets[i]),
                                    static_cast<std::size_t>(offsets[i + 1] - offsets[i])));
    }
    return records;
  }
  for (std::size_t i = 0; i < count; ++i) {
    records.push_back(data.substr(i * (data.size() / count), data.size() / count));
  }
  return records;
}

// All items of a column that has them in memory, one after another.
inline std::string read_planned(const Column& column) {
  std::string bytes;
  for (std::uint64_t i = 0; i < column.size(); ++i) {
    Item item;
    column.inspect(i, item);
    Plan plan;
    column.plan(i, {0, item.dtype.itemsize * *element_count(item.shape)}, plan);
    for (const Piece& piece : plan.pieces()) {
      bytes.append(reinterpret_cast<const char*>(piece.memory), piece.nbytes);
    }
  }
  return bytes;
}

}  // namespace npyfs::testing

// SPDX-License-Identifier: Apache-2.0

#include "formats/npy/attrs_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/error.h"
#include "formats/bytes/npy_header.h"

namespace npyfs {

namespace {

// Attributes are a few lines; a list of every recording's name is still far from this.
constexpr std::uint64_t kMostNbytes = std::uint64_t{256} << 20;

std::string read_whole(const ByteSource& source) {
  if (source.nbytes() > kMostNbytes) {
    throw file_error(ErrorKind::kUnsupported, source.name(),
                     fmt::format("it has {} bytes, expected attributes of at most {}",
                                 source.nbytes(), kMostNbytes));
  }
  std::string bytes(source.nbytes(), '\0');
  source.read_at(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

// Where the pickle begins; nothing for an array that holds none.
std::optional<std::uint64_t> find_pickle(const ByteSource& source) {
  std::vector<std::byte> head(std::min<std::uint64_t>(source.nbytes(), 12));
  source.read_at(0, head);
  const auto nbytes = npy_header_nbytes(head);
  if (!nbytes || *nbytes > source.nbytes()) {
    return std::nullopt;
  }
  head.resize(*nbytes);
  source.read_at(0, head);
  try {
    parse_npy_header(head, source.name(), 0);
  } catch (const Error& error) {
    // Python objects are what no array of ours may hold.
    return error.kind() == ErrorKind::kUnsupported ? nbytes : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Dict> read_attrs_npy(const ByteSource& source,
                                   const std::function<void(const std::string&)>& warn) {
  const auto pickle_at = find_pickle(source);
  if (!pickle_at) {
    return std::nullopt;
  }
  warn(fmt::format("{}: the attributes are left out: pickles are not read yet",
                   printable(source.name())));
  return Dict{};
}

Dict read_attrs_json(const ByteSource& source) {
  const std::string text = read_whole(source);
  Value value;
  try {
    value = parse_json(text);
  } catch (const Error& error) {
    throw file_error(ErrorKind::kCorrupt, source.name(), error.what());
  }
  if (Dict* dict = std::get_if<Dict>(&value.v)) {
    return std::move(*dict);
  }
  throw file_error(ErrorKind::kCorrupt, source.name(), "it holds no JSON object, expected one");
}

}  // namespace npyfs

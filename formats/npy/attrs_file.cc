// SPDX-License-Identifier: Apache-2.0

#include "formats/npy/attrs_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/error.h"
#include "formats/bytes/npy_header.h"
#include "formats/payloads/pickle.h"

namespace npyfs {

namespace {

// Attributes are a few lines; a list of every recording's name is still far from this.
constexpr std::uint64_t kMostNbytes = std::uint64_t{256} << 20;

// Whether it holds Python objects, as attributes are stored and no array of ours may be.
bool holds_objects(const ByteSource& source) {
  std::vector<std::byte> head(std::min<std::uint64_t>(source.nbytes(), 12));
  source.read_at(0, head);
  const auto nbytes = npy_header_nbytes(head);
  if (!nbytes || *nbytes > source.nbytes()) {
    return false;
  }
  head.resize(*nbytes);
  source.read_at(0, head);
  try {
    parse_npy_header(head, source.name(), 0);
  } catch (const Error& error) {
    return error.kind() == ErrorKind::kUnsupported;
  }
  return false;
}

}  // namespace

std::optional<Dict> read_attrs_file(const ByteSource& source,
                                    const std::function<void(const std::string&)>& warn) {
  if (!holds_objects(source)) {
    return std::nullopt;
  }
  const std::string bytes = read_whole(source, kMostNbytes);
  const auto dropped = [&](const std::string& what) {
    warn(fmt::format("{}: {} is left out of the attributes, as it is no plain data",
                     printable(source.name()), what));
  };
  Value value = read_attrs_npy(std::as_bytes(std::span(bytes)), source.name(), dropped);
  if (Dict* dict = std::get_if<Dict>(&value.v)) {
    return std::move(*dict);
  }
  throw file_error(ErrorKind::kUnsupported, source.name(), "it holds no dict, expected one");
}

Dict read_attrs_json(const ByteSource& source) {
  const std::string text = read_whole(source, kMostNbytes);
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

// SPDX-License-Identifier: Apache-2.0

#include "formats/kaldi/binary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <vector>

#include "formats/bytes/words.h"

namespace npyfs {

namespace {

constexpr std::uint64_t kMostInnerLists = 10'000'000;  // Kaldi's own limit

struct TypeMarker {
  std::string_view text;
  ObjectKind kind;
};
constexpr std::array<TypeMarker, 8> kTypeMarkers = {{{"FM", ObjectKind::kFloatMatrix},
                                                     {"DM", ObjectKind::kDoubleMatrix},
                                                     {"FV", ObjectKind::kFloatVector},
                                                     {"DV", ObjectKind::kDoubleVector},
                                                     {"CM", ObjectKind::kCompressed},
                                                     {"CM2", ObjectKind::kCompressed2},
                                                     {"CM3", ObjectKind::kCompressed3},
                                                     {"SM", ObjectKind::kSparse}}};

std::uint32_t read_count(Cursor& cursor, const char* what,
                         std::uint64_t most = std::numeric_limits<std::int32_t>::max()) {
  const std::uint64_t at = cursor.offset();
  const auto count = cursor.sized<std::int32_t>(4, what);
  if (count < 0 || static_cast<std::uint64_t>(count) > most) {
    throw cursor.fault(at, fmt::format("{} is {}, expected 0 to {}", what, count, most));
  }
  return static_cast<std::uint32_t>(count);
}

// Rows and columns must both be 0 or both above.
void check_dimensions(Cursor& cursor, std::uint64_t at, std::int64_t rows, std::int64_t cols) {
  if (rows < 0 || cols < 0 || (rows == 0) != (cols == 0)) {
    throw cursor.fault(at, fmt::format("the matrix is {} x {}, expected two dimensions above 0 or "
                                       "0 x 0",
                                       rows, cols));
  }
}

void read_full_matrix(Cursor& cursor, Object& object, std::uint64_t element_nbytes) {
  const std::uint64_t at = cursor.offset();
  const auto rows = cursor.sized<std::int32_t>(4, "the row count");
  const auto cols = cursor.sized<std::int32_t>(4, "the column count");
  check_dimensions(cursor, at, rows, cols);
  object.rows = static_cast<std::uint32_t>(rows);
  object.cols = static_cast<std::uint32_t>(cols);
  object.header_nbytes = static_cast<std::uint32_t>(cursor.offset() - object.offset);
  // 2^31 * 2^31 * 8 exceeds 64 bits.
  const auto nbytes = checked_mul(std::uint64_t{object.rows} * object.cols, element_nbytes);
  cursor.hop(nbytes.value_or(std::numeric_limits<std::uint64_t>::max()), "the matrix");
}

void read_compressed(Cursor& cursor, Object& object) {
  const std::uint64_t at = cursor.offset();
  cursor.plain<float>("the least value");
  cursor.plain<float>("the range of values");
  auto rows = cursor.plain<std::int32_t>("the row count");
  const auto cols = cursor.plain<std::int32_t>("the column count");
  if (cols == 0) {
    rows = 0;  // whatever it says
  }
  check_dimensions(cursor, at, rows, cols);
  object.rows = static_cast<std::uint32_t>(rows);
  object.cols = static_cast<std::uint32_t>(cols);
  object.header_nbytes = static_cast<std::uint32_t>(cursor.offset() - object.offset);
  const std::uint64_t values = std::uint64_t{object.rows} * object.cols;
  cursor.hop(object.kind == ObjectKind::kCompressed    ? values + std::uint64_t{object.cols} * 8
             : object.kind == ObjectKind::kCompressed2 ? values * 2
                                                       : values,
             "the compressed matrix");
}

void read_sparse(Cursor& cursor, Object& object) {
  object.rows = read_count(cursor, "the row count", kMostInnerLists);
  for (std::uint32_t row = 0; row < object.rows; ++row) {
    const auto marker = cursor.look(3);
    if (marker.size() < 3 || std::memcmp(marker.data(), "SV ", 3) != 0) {
      throw cursor.fault(cursor.offset(), fmt::format("row {} of the sparse matrix does not begin "
                                                      "with 'SV ', expected a sparse vector",
                                                      row));
    }
    cursor.seek(cursor.offset() + 3);
    const std::uint64_t at = cursor.offset();
    const std::uint32_t dim = read_count(cursor, "the size of a sparse row");
    const std::uint32_t count = read_count(cursor, "the element count of a sparse row", dim);
    if (row == 0) {
      object.cols = dim;
    } else if (dim != object.cols) {
      throw cursor.fault(at, fmt::format("row {} of the sparse matrix has {} columns, expected {}",
                                         row, dim, object.cols));
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint64_t index_at = cursor.offset();
      const auto index = cursor.sized<std::int32_t>(4, "an index");
      if (index < 0 || static_cast<std::uint32_t>(index) >= dim) {
        throw cursor.fault(index_at, fmt::format("an index of the sparse matrix is {}, expected "
                                                 "0 to below {}",
                                                 index, dim));
      }
      const int size = cursor.peek();
      cursor.expect(size == 8 ? 8 : 4, "a value");
      cursor.hop(size == 8 ? 8 : 4, "a value");
    }
  }
  if (object.cols == 0) {
    object.rows = 0;
  }
  if (std::uint64_t{object.rows} * object.cols > kMostDenseElements) {
    throw cursor.fault(object.offset, fmt::format("the sparse matrix is {} x {}, expected at most "
                                                  "2^26 elements (it is shown dense)",
                                                  object.rows, object.cols));
  }
}

// Numbers with a size byte each. A few of them are looked at, and the last: that tells the kinds
// apart.
void hop_elements(Cursor& cursor, std::uint64_t count, const char* what) {
  constexpr std::uint64_t kLooked = 8;
  for (std::uint64_t i = 0; i < std::min(count, kLooked); ++i) {
    cursor.expect(4, what);
    cursor.hop(4, what);
  }
  if (count > kLooked) {
    cursor.hop((count - kLooked - 1) * 5, what);
    cursor.expect(4, what);
    cursor.hop(4, what);
  }
}

void read_int_family(Cursor& cursor, Object& object) {
  if (object.kind == ObjectKind::kInt32 || object.kind == ObjectKind::kFloat) {
    cursor.sized<std::uint32_t>(4, "the number");
    return;
  }
  const bool nested =
      object.kind == ObjectKind::kInt32Vectors || object.kind == ObjectKind::kPosterior;
  object.rows = read_count(cursor, "the element count",
                           nested ? kMostInnerLists : std::numeric_limits<std::int32_t>::max());
  if (!nested) {
    const bool pairs = object.kind != ObjectKind::kInt32Vector;
    hop_elements(cursor, std::uint64_t{object.rows} * (pairs ? 2 : 1), "an element");
    return;
  }
  std::uint64_t elements = 0;
  for (std::uint32_t i = 0; i < object.rows; ++i) {
    const std::uint32_t count = read_count(cursor, "the element count of an inner list");
    hop_elements(cursor, std::uint64_t{count} * (object.kind == ObjectKind::kPosterior ? 2 : 1),
                 "an element");
    elements += count;
  }
  if (elements > std::numeric_limits<std::uint32_t>::max()) {
    throw cursor.fault(object.offset, fmt::format("the lists have {} elements, expected fewer than "
                                                  "2^32",
                                                  elements));
  }
  object.cols = static_cast<std::uint32_t>(elements);
}

// The marker up to a blank; nothing where none is within a marker's length.
std::string read_marker(Cursor& cursor) {
  constexpr std::size_t kMost = 40;
  const auto head = cursor.look(kMost);
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const std::size_t end = text.find_first_of(kBlanks);
  return std::string(text.substr(0, end == std::string_view::npos ? 0 : end));
}

// "T" or "F". "FM " and "FV " begin with an F as well: then a key M or V would have to follow, and
// another object.
bool at_bool(Cursor& cursor, const std::string& marker) {
  const auto head = cursor.look(5);
  if (head.empty() || (head[0] != std::byte{'T'} && head[0] != std::byte{'F'})) {
    return false;
  }
  const bool known = std::any_of(kTypeMarkers.begin(), kTypeMarkers.end(),
                                 [&](const TypeMarker& token) { return token.text == marker; });
  return !known || (head.size() == 5 && head[3] == std::byte{0} && head[4] == std::byte{'B'});
}

void read_numbers(Cursor& cursor, Object& object, ObjectKind int_kind) {
  if (cursor.peek() == 8) {
    object.kind = ObjectKind::kDouble;
    cursor.sized<double>(8, "the number");
    return;
  }
  object.kind = int_kind;
  read_int_family(cursor, object);
}

void read_typed(Cursor& cursor, Object& object, const std::string& marker) {
  const auto token = std::find_if(kTypeMarkers.begin(), kTypeMarkers.end(),
                                  [&](const TypeMarker& known) { return known.text == marker; });
  if (token == kTypeMarkers.end()) {
    throw cursor.fault(cursor.offset(),
                       fmt::format("the object's type is '{}', expected FM, DM, CM, CM2, CM3, SM, "
                                   "FV, DV or numbers (other objects are not understood)",
                                   printable(marker)));
  }
  object.kind = token->kind;
  object.began = true;
  cursor.seek(cursor.offset() + marker.size() + 1);
  if (is_vector(object.kind)) {
    object.rows = read_count(cursor, "the dimension");
    object.header_nbytes = static_cast<std::uint32_t>(cursor.offset() - object.offset);
    cursor.hop(std::uint64_t{object.rows} * (object.kind == ObjectKind::kFloatVector ? 4 : 8),
               "the vector");
  } else if (object.kind == ObjectKind::kSparse) {
    read_sparse(cursor, object);
  } else if (object.kind == ObjectKind::kFloatMatrix || object.kind == ObjectKind::kDoubleMatrix) {
    read_full_matrix(cursor, object, object.kind == ObjectKind::kFloatMatrix ? 4 : 8);
  } else {
    read_compressed(cursor, object);
  }
}

// Whether what follows the cursor may follow an object: nothing, or a key and another object.
bool at_end_or_key(Cursor& cursor) {
  constexpr int kMostKeyNbytes = 4096;
  while (is_blank(cursor.peek())) {
    cursor.skip();
  }
  if (cursor.peek() < 0) {
    return true;
  }
  int nbytes = 0;
  for (int c = cursor.take(); c != ' ' && c != '\t'; c = cursor.take()) {
    if (c <= ' ' || c == 0x7f || ++nbytes > kMostKeyNbytes) {
      return false;
    }
  }
  return cursor.peek() != 0 || at_binary_object(cursor);
}

// Whether the file from `offset` on is objects of this kind; `values` are the numbers of scalars.
bool fits(const ByteSource& source, std::uint64_t offset, ObjectKind kind, int samples,
          std::vector<std::uint32_t>& values) {
  values.clear();
  Cursor cursor(source);
  cursor.seek(offset);
  try {
    for (int i = 0; i < samples && at_binary_object(cursor); ++i) {
      Object object;
      parse_binary_object(cursor, kind, object);
      const std::uint64_t end = cursor.offset();
      if (object.kind == kind && object.nbytes >= 7) {
        cursor.seek(end - 4);
        values.push_back(cursor.plain<std::uint32_t>("a value"));
      }
      if (!at_end_or_key(cursor)) {
        return false;
      }
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kCorrupt) {
      throw;
    }
    return false;
  }
  return true;
}

// Small integers are tiny or no numbers when they are read as floats.
bool look_like_floats(const std::vector<std::uint32_t>& values) {
  bool any = false;
  for (const std::uint32_t bits : values) {
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    const float size = std::fabs(value);
    if (bits != 0 && bits != 0x80000000U && !(size > 1e-20F && size < 1e20F)) {
      return false;
    }
    any = any || bits != 0;
  }
  return any;
}

// Integers, or floats of the same form.
ObjectKind refine_by_values(const ByteSource& source, std::uint64_t offset, ObjectKind kind,
                            int samples) {
  std::vector<std::uint32_t> values;
  fits(source, offset, kind, samples, values);
  if (!look_like_floats(values)) {
    return kind;
  }
  return kind == ObjectKind::kInt32        ? ObjectKind::kFloat
         : kind == ObjectKind::kInt32Pairs ? ObjectKind::kFloatPairs
                                           : kind;
}

}  // namespace

bool at_binary_object(Cursor& cursor) {
  const auto head = cursor.look(2);
  return head.size() == 2 && head[0] == std::byte{0} && head[1] == std::byte{'B'};
}

void parse_binary_object(Cursor& cursor, ObjectKind int_kind, Object& object) {
  object = {};
  object.offset = cursor.offset();
  if (!at_binary_object(cursor)) {
    throw cursor.fault(cursor.offset(), "a zero byte is not followed by 'B', expected an object");
  }
  cursor.seek(cursor.offset() + 2);
  const int first = cursor.peek();
  if (first < 0) {
    throw cursor.cut("the object");
  }
  const std::string marker = read_marker(cursor);
  if (first == 4 || first == 8) {
    object.began = true;
    read_numbers(cursor, object, int_kind);
  } else if (at_bool(cursor, marker)) {
    object.kind = ObjectKind::kBool;
    object.began = true;
    cursor.skip();
  } else {
    read_typed(cursor, object, marker);
  }
  object.nbytes = cursor.offset() - object.offset;
}

ObjectKind guess_int_kind(const ByteSource& source, std::uint64_t offset) {
  std::vector<ObjectKind> fitting = {ObjectKind::kInt32Vector, ObjectKind::kInt32,
                                     ObjectKind::kInt32Pairs, ObjectKind::kInt32Vectors,
                                     ObjectKind::kPosterior};
  std::vector<std::uint32_t> values;
  // A few objects tell most tables; the others begin with zeroes or empty lists.
  for (const int samples : {8, 1000}) {
    std::vector<ObjectKind> still;
    std::copy_if(fitting.begin(), fitting.end(), std::back_inserter(still),
                 [&](ObjectKind kind) { return fits(source, offset, kind, samples, values); });
    if (still.size() == 1 || (samples > 8 && !still.empty())) {
      return refine_by_values(source, offset, still.front(), samples);
    }
    if (still.empty()) {
      return fitting.front();
    }
    fitting = std::move(still);
  }
  return fitting.front();
}

}  // namespace npyfs

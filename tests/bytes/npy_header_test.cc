// SPDX-License-Identifier: Apache-2.0
//
// Headers against those numpy 1.24 wrote (tests/data/npy_headers), and against what no numpy
// writes.

#include "formats/bytes/npy_header.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "formats/bytes/error.h"
#include "formats/bytes/value.h"

namespace npyfs {
namespace {

const std::string kData = NPYFS_TEST_DATA "/npy_headers/";

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

const Value& at(const Value& dict, std::string_view name) {
  for (const auto& [key, value] : std::get<Dict>(dict.v)) {
    if (key == name) {
      return value;
    }
  }
  throw std::out_of_range(std::string(name));
}

std::uint64_t as_number(const Value& value) {
  return static_cast<std::uint64_t>(std::get<std::int64_t>(value.v));
}

// A version 1.0 preamble around `text`.
std::string wrap(std::string_view text) {
  std::string out("\x93NUMPY\x01\0", 8);
  out += static_cast<char>(text.size() & 0xff);
  out += static_cast<char>(text.size() >> 8);
  return out += text;
}

NpyHeader parse(std::string_view bytes) { return parse_npy_header(as_bytes(bytes), "a.npy", 1000); }

// What parsing `text` says, with the kind in front.
std::string fault(std::string_view bytes) {
  try {
    parse(bytes);
  } catch (const Error& error) {
    return (error.kind() == ErrorKind::kCorrupt ? "corrupt: " : "unsupported: ") +
           std::string(error.what());
  }
  return "none";
}

std::string fault_in(std::string_view text) { return fault(wrap(text)); }

std::string with_descr(std::string_view descr) {
  return "{'descr': " + std::string(descr) + ", 'fortran_order': False, 'shape': (2,), }";
}

// Whether numpy could hold such an array at all; some of its headers describe none.
bool can_exist(const DType& dtype, const Shape& shape) {
  long double nbytes = dtype.itemsize;
  for (const std::uint64_t dim : shape) {
    nbytes *= static_cast<long double>(dim);
  }
  return nbytes < 0x1p63L;
}

TEST(NpyHeader, IsNumpysByteForByteAndParsesBack) {
  const std::string all = read_file(kData + "headers.bin");
  const Value index = parse_json(read_file(kData + "index.json"));
  int parsed = 0;
  for (const auto& [name, row] : std::get<Dict>(index.v)) {
    SCOPED_TRACE(name);
    const std::string expected =
        all.substr(as_number(at(row, "offset")), as_number(at(row, "length")));
    const bool fortran_order = std::get<bool>(at(row, "fortran_order").v);
    Shape shape;
    for (const Value& dim : std::get<List>(at(row, "shape").v)) {
      shape.push_back(as_number(dim));
    }
    EXPECT_EQ(npy_header_nbytes(as_bytes(expected).first(12)), expected.size());

    const Value& descr = at(row, "descr");
    const bool simple = std::holds_alternative<std::string>(descr.v);
    if (simple && std::get<std::string>(descr.v) == "|O") {
      EXPECT_EQ(print_npy_header({"'|O'", 8, 'O'}, shape, fortran_order), expected);
      EXPECT_THROW(parse(expected), Error);
      continue;
    }
    // A structured descr is lists in the index: what is compared is what was parsed.
    const DType dtype =
        simple ? DType::simple(std::get<std::string>(descr.v)) : parse(expected).dtype;
    EXPECT_EQ(print_npy_header(dtype, shape, fortran_order), expected);
    if (!can_exist(dtype, shape)) {
      EXPECT_NE(fault(expected).find("63 bits"), std::string::npos);
      continue;
    }
    const NpyHeader header = parse(expected + "data");
    EXPECT_EQ(header.dtype, dtype);
    EXPECT_EQ(header.dtype.itemsize, dtype.itemsize);
    EXPECT_EQ(header.shape, shape);
    EXPECT_EQ(header.fortran_order, fortran_order);
    EXPECT_EQ(header.nbytes, expected.size());
    ++parsed;
  }
  EXPECT_EQ(parsed, 100);
}

TEST(NpyHeader, AlignsTheData) {
  const std::string plain = print_npy_header(DType::simple("<f4"), {7, 3}, false);
  EXPECT_EQ(plain.size(), 128U);
  for (const std::uint64_t align : {128, 4096, 65536}) {
    const std::string padded = print_npy_header(DType::simple("<f4"), {7, 3}, false, align);
    EXPECT_EQ(padded.size() % align, 0U);
    EXPECT_EQ(padded.back(), '\n');
    EXPECT_EQ(parse(padded).shape, (Shape{7, 3}));
    EXPECT_EQ(parse(padded).nbytes, padded.size());
  }
}

TEST(NpyHeader, UnderstandsAnyPythonSpelling) {
  const NpyHeader header =
      parse(wrap("\t{\"shape\":(3L ,4),'fortran_order' : True,\n'descr':\"float32\"}  \n\n"));
  EXPECT_EQ(header.dtype, DType::simple("<f4"));
  EXPECT_EQ(header.shape, (Shape{3, 4}));
  EXPECT_TRUE(header.fortran_order);
}

TEST(NpyHeader, KnowsStructuredTypes) {
  struct Case {
    const char* text;
    const char* descr;
    std::uint32_t itemsize;
  };
  for (const Case& c :
       {Case{"[]", "[]", 0},
        {"[('a','f4')]", "[('a', '<f4')]", 4},
        {"[('a', '<f4', 3),]", "[('a', '<f4', (3,))]", 12},
        {"[('a', '<f4', ())]", "[('a', '<f4')]", 4},
        {"[('a', '<f4', (2, 3)), ('', '|V7'), ('', '|V1')]",
         "[('a', '<f4', (2, 3)), ('', '|V7'), ('', '|V1')]", 32},
        {"[('o', [('i', '|u1'), ('j', '<i8')], (2,))]",
         "[('o', [('i', '|u1'), ('j', '<i8')], (2,))]", 18},
        {"[('a', ('<f4', (2,)), (3,))]", "[('a', ('<f4', (2,)), (3,))]", 24},
        {"[(('t', 'n'), '<i4')]", "[(('t', 'n'), '<i4')]", 4},
        {"[(\"it's\", 'b1')]", "[(\"it's\", '|b1')]", 1},
        {R"([('\x41\n\x01\'"', 'b1')])", R"([('A\n\x01\'"', '|b1')])", 1},
        {R"([('\u2028\U000e0001\ud800', 'b1')])", R"([('\u2028\U000e0001\ud800', '|b1')])", 1}}) {
    SCOPED_TRACE(c.text);
    const NpyHeader header = parse(wrap(with_descr(c.text)));
    EXPECT_EQ(header.dtype.descr, c.descr);
    EXPECT_EQ(header.dtype.itemsize, c.itemsize);
    EXPECT_EQ(header.dtype.kind, 'V');
  }
}

TEST(NpyHeader, RefusesObjects) {
  EXPECT_EQ(
      fault_in(with_descr("'|O'")),
      "unsupported: a.npy: at byte 1020: npy dtype is '|O', Python objects, expected numbers, "
      "text or bytes; objects would have to be unpickled");
  EXPECT_TRUE(fault_in(with_descr("'O'")).starts_with("unsupported"));
  EXPECT_TRUE(
      fault_in(with_descr("[('a', '<f4'), ('b', [('c', '|O')])]")).starts_with("unsupported"));
}

TEST(NpyHeader, RefusesDamageWithItsPlace) {
  const auto expect = [](std::string_view text, std::string_view message) {
    EXPECT_EQ(fault_in(text), "corrupt: a.npy at byte " + std::string(message)) << text;
  };
  expect("", "1010: npy header ends, expected '{'");
  expect("[]", "1010: npy header has '[', expected '{'");
  expect("{}", "1012: npy header has no descr, expected descr, fortran_order and shape");
  expect("{'descr': '<f4', 'shape': ()}",
         "1039: npy header has no fortran_order, expected descr, fortran_order and shape");
  expect("{'shape': (1,), 'shape': ()}",
         "1026: npy header has the key 'shape' twice, expected descr, fortran_order and shape");
  expect("{'x': 1}", "1011: npy header has the key 'x', expected descr, fortran_order and shape");
  expect("{'shape': (-1,)}", "1021: npy header has a negative length, expected 0 or more");
  expect("{'shape': (9223372036854775808,)}", "1021: npy header has a length beyond 63 bits");
  expect(
      "{'shape': (5)}",
      "1022: npy header has a number where a tuple is expected; a shape of one axis has a comma");
  expect("{'shape': 5}", "1020: npy header has '5', expected '('");
  expect("{'shape': (5.0,)}", "1022: npy header has '.', expected ',' or ')'");
  expect("{'fortran_order': 1}", "1028: npy header has '1', expected True or False");
  expect("{'descr': '<f5'}", "1020: npy header has dtype '<f5', expected one that numpy writes");
  expect("{'descr': ('<f4', (2,))}", "1020: npy header has '(', expected a string or a list");
  expect("{'descr': '<f4", "1024: npy header ends, expected the end of a string");
  expect("{'descr': '\\q'}",
         "1022: npy header has an unknown escape in a string, expected one that Python's repr "
         "writes");
  expect("{'descr': '\\x4'}", "1024: npy header has ''', expected a hexadecimal digit");
  expect("{'descr': [('a', '<f4'), ('a', '<f4')]}",
         "1036: npy header has the field 'a' twice, expected distinct names");
  expect("{'descr': [('a', '<f4', (1073741824, 2))]}",
         "1034: npy header has a field of more than 2 GiB");
  expect("{'descr': __import__('os')}", "1020: npy header has '_', expected a string");
  expect(with_descr("'<f4'") + "x", "1067: npy header has 'x', expected nothing after the '}'");
  expect(std::string("{\0", 2), "1011: npy header has byte 0x00, expected a string");

  std::string deep;
  for (int i = 0; i < 1000; ++i) {
    deep += "[('a', ";
  }
  EXPECT_NE(fault_in("{'descr': " + deep).find("nests types deeper"), std::string::npos);
}

TEST(NpyHeader, RefusesABadPreamble) {
  const std::string good = print_npy_header(DType::simple("<f4"), {2}, false);
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_TRUE(fault(good.substr(0, size)).starts_with("corrupt")) << size;
  }
  std::string version = good;
  version[6] = 4;
  EXPECT_EQ(fault(version),
            "corrupt: a.npy at byte 1006: npy version is 4.0, expected 1.0, 2.0 or 3.0");
  EXPECT_EQ(npy_header_nbytes(as_bytes(version).first(12)), 12U);

  const std::string huge("\x93NUMPY\x02\0\xff\xff\xff\xff", 12);
  EXPECT_EQ(npy_header_nbytes(as_bytes(huge)), std::uint64_t{16} << 20);
  EXPECT_EQ(fault(huge),
            "corrupt: a.npy at byte 1008: npy header length is 4294967295, expected less than 16 "
            "MiB");

  const std::string not_utf8("\x93NUMPY\x03\0\x03\0\0\0{'\xff", 15);
  EXPECT_EQ(fault(not_utf8),
            "corrupt: a.npy at byte 1014: npy header is not UTF-8, expected it in version 3.0");

  EXPECT_TRUE(is_npy(as_bytes(good)));
  EXPECT_FALSE(is_npy(as_bytes("\x93NUMP")));
  EXPECT_FALSE(npy_header_nbytes(as_bytes("PK\3\4........")));
}

}  // namespace
}  // namespace npyfs

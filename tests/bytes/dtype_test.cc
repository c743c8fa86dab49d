// SPDX-License-Identifier: Apache-2.0
//
// What numpy understands of dtype texts and how it prints them; checked against numpy 1.24.

#include "formats/bytes/dtype.h"

#include <gtest/gtest.h>

namespace npyfs {
namespace {

constexpr std::uint64_t kHuge = std::uint64_t{1} << 62;

TEST(Shape, CountsElements) {
  EXPECT_EQ(element_count({}), 1U);
  EXPECT_EQ(element_count({5}), 5U);
  EXPECT_EQ(element_count({2, 3, 4}), 24U);
  EXPECT_EQ(element_count({0, 3}), 0U);
  EXPECT_EQ(element_count({kHuge}), kHuge);
  EXPECT_EQ(element_count({kHuge, 2}), std::nullopt);
  EXPECT_EQ(element_count({kHuge, 4}), std::nullopt);
  EXPECT_EQ(element_count({0, kHuge, kHuge}), std::nullopt);
}

TEST(Shape, CountsElementsOfARow) {
  EXPECT_EQ(row_elements({}), 1U);
  EXPECT_EQ(row_elements({5}), 1U);
  EXPECT_EQ(row_elements({5, 2, 3}), 6U);
  EXPECT_EQ(row_elements({0, 7}), 7U);
}

TEST(Shape, PrintsAsATuple) {
  EXPECT_EQ(shape_text({}), "()");
  EXPECT_EQ(shape_text({5}), "(5,)");
  EXPECT_EQ(shape_text({3, 4}), "(3, 4)");
}

TEST(DType, UnderstandsWhatNumpyDoes) {
  struct Case {
    const char* text;
    const char* code;
    std::uint32_t itemsize;
    char kind;
  };
  for (const Case& c : {Case{"bool", "|b1", 1, 'b'},
                        {"float32", "<f4", 4, 'f'},
                        {"f4", "<f4", 4, 'f'},
                        {"<f4", "<f4", 4, 'f'},
                        {"=f4", "<f4", 4, 'f'},
                        {">f4", ">f4", 4, 'f'},
                        {"half", "<f2", 2, 'f'},
                        {"single", "<f4", 4, 'f'},
                        {"double", "<f8", 8, 'f'},
                        {"d", "<f8", 8, 'f'},
                        {"longdouble", "<f16", 16, 'f'},
                        {">i2", ">i2", 2, 'i'},
                        {"int64", "<i8", 8, 'i'},
                        {"|u1", "|u1", 1, 'u'},
                        {">u1", "|u1", 1, 'u'},
                        {"b", "|i1", 1, 'i'},
                        {"?", "|b1", 1, 'b'},
                        {"complex64", "<c8", 8, 'c'},
                        {"complex128", "<c16", 16, 'c'},
                        {"S7", "|S7", 7, 'S'},
                        {">S7", "|S7", 7, 'S'},
                        {"a5", "|S5", 5, 'S'},
                        {"S", "|S0", 0, 'S'},
                        {"U5", "<U5", 20, 'U'},
                        {">U3", ">U3", 12, 'U'},
                        {"str", "<U0", 0, 'U'},
                        {"V10", "|V10", 10, 'V'},
                        {"M8", "<M8", 8, 'M'},
                        {"M8[25us]", "<M8[25us]", 8, 'M'},
                        {"M8[1s]", "<M8[s]", 8, 'M'},
                        {"datetime64[ns]", "<M8[ns]", 8, 'M'},
                        {">M8[ms]", ">M8[ms]", 8, 'M'},
                        {"timedelta64[7D]", "<m8[7D]", 8, 'm'},
                        {"timedelta64", "<m8", 8, 'm'}}) {
    SCOPED_TRACE(c.text);
    const auto type = DType::from_user(c.text);
    ASSERT_TRUE(type);
    EXPECT_EQ(type->descr, "'" + std::string(c.code) + "'");
    EXPECT_EQ(type->text(), c.code);
    EXPECT_EQ(type->itemsize, c.itemsize);
    EXPECT_EQ(type->kind, c.kind);
    EXPECT_EQ(DType::simple(c.code), *type);
  }
}

TEST(DType, RefusesWhatNumpyDoesNot) {
  for (const char* const text :
       {"",     "<",       "i3",    "f5",      "b2",  "float33",          "<float32",    " f4",
        "f4 ",  "Float32", "<<f4",  "S-1",     "S7x", "U536870912",       "S2147483648", "M8[",
        "M8[]", "M8[x]",   "M8[ns", "M8[ns]x", "M9",  "M8[99999999999s]", "M[ns]",       "f4,i4",
        "O",    "|O",      "O8",    "object"}) {
    EXPECT_FALSE(DType::from_user(text)) << text;
  }
}

TEST(DType, PrintsAStructuredTypeAsItIs) {
  const DType type{"[('a', '<f4')]", 4, 'V'};
  EXPECT_EQ(type.text(), "[('a', '<f4')]");
}

}  // namespace
}  // namespace npyfs

// SPDX-License-Identifier: Apache-2.0
//
// Attributes that say which recordings the rows of a split are from.

#include "formats/arrays/recordings.h"

#include <gtest/gtest.h>

#include <string>

namespace npyfs {
namespace {

// The dict of a JSON text that is one.
Dict dict_of(const std::string& json) { return std::get<Dict>(parse_json(json).v); }

std::string json_of(const Dict& dict) { return print_json(Value{dict}); }

const char* const kThree =
    R"({"rate": 5, "filename_t": ["a", "b", "c"], "filename_startsample_t": [0, 10, 30],
        "filename_endsample_t": [10, 30, 60], "filename_v": ["z"]})";

void expect_cut(const Bounds& kept, const std::string& expected) {
  Dict attributes = dict_of(kThree);
  EXPECT_TRUE(cut_recordings(attributes, "t", 60, kept));
  EXPECT_EQ(json_of(attributes), json_of(dict_of(expected)));
}

TEST(CutRecordings, ShiftsClipsAndLeavesOut) {
  expect_cut({0, 60}, kThree);
  expect_cut({5, 40}, R"({"rate": 5, "filename_t": ["a", "b", "c"],
      "filename_startsample_t": [0, 5, 25], "filename_endsample_t": [5, 25, 35],
      "filename_v": ["z"]})");
  expect_cut({10, 30}, R"({"rate": 5, "filename_t": ["b"], "filename_startsample_t": [0],
      "filename_endsample_t": [20], "filename_v": ["z"]})");
  expect_cut({7, 7}, R"({"rate": 5, "filename_t": [], "filename_startsample_t": [],
      "filename_endsample_t": [], "filename_v": ["z"]})");
}

TEST(CutRecordings, ConcernsOneSplit) {
  Dict attributes = dict_of(kThree);
  EXPECT_TRUE(cut_recordings(attributes, "v", 60, {0, 1})) << "has names, but no numbers";
  EXPECT_EQ(json_of(attributes), json_of(dict_of(kThree)));
}

TEST(CutRecordings, LeavesOutWhatItDoesNotUnderstand) {
  for (const char* bad : {
           R"({"filename_startsample_t": [0], "filename_endsample_t": [60]})",
           R"({"filename_t": ["a"], "filename_endsample_t": [60]})",
           R"({"filename_t": ["a"], "filename_startsample_t": [0, 1],
               "filename_endsample_t": [60]})",
           R"({"filename_t": ["a"], "filename_startsample_t": [0], "filename_endsample_t": [61]})",
           R"({"filename_t": ["a"], "filename_startsample_t": [-1], "filename_endsample_t": [9]})",
           R"({"filename_t": ["a"], "filename_startsample_t": [9], "filename_endsample_t": [8]})",
           R"({"filename_t": ["a"], "filename_startsample_t": [0.5], "filename_endsample_t": [8]})",
           R"({"filename_t": "a", "filename_startsample_t": 0, "filename_endsample_t": 60})",
       }) {
    Dict attributes = dict_of(bad);
    EXPECT_TRUE(cut_recordings(attributes, "t", 60, {0, 60})) << "nothing is cut";
    EXPECT_EQ(json_of(attributes), json_of(dict_of(bad)));
    EXPECT_FALSE(cut_recordings(attributes, "t", 60, {0, 30})) << bad;
    EXPECT_TRUE(attributes.empty()) << bad;
  }
}

TEST(AppendRecordings, CountsOn) {
  Dict all = dict_of(kThree);
  const Dict more = dict_of(R"({"filename_t": ["d"], "filename_startsample_t": [0],
                                "filename_endsample_t": [4], "rate": 6})");
  EXPECT_TRUE(append_recordings(all, more, "t", 60));
  EXPECT_EQ(json_of(all), json_of(dict_of(R"({"rate": 5, "filename_t": ["a", "b", "c", "d"],
      "filename_startsample_t": [0, 10, 30, 60], "filename_endsample_t": [10, 30, 60, 64],
      "filename_v": ["z"]})")));
  EXPECT_TRUE(append_recordings(all, more, "v", 60)) << "neither has numbers";
}

TEST(AppendRecordings, WhereOneHasNoneThereAreNone) {
  Dict all = dict_of(kThree);
  EXPECT_FALSE(append_recordings(all, {}, "t", 60));
  EXPECT_EQ(json_of(all), json_of(dict_of(R"({"rate": 5, "filename_v": ["z"]})")));
  Dict none;
  EXPECT_FALSE(append_recordings(none, dict_of(kThree), "t", 60));
  EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace npyfs

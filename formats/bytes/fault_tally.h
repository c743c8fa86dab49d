// SPDX-License-Identifier: Apache-2.0
//
// One warning for each kind of fault, however many lines or records have it.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/bytes/error.h"

namespace npyfs {

// Tells faults apart. Two are of one kind if their messages differ only in numbers, in what is
// quoted, and in keys. One thread.
class FaultKinds {
 public:
  static constexpr std::size_t kMost = 16;

  // The kind's number: the next one where the kind is new, kMost for all kinds that there is no
  // room for. `said`: the message without the place of the fault. Cheapest where it is the one of
  // the call before.
  std::size_t number_of(std::string_view said);

 private:
  std::vector<std::string> patterns_;
  std::string last_said_;
  std::size_t last_number_ = 0;
};

// Counts faults by kind (FaultKinds) and keeps the text of the first of each. Small, whatever a
// file holds: no more than kMostKinds texts are kept. One thread.
class FaultTally {
 public:
  static constexpr std::size_t kMostKinds = FaultKinds::kMost;

  // `unit` is what is counted, in the plural: "lines". `outcome` is said of every kind: "left out".
  explicit FaultTally(std::string unit, std::string outcome = {})
      : unit_(std::move(unit)), outcome_(std::move(outcome)) {}

  void add(const Error& error, std::uint64_t order = 0) { add(error.said(), error.what(), order); }
  // `said` tells the kind: the message without the place of the fault; `text` has it. The first of
  // a kind is that of the least `order`, then the one added first.
  void add(std::string_view said, std::string_view text, std::uint64_t order = 0);

  std::uint64_t count() const { return count_; }
  // The first fault of any kind, and how many more there are: "<text>[ (and N more <unit>)]". Call
  // it only if there is a fault.
  std::string summary() const;
  // One line a kind, in the order of their first: "<text>[; <outcome>][ (and N more <unit>)]".
  void tell(const std::function<void(const std::string& text)>& warn) const;
  // As tell(), for callers that phrase the count themselves: gets the first text of each kind, and
  // how many faults are of that kind. Kinds beyond kMostKinds count as one.
  void for_each(
      const std::function<void(const std::string& text, std::uint64_t count)>& take) const;

 private:
  struct Kind;
  std::vector<Kind> sorted() const;
  std::string and_more(std::uint64_t count) const;

  struct Kind {
    std::string text;  // of the first
    std::uint64_t order = 0;
    std::uint64_t count = 0;
  };

  std::string unit_;
  std::string outcome_;
  FaultKinds numbers_;
  std::vector<Kind> kinds_;  // by number
  std::uint64_t count_ = 0;
  std::uint64_t of_other_kinds_ = 0;  // that there is no room for
  std::string other_text_;            // of the first of them
};

}  // namespace npyfs

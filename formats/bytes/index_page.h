// SPDX-License-Identifier: Apache-2.0
//
// Pages of a kept index: what was found out by reading a source, so that nobody has to read it for
// that again. A page is a list of numbers, texts and arrays, little-endian, each at a multiple of 8
// bytes; whoever wrote it knows their order. Arrays are used where they lie, in mapped memory.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/bytes/error.h"
#include "formats/bytes/page_array.h"

namespace npyfs {

class ByteSource;  // formats/bytes/byte_source.h

// One thread.
class PageWriter {
 public:
  // Gets the page's bytes, in order. What it throws, the calls below throw.
  using Sink = std::function<void(std::span<const std::byte> bytes)>;
  explicit PageWriter(Sink sink) : sink_(std::move(sink)) {}

  void number(std::uint64_t value);
  void optional(std::optional<std::uint64_t> value);
  void flag(bool value) { number(value ? 1 : 0); }
  void text(std::string_view text);
  template <typename T>
  void array(std::span<const T> values) {
    static_assert(std::has_unique_object_representations_v<T>, "padding would be written, too");
    begin_array(values.size(), sizeof(T));
    put(std::as_bytes(values));
  }
  template <typename T>
  void array(const PageArray<T>& values) {
    array(values.span());
  }

 private:
  void begin_array(std::uint64_t size, std::uint64_t itemsize);
  void put(std::span<const std::byte> bytes);

  Sink sink_;
};

// Reads a page in the order in which it was written. All calls throw kCorrupt where the page does
// not hold what is asked for. One thread.
class PageReader {
 public:
  // `bytes` begin at a multiple of 8 bytes of `memory`, which what is read from them holds.
  PageReader(std::span<const std::byte> bytes, std::shared_ptr<const void> memory)
      : left_(bytes), memory_(std::move(memory)) {}

  std::uint64_t number();
  // A number that is at most `most`.
  std::uint64_t number(std::uint64_t most);
  std::optional<std::uint64_t> optional();
  bool flag() { return number(1) == 1; }
  std::string text();
  template <typename T>
  PageArray<T> array() {
    static_assert(alignof(T) <= alignof(std::uint64_t));
    const std::span<const std::byte> bytes = array_bytes(sizeof(T));
    return {std::span(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)), memory_};
  }
  // An array of this many.
  template <typename T>
  PageArray<T> array(std::uint64_t size) {
    PageArray<T> values = array<T>();
    require(values.size() == size);
    return values;
  }
  // Throws where `holds` is false: the page contradicts itself.
  static void require(bool holds);
  // What was not read yet.
  std::span<const std::byte> left() const { return left_; }
  void require_end() const { require(left_.empty()); }

 private:
  std::span<const std::byte> array_bytes(std::uint64_t itemsize);
  std::span<const std::byte> take(std::uint64_t nbytes);

  std::span<const std::byte> left_;
  std::shared_ptr<const void> memory_;
};

// What a page depends on.
class PageKey {
 public:
  // Adds one of the things that count, in the order of the calls: kind and version of the page,
  // what the user said as far as it matters.
  void add(std::string_view thing);
  // Adds a source that the page was made of; false, for good, where it is no file: nobody could
  // tell whether it is still the same.
  bool add_source(const ByteSource& source);

  // Two pages with equal texts hold the same.
  std::string text() const { return things_ + "\n" + sources_; }

  // A page may be found on another machine, too: there a source is the same if its place below some
  // folder, its size and its mtime are.
  struct Source {
    std::string path;  // absolute
    std::uint64_t nbytes = 0;
    std::int64_t mtime_ns = 0;
  };
  const std::string& things() const { return things_; }
  // Empty if they are more than kMostPortable.
  const std::vector<Source>& sources() const { return portable_sources_; }
  // Of all sources.
  std::uint64_t nbytes() const { return nbytes_; }
  // The newest of all sources.
  std::int64_t mtime_ns() const { return mtime_ns_; }

 private:
  std::string things_;
  std::string sources_;
  static constexpr std::size_t kMostPortable = 16;
  std::vector<Source> portable_sources_;
  std::size_t source_count_ = 0;
  std::uint64_t nbytes_ = 0;
  std::int64_t mtime_ns_ = 0;
};

// Where pages are kept. One thread.
class IndexPages {
 public:
  virtual ~IndexPages() = default;
  // Nothing where there is no page of this key that can be believed.
  virtual std::optional<PageReader> find(const PageKey& key) = 0;
  // Keeps what `write` writes, if it can. `write` throws nothing of its own.
  virtual void keep(const PageKey& key, const std::function<void(PageWriter&)>& write) = 0;
};

// What is there of the page, as `read(page)` returns it; nothing where that throws kCorrupt, or
// does not take all of it.
template <typename Read>
auto find_page(IndexPages& index, const PageKey& key, const Read& read)
    -> std::optional<decltype(read(std::declval<PageReader&>()))> {
  if (auto page = index.find(key)) {
    try {
      auto found = read(*page);
      page->require_end();
      return found;
    } catch (const std::length_error&) {
      // A size that nothing has.
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kCorrupt) {
        throw;
      }
    }
  }
  return std::nullopt;
}

}  // namespace npyfs

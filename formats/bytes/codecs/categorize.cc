// SPDX-License-Identifier: Apache-2.0
//
// numcodecs: numcodecs/categorize.py. A label is stored as its number, counted from 1; 0 is none of
// them, the empty text.

#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/codecs/codecs.h"
#include "formats/bytes/codecs/numbers.h"
#include "formats/bytes/utf8.h"

namespace npyfs {

namespace {

class Categorize : public Codec {
 public:
  Categorize(const DType& dtype, const DType& stored, const std::vector<std::string>& labels)
      : Codec("categorize"), itemsize_(dtype.itemsize) {
    const auto type = number_type(stored);
    if (dtype.kind != 'U' || itemsize_ == 0 || !type || type->kind != 'u') {
      throw Error(ErrorKind::kUnsupported,
                  fmt::format("categorize of {} stored as {}, expected text stored as unsigned "
                              "integers",
                              dtype.text(), stored.text()));
    }
    stored_type_ = *type;
    texts_.resize((labels.size() + 1) * itemsize_);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto text = std::span(texts_).subspan((i + 1) * itemsize_, itemsize_);
      write_utf32(labels[i], text);
      if (dtype.text().starts_with('>')) {
        for (std::size_t at = 0; at < itemsize_; at += 4) {
          std::reverse(text.begin() + at, text.begin() + at + 4);
        }
      }
    }
  }

  std::optional<std::size_t> decode(std::span<const std::byte> in,
                                    std::span<std::byte> out) const override {
    const std::size_t count = in.size() / stored_type_.nbytes;
    if (in.size() % stored_type_.nbytes != 0) {
      throw damaged(fmt::format("{} bytes are there, expected a multiple of {}", in.size(),
                                stored_type_.nbytes));
    }
    if (count > out.size() / itemsize_) {
      return std::nullopt;
    }
    const NumberType wide{'u', 8, false};
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t label = 0;
      cast_numbers(stored_type_, in.data() + i * stored_type_.nbytes, wide,
                   reinterpret_cast<std::byte*>(&label), 1);
      if (label >= texts_.size() / itemsize_) {
        label = 0;  // as numcodecs, which looks for each label's number in turn
      }
      std::copy_n(texts_.data() + label * itemsize_, itemsize_, out.data() + i * itemsize_);
    }
    return count * itemsize_;
  }

  std::optional<std::uint64_t> encoded_nbytes(std::uint64_t decoded_nbytes) const override {
    return decoded_nbytes / itemsize_ * stored_type_.nbytes;
  }

 private:
  std::size_t itemsize_;
  NumberType stored_type_;
  std::vector<std::byte> texts_;  // of 0, 1, ...
};

}  // namespace

CodecPtr make_categorize(const DType& dtype, const DType& stored,
                         const std::vector<std::string>& labels) {
  return std::make_unique<Categorize>(dtype, stored, labels);
}

}  // namespace npyfs

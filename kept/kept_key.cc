// SPDX-License-Identifier: Apache-2.0

#include "kept/kept_key.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>

#include "formats/bytes/error.h"

namespace npyfs {

namespace {

// More are counted, and stand there by their digest.
constexpr std::size_t kMostListedSources = 16;

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  }
  return text;
}

}  // namespace

Digest sha256(std::string_view text) {
  Digest digest{};
  if (EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr,
                 EVP_sha256(), nullptr) != 1) {
    throw Error(ErrorKind::kUnsupported, "libcrypto has no SHA-256");
  }
  return digest;
}

std::string KeptKey::name() const { return hex(std::span(digest).first(kNameLength / 2)); }

bool is_kept_name(std::string_view name) {
  return name.size() == KeptKey::kNameLength &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// The first line changes where the meaning of the others, or of the files, does.
KeyWriter::KeyWriter() : text_("kept=1\n") {}

KeyWriter& KeyWriter::add(std::string_view name, std::string_view value) {
  text_ += name;
  text_ += '=';
  // A value is one line, so that no two lists of things make one text.
  for (const char c : value) {
    if (c == '\\' || c == '\n') {
      text_ += '\\';
    }
    text_ += c == '\n' ? 'n' : c;
  }
  text_ += '\n';
  return *this;
}

KeyWriter& KeyWriter::add_sources(std::span<const Identity> sources) {
  is_known_ = is_known_ && std::all_of(sources.begin(), sources.end(),
                                       [](const Identity& source) { return source.exists(); });
  add("sources", std::to_string(sources.size()));
  if (sources.size() <= kMostListedSources) {
    for (const Identity& source : sources) {
      add("source", source.text());
    }
    return *this;
  }
  std::string all;
  for (const Identity& source : sources) {
    all += source.text();
    all += '\n';
  }
  return add("sources.sha256", hex(sha256(all)));
}

std::optional<KeptKey> KeyWriter::finish(std::string label) const {
  if (!is_known_) {
    return std::nullopt;
  }
  return KeptKey{text_, std::move(label), sha256(text_)};
}

}  // namespace npyfs

// SPDX-License-Identifier: Apache-2.0

#include "formats/kept_page.h"

namespace npyfs {

std::optional<PageKey> page_key(std::string_view kind, std::span<const SourcePtr> sources,
                                const OpenContext& context) {
  if (context.index == nullptr) {
    return std::nullopt;
  }
  PageKey key;
  key.add(kind);
  key.add(context.permissive ? "permissive" : "");
  key.add(context.verifier->verifies() ? "verified" : "");
  for (const auto& [name, value] : context.decode) {
    key.add(name);
    key.add(value);
  }
  key.add("");
  for (const auto& [name, values] : context.options) {
    key.add(name);
    for (const std::string& value : values) {
      key.add(value);
    }
    key.add("");
  }
  key.add("");
  for (const SourcePtr& source : sources) {
    if (!key.add_source(*source)) {
      return std::nullopt;
    }
  }
  return key;
}

OpenContext ScanWarnings::noting(const OpenContext& context) {
  OpenContext noting = context;
  noting.warn = [this, &context](const std::string& text) {
    texts_.push_back(text);
    if (context.warn) {
      context.warn(text);
    }
  };
  return noting;
}

void ScanWarnings::write(PageWriter& page) const {
  page.number(texts_.size());
  for (const std::string& text : texts_) {
    page.text(text);
  }
}

ScanWarnings ScanWarnings::read(PageReader& page) {
  ScanWarnings warnings;
  for (std::uint64_t left = page.number(); left > 0; --left) {
    warnings.texts_.push_back(page.text());
  }
  return warnings;
}

void ScanWarnings::tell(const OpenContext& context) const {
  for (const std::string& text : texts_) {
    if (context.warn) {
      context.warn(text);
    }
  }
}

}  // namespace npyfs

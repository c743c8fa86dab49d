// SPDX-License-Identifier: Apache-2.0

#include "formats/kept_page.h"

#include <string>

namespace npyfs {

PageKey page_key_of(const OpenContext& context) {
  PageKey key;
  key.add(context.permissive ? "permissive" : "");
  key.add(context.verifier->verifies() ? "verified" : "");
  key.add(std::to_string(context.decode.size()));
  for (const auto& [name, value] : context.decode) {
    key.add(name);
    key.add(value);
  }
  key.add(std::to_string(context.options.size()));
  for (const auto& [name, values] : context.options) {
    key.add(name);
    key.add(std::to_string(values.size()));
    for (const std::string& value : values) {
      key.add(value);
    }
  }
  return key;
}

std::optional<PageKey> page_key(std::string_view kind, std::span<const SourcePtr> sources,
                                const OpenContext& context) {
  if (context.index == nullptr) {
    return std::nullopt;
  }
  PageKey key = page_key_of(context);
  key.add(kind);
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

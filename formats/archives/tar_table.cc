// SPDX-License-Identifier: Apache-2.0

#include "formats/archives/tar_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "formats/bytes/unpack.h"
#include "formats/bytes/zero_source.h"
#include "formats/column.h"
#include "formats/record_table.h"

namespace npyfs {

namespace {

// A file name has at most 255 bytes; the rest is for what npyfs appends to the extension.
constexpr std::size_t kMostExtensionNbytes = 200;

// Which of them is x where several are there.
constexpr std::array<std::string_view, 17> kMainExtensions = {
    "npy", "wav",  "flac", "ogg",  "opus", "mp3", "m4a",    "wma", "aac",
    "jpg", "jpeg", "png",  "webp", "pyd",  "pkl", "pickle", "bin"};

// The members of one extension, or of several that are one field: a sample has at most one of them.
class PartColumn : public ByteColumn {
 public:
  PartColumn(std::shared_ptr<const TarIndex> index, std::vector<const TarPart*> parts,
             bool stripped)
      : index_(std::move(index)), parts_(std::move(parts)), stripped_(stripped) {}

  std::uint64_t size() const override { return index_->size(); }

  bool locate(std::uint64_t record, std::vector<Extent>& out) const override {
    out.clear();
    for (const TarPart* part : parts_) {
      if (const auto ordinal = part->find(record)) {
        locate_member(*part, record, *ordinal, out);
        return true;
      }
    }
    return false;
  }

  std::optional<std::uint64_t> equal_nbytes() const override {
    if (parts_.size() == 1 && parts_[0]->records.empty() && places_of(*parts_[0]).equal() &&
        size() > 0) {
      return places_of(*parts_[0])[0].nbytes;
    }
    return std::nullopt;
  }

 private:
  const ExtentColumn& places_of(const TarPart& part) const {
    return stripped_ && part.any_stripped ? part.stripped : part.places;
  }

  void locate_member(const TarPart& part, std::uint64_t record, std::uint64_t ordinal,
                     std::vector<Extent>& out) const {
    const auto place = places_of(part)[ordinal];
    const ByteSource& source = index_->source_of(record);
    const TarPart::Sparse* sparse = part.sparse.empty() ? nullptr : part.find_sparse(ordinal);
    if (sparse == nullptr) {
      out.push_back({&source, place.offset, place.nbytes});
      return;
    }
    std::uint64_t at = 0;
    std::uint64_t stored_at = place.offset;
    const auto add_hole = [&](std::uint64_t end) {
      if (at < end) {
        out.push_back({&zero_source(), at, end - at});
      }
    };
    for (const SparsePiece& piece : sparse->pieces) {
      add_hole(piece.offset);
      if (piece.nbytes > 0) {
        out.push_back({&source, stored_at, piece.nbytes});
      }
      stored_at += piece.nbytes;
      at = piece.offset + piece.nbytes;
    }
    add_hole(place.nbytes);
  }

  std::shared_ptr<const TarIndex> index_;
  std::vector<const TarPart*> parts_;
  bool stripped_;
};

// What of an extension ("left.npy") is the name of its field and the kind of its payload.
struct PartName {
  std::string_view stem;  // "left"; empty: not a compound extension
  std::string_view kind;  // "npy"
};

PartName name_of(std::string_view extension) {
  const std::size_t dot = extension.rfind('.');
  if (dot == std::string_view::npos) {
    return {{}, extension};
  }
  return {extension.substr(0, dot), extension.substr(dot + 1)};
}

std::string plain_name(std::string_view extension) {
  const PartName part = name_of(extension);
  const bool named = part.kind == "npy" && !part.stem.empty();
  std::string name(named ? part.stem : extension);
  std::replace(name.begin(), name.end(), '.', '_');
  return name.empty() ? "_" : name;
}

// 0 for the kind that is x before all others.
std::optional<int> main_place(std::string_view kind) {
  const auto at = std::find(kMainExtensions.begin(), kMainExtensions.end(), kind);
  return at == kMainExtensions.end()
             ? std::nullopt
             : std::optional(static_cast<int>(at - kMainExtensions.begin()));
}

// What names the field itself comes before what it is.
constexpr int kUnnamed = 1000;

std::optional<Field::Bid> bid_of(std::string_view extension) {
  const PartName part = name_of(extension);
  const std::string otherwise = plain_name(extension);
  const int any_kind = static_cast<int>(kMainExtensions.size());
  if (part.stem == "x" || part.stem == "y") {
    return Field::Bid{std::string(part.stem), main_place(part.kind).value_or(any_kind), otherwise};
  }
  if (!part.stem.empty()) {
    return std::nullopt;
  }
  if (const auto place = main_place(part.kind)) {
    return Field::Bid{"x", kUnnamed + *place, otherwise};
  }
  if (part.kind == "cls" || part.kind == "label") {
    return Field::Bid{"y", kUnnamed + (part.kind == "cls" ? 0 : 1), otherwise};
  }
  return std::nullopt;
}

class TarTable : public RecordTable {
 public:
  TarTable(std::shared_ptr<const TarIndex> index, std::vector<SourcePtr> more_sources,
           const std::function<void(const std::string&)>& warn)
      : index_(std::move(index)), sources_(std::move(more_sources)) {
    sources_.insert(sources_.begin(), index_->sources.begin(), index_->sources.end());
    std::vector<const TarPart*> audio;
    for (const TarPart& part : index_->parts) {
      if (part.extension.size() > kMostExtensionNbytes) {
        if (warn) {
          warn(file_error(ErrorKind::kUnsupported, sources_.front()->name(),
                          fmt::format("the extension '{}...' has {} bytes, expected at most {}, "
                                      "as it names files; the field is left out",
                                      printable(std::string_view(part.extension).substr(0, 40)),
                                      part.extension.size(), kMostExtensionNbytes))
                   .what());
        }
        continue;
      }
      stored_.push_back({part.extension, column({&part}, false)});
      if (index_->grouping == TarGrouping::kWenet && is_wenet_audio(part.extension)) {
        audio.push_back(&part);
      } else {
        add_field(part.extension, std::string(name_of(part.extension).kind), {&part});
      }
    }
    if (!audio.empty()) {
      add_field("wav", audio.size() == 1 ? audio.front()->extension : "", audio);
    }
    settle_bids(fields_);
    settle_names(warn);
  }

  std::uint64_t size() const override { return index_->size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  const std::vector<StoredUnit>& stored() const override { return stored_; }
  std::vector<SourcePtr> sources() const override { return sources_; }
  KeyKind key_kind() const override { return KeyKind::kText; }
  std::string_view text_key(std::uint64_t record) const override { return index_->keys[record]; }

 private:
  std::shared_ptr<const ByteColumn> column(std::vector<const TarPart*> parts, bool stripped) const {
    return std::make_shared<PartColumn>(index_, std::move(parts), stripped);
  }

  void add_field(const std::string& extension, const std::string& payload,
                 std::vector<const TarPart*> parts) {
    Field field;
    field.name = plain_name(extension);
    field.extension = payload;
    field.bytes = column(std::move(parts), true);
    field.bid = bid_of(extension);
    fields_.push_back(std::move(field));
    extensions_.push_back(extension);
  }

  // If two extensions make one name ("l.png", "l_png"), the second gets a number.
  void settle_names(const std::function<void(const std::string&)>& warn) {
    std::map<std::string, std::size_t> taken;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      taken.emplace(fields_[i].name, i);
    }
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const std::string name = fields_[i].name;
      const std::size_t first = taken.at(name);
      if (first == i) {
        continue;
      }
      for (int number = 2; taken.contains(fields_[i].name); ++number) {
        fields_[i].name = fmt::format("{}_{}", name, number);
      }
      taken.emplace(fields_[i].name, i);
      if (warn) {
        warn(file_error(ErrorKind::kUnsupported, sources_.front()->name(),
                        fmt::format("the extensions '{}' and '{}' both make a field '{}', expected "
                                    "names of their own; the second is '{}'",
                                    printable(extensions_[first]), printable(extensions_[i]),
                                    printable(name), printable(fields_[i].name)))
                 .what());
      }
    }
  }

  std::shared_ptr<const TarIndex> index_;
  std::vector<SourcePtr> sources_;
  std::vector<Field> fields_;
  std::vector<std::string> extensions_;  // of the fields
  std::vector<StoredUnit> stored_;
};

bool is_empty_archive(const ByteSource& source) {
  std::array<std::byte, kTarBlock> block{};
  if (source.nbytes() < kTarBlock) {
    return false;
  }
  source.read_at(0, block);
  return TarHeader(block).all_zero();
}

}  // namespace

std::shared_ptr<const RecordTable> make_tar_table(
    TarIndex index, std::vector<SourcePtr> more_sources,
    const std::function<void(const std::string&)>& warn) {
  return std::make_shared<TarTable>(std::make_shared<const TarIndex>(std::move(index)),
                                    std::move(more_sources), warn);
}

SourcePtr open_tar_source(SourcePtr shard, OpenContext& context) {
  if (find_packing(*shard) == nullptr) {
    return shard;
  }
  UnpackOptions options;
  options.permissive = context.permissive;
  options.warn = context.warn;
  options.index = context.index;
  if (context.unpack_pool != nullptr) {
    options.pool = context.unpack_pool;
  }
  return open_unpacked(std::move(shard), *context.cache, options);
}

bool looks_like_tar(const ByteSource& source) {
  std::vector<std::byte> head(std::min<std::uint64_t>(source.nbytes(), kTarBlock));
  source.read_at(0, head);
  return is_tar_header(head) || is_tar_header(unpack_head(source, kTarBlock));
}

void require_tar(const ByteSource& source) {
  std::vector<std::byte> head(std::min<std::uint64_t>(source.nbytes(), kTarBlock));
  source.read_at(0, head);
  if (!is_tar_header(head) && !is_empty_archive(source)) {
    throw corrupt_at(source.name(), 0,
                     head.empty() ? "the file is empty, expected a tar archive (an empty one has "
                                    "two blocks of zeroes)"
                                  : "the first block is no header whose checksum holds, expected a "
                                    "tar archive; the file is damaged or none");
  }
}

}  // namespace npyfs

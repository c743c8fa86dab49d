// SPDX-License-Identifier: Apache-2.0

#include "formats/kaldi/data_dir.h"

#include <fmt/format.h>

#include "formats/bytes/key_order.h"
#include "formats/kaldi/ark.h"
#include "formats/kaldi/scp.h"
#include "formats/kaldi/segments.h"
#include "formats/table_overlay.h"

namespace npyfs {

namespace {

// The words said of each of `keys`; none where the file lacks one.
ObjectIndex words_for(const StringList& keys, const SourcePtr& file, OpenContext& context) {
  const std::string& path = file->name();
  const ObjectIndex words = read_ark(file, *parse_wanted("tokens"), context);
  const auto rows = match_keys(keys, words.keys, path);
  ObjectIndex chosen;
  chosen.sources = words.sources;
  chosen.objects.reserve(rows.size());
  std::uint64_t missing = 0;
  for (std::uint64_t record = 0; record < rows.size(); ++record) {
    Object object;
    if (rows[record] != kNoRow) {
      object = words.objects[rows[record]];
    } else {
      object.kind = ObjectKind::kTokens;
      object.text = true;
      if (++missing == 1) {
        context.warn(file_error(ErrorKind::kCorrupt, path,
                                fmt::format("it lacks record {} (key {}); its text is left empty, "
                                            "as is that of every record it lacks",
                                            record, printable(keys[record])))
                         .what());
      }
    }
    chosen.objects.push_back(object);
  }
  return chosen;
}

// The directory's own files may be links that lead out of it.
class DirFiles {
 public:
  DirFiles(const std::string& path, const OpenContext& context)
      : context_(context), storage_(context.storage(path)) {}

  // Null where there is none. Throws as Storage::open.
  SourcePtr open(const char* name) const {
    switch (storage_->kind_of(name)) {
      case Storage::Kind::kNone:
        return nullptr;
      case Storage::Kind::kFile:
        return storage_->open(name);
      case Storage::Kind::kFolder:
      case Storage::Kind::kDeadLink:
      case Storage::Kind::kOther:
        break;
    }
    context_.warn(fmt::format("{}: left out, as it leads to no regular file",
                              printable(storage_->name_of(name))));
    return nullptr;
  }

 private:
  const OpenContext& context_;
  StoragePtr storage_;
};

ObjectIndex read_main(const std::string& path, const DirFiles& files, const Wanted& wanted,
                      OpenContext& context) {
  if (const SourcePtr feats = files.open("feats.scp")) {
    return read_scp(feats, path, wanted, context);
  }
  const SourcePtr wav = files.open("wav.scp");
  if (wav == nullptr) {
    throw file_error(ErrorKind::kUnsupported, path,
                     "it has neither feats.scp nor wav.scp, expected one of them");
  }
  ObjectIndex recordings = read_scp(wav, path, wanted, context);
  const SourcePtr segments = files.open("segments");
  return segments != nullptr ? cut_segments(segments, std::move(recordings), context)
                             : std::move(recordings);
}

}  // namespace

bool is_data_dir(const std::string& path) {
  const StoragePtr storage = open_storage(path);
  return storage->has_file("feats.scp") || storage->has_file("wav.scp");
}

std::shared_ptr<const RecordTable> open_data_dir(const std::string& path, OpenContext& context) {
  const auto wanted = parse_wanted(context.decode_kind("x"));
  const DirFiles files(path, context);
  ObjectIndex main = read_main(path, files, wanted.value_or(Wanted{}), context);
  StringList keys;  // of their own: the table takes the others
  for (std::uint64_t record = 0; record < main.keys.size(); ++record) {
    keys.append(main.keys[record]);
  }
  const std::string keys_of = main.more_sources.back()->name();  // the script or the segments
  auto table = std::make_shared<TableOverlay>(make_kaldi_table(std::move(main)));
  std::vector<Field> fields = table->fields();
  for (const char* name : {"text", "utt2spk"}) {
    if (const SourcePtr file = files.open(name)) {
      require_unique(keys, keys_of);
      TablePtr words = make_kaldi_table(words_for(keys, file, context));
      fields.push_back(words->fields().front());
      fields.back().name = name;
      table->add_source_table(std::move(words));
    }
  }
  table->set_fields(std::move(fields));
  return table;
}

}  // namespace npyfs

// SPDX-License-Identifier: Apache-2.0

#include "formats/das/das.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "formats/bytes/error.h"
#include "formats/bytes/storage.h"
#include "formats/das/annotations.h"
#include "formats/das/attributes.h"
#include "formats/das/label_grid.h"
#include "formats/das/recording.h"
#include "formats/das/sample_types.h"
#include "formats/store.h"

namespace npyfs {

namespace {

constexpr std::string_view kAnnotations = "_annotations.csv";
constexpr const char* kNoise = "noise";
constexpr const char* kDefaultSplit = "train";

std::string_view stem(std::string_view name) { return name.substr(0, name.find_last_of('.')); }

std::string annotations_of(std::string_view recording) {
  return std::string(stem(recording)) + std::string(kAnnotations);
}

// The files of a folder that belong together.
struct Listing {
  std::vector<std::string> recordings;  // those with annotations, by name
  std::vector<std::string> unannotated;
  std::vector<std::string> unrecorded;  // annotations without a recording
  bool has_folders = false;
};

Listing list_recordings(const Storage& storage) {
  Listing listing;
  std::set<std::string> annotations;
  std::vector<std::string> recordings;
  for (const Storage::Entry& entry : storage.list("")) {
    listing.has_folders |= entry.kind == Storage::Kind::kFolder;
    if (entry.kind != Storage::Kind::kFile) {
      continue;
    }
    if (entry.name.ends_with(kAnnotations)) {
      annotations.insert(entry.name);
    } else if (is_recording_name(entry.name)) {
      recordings.push_back(entry.name);
    }
  }
  std::set<std::string> used;
  for (const std::string& name : recordings) {
    const std::string annotated = annotations_of(name);
    const bool there = annotations.count(annotated) != 0;
    (there ? listing.recordings : listing.unannotated).push_back(name);
    if (there && !used.insert(annotated).second) {
      throw file_error(ErrorKind::kUnsupported, storage.name_of(name),
                       fmt::format("{} belongs to two recordings, expected one: .wav or .npz",
                                   printable(annotated)));
    }
  }
  std::set_difference(annotations.begin(), annotations.end(), used.begin(), used.end(),
                      std::back_inserter(listing.unrecorded));
  return listing;
}

// A recording and what is heard in it.
struct Session {
  Recording recording;
  SourcePtr annotations_file;
  std::vector<Annotation> annotations;
};

// What the rows say of a class; a row that marks something knows better than one that does not.
struct ClassType {
  bool is_event = false;
  bool from_mark = false;
};

class SetBuilder {
 public:
  SetBuilder(std::vector<Session> sessions, std::string split, const OpenContext& context)
      : sessions_(std::move(sessions)), split_(std::move(split)), context_(context) {}

  StorePtr build() {
    check_rates();
    choose_classes();
    auto store = std::make_shared<Store>();
    const std::string split = split_.empty() ? kDefaultSplit : split_;
    Group* group = &store->root;
    if (split_.empty()) {
      group = &store->root.groups.emplace_back();
      group->name = split;
    }
    group->arrays.push_back(make_audio());
    group->arrays.push_back(make_labels());
    store->root.attributes = make_attributes(split);
    store->sources = {sessions_.front().recording.file};
    return store;
  }

 private:
  void check_rates() const {
    const Recording& first = sessions_.front().recording;
    for (const Session& session : sessions_) {
      const Recording& own = session.recording;
      if (own.rate_hz != first.rate_hz) {
        throw file_error(ErrorKind::kUnsupported, own.file->name(),
                         fmt::format("its sample rate is {} Hz, expected the {} Hz of {}; give it "
                                     "to a mount of its own",
                                     own.rate_hz, first.rate_hz, printable(first.name)));
      }
      if (own.channels != first.channels) {
        throw file_error(ErrorKind::kUnsupported, own.file->name(),
                         fmt::format("it has {} channels, expected the {} of {}", own.channels,
                                     first.channels, printable(first.name)));
      }
    }
  }

  // All names there are, in order, or those of --class-names.
  void choose_classes() {
    std::map<std::string, ClassType> found;
    for (const Session& session : sessions_) {
      for (const Annotation& row : session.annotations) {
        const auto [at, is_new] = found.try_emplace(row.name);
        if (is_new || (row.marks() && !at->second.from_mark)) {
          at->second = {row.is_event(), row.marks()};
        }
      }
    }
    found.erase(kNoise);  // whatever is not marked as another class
    const auto given = context_.options.find("class-names");
    if (given != context_.options.end()) {
      take_given_names(given->second, found);
    } else {
      for (const auto& [name, type] : found) {
        classes_.push_back(name);
        is_event_.push_back(type.is_event);
      }
    }
  }

  void take_given_names(const std::vector<std::string>& given,
                        const std::map<std::string, ClassType>& found) {
    for (const std::string& name : given) {
      if (name != kNoise) {
        const auto at = found.find(name);
        classes_.push_back(name);
        is_event_.push_back(at != found.end() && at->second.is_event);
      }
    }
    for (const auto& [name, type] : found) {
      if (std::find(classes_.begin(), classes_.end(), name) == classes_.end()) {
        context_.warn(
            fmt::format("class {} is annotated in {} but not among --class-names; it is "
                        "left out of y",
                        printable(name),
                        printable(split_.empty() ? sessions_.front().recording.name : split_)));
      }
    }
  }

  StoredArray make_audio() const {
    DType dtype = sessions_.front().recording.dtype;
    for (const Session& session : sessions_) {
      const auto both = promoted_type(dtype, session.recording.dtype);
      if (!both) {
        throw file_error(ErrorKind::kUnsupported, session.recording.file->name(),
                         fmt::format("its samples are {}, which do not go with {} before",
                                     session.recording.dtype.text(), dtype.text()));
      }
      dtype = *both;
    }
    StoredArray audio;
    audio.name = "x";
    for (const Session& session : sessions_) {
      audio.parts.emplace_back(make_audio_grid(session.recording, dtype));
      audio.sources.push_back(session.recording.file);
    }
    return audio;
  }

  StoredArray make_labels() const {
    std::map<std::string_view, std::size_t> column;
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      column.emplace(classes_[i], i);
    }
    StoredArray labels;
    labels.name = "y";
    std::vector<MarkedFrames> marked(classes_.size());
    std::uint64_t begin = 0;
    for (const Session& session : sessions_) {
      const Recording& recording = session.recording;
      for (const Annotation& row : session.annotations) {
        const auto found = column.find(row.name);
        if (row.marks() && found != column.end()) {
          const FrameRange range = marked_frames(row, recording.rate_hz, recording.frames);
          marked[found->second].add(begin + range.begin, begin + range.end);
        }
      }
      begin += recording.frames;
      labels.sources.push_back(session.annotations_file);
      labels.sources.push_back(recording.file);
    }
    for (MarkedFrames& frames : marked) {
      frames.merge();
    }
    labels.parts.emplace_back(make_label_grid(std::move(marked), begin));
    return labels;
  }

  Dict make_attributes(const std::string& split) const {
    List names{Value{std::string(kNoise)}};
    List types{Value{std::string("segment")}};
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      names.push_back(Value{classes_[i]});
      types.push_back(Value{std::string(is_event_[i] ? "event" : "segment")});
    }
    List files;
    List starts;
    List ends;
    std::uint64_t begin = 0;
    for (const Session& session : sessions_) {
      files.push_back(Value{session.recording.name});
      starts.push_back(Value{static_cast<std::int64_t>(begin)});
      begin += session.recording.frames;
      ends.push_back(Value{static_cast<std::int64_t>(begin)});
    }
    Dict attributes;
    attributes.push_back({kSampleRate, Value{sessions_.front().recording.rate_hz}});
    attributes.push_back({kLabelRate, Value{sessions_.front().recording.rate_hz}});
    attributes.push_back({kClassNames, Value{std::move(names)}});
    attributes.push_back({kClassTypes, Value{std::move(types)}});
    attributes.push_back({kFileNames + split, Value{std::move(files)}});
    attributes.push_back({kStartSamples + split, Value{std::move(starts)}});
    attributes.push_back({kEndSamples + split, Value{std::move(ends)}});
    return attributes;
  }

  std::vector<Session> sessions_;
  std::string split_;
  const OpenContext& context_;
  std::vector<std::string> classes_;  // without noise
  std::vector<bool> is_event_;
};

Session open_session(SourcePtr recording, SourcePtr annotations, OpenContext& context) {
  Session session;
  session.annotations = read_annotations(*annotations);
  session.annotations_file = std::move(annotations);
  session.recording = open_recording(std::move(recording), context);
  const auto backwards = std::find_if(
      session.annotations.begin(), session.annotations.end(),
      [](const Annotation& row) { return row.marks() && row.stop_seconds < row.start_seconds; });
  if (backwards != session.annotations.end()) {
    context.warn(
        fmt::format("{}: line {}: stop_seconds is {}, before start_seconds {}; such rows "
                    "mark nothing",
                    printable(session.annotations_file->name()), backwards->line,
                    backwards->stop_seconds, backwards->start_seconds));
  }
  return session;
}

void warn_of(const Storage& storage, const std::vector<std::string>& names, const char* why,
             const OpenContext& context) {
  if (!names.empty()) {
    context.warn(fmt::format(
        "{}: left out, as {}{}", printable(storage.name_of(names.front())), why,
        names.size() > 1 ? fmt::format(" (and {} more)", names.size() - 1) : std::string()));
  }
}

StorePtr open_folder(const Location& location, OpenContext& context) {
  const StoragePtr storage = context.storage(location.path);
  const Listing listing = list_recordings(*storage);
  if (listing.recordings.empty()) {
    const std::string found =
        !listing.unannotated.empty()
            ? fmt::format("; {} has no annotations beside it", printable(listing.unannotated[0]))
        : !listing.unrecorded.empty()
            ? fmt::format("; {} has no recording beside it", printable(listing.unrecorded[0]))
            : std::string();
    throw file_error(ErrorKind::kNotFound, location.path,
                     fmt::format("the directory holds no recording, expected NAME.wav or NAME.npz "
                                 "and NAME_annotations.csv{}",
                                 found));
  }
  warn_of(*storage, listing.unannotated, "it has no annotations beside it", context);
  warn_of(*storage, listing.unrecorded, "its recording is not there", context);
  std::vector<Session> sessions;
  for (const std::string& name : listing.recordings) {
    sessions.push_back(
        open_session(storage->open(name), storage->open(annotations_of(name)), context));
  }
  return SetBuilder(std::move(sessions), location.split, context).build();
}

StorePtr open_file(const Location& location, OpenContext& context) {
  const std::string annotations = annotations_of(location.path);
  SourcePtr annotations_file = context.open_beside(annotations);
  if (annotations_file == nullptr) {
    throw file_error(ErrorKind::kNotFound, location.path,
                     fmt::format("the recording has no annotations beside it, expected {}",
                                 printable(annotations)));
  }
  std::vector<Session> sessions;
  sessions.push_back(open_session(location.source, std::move(annotations_file), context));
  return SetBuilder(std::move(sessions), location.split, context).build();
}

bool recognises(const Location& location) {
  if (!location.is_directory) {
    return location.named && is_recording_name(location.path);
  }
  try {
    const Listing listing = list_recordings(*open_storage(location.path));
    // Accepts a flat folder, so that open_store can explain what is missing.
    return !listing.recordings.empty() || (location.named && !listing.has_folders);
  } catch (const Error&) {
    return location.named;  // what is wrong open_store says
  }
}

StorePtr open_store(const Location& location, OpenContext& context) {
  return location.is_directory ? open_folder(location, context) : open_file(location, context);
}

}  // namespace

const Format kDas = {.name = "das",
                     .recognises = recognises,
                     .open_store = open_store,
                     .row_attributes = &kDasAttributes};

}  // namespace npyfs

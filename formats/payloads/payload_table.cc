// SPDX-License-Identifier: Apache-2.0

#include "formats/payloads/payload_table.h"

#include <algorithm>
#include <cctype>

#include "formats/extents.h"
#include "formats/payloads/pickle_fields.h"

namespace npyfs {

namespace {

const Payload* find_magic(std::span<const std::byte> head) {
  constexpr std::size_t kFormOffset = 8;
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const auto fits = [&](const Payload::Magic& magic) {
    return text.starts_with(magic.begin) &&
           (magic.form.empty() ||
            (text.size() >= kFormOffset && text.substr(kFormOffset).starts_with(magic.form)));
  };
  for (const Payload& payload : payloads()) {
    if (std::any_of(payload.magics.begin(), payload.magics.end(), fits)) {
      return &payload;
    }
  }
  return nullptr;
}

}  // namespace

std::span<const Payload> payloads() {
  static const std::vector<Payload> rows = {
      {.name = "npy", .extensions = {"npy"}, .magics = {{"\x93NUMPY"}}, .make = make_npy_column},
      {.name = "jpg",
       .extensions = {"jpg", "jpeg"},
       .magics = {{"\xff\xd8\xff"}},
       .make = make_image_column,
       .is_image = true},
      {.name = "png",
       .extensions = {"png"},
       .magics = {{"\x89PNG\r\n\x1a\n"}},
       .make = make_image_column,
       .is_image = true},
      {.name = "webp",
       .extensions = {"webp"},
       .magics = {{"RIFF", "WEBP"}},
       .make = make_image_column,
       .is_image = true},
      {.name = "wav",
       .extensions = {"wav"},
       .magics = {{"RIFF", "WAVE"}, {"RIFX", "WAVE"}, {"RF64", "WAVE"}, {"BW64", "WAVE"}},
       .make = make_audio_column},
      {.name = "flac", .extensions = {"flac"}, .magics = {{"fLaC"}}, .make = make_audio_column},
      {.name = "ogg",
       .extensions = {"ogg", "oga", "opus"},
       .magics = {{"OggS"}},
       .make = make_audio_column},
      {.name = "mp3", .extensions = {"mp3"}, .magics = {{"ID3"}}, .make = make_audio_column},
      {.name = "cls", .extensions = {"cls", "id", "index", "label"}, .make = make_integer_column},
      {.name = "txt",
       .extensions = {"txt", "text"},
       .make = make_text_column,
       .may_be_empty = true},
      {.name = "json", .extensions = {"json"}, .make = make_text_column, .may_be_empty = true},
      {.name = "pickle",
       .extensions = {"pyd", "pkl", "pickle"},
       .is_fields = is_pickled,
       .make_fields = make_pickle_fields},
  };
  return rows;
}

const Payload* payload_of_extension(std::string_view extension) {
  std::string lower(extension);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Payload& payload : payloads()) {
    const auto& known = payload.extensions;
    if (std::find(known.begin(), known.end(), lower) != known.end()) {
      return &payload;
    }
  }
  return nullptr;
}

const Payload* find_payload(const Field& field, std::uint64_t record) {
  return field.extension.empty() ? find_magic(read_head(*field.bytes, record, kMagicNbytes))
                                 : payload_of_extension(field.extension);
}

const Payload* find_fields_payload(const Field& field, std::uint64_t record) {
  const std::span<const Payload> all = payloads();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Payload& payload) {
    return payload.is_fields != nullptr && payload.is_fields(field, record);
  });
  return found != all.end() ? &*found : nullptr;
}

bool is_image(std::span<const std::byte> head) {
  const Payload* payload = find_magic(head);
  return payload != nullptr && payload->is_image;
}

std::string_view extension_by_magic(std::span<const std::byte> head) {
  const Payload* payload = find_magic(head);
  return payload != nullptr ? payload->name : "bin";
}

}  // namespace npyfs

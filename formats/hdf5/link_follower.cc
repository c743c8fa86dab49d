// SPDX-License-Identifier: Apache-2.0

#include "formats/hdf5/link_follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats/hdf5/superblock.h"

namespace npyfs {

namespace {

constexpr std::size_t kMostLinksInARow = 16;
// Links of one small file may fan out into more than could ever be followed.
constexpr std::size_t kMostDescribed = 20'000;

}  // namespace

LinkFollower::VisitScope::VisitScope(LinkFollower& links, Visit visit) : visits_(links.visits_) {
  if (std::find(visits_.begin(), visits_.end(), visit) != visits_.end()) {
    throw Error(ErrorKind::kUnsupported, "it leads back to itself, in a loop of links");
  }
  if (visits_.size() > kMostLinksInARow) {
    throw Error(ErrorKind::kUnsupported,
                fmt::format("more than {} links between files, or arrays made of others, lead "
                            "from one to the next",
                            kMostLinksInARow));
  }
  visits_.push_back(std::move(visit));
}

GroupDescription LinkFollower::describe(const LinkedFile& file, const std::string& path) {
  const std::string& name = file.source()->name();
  if (++described_ > kMostDescribed) {
    is_exhausted_ = true;
    throw file_error(ErrorKind::kTooLarge, name,
                     fmt::format("more than {} links have been followed", kMostDescribed));
  }
  file.source()->check_unchanged();
  WireFrameWriter request(FrameKind::kDescribe);
  request.add_text(path);
  DescriptionReader reader(name, budget_);
  try {
    file.process->ask(request, files_.end(),
                      [&](const WireFrame& frame) { return reader.add(frame); });
  } catch (const Error& error) {
    is_exhausted_ = error.kind() == ErrorKind::kTooLarge || files_.is_late();
    throw;
  }
  for (const std::string& warning : reader.warnings()) {
    warn_(fmt::format("{}: {}", printable(name), printable(warning)));
  }
  return reader.take();
}

// That it is cut explains whatever else is wrong with it.
GroupDescription LinkFollower::describe_root(const LinkedFile& file) {
  try {
    return describe(file, "/");
  } catch (const Error& error) {
    const ByteSource& source = *file.source();
    const auto signature = find_signature(source);
    const auto superblock = signature ? read_superblock(source, *signature) : std::nullopt;
    if (error.kind() != ErrorKind::kCorrupt || !superblock || superblock->end <= source.nbytes()) {
      throw;
    }
    throw corrupt_at(source.name(), source.nbytes(),
                     fmt::format("the file ends here, expected {} bytes, as its superblock says; "
                                 "it is cut short: copy it again",
                                 superblock->end));
  }
}

LinkFollower::Found LinkFollower::find_object(LinkedFile& file, const std::string& path) {
  const VisitScope scope(*this, {&file, path, Visit::kLink});
  GroupDescription described = describe(file, path);
  if (described.links.empty()) {
    return {&file, path, std::move(described)};
  }
  const ExternalLinkDescription& link = described.links.front();
  return find_object(files_.find(file, link.file), link.path);
}

void LinkFollower::require_lenient(const Error& error) const {
  if (error.kind() == ErrorKind::kChanged || error.kind() == ErrorKind::kIo || is_exhausted_ ||
      files_.is_full()) {
    throw;
  }
}

}  // namespace npyfs

// SPDX-License-Identifier: Apache-2.0
//
// Places with names in them, folders and archives: what lies there, where links may lead, what
// counts as the same.

#include "formats/bytes/storage.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "formats/bytes/error.h"
#include "formats/bytes/zip_storage.h"
#include "tests/formats/records.h"
#include "tests/support/descriptors.h"
#include "tests/support/fake_table.h"
#include "tests/support/one_chunk_cache.h"
#include "tests/support/zip_writer.h"

namespace npyfs {
namespace {

namespace fs = std::filesystem;
using testing::FakeSource;
using testing::OneChunkCache;
using testing::refusal_of;
using ::testing::Test;
using testing::write_file;
using testing::ZipWriter;
using Kind = Storage::Kind;

std::string listed(const Storage& storage, const std::string& prefix) {
  std::string text;
  for (const Storage::Entry& entry : storage.list(prefix)) {
    text += entry.name;
    text += entry.kind == Kind::kFolder     ? "/ "
            : entry.kind == Kind::kFile     ? " "
            : entry.kind == Kind::kDeadLink ? "! "
                                            : "? ";
  }
  return text;
}

std::string value_of(const Storage& storage, const std::string& key,
                     const Expected& expected = {}) {
  const auto value = storage.open_value(key, expected);
  if (value == nullptr) {
    return "none";
  }
  std::string bytes(value->nbytes(), '\0');
  value->read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

// set/ with links that lead to outside/.
class FolderTest : public Test {
 protected:
  void SetUp() override {
    fs::create_directories(set_ + "/in");
    fs::create_directories(scratch_ / "outside/in");
    write_file(set_ + "/own", "own");
    write_file(set_ + "/in/deep", "deeper");
    write_file(set_ + "/.hidden", "");
    write_file(scratch_ / "outside/secret", "secret");
    fs::create_symlink(scratch_ / "outside/secret", set_ + "/linked");
    fs::create_symlink(scratch_ / "outside", set_ + "/out");
    fs::create_symlink("nothing", set_ + "/dead");
    fs::create_symlink("..", set_ + "/in/round");
    ::mkfifo((set_ + "/pipe").c_str(), 0600);
  }
  StoragePtr confined(const std::vector<std::string>& folders) const {
    return open_storage(set_, Confinement(folders));
  }

  testing::TemporaryFolder scratch_;
  const std::string set_ = scratch_ / "set";
};

TEST_F(FolderTest, SaysWhatIsThere) {
  const StoragePtr folder = open_storage(set_ + "/");
  EXPECT_EQ(listed(*folder, ""), "dead! in/ linked out/ own pipe? ");
  EXPECT_EQ(listed(*folder, "in"), "deep round/ ");
  EXPECT_EQ(folder->name_of("in/deep"), set_ + "/in/deep");
  EXPECT_EQ(folder->name_of(""), set_);
  EXPECT_EQ(folder->kind_of(""), Kind::kFolder);
  EXPECT_EQ(folder->kind_of("in"), Kind::kFolder);
  EXPECT_EQ(folder->kind_of("own"), Kind::kFile);
  EXPECT_EQ(folder->kind_of("dead"), Kind::kDeadLink);
  EXPECT_EQ(folder->kind_of("pipe"), Kind::kOther);
  EXPECT_EQ(folder->kind_of("none"), Kind::kNone);
  EXPECT_EQ(folder->kind_of("own/none"), Kind::kNone);
  EXPECT_FALSE(folder->has("dead"));
  EXPECT_TRUE(folder->has("pipe"));
  EXPECT_FALSE(folder->has_file("in"));
  EXPECT_TRUE(folder->goes_round("in/round"));
  EXPECT_FALSE(folder->goes_round("in"));
  EXPECT_EQ(folder->find("none"), nullptr);
  EXPECT_EQ(refusal_of([&] { folder->find("dead"); }).kind, ErrorKind::kNotFound);
  EXPECT_EQ(refusal_of([&] { folder->open("pipe"); }).kind, ErrorKind::kUnsupported);
  EXPECT_EQ(refusal_of([&] { folder->list("none"); }).kind, ErrorKind::kNotFound);
  EXPECT_EQ(folder->archive(), nullptr);
  EXPECT_EQ(folder->keys_below(""), std::nullopt);
}

TEST_F(FolderTest, LooksAndOpensAtOnce) {
  const StoragePtr folder = confined({set_});
  const auto own = folder->look_up("own");
  EXPECT_EQ(own.kind, Kind::kFile);
  EXPECT_EQ(read_whole(*own.source, 10), "own");
  for (const auto& [key, kind] : {std::pair("in", Kind::kFolder), std::pair("out", Kind::kFolder),
                                  std::pair("none", Kind::kNone), std::pair("pipe", Kind::kOther),
                                  std::pair("dead", Kind::kDeadLink)}) {
    const auto found = folder->look_up(key);
    EXPECT_EQ(found.kind, kind) << key;
    EXPECT_EQ(found.source, nullptr) << key;
  }
  EXPECT_EQ(refusal_of([&] { folder->look_up("linked"); }).kind, ErrorKind::kUnsupported);
}

TEST_F(FolderTest, APlaceWithinItIsOneToo) {
  const StoragePtr in = open_storage(set_)->below("in");
  EXPECT_EQ(read_whole(*in->open("deep"), 10), "deeper");
  EXPECT_EQ(in->name_of("deep"), set_ + "/in/deep");
  EXPECT_EQ(refusal_of([&] { confined({set_})->below("out"); }).kind, ErrorKind::kUnsupported);
  EXPECT_EQ(refusal_of([&] { confined({set_})->below("none"); }).kind, ErrorKind::kNotFound);
}

TEST_F(FolderTest, WithoutANameItTakesPathsAsTheyAreWritten) {
  const fs::path before = fs::current_path();
  fs::current_path(set_);
  const StoragePtr paths = open_storage("");
  fs::current_path("/");
  EXPECT_EQ(read_whole(*paths->open("in/deep"), 10), "deeper");
  EXPECT_EQ(paths->open("in/deep")->name(), "in/deep");
  EXPECT_EQ(paths->open("in/deep", "other")->name(), "other");
  EXPECT_EQ(paths->open(set_ + "/own")->name(), set_ + "/own");
  fs::current_path(before);
}

TEST_F(FolderTest, LinksLeadNowhereElse) {
  const StoragePtr folder = confined({set_});
  EXPECT_EQ(folder->open("own")->nbytes(), 3U);
  EXPECT_EQ(folder->list("").size(), 6U);
  for (const char* key : {"linked", "out/secret"}) {
    const auto refused = refusal_of([&] { folder->open(key); });
    EXPECT_EQ(refused.kind, ErrorKind::kUnsupported) << key;
    EXPECT_NE(refused.text.find(set_ + "/" + key), std::string::npos) << refused.text;
    EXPECT_EQ(refusal_of([&] { folder->open_value(key); }).kind, ErrorKind::kUnsupported);
    EXPECT_FALSE(folder->identify(key))
        << "it would tell when that was written, and how long it is";
  }
  EXPECT_EQ(folder->identify("own"), folder->open("own")->identity());
  EXPECT_FALSE(folder->identify("none")->exists());
  EXPECT_TRUE(folder->goes_round("in/round"));
  EXPECT_FALSE(folder->identify("out"));
  EXPECT_EQ(refusal_of([&] { folder->list("out"); }).kind, ErrorKind::kUnsupported);
  EXPECT_EQ(refusal_of([&] { folder->open("none"); }).kind, ErrorKind::kNotFound);
  EXPECT_EQ(folder->open_value("none"), nullptr);
}

// As the daemon does, which goes to "/".
TEST_F(FolderTest, LinksLeadNowhereElseFromAnotherWorkingDirectory) {
  const fs::path before = fs::current_path();
  fs::current_path(scratch_ / "");
  const StoragePtr folder = open_storage("set", Confinement({"set"}));
  fs::current_path("/");
  EXPECT_EQ(refusal_of([&] { folder->open("linked"); }).kind, ErrorKind::kUnsupported);
  EXPECT_EQ(refusal_of([&] { folder->open_value("out/secret"); }).kind, ErrorKind::kUnsupported);
  EXPECT_EQ(refusal_of([&] { folder->list("out"); }).kind, ErrorKind::kUnsupported);
  EXPECT_EQ(folder->open("own")->nbytes(), 3U);
  fs::current_path(before);
}

// When a closed file is opened again, its path may lead elsewhere.
TEST_F(FolderTest, ALaterLinkLeadsNowhereElse) {
  const StoragePtr folder = confined({set_});
  const SourcePtr source = folder->open("own");
  testing::close_all_idle();
  fs::rename(set_ + "/own", scratch_ / "outside/own");
  fs::create_symlink(scratch_ / "outside/own", set_ + "/own");
  EXPECT_EQ(refusal_of([&] { read_whole(*source, 10); }).kind, ErrorKind::kUnsupported);
}

TEST_F(FolderTest, LinksMayLeadToAnotherFolderThatIsAllowed) {
  const StoragePtr folder = confined({set_, scratch_ / "outside"});
  EXPECT_EQ(folder->open("linked")->nbytes(), 6U);
  EXPECT_EQ(folder->list("out").size(), 2U);
  EXPECT_EQ(open_storage(set_)->open("linked")->nbytes(), 6U);
}

TEST_F(FolderTest, OfAFolderThatIsNotThereNothingIsAllowed) {
  EXPECT_EQ(refusal_of([&] { confined({set_ + "/none"})->open("own"); }).kind,
            ErrorKind::kUnsupported);
}

// Values too, so that readers of many stores do not take all descriptors.
TEST_F(FolderTest, WhatIsReadMayBeClosedMeanwhile) {
  const StoragePtr folder = open_storage(set_);
  const Identity own = *folder->identify("own");
  const auto value = folder->open_value("own", {&own});
  const auto unnoted = folder->open_value("in/deep", {nullptr, folder->take_time()});
  EXPECT_EQ(testing::count_open(set_), 2U);
  testing::close_all_idle();
  EXPECT_EQ(testing::count_open(set_), 0U);
  std::string bytes(3, '?');
  value->read(0, std::as_writable_bytes(std::span(bytes)));
  EXPECT_EQ(bytes, "own");
  unnoted->read(0, std::as_writable_bytes(std::span(bytes)));
  EXPECT_EQ(bytes, "dee");
  testing::close_all_idle();
  write_file(set_ + "/own", "new, and longer");
  EXPECT_EQ(refusal_of([&] { value->read(0, std::as_writable_bytes(std::span(bytes))); }).kind,
            ErrorKind::kChanged);
}

TEST_F(FolderTest, ValuesAreWhatWasNoted) {
  const StoragePtr folder = open_storage(set_);
  const Identity own = *folder->identify("own");
  const Identity none = *folder->identify("none");
  EXPECT_TRUE(own.exists());
  EXPECT_EQ(own, folder->open("own")->identity());
  EXPECT_FALSE(none.exists());
  EXPECT_EQ(value_of(*folder, "own", {&own}), "own");
  EXPECT_EQ(value_of(*folder, "none", {&none}), "none");
  EXPECT_EQ(refusal_of([&] { value_of(*folder, "own", {&none}); }).kind, ErrorKind::kChanged);
  EXPECT_EQ(refusal_of([&] { value_of(*folder, "none", {&own}); }).kind, ErrorKind::kChanged);
  write_file(set_ + "/own", "else");  // the file itself is still open
  EXPECT_EQ(refusal_of([&] { value_of(*folder, "own", {&own}); }).kind, ErrorKind::kChanged);
}

TEST_F(FolderTest, ValuesOfWhichNothingWasNotedAreAsOldAsExpected) {
  const StoragePtr folder = open_storage(set_);
  const Expected expected{nullptr, folder->take_time()};
  EXPECT_EQ(value_of(*folder, "own", expected), "own");
  EXPECT_EQ(value_of(*folder, "none", expected), "none");
  write_file(set_ + "/in/new", "new");
  EXPECT_EQ(refusal_of([&] { value_of(*folder, "in/new", expected); }).kind, ErrorKind::kChanged);
  EXPECT_EQ(refusal_of([&] { value_of(*folder, "in/none", expected); }).kind, ErrorKind::kChanged);
  EXPECT_EQ(value_of(*folder, "in/none"), "none");
}

TEST(Urls, AreRefusedNamingTheScheme) {
  for (const char* url : {"s3://bucket/key", "https://host/x?a=b", "webhdfs://h:1/p", "HTTP://h"}) {
    for (const auto& opened :
         {refusal_of([&] { open_named_file(url); }), refusal_of([&] { require_no_url(url); })}) {
      EXPECT_EQ(opened.kind, ErrorKind::kUnsupported) << url;
      const std::string scheme = std::string(url).substr(0, std::string(url).find(':') + 3);
      EXPECT_NE(opened.text.find("does not read " + scheme), std::string::npos) << opened.text;
      EXPECT_NE(opened.text.find("expected a local path; copy"), std::string::npos) << opened.text;
    }
  }
  EXPECT_NO_THROW(require_no_url("a/b://c"));
  EXPECT_NO_THROW(require_no_url("a:b"));
}

TEST_F(FolderTest, MayBeCalledAsAUrlBegins) {
  const fs::path before = fs::current_path();
  fs::create_directories(set_ + "/s3:/b");
  write_file(set_ + "/s3:/b/x", "here");
  fs::current_path(set_);
  EXPECT_EQ(read_whole(*open_named_file("s3://b/x"), 10), "here");
  EXPECT_EQ(read_whole(*open_storage("s3://b")->open("x"), 10), "here");
  EXPECT_EQ(refusal_of([] { open_named_file("s3://b/y"); }).kind, ErrorKind::kUnsupported);
  fs::current_path(before);
}

class ZipStorageTest : public Test {
 protected:
  StoragePtr open() {
    ZipWriter writer;
    writer.add("a/", "");
    writer.add("a/stored", "stored bytes");
    writer.add("a/packed", std::string(5000, 'p') + "end", deflated());
    writer.add("a-b/x", "x");
    writer.add("a/b/deep", "deep");
    writer.add("top", "old");
    writer.add("top", "new");
    writer.add("../out", "out");
    writer.add("/root", "root");
    source_ = std::make_shared<FakeSource>("s.zip", writer.finish());
    return open_zip_storage(std::make_shared<const ZipMembers>(source_), cache_);
  }
  static ZipWriter::Options deflated() {
    return {.method = 8, .flags = 0, .zip64 = false, .local_extra = "", .claimed_nbytes = ""};
  }

  std::shared_ptr<FakeSource> source_;
  OneChunkCache cache_;
};

TEST_F(ZipStorageTest, SaysWhatIsThere) {
  const StoragePtr zip = open();
  EXPECT_EQ(listed(*zip, ""), "a/ a-b/ top ");
  EXPECT_EQ(listed(*zip, "a"), "b/ packed stored ");
  EXPECT_EQ(listed(*zip, "none"), "");
  EXPECT_EQ(zip->kind_of("a"), Kind::kFolder);
  EXPECT_EQ(zip->kind_of("a/b"), Kind::kFolder);
  EXPECT_EQ(zip->kind_of("a/packed"), Kind::kFile);
  EXPECT_EQ(zip->kind_of("a/none"), Kind::kNone);
  EXPECT_EQ(zip->kind_of("../out"), Kind::kNone);
  EXPECT_EQ(zip->name_of("a/b"), "s.zip/a/b");
  EXPECT_EQ(zip->archive(), source_);
  EXPECT_EQ(*zip->keys_below("a"), (std::vector<std::string>{"b/deep", "packed", "stored"}));
  EXPECT_EQ(zip->find("none"), nullptr);
  EXPECT_EQ(refusal_of([&] { zip->open("none"); }).kind, ErrorKind::kNotFound);
}

TEST_F(ZipStorageTest, ReadsWholeAndInPart) {
  const StoragePtr zip = open();
  EXPECT_EQ(value_of(*zip, "top"), "new");
  EXPECT_EQ(value_of(*zip, "a/stored"), "stored bytes");
  EXPECT_EQ(value_of(*zip, "none"), "none");
  for (const char* key : {"a/stored", "a/packed"}) {
    const SourcePtr source = zip->open(key);
    EXPECT_EQ(source->name(), std::string("s.zip/") + key);
    const std::string whole = read_whole(*source, 10'000);
    EXPECT_EQ(whole, value_of(*zip, key));
    std::string part(3, '\0');
    source->read_at(whole.size() - 3, std::as_writable_bytes(std::span(part)));
    EXPECT_EQ(part, whole.substr(whole.size() - 3));
  }
  EXPECT_EQ(cache_.decoded(), 1U) << "of the packed one, for the part";
  source_->set_changed();
  EXPECT_EQ(refusal_of([&] { zip->open("top")->check_unchanged(); }).kind, ErrorKind::kChanged);
}

TEST_F(ZipStorageTest, APlaceWithinItIsOneToo) {
  const StoragePtr a = open()->below("a");
  EXPECT_EQ(a->name_of("b"), "s.zip/a/b");
  EXPECT_EQ(listed(*a, ""), "b/ packed stored ");
  EXPECT_EQ(value_of(*a->below("b"), "deep"), "deep");
  EXPECT_EQ(a->kind_of("top"), Kind::kNone);
}

TEST_F(ZipStorageTest, SaysWhereValuesLie) {
  const StoragePtr zip = open();
  const auto stored = zip->find_place("a/stored");
  ASSERT_TRUE(stored);
  EXPECT_FALSE(stored->packed);
  EXPECT_EQ(source_->bytes().substr(stored->extent.offset, stored->extent.nbytes), "stored bytes");
  EXPECT_NE(stored->guard.checksums, nullptr);
  EXPECT_TRUE(zip->find_place("a/packed")->packed);
  EXPECT_EQ(zip->find_place("a/packed")->nbytes, 5003U);
  EXPECT_FALSE(zip->find_place("none"));
}

TEST_F(ZipStorageTest, DamageIsFoundByWhoReads) {
  const StoragePtr whole = open();
  source_->flip(source_->bytes().find("stored bytes"));
  EXPECT_EQ(refusal_of([&] { value_of(*whole, "a/stored"); }).kind, ErrorKind::kCorrupt);
  EXPECT_EQ(value_of(*whole, "top"), "new");
}

}  // namespace
}  // namespace npyfs

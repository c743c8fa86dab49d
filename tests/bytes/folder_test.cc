// SPDX-License-Identifier: Apache-2.0
//
// What lies in a folder, where links in it may lead, and how many descriptors its files keep.

#include "formats/bytes/folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>

#include "formats/bytes/error.h"
#include "tests/formats/records.h"
#include "tests/support/fake_table.h"

namespace npyfs {
namespace {

namespace fs = std::filesystem;
using testing::refusal_of;
using ::testing::Test;
using testing::write_file;

// set/ with links that lead to outside/.
class FolderTest : public Test {
 protected:
  void SetUp() override {
    fs::create_directories(set_);
    fs::create_directories(scratch_ / "outside/in");
    write_file(set_ + "/own", "own");
    write_file(scratch_ / "outside/secret", "secret");
    fs::create_symlink(scratch_ / "outside/secret", set_ + "/linked");
    fs::create_symlink(scratch_ / "outside", set_ + "/out");
  }
  Folder confined(const std::vector<std::string>& folders) const {
    return Folder(set_, Confinement(folders), kept_);
  }

  testing::TemporaryFolder scratch_;
  const std::string set_ = scratch_ / "set";
  const std::shared_ptr<std::size_t> kept_ = std::make_shared<std::size_t>(0);
};

TEST_F(FolderTest, LinksLeadNowhereElse) {
  const Folder folder = confined({set_});
  EXPECT_EQ(folder.open("own")->nbytes(), 3U);
  EXPECT_EQ(folder.list("").size(), 3U);
  for (const char* below : {"linked", "out/secret"}) {
    const auto refused = refusal_of([&] { folder.open(below); });
    EXPECT_EQ(refused.kind, ErrorKind::kUnsupported) << below;
    EXPECT_NE(refused.text.find(set_ + "/" + below), std::string::npos) << refused.text;
    EXPECT_EQ(refusal_of([&] { folder.open_on_demand(below); }).kind, ErrorKind::kUnsupported);
    EXPECT_EQ(refusal_of([&] { folder.open_regular(below); }).kind, ErrorKind::kUnsupported);
  }
  EXPECT_EQ(refusal_of([&] { folder.list("out"); }).kind, ErrorKind::kUnsupported);
  EXPECT_EQ(refusal_of([&] { folder.open("none"); }).kind, ErrorKind::kNotFound);
  EXPECT_FALSE(folder.open_regular("none"));
}

// As the daemon does, which goes to "/".
TEST_F(FolderTest, LinksLeadNowhereElseFromAnotherWorkingDirectory) {
  const fs::path before = fs::current_path();
  fs::current_path(scratch_ / "");
  const Folder folder("set", Confinement({"set"}), kept_);
  fs::current_path("/");
  EXPECT_EQ(refusal_of([&] { folder.open("linked"); }).kind, ErrorKind::kUnsupported);
  EXPECT_EQ(refusal_of([&] { folder.open_regular("out/secret"); }).kind, ErrorKind::kUnsupported);
  EXPECT_EQ(refusal_of([&] { folder.list("out"); }).kind, ErrorKind::kUnsupported);
  EXPECT_EQ(folder.open_on_demand("own")->nbytes(), 3U);
  fs::current_path(before);
}

// Opened anew for each read: the path may lead elsewhere by then.
TEST_F(FolderTest, ALaterLinkLeadsNowhereElse) {
  const Folder folder = confined({set_});
  const SourcePtr source = folder.open_on_demand("own");
  fs::rename(set_ + "/own", scratch_ / "outside/own");
  fs::create_symlink(scratch_ / "outside/own", set_ + "/own");
  EXPECT_EQ(refusal_of([&] { read_whole(*source, 10); }).kind, ErrorKind::kUnsupported);
}

TEST_F(FolderTest, LinksMayLeadToAnotherFolderThatIsAllowed) {
  const Folder folder = confined({set_, scratch_ / "outside"});
  EXPECT_EQ(folder.open("linked")->nbytes(), 6U);
  EXPECT_EQ(folder.list("out").size(), 2U);
  const Folder anywhere(set_, Confinement(), kept_);
  EXPECT_EQ(anywhere.open("linked")->nbytes(), 6U);
}

TEST_F(FolderTest, OfAFolderThatIsNotThereNothingIsAllowed) {
  EXPECT_EQ(refusal_of([&] { confined({set_ + "/none"}).open("own"); }).kind,
            ErrorKind::kUnsupported);
}

TEST_F(FolderTest, SharesItsDescriptorsWithOthers) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const auto count = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const auto before = count();
  const SourcePtr kept = confined({set_}).open("own");
  EXPECT_EQ(*kept_, 1U);
  EXPECT_EQ(count(), before + 1);
  *kept_ = limit.rlim_cur;  // those of other folders
  const SourcePtr on_demand = confined({set_}).open("own");
  EXPECT_EQ(count(), before + 1);
  EXPECT_EQ(*kept_, limit.rlim_cur);
  EXPECT_EQ(read_whole(*on_demand, 10), "own");
}

}  // namespace
}  // namespace npyfs

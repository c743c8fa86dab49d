// SPDX-License-Identifier: Apache-2.0

#include "tests/battery/golden_cases.h"

#include <rapidjson/document.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

#include "cli/options.h"
#include "formats/extents.h"
#include "formats/registry.h"
#include "fs/record_files.h"

namespace npyfs::testing {

namespace {

// Whether the case can be loaded in this process, as it stands, and must come out whole.
bool is_plain(const rapidjson::Value& entry) {
  for (const char* key : {"fails", "may_fail", "files", "cwd", "eio", "records_eio", "readable"}) {
    if (entry.HasMember(key)) {
      return false;
    }
  }
  for (const auto& argument : entry["args"].GetArray()) {
    if (argument == "--header-align") {
      return false;  // of the mount alone
    }
  }
  return entry.HasMember("expected");
}

// Whether there is more to compare than attributes.
// Views are the mount's: they are compared there.
bool has_arrays(const std::string& expected) {
  namespace fs = std::filesystem;
  const auto is_array = [](const fs::directory_entry& entry) {
    return entry.path().extension() == ".npy" && entry.path().filename() != "attrs.npy" &&
           entry.path().string().find("/@") == std::string::npos && entry.is_regular_file();
  };
  return std::any_of(fs::recursive_directory_iterator(expected), {}, is_array);
}

// Rows of the table may share one.
std::string folder_of(const std::string& format) {
  const bool kaldi = format == "ark" || format == "scp";
  const bool npy = format == "npy" || format == "das";
  return kaldi ? "kaldi" : npy ? "npy_dir" : format == "wenet" ? "tar" : format;
}

// Cases of `format` whose name is not listed in later.json.
void add_cases(const std::string& format, const rapidjson::Document& later,
               std::vector<GoldenCase>& cases) {
  const std::string folder = std::string(NPYFS_TEST_DATA) + "/" + format;
  rapidjson::Document document;
  document.Parse(read_whole_file(folder + "/cases.json").c_str());
  if (document.HasParseError()) {
    throw std::runtime_error(folder + "/cases.json is not JSON");
  }
  const std::size_t before = cases.size();
  for (const auto& entry : document.GetArray()) {
    GoldenCase golden;
    golden.name = entry["name"].GetString();
    if (!is_plain(entry) || later.HasMember(golden.name.c_str())) {
      continue;
    }
    golden.folder = folder;
    golden.expected = folder + "/" + entry["expected"].GetString();
    if (!has_arrays(golden.expected)) {
      continue;
    }
    for (const char* key : {"values", "loose"}) {
      if (entry.HasMember(key)) {
        for (const auto& path : entry[key].GetArray()) {
          golden.inexact.insert(path.GetString());
        }
      }
    }
    for (const auto& argument : entry["args"].GetArray()) {
      golden.arguments.emplace_back(argument.GetString());
    }
    cases.push_back(std::move(golden));
  }
  if (cases.size() == before) {
    throw std::runtime_error("the battery has no case for format " + format);
  }
}

}  // namespace

std::string read_whole_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw std::runtime_error("cannot open " + path);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<GoldenCase> golden_cases() {
  rapidjson::Document later;
  later.Parse(read_whole_file(std::string(NPYFS_TEST_DATA) + "/later.json").c_str());
  std::vector<GoldenCase> cases;
  std::set<std::string> folders;
  for (const Format& format : formats()) {
    folders.insert(folder_of(format.name));
  }
  for (const std::string& folder : folders) {
    add_cases(folder, later, cases);
  }
  return cases;
}

OpenDataset::OpenDataset(const std::vector<std::string>& arguments, std::uint64_t cache_nbytes) {
  std::vector<std::string> all = arguments;
  all.insert(all.begin(), "info");
  CommandLine command_line = parse_command_line(all);
  command_line.cache_nbytes = cache_nbytes;
  loaded_ = std::make_unique<LoadedDataset>(command_line, [](const std::string&) {});
  fetcher_ = std::make_unique<Fetcher>(loaded_->cache, loaded_->verified);
  for_each_array(loaded_->dataset, [&](const std::string& path, const NamedArray& array) {
    files_.push_back({path + ".npy", std::make_unique<NpyFile>(array, 64)});
  });
}

std::string OpenDataset::read(const NpyFile& file, std::uint64_t offset,
                              std::uint64_t nbytes) const {
  return fetch({offset, offset + nbytes},
               [&](ByteRange range, Plan& plan) { file.plan_read(range, plan); });
}

std::string OpenDataset::read_record(const Split& split, std::uint64_t record) const {
  const RecordFiles files(split.records);
  const std::uint64_t file = record * split.records->stored().size();
  return fetch({0, files.nbytes(file)},
               [&](ByteRange range, Plan& plan) { files.plan_read(file, range, plan); });
}

std::string OpenDataset::fetch(ByteRange range, const PlanRead& plan_read) const {
  Gathered gathered;
  fetcher_->read(range, plan_read, gathered);
  std::string bytes;
  for (const iovec& part : gathered.parts()) {
    bytes.append(static_cast<const char*>(part.iov_base), part.iov_len);
  }
  return bytes;
}

}  // namespace npyfs::testing

// SPDX-License-Identifier: Apache-2.0
//
// Where SOURCEs lie, as far as it matters for what their arrays hold.

#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

namespace npyfs {

// The folder that all SOURCEs lie in, as an absolute path without "." and ".."; "/" at least.
// Throws as parse_source().
std::string folder_of_sources(const std::vector<std::string>& sources);

// The SOURCEs as text: two lists of them that are written in different ways, but mean the same,
// are one text. LOCATIONs are absolute, or from `folder` on, if that is not empty. Without splits
// ("train=") SOURCEs that were put under one split, or under none where each is a file, are the
// same whatever it is called: for sets that have a single one. Throws as parse_source().
std::string text_of_sources(const std::vector<std::string>& sources, const std::string& folder,
                            bool has_splits);

// How many splits are named by SOURCEs, where one that names none counts as one more.
std::size_t splits_of_sources(const std::vector<std::string>& sources);

// OpenedFiles::File::path_hash of the SOURCEs that are files.
std::unordered_set<std::uint64_t> hashes_of_files(const std::vector<std::string>& sources);

// The path from `folder` on, "./data.ffr"; as it is where it lies elsewhere.
std::string path_from(const std::string& path, const std::string& folder);

}  // namespace npyfs

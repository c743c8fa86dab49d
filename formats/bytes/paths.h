// SPDX-License-Identifier: Apache-2.0
//
// Paths, keys and URLs as text; nothing here looks at a file.

#pragma once

#include <string>
#include <string_view>

namespace npyfs {

// "a/b" of "a/b/c"; empty of "c", "/" of "/c".
std::string folder_of_path(std::string_view path);

// "c" of "a/b/c".
std::string_view name_of_path(std::string_view path);

// Whether a storage can have a value of this name: no part of it is empty or leads elsewhere.
bool is_key(std::string_view name);

// "<prefix>/<key>"; the other where one is empty.
std::string join_keys(std::string_view prefix, std::string_view key);

// Without empty and "." parts, and without "name/.." where it can be taken away, as
// std::filesystem::path::lexically_normal has it: "a//./b/../c" is "a/c", "a/." is "a/".
std::string normal_path(std::string_view path);

// Whether one of the parts between slashes is `part`.
bool has_part(std::string_view path, std::string_view part);

// "s3" of "s3://bucket/key" (RFC 3986, 3.1), as it is written; empty for what is no URL.
std::string_view url_scheme(std::string_view text);

}  // namespace npyfs

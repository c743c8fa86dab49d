// SPDX-License-Identifier: Apache-2.0
//
// The one exception of npyfs. Whoever knows the place of a fault puts it into the text; the FUSE
// boundary turns the kind into an errno, `main` turns it into an exit code.

#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace npyfs {

class PageReader;  // formats/bytes/index_page.h
class PageWriter;  // formats/bytes/index_page.h

enum class ErrorKind {
  kUsage,        // the command line is wrong: exit code 2
  kNotFound,     // ENOENT
  kCorrupt,      // the data contradicts its format or its checksum: EIO
  kUnsupported,  // legal, but not understood here: refused at mount
  kChanged,      // the source is no longer the file that was mounted: ESTALE
  kIo,           // the system refused: its errno
  kTooLarge,     // a limit of ours, named in the text
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& text, int system_errno = 0)
      : std::runtime_error(text), kind_(kind), system_errno_(system_errno) {}

  ErrorKind kind() const { return kind_; }

  // What a system call answers for this error: EIO for kCorrupt, ESTALE for kChanged, and so on.
  int to_errno() const;

  // The text without the place in front of it, as whoever found the fault has put it. Valid as long
  // as the error.
  std::string_view said() const;
  // The same error with more text around it; said() stays what it is.
  Error wrapped(std::string_view before, std::string_view after) const;

  void write(PageWriter& page) const;
  // Throws kCorrupt where the page holds none.
  static Error read(PageReader& page);

 private:
  friend Error error_at(ErrorKind kind, const std::string& place, std::string_view text,
                        int system_errno);

  ErrorKind kind_;
  int system_errno_;
  std::size_t said_begin_ = 0;
  std::size_t behind_said_nbytes_ = 0;
};

// "<place>: <text>".
Error error_at(ErrorKind kind, const std::string& place, std::string_view text,
               int system_errno = 0);

// "<file> at byte <offset>: <text>". `text` reads "<what> is <found>, expected <rule>; <remedy>".
// Control bytes in `file` are escaped.
Error corrupt_at(std::string_view file, std::uint64_t offset, std::string_view text);

// "<file>: <text>", for faults that have no offset.
Error file_error(ErrorKind kind, std::string_view file, std::string_view text);

// "<file>: cannot <verb>: <strerror>", kind kIo (kNotFound for ENOENT and ENOTDIR).
Error system_error(std::string_view file, std::string_view verb, int system_errno);

// `text` with control characters (C0, DEL, C1) and what is not UTF-8 as \xNN, so that a message
// stays one line of text.
std::string printable(std::string_view text);

}  // namespace npyfs

"""scripts/check_floors.py catches what it must."""

import unittest

from source_trees import ROOT, check_files, check_tree

SCRIPT = "check_floors.py"


def check(files):
    """Exit code and output of the check over a tree of these files."""
    return check_files(SCRIPT, files)


class Floors(unittest.TestCase):
    def test_our_own_tree_is_clean(self):
        self.assertEqual(check_tree(SCRIPT, ROOT), (0, ""))

    def test_down_is_allowed(self):
        for path, include in (
                ("formats/payloads/png.cc", "formats/format.h"),
                ("formats/tar/tar.cc", "formats/payloads/payload.h"),
                ("formats/tar/tar.cc", "formats/tar/header.h"),
                ("formats/registry.cc", "formats/tar/tar.h"),
                ("formats/arrays/array.cc", "formats/registry.h"),
                ("fs/fuse_ops.cc", "formats/arrays/array.h"),
                ("cli/main.cc", "fs/session.h")):
            with self.subTest(path=path, include=include):
                self.assertEqual(check({path: f'#include "{include}"\n'}), (0, ""))

    def test_up_is_caught(self):
        for path, include in (
                ("formats/bytes/plan.h", "formats/format.h"),
                ("formats/format.h", "formats/payloads/payload.h"),
                ("formats/payloads/png.cc", "formats/tar/tar.h"),
                ("formats/tar/tar.cc", "formats/registry.h"),
                ("formats/registry.cc", "formats/arrays/array.h"),
                ("formats/arrays/array.cc", "fs/session.h"),
                ("fs/session.cc", "cli/options.h"),
                ("formats/tar/tar.cc", "formats/zarr/zarr.h"),
                ("formats/tar/tar.cc", "tests/support/bytes.h")):
            with self.subTest(path=path, include=include):
                code, said = check({path: f'// a comment\n#include <vector>\n#include "{include}"\n'})
                self.assertEqual(code, 1)
                self.assertIn(f"{path}:3: includes {include}", said)

    def test_up_in_angle_brackets_or_with_blanks_is_caught(self):
        code, _ = check({"formats/bytes/plan.h": "  #  include <fs/session.h>\n"})
        self.assertEqual(code, 1)

    def test_types_from_above_are_not_declared(self):
        table = "namespace npyfs {\nclass RecordTable {\n  struct Row;\n};\n}\n"
        for declaration in ("class RecordTable;", "struct RecordTable;",
                            "template <typename T>\nclass RecordTable;",
                            "enum class RecordTable : std::uint8_t;"):
            with self.subTest(declaration=declaration):
                text = f"// The lowest.\nnamespace npyfs {{\n\n{declaration}\n}}\n"
                line = text.split("RecordTable")[0].count("\n") + 1
                code, said = check({"formats/format.h": table, "formats/bytes/plan.h": text})
                self.assertEqual(code, 1)
                self.assertEqual(said, f"formats/bytes/plan.h:{line}: declares RecordTable of "
                                       "formats/format.h, which is above formats/bytes\n")
                self.assertEqual(check({"formats/format.h": table, "fs/session.h": text}), (0, ""))
        code, said = check({"formats/tar/tar.h": table.replace("RecordTable", "TarTable"),
                            "formats/zarr/zarr.h": "namespace npyfs {\nclass TarTable;\n}\n"})
        self.assertEqual(code, 1)
        self.assertIn("declares TarTable of formats/tar/tar.h, which is another format", said)

    def test_what_only_looks_like_a_type_from_above_is_allowed(self):
        above = {"fs/session.h": "namespace npyfs {\nclass Session {};\n}\n"}
        for text in ("namespace npyfs {\nclass Chunks {\n  class Session;\n};\n}\n",  # its own
                     "namespace npyfs {\n// class Session;\n}\n",
                     "namespace npyfs {\nnamespace {\nclass Session;\n}\n}\n",
                     "struct fuse_session;\n"):
            with self.subTest(text=text):
                self.assertEqual(check({**above, "formats/bytes/plan.h": text}), (0, ""))

    def test_fuse_and_threads_are_known_in_fs_only(self):
        for name in ("fuse_lowlevel.h", "fuse3/fuse.h", "fuse.h", "mutex", "thread", "atomic"):
            with self.subTest(name=name):
                text = f"#include <{name}>\n"
                self.assertEqual(check({"fs/a.cc": text})[0], 0)
                self.assertEqual(check({"formats/arrays/a.cc": text})[0], 1)
                self.assertEqual(check({"cli/a.cc": text})[0], 1)
        self.assertEqual(check({"formats/bytes/byte_source.h": "#include <atomic>\n"})[0], 0)
        self.assertEqual(check({"formats/bytes/byte_source.h": "#include <mutex>\n"})[0], 1)

    def test_files_are_known_to_storages_only(self):
        for text in ("#include <filesystem>\n", "#include <sys/stat.h>\n", "#include <dirent.h>\n",
                     "int f() { return ::stat(path, &about); }\n", "const int fd = ::open(path);\n",
                     "auto s = FileSource::open(path, path);\n", "char* r = ::realpath(path, 0);\n"):
            with self.subTest(text=text):
                for path in ("formats/tar/tar.cc", "formats/bytes/plan.cc", "cli/sources.cc"):
                    code, said = check({path: text})
                    self.assertEqual(code, 1)
                    self.assertIn(f"{path}: has ", said)
                self.assertEqual(check({"formats/bytes/local_storage.cc": text})[0], 0)
                self.assertEqual(check({"fs/session.cc": text})[0], 0)
        for text in ("// as std::filesystem has it\n", "Array ArrayOpener::open(int);\n",
                     "storage->open(key);\n"):
            with self.subTest(text=text):
                self.assertEqual(check({"formats/tar/tar.cc": text}), (0, ""))
        # Exceptions do not outlive their reason.
        self.assertEqual(check({"cli/expand.cc": "int f();\n"})[0], 1)

    def test_an_empty_tree_is_not_a_pass(self):
        self.assertEqual(check({"README.md": ""})[0], 1)


if __name__ == "__main__":
    unittest.main()

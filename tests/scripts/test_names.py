"""scripts/check_names.py finds names that two files define, and only those."""

import unittest

from source_trees import ROOT, check_files, check_tree

SCRIPT = "check_names.py"


def check(files):
    """Exit code and output of the check over a tree of these files."""
    return check_files(SCRIPT, files)


def in_npyfs(text):
    return "// A file.\n\nnamespace npyfs {\n" + text + "\n}  // namespace npyfs\n"


class Names(unittest.TestCase):
    def test_our_own_tree_is_clean(self):
        self.assertEqual(check_tree(SCRIPT, ROOT), (0, ""))

    def test_two_definitions_are_found(self):
        first = in_npyfs("struct Frame {\n  int a;\n};")
        for second in ("struct Frame {};", "class Frame final : public Other {};",
                       "enum class Frame : std::uint8_t { kOne };", "union Frame { int a; };",
                       "enum class Frame\n    : int {\n  kOne\n};",
                       "template <typename T>\nstruct Frame {\n  T t;\n};",
                       'class ANNOTATE(what("a")) Frame {};', "struct [[nodiscard]] Frame {};",
                       "void f() { g('{', \"{\", '\"'); }  // {\nstruct Frame {};",
                       'const char* kText = R"x({")x";\nstruct Frame {};',
                       "struct Other {\n  struct Inner {};\n};\nclass Frame {};",
                       "namespace {\nint one = 1'000;\n}\nclass Frame {};"):
            with self.subTest(second=second):
                code, said = check({"formats/bytes/a.h": first, "formats/zip/b.h": in_npyfs(second)})
                self.assertEqual(code, 1)
                line = in_npyfs(second).split("Frame")[0].count("\n") + 1
                self.assertEqual(said, f"formats/zip/b.h:{line}: npyfs::Frame is defined in "
                                       "formats/bytes/a.h:4, too\n")

    def test_a_source_s_own_class_in_the_namespace_is_found(self):
        text = in_npyfs("struct Frame {};")
        self.assertEqual(check({"fs/a.cc": text, "cli/b.cc": text})[0], 1)

    def test_what_is_a_file_s_own_is_not(self):
        first = in_npyfs("struct Frame {};")
        for second in ("class Frame;", "struct Other {\n  struct Frame {};\n};",
                       "namespace {\nstruct Frame {};\n}", "// struct Frame {};",
                       "/* struct Frame {}; */", "void f() {\n  struct Frame {};\n}",
                       "class Frame::Inner {};", "Frame f(struct Frame* frame) {}",
                       "#define DEFINE struct Frame {}", "namespace inner {\nstruct Frame {};\n}",
                       "template <>\nstruct Frame<int> {};"):
            with self.subTest(second=second):
                self.assertEqual(check({"fs/a.h": first, "fs/b.h": in_npyfs(second)}), (0, ""))

    def test_an_empty_tree_is_not_a_pass(self):
        self.assertEqual(check({"README.md": ""})[0], 1)


if __name__ == "__main__":
    unittest.main()

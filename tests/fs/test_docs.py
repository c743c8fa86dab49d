"""What the documents show is what happens.

Every fenced block marked `sh` in README.md and fs/SEMANTICS.md is run, in order, all of a page in
one shell (bash -e -u), in a folder that holds a copy of examples/, with npyfs in PATH. Lines that
begin with `#>` are the output, standard error included, of the commands above them; in them `...`
stands for any text, and a line `#> ...` for any lines. Commands without such lines only have to
succeed. Commands that must not be run stand in blocks of another kind.

    test_docs.py --table    prints README's table of options, made from `npyfs --help`
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from mounting import NPYFS, MountTest, npyfs, unmount

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
END = "-- end of step --"


def steps_of(page):
    """(line, commands, expected output or None) of each step of the page's sh blocks."""
    text = (ROOT / page).read_text()
    for block in FENCE.finditer(text):
        if block.group(1) != "sh":
            continue
        first = line = text.count("\n", 0, block.start()) + 2
        commands, expected = [], []
        for content in block.group(2).splitlines() + [""]:
            if expected and not content.startswith("#>"):
                yield first, "\n".join(commands), "\n".join(expected)
                first, commands, expected = line, [], []
            if content.startswith("#>"):
                expected.append(content[2:].removeprefix(" "))
            else:
                commands.append(content)
            line += 1
        if "".join(commands).strip():
            yield first, "\n".join(commands), None


def matches(expected, output):
    pattern = "".join(
        "(.*\n)*?" if line == "..." else ".*?".join(map(re.escape, line.split("..."))) + "\n"
        for line in expected.split("\n"))
    return re.fullmatch(pattern, output) is not None


def help_options(text):
    """(option, meaning) of each option that --help prints."""
    options = []
    for line in text.splitlines():
        if match := re.match(r"  (-.*?)(?:  +(.*))?$", line):
            options.append([match.group(1), match.group(2) or ""])
        elif options and re.match(r" {10,}\S", line):
            options[-1][1] = (options[-1][1] + " " + line.strip()).strip()
    return [tuple(option) for option in options]


def table_options(text):
    """(option, meaning) of each row of README's table of options."""
    table = text.split("## Options", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `(-[^`]*)` \| (.*) \|$", table, re.MULTILINE)
    return [(option.replace("\\|", "|"), meaning.replace("\\|", "|").strip())
            for option, meaning in rows]


class Docs(MountTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.unmount_all)
        for shown in ("examples", "tests/data/kaldi/recipe"):
            shutil.copytree(ROOT / shown, self.folder / shown)
        (self.folder / "bin").mkdir()
        (self.folder / "bin/npyfs").symlink_to(NPYFS)
        (self.folder / "bin/python3").symlink_to(sys.executable)

    def unmount_all(self):
        for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
            if line.split()[4].startswith(f"{self.folder}/"):
                unmount(line.split()[4])

    def check(self, page):
        steps = list(steps_of(page))
        self.assertGreater(len(steps), 1, f"{page} shows nothing that is run")
        script = "exec 2>&1\n" + "".join(f"{commands}\necho '{END}'\n" for _, commands, _ in steps)
        environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
                       "LC_ALL": "C.UTF-8", "TZ": "UTC", "HOME": str(self.folder)}
        with tempfile.TemporaryFile("w+") as out:
            code = subprocess.run(["bash", "-e", "-u", "-c", script], cwd=self.folder, stdout=out,
                                  stdin=subprocess.DEVNULL, env=environment, timeout=120).returncode
            out.seek(0)
            outputs = out.read().split(END + "\n")
        for (line, commands, expected), output in zip(steps, outputs):
            shown = f"{page}:{line}:\n{commands}\nprinted:\n{output}"
            if expected is not None:
                self.assertTrue(matches(expected, output), f"{shown}\nexpected:\n{expected}")
        self.assertEqual((code, len(outputs)), (0, len(steps) + 1),
                         f"{page}: the step after {shown}\nfailed, printing:\n{outputs[-1]}")

    def test_readme(self):
        self.check("README.md")

    def test_semantics(self):
        self.check("fs/SEMANTICS.md")


class Pages(unittest.TestCase):
    def test_the_table_of_options_is_the_help(self):
        done = npyfs("--help")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(len(help_options(done.stdout)), 10, done.stdout)
        self.assertEqual(table_options((ROOT / "README.md").read_text()), help_options(done.stdout))

    def test_no_example_escapes_being_run(self):
        for page in ("README.md", "fs/SEMANTICS.md", "formats/README.md"):
            kinds = {block.group(1) for block in FENCE.finditer((ROOT / page).read_text())}
            self.assertLessEqual(kinds, {"sh", "text", "python"}, page)

    def test_links_lead_somewhere(self):
        pages = [ROOT / "README.md", *ROOT.glob("fs/*.md"), *ROOT.glob("formats/**/*.md"),
                 *ROOT.glob("examples/*.md")]
        self.assertGreater(len(pages), 3)
        for page in pages:
            for link in re.findall(r"\]\(([^)#:]+)[^):]*\)", page.read_text()):
                self.assertTrue((page.parent / link).exists(), f"{page}: {link}")

    def test_matching(self):
        self.assertTrue(matches("a ... c\n...\nz", "a b c\nx\ny\nz\n"))
        self.assertTrue(matches("a\n...", "a\n"))
        self.assertFalse(matches("a", "b\n"))
        self.assertFalse(matches("a", "a\nb\n"))
        self.assertFalse(matches("a.c", "abc\n"))


if __name__ == "__main__":
    if sys.argv[1:] == ["--table"]:
        for name, meaning in help_options(npyfs("--help").stdout):
            print("| `{}` | {} |".format(*(cell.replace("|", "\\|") for cell in (name, meaning))))
    else:
        unittest.main()

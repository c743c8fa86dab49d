"""One damaged record: EIO or SIGBUS for its bytes, the others unharmed, and a place to read why."""

import errno
import io
import re
import signal
import subprocess
import sys
import tarfile
import unittest

import numpy as np

from mounting import PAGE, MountTest, npyfs, read_direct, read_range, run, saved
from writers import ffrecord_header, write_ffrecord, write_tfrecord

ROW = 2 * PAGE
BAD = 5


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


class DamageTest(MountTest):
    """Ten records of two pages each, every one on pages of its own; one bit of record 5 is wrong."""

    def setUp(self):
        super().setUp()
        self.rows = np.random.default_rng(6).integers(0, 255, (10, ROW), np.uint8)
        self.source = self.folder / "data.ffr"
        write_ffrecord(self.source, self.rows)
        flip(self.source, 12 + 12 * 10 + BAD * ROW + 5000)

    def mount_aligned(self, *arguments):
        mnt = self.mount("--header-align", "4096", *arguments, self.source)
        return mnt / "train/x.npy"

    def errors(self, path):
        return (path.parents[1] / ".npyfs/errors").read_text().splitlines()


class ManyDamaged(MountTest):
    """More damaged records than have texts of their own, the second kind of fault behind them."""

    FIRST, SECOND = 1100, 50

    def told(self, *arguments):
        """Of each warning about damage the beginning and how many more records have it."""
        shown = npyfs("info", *arguments)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        lines = [line for line in shown.stderr.splitlines() if "warning" in line]
        more = [re.search(r" \(and ([0-9]+) more (damaged )?records\)", line) for line in lines]
        return [(line, int(found[1]) if found else 0) for line, found in zip(lines, more)]

    def check(self, told, kinds):
        self.assertEqual(len(told), 2, told)
        for (line, more), (text, count) in zip(sorted(told, key=lambda one: -one[1]), kinds):
            self.assertRegex(line, text)
            self.assertNotIn("found first", line)
            self.assertEqual(more, count - 1, line)

    def test_each_kind_of_header_is_named(self):
        good = saved(np.arange(6, dtype=np.float32))
        bad = b"\x93NUMPY\x01\x00\xff\xff" + good[10:]
        source = self.folder / "a.tar"
        with tarfile.open(source, "w") as tar:
            for i, payload in enumerate([good] + self.FIRST * [bad] + self.SECOND * [good[:-1]]):
                member = tarfile.TarInfo(f"{i:06}.npy")
                member.size = len(payload)
                tar.addfile(member, io.BytesIO(payload))
        kinds = (("header does not end", self.FIRST), ("has only [0-9]+ bytes", self.SECOND))
        self.check(self.told(source), kinds)
        self.check(self.told("--permissive", source), kinds)

    def test_each_kind_of_place_is_named(self):
        source = self.folder / "a.ffr"
        count = 2 + self.FIRST + self.SECOND
        nbytes = 12 + 12 * count + 8
        offsets = np.full(count, 12 + 12 * count)
        offsets[1:1 + self.FIRST] = 3
        offsets[1 + self.FIRST:-1] = nbytes + 9
        source.write_bytes(ffrecord_header([0] * count, offsets) + bytes(8))
        # The first one's end is a fault of its own.
        self.check(self.told("--permissive", source)[1:],
                   (("offset of sample 1 is 3,", self.FIRST),
                    ("offset of sample [0-9]+ is [0-9]+,", self.SECOND)))


class Damage(DamageTest):
    def test_the_other_rows_read(self):
        path = self.mount_aligned()
        for i in range(10):
            if i != BAD:
                self.assertEqual(read_range(path, PAGE + i * ROW, ROW), self.rows[i].tobytes(), i)

    def test_no_byte_of_the_damaged_row_is_answered(self):
        path = self.mount_aligned()
        for at in (0, 1, 4095, 4096, 4999, 5000, 5001, ROW - 1):
            self.assert_errno(errno.EIO, read_range, path, PAGE + BAD * ROW + at, 1)

    def test_direct_reads_that_touch_it_fail(self):
        path = self.mount_aligned()
        self.assert_errno(errno.EIO, read_direct, path, PAGE + BAD * ROW, PAGE)
        self.assert_errno(errno.EIO, read_direct, path, PAGE + (BAD - 1) * ROW, 2 * ROW)
        self.assertEqual(read_direct(path, PAGE, ROW), self.rows[0].tobytes())

    def test_a_large_read_gives_what_lies_before(self):
        path = self.mount_aligned()
        with open(path, "rb", buffering=0) as file:
            got = b""
            with self.assertRaises(OSError) as caught:
                while more := file.read(1 << 20):
                    got += more
        self.assertEqual(caught.exception.errno, errno.EIO)
        self.assertEqual(got[PAGE:], self.rows[:BAD].tobytes())

    def test_record_files(self):
        path = self.mount_aligned()
        records = path.parent / "records"
        for i in range(10):
            if i == BAD:
                self.assert_errno(errno.EIO, (records / f"{i}.bin").read_bytes)
            else:
                self.assertEqual((records / f"{i}.bin").read_bytes(), self.rows[i].tobytes())

    def test_programs_fail_and_do_not_hang(self):
        path = self.mount_aligned()
        self.assertIn("Input/output error", run("md5sum", path).stderr)
        self.assertNotEqual(run("cp", path, self.folder / "copy").returncode, 0)

    def test_a_memmap_gets_sigbus(self):
        path = self.mount_aligned()
        script = """if True:
            import sys, numpy as np
            x = np.load(sys.argv[1], mmap_mode="r")
            for i in map(int, sys.argv[2:]):
                print(i, int(x[i].sum(dtype=np.int64)), flush=True)
            """
        child = subprocess.run([sys.executable, "-c", script, path, "0", "9", str(BAD), "1"],
                               capture_output=True, text=True)
        self.assertEqual(child.returncode, -signal.SIGBUS, child.stderr)
        self.assertEqual(child.stdout.split("\n"),
                         [f"{i} {self.rows[i].sum(dtype=np.int64)}" for i in (0, 9)] + [""])
        array = np.load(path, mmap_mode="r")
        self.assertEqual(array[4].tobytes(), self.rows[4].tobytes(), "the mount lives on")

    def test_it_is_listed_once_with_its_place(self):
        path = self.mount_aligned()
        self.assertEqual(self.errors(path), [])
        for _ in range(3):
            for at in (0, PAGE):
                self.assert_errno(errno.EIO, read_range, path, PAGE + BAD * ROW + at, 10)
        self.assertEqual(len(self.errors(path)), 1, self.errors(path))
        line = self.errors(path)[0]
        place = re.search("data.ffr at byte ([0-9]+)", line)
        self.assertTrue(place, line)
        self.assertEqual(int(place[1]), 12 + 12 * 10 + BAD * ROW, line)

    def test_the_errors_grow_while_they_are_watched(self):
        flip(self.source, 12 + 12 * 10 + 8 * ROW)
        path = self.mount_aligned()
        for count, row in ((1, BAD), (2, 8)):
            self.assert_errno(errno.EIO, read_range, path, PAGE + row * ROW, 1)
            self.assertEqual(len(self.errors(path)), count)

    def test_rows_that_share_its_page_fail_with_it(self):
        rows = np.random.default_rng(7).integers(0, 255, (64, 1024), np.uint8)
        write_ffrecord(self.source, rows)
        flip(self.source, 12 + 12 * 64 + 21 * 1024)
        path = self.mount_aligned()
        for i in range(64):
            if 20 <= i < 24:
                self.assert_errno(errno.EIO, read_range, path, PAGE + i * 1024, 1024)
            else:
                self.assertEqual(read_range(path, PAGE + i * 1024, 1024), rows[i].tobytes(), i)
        for i in (20, 22, 23):
            self.assertEqual((path.parent / f"records/{i}.bin").read_bytes(), rows[i].tobytes())

    def test_the_header_fails_with_a_record_that_begins_on_its_page(self):
        flip(self.source, 12 + 12 * 10)
        path = self.mount(self.source) / "train/x.npy"
        self.assertEqual(path.stat().st_size, 128 + self.rows.nbytes)
        self.assert_errno(errno.EIO, read_range, path, 0, 10)
        self.assertEqual(read_range(path, 128 + 2 * ROW, ROW), self.rows[2].tobytes())
        aligned = self.mount("--header-align", "4096", self.source, name="aligned")
        self.assertEqual(np.load(aligned / "train/x.npy", mmap_mode="r").shape, (10, ROW))

    def test_two_readers_at_once(self):
        path = self.mount_aligned()
        script = """if True:
            import os, sys
            fd = os.open(sys.argv[1], os.O_RDONLY)
            for _ in range(50):
                try:
                    os.pread(fd, 10, int(sys.argv[2]))
                    sys.exit("answered")
                except OSError as error:
                    assert error.errno == 5, error
            """
        children = [subprocess.Popen([sys.executable, "-c", script, path,
                                      str(PAGE + BAD * ROW + at)]) for at in (0, PAGE)]
        self.assertEqual([child.wait() for child in children], [0, 0])
        self.assertEqual(len(self.errors(path)), 1)


class VerifyOption(DamageTest):
    def test_never_answers_what_is_stored(self):
        path = self.mount_aligned("--verify=never")
        stored = self.source.read_bytes()[12 + 12 * 10:]
        self.assertEqual(path.read_bytes()[PAGE:], stored)
        self.assertEqual(self.errors(path), [])

    def test_at_mount_knows_and_says_it_before(self):
        path = self.mount_aligned("--verify=mount")
        self.assertIn("data.ffr", self.said)
        self.assertEqual(len(self.said.splitlines()), 1, self.said)
        self.assert_errno(errno.EIO, read_range, path, PAGE + BAD * ROW, 1)
        self.assertEqual(read_range(path, PAGE, ROW), self.rows[0].tobytes())

    def test_permissive_leaves_it_out(self):
        path = self.mount_aligned("--verify=mount", "--permissive")
        self.assertEqual(np.load(path).tobytes(), np.delete(self.rows, BAD, 0).tobytes())

    def test_tfrecord(self):
        source = self.folder / "data.tfrecord"
        write_tfrecord(source, self.rows)
        flip(source, BAD * (ROW + 16) + 12 + 7777)
        mnt = self.mount("--header-align", "4096", source)
        for i in range(10):
            if i == BAD:
                self.assert_errno(errno.EIO, read_range, mnt / "train/x.npy", PAGE + i * ROW, 1)
            else:
                self.assertEqual(read_range(mnt / "train/x.npy", PAGE + i * ROW, ROW),
                                 self.rows[i].tobytes())


if __name__ == "__main__":
    unittest.main()

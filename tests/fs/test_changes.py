"""A source that changes while it is mounted: ESTALE until remount, never mixed bytes."""

import errno
import os
import subprocess
import sys
import time
import unittest

import numpy as np

from mounting import PAGE, TIMEOUT, MountTest, read_direct, read_range, run, saved, unmount
from writers import write_ffrecord

LONG_AGO = 1_500_000_000 * 10**9  # so that any change gives another mtime, however coarse the clock


class ChangeTest(MountTest):
    def setUp(self):
        super().setUp()
        self.rows = np.random.default_rng(8).integers(0, 255, (100, 3 * PAGE), np.uint8)
        self.source = self.folder / "train.ffr"
        self.other = self.folder / "val.ffr"
        for source in (self.source, self.other):
            write_ffrecord(source, self.rows)
            os.utime(source, ns=(LONG_AGO, LONG_AGO))
        self.mnt = self.mount(self.source, self.other)
        self.path = self.mnt / "train/x.npy"


class Changes(ChangeTest):
    def assert_dropped(self, read, before):
        """The kernel drops its pages soon after the change was seen: until then, the old bytes."""
        deadline = time.monotonic() + TIMEOUT
        with self.assertRaises(OSError) as caught:
            while time.monotonic() < deadline:
                self.assertEqual(read(), before)
        self.assertEqual(caught.exception.errno, errno.ESTALE)

    def check(self, change):
        before = read_range(self.path, 0, 2 * PAGE)
        self.assertEqual(before, saved(self.rows)[:2 * PAGE])
        change()
        self.assert_errno(errno.ESTALE, read_range, self.path, 200 * PAGE, 100)
        self.assert_errno(errno.ESTALE, read_direct, self.path, 100 * PAGE, PAGE)
        self.assert_errno(errno.ESTALE, (self.mnt / "train/records/3.bin").read_bytes)
        self.assert_dropped(lambda: read_range(self.path, 0, 2 * PAGE), before)
        # What comes from elsewhere is not concerned.
        self.assertEqual((self.mnt / "val/x.npy").read_bytes(), saved(self.rows))
        self.assertIn("train.ffr", (self.mnt / ".npyfs/errors").read_text())

    def test_append(self):
        def change():
            with open(self.source, "ab") as file:
                file.write(b"more")
        self.check(change)

    def test_overwrite_in_the_same_size(self):
        def change():
            with open(self.source, "r+b") as file:
                file.seek(5000)
                file.write(b"other")
        self.check(change)

    def test_replace_by_rename(self):
        def change():
            new = self.folder / "new"
            write_ffrecord(new, self.rows)
            os.utime(new, ns=(LONG_AGO, LONG_AGO))
            os.rename(new, self.source)
        self.check(change)

    def test_truncate(self):
        self.check(lambda: os.truncate(self.source, 5000))

    def test_touch(self):
        self.check(lambda: os.utime(self.source))

    def test_removal(self):
        self.check(lambda: os.unlink(self.source))

    def test_the_old_bytes_do_not_come_back(self):
        os.truncate(self.source, 5000)
        self.assert_errno(errno.ESTALE, read_range, self.path, 200 * PAGE, 1)
        write_ffrecord(self.source, self.rows)
        os.utime(self.source, ns=(LONG_AGO, LONG_AGO))
        self.assert_errno(errno.ESTALE, read_range, self.path, 200 * PAGE, 1)

    def test_an_open_file_and_a_map(self):
        fd = os.open(self.path, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        self.assertEqual(os.pread(fd, 10, 0), saved(self.rows)[:10])
        os.utime(self.source)
        self.assert_errno(errno.ESTALE, os.pread, fd, 10, 200 * PAGE)
        self.assert_dropped(lambda: os.pread(fd, 10, 0), saved(self.rows)[:10])

    def test_a_new_mount_shows_the_new_bytes(self):
        write_ffrecord(self.source, self.rows[::-1])
        self.assert_errno(errno.ESTALE, read_range, self.path, 200 * PAGE, 1)
        unmount(self.mnt)
        mnt = self.mount(self.source, name="again")
        self.assertEqual((mnt / "train/x.npy").read_bytes(), saved(self.rows[::-1]))

    def test_unmounting_still_works(self):
        os.unlink(self.source)
        self.assert_errno(errno.ESTALE, read_range, self.path, 200 * PAGE, 1)
        self.assertEqual(run("fusermount3", "-u", self.mnt).returncode, 0)


class NeverMixed(MountTest):
    def test_a_writer_races_a_reader(self):
        old, new = np.full((400, 64 * 1024), 65, np.uint8), np.full((400, 64 * 1024), 66, np.uint8)
        source = self.folder / "race.ffr"
        for attempt in range(5):
            write_ffrecord(source, old)
            os.utime(source, ns=(LONG_AGO, LONG_AGO))
            mnt = self.mount("--verify=never", "--header-align", "4096", source, name=f"m{attempt}")
            script = """if True:
                import sys
                with open(sys.argv[1], "r+b", buffering=0) as file:
                    file.seek(int(sys.argv[2]))
                    sys.stdin.read(1)
                    while file.tell() < int(sys.argv[3]):
                        file.write(b"B" * 65536)
                """
            first = 12 + 12 * 400
            writer = subprocess.Popen([sys.executable, "-c", script, source, str(first),
                                       str(first + new.nbytes)], stdin=subprocess.PIPE)
            writer.stdin.write(b"\n")
            writer.stdin.close()
            stale = False
            while not stale:
                ended = writer.poll() is not None
                for at in range(PAGE, old.nbytes, 1 << 20):
                    try:
                        got = read_direct(mnt / "train/x.npy", at, 1 << 20)
                    except OSError as error:
                        self.assertEqual(error.errno, errno.ESTALE)
                        stale = True
                        break
                    self.assertEqual(got.count(b"A"), len(got), "new bytes were answered")
                self.assertFalse(ended and not stale, "the change was never noticed")
            self.assertEqual(writer.wait(), 0)


if __name__ == "__main__":
    unittest.main()

"""More shards than the daemon may have open: the same bytes, and changes are noticed as ever."""

import concurrent.futures
import errno
import os
import pathlib
import resource
import unittest

import numpy as np

from mounting import PAGE, MountTest, npyfs, read_direct
from writers import write_ffrecord

LONG_AGO = 1_500_000_000 * 10**9  # so that any change gives another mtime, however coarse the clock
SHARDS = 200
ROWS = 4  # of each shard, a page each


def limited_to(most):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class ManyShards(MountTest):
    def setUp(self):
        super().setUp()
        self.set = self.folder / "set"
        self.set.mkdir()
        self.rows = np.random.default_rng(12).integers(0, 255, (SHARDS, ROWS, PAGE), np.uint8)
        for number in range(SHARDS):
            write_ffrecord(self.shard(number), self.rows[number])
            os.utime(self.shard(number), ns=(LONG_AGO, LONG_AGO))

    def shard(self, number):
        return self.set / f"{number:03d}.ffr"

    def mount_few(self, *arguments, most=64, **options):
        return self.mount("--header-align", str(PAGE), *arguments, f"train={self.set}/0*.ffr",
                          f"val={self.set}/1*.ffr", preexec_fn=limited_to(most), **options)

    def row(self, mnt, number, row=0):
        """A row of a shard, as the daemon answers it now."""
        split, place = ("train", number) if number < 100 else ("val", number - 100)
        return read_direct(mnt / split / "x.npy", PAGE * (1 + ROWS * place + row), PAGE)

    def open_shards(self, mnt):
        found = set()
        for link in pathlib.Path(f"/proc/{self.daemon(mnt)}/fd").iterdir():
            try:
                found.add(os.readlink(link))
            except FileNotFoundError:
                pass
        return {int(pathlib.Path(path).stem) for path in found if path.startswith(str(self.set))}

    def read_others(self, mnt, closed):
        """Reads other shards until one is closed."""
        for number in range(SHARDS):
            if number != closed:
                self.assertEqual(self.row(mnt, number), self.rows[number, 0].tobytes())
        self.assertNotIn(closed, self.open_shards(mnt))


class Reading(ManyShards):
    def test_concurrent_readers(self):
        for most in (64, 40):
            with self.subTest(most):
                mnt = self.mount_few(most=most, name=f"at{most}")
                self.assertLessEqual(len(self.open_shards(mnt)), most - 32)

                def read(seed):
                    random = np.random.default_rng(seed)
                    for _ in range(300):
                        number, row = random.integers(SHARDS), random.integers(ROWS)
                        if self.row(mnt, number, row) != self.rows[number, row].tobytes():
                            return f"row {row} of shard {number} is wrong"
                    return None

                with concurrent.futures.ThreadPoolExecutor(8) as pool:
                    self.assertEqual(set(pool.map(read, range(8))), {None})
                self.assertEqual(np.load(mnt / "train/x.npy").tobytes(), self.rows[:100].tobytes())
                self.assertFalse((mnt / ".npyfs/errors").read_text())
                self.assertLess(len(self.open_shards(mnt)), most)

    def test_all_stay_open_where_that_is_allowed(self):
        mnt = self.mount_few(most=400)
        np.load(mnt / "train/x.npy")
        np.load(mnt / "val/x.npy")
        self.assertEqual(self.open_shards(mnt), set(range(SHARDS)))

    def test_too_few_for_the_mount_itself(self):
        done = npyfs("mount", f"train={self.set}/*.ffr", self.mount_point(), preexec_fn=limited_to(4))
        self.assertEqual(done.returncode, 1)
        self.assertIn("Too many open files", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


class Changes(ManyShards):
    def check(self, change, closed=7):
        mnt = self.mount_few()
        self.read_others(mnt, closed)
        change(self.shard(closed))
        self.assert_errno(errno.ESTALE, self.row, mnt, closed)
        self.assert_errno(errno.ESTALE, self.row, mnt, closed, 1)
        self.assert_errno(errno.ESTALE, (mnt / f"train/records/{ROWS * closed}.bin").read_bytes)
        # What comes from elsewhere is not concerned.
        self.assertEqual((mnt / "val/x.npy").read_bytes()[PAGE:], self.rows[100:].tobytes())
        self.assertIn(self.shard(closed).name, (mnt / ".npyfs/errors").read_text())

    def test_removal(self):
        self.check(os.unlink)

    def test_append(self):
        def change(shard):
            with open(shard, "ab") as file:
                file.write(b"more")
        self.check(change)

    def test_a_folder_of_its_name(self):
        def change(shard):
            os.unlink(shard)
            shard.mkdir()
        self.check(change)

    def test_replace_by_rename(self):
        def change(shard):
            new = self.folder / "new"
            write_ffrecord(new, self.rows[0])
            os.utime(new, ns=(LONG_AGO, LONG_AGO))
            os.rename(new, shard)
        self.check(change)

    def test_another_file_of_its_inode_number(self):
        def change(shard):
            number = shard.stat().st_ino
            for _ in range(100):
                shard.unlink()
                write_ffrecord(shard, self.rows[0])
                if shard.stat().st_ino == number:
                    break
            else:
                self.skipTest("this file system does not give inode numbers again soon")
            os.utime(shard, ns=(LONG_AGO, LONG_AGO))
        self.check(change)

    def test_moved_away_and_back(self):
        mnt = self.mount_few()
        self.read_others(mnt, 7)
        os.rename(self.shard(7), self.folder / "aside")
        os.rename(self.folder / "aside", self.shard(7))
        self.assertEqual(self.row(mnt, 7), self.rows[7, 0].tobytes())

    def test_a_link_out_of_the_folder(self):
        mnt = self.mount_few("-o", "allow_other")
        self.read_others(mnt, 7)
        os.rename(self.shard(7), self.folder / "outside.ffr")
        self.shard(7).symlink_to(self.folder / "outside.ffr")
        self.assert_errno(errno.EIO, self.row, mnt, 7)
        self.assertIn("it lies outside of", (mnt / ".npyfs/errors").read_text())


if __name__ == "__main__":
    unittest.main()

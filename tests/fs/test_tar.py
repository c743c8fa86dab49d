"""Tar shards through a mount: compressed ones, what is kept of them, and what a read of them costs."""

import io
import os
import shutil
import signal
import subprocess
import tarfile
import unittest

import numpy as np

from mounting import MountTest, npyfs, unmount, wait_for_exit

COUNT = 40
PACKERS = {"gz": ["gzip", "-nc"], "zst": ["zstd", "-qc"], "xz": ["xz", "-c"], "bz2": ["bzip2", "-c"]}


def npy_bytes(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def write_shard(path, arrays):
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as shard:
        for number, array in enumerate(arrays):
            payload = npy_bytes(array)
            info = tarfile.TarInfo(f"{number:04d}.npy")
            info.size = len(payload)
            shard.addfile(info, io.BytesIO(payload))


class Compressed(MountTest):
    """Four MiB of arrays that hardly compress, in one frame."""

    def setUp(self):
        super().setUp()
        random = np.random.default_rng(3)
        self.rows = random.integers(0, 255, (COUNT, 100, 1024), np.uint8)
        self.plain = self.folder / "a.tar"
        write_shard(self.plain, self.rows)
        self.spool = self.folder / "spool"

    def packed(self, kind):
        if shutil.which(PACKERS[kind][0]) is None:
            self.skipTest(f"{PACKERS[kind][0]} is not installed")
        path = self.folder / f"a.tar.{kind}"
        path.write_bytes(subprocess.run([*PACKERS[kind], self.plain], check=True,
                                        stdout=subprocess.PIPE).stdout)
        return path

    def check_random_reads(self, mnt):
        x = np.load(mnt / "train/x.npy", mmap_mode="r")
        for number in np.random.default_rng(4).permutation(COUNT):
            np.testing.assert_array_equal(x[number], self.rows[number])

    def test_every_packing_reads_at_random(self):
        for kind in PACKERS:
            with self.subTest(kind):
                mnt = self.mount("--cache-size", "16M", self.packed(kind), name=kind)
                self.check_random_reads(mnt)

    def test_a_cache_directory_is_empty_while_mounted_and_after_a_crash(self):
        mnt = self.mount("--cache-dir", self.spool, "--cache-size", "1M", self.packed("zst"))
        self.check_random_reads(mnt)
        self.assertEqual(os.listdir(self.spool), [])
        daemon = self.daemon(mnt)
        os.kill(daemon, signal.SIGKILL)
        wait_for_exit(daemon)
        unmount(mnt)
        self.assertEqual(os.listdir(self.spool), [])

    def test_info_says_what_a_random_read_costs(self):
        self.assertIn("gzip, a random read inflates up to 4050 KiB",
                      npyfs("info", self.packed("gz")).stdout)
        costly = npyfs("info", "--cache-size", "8M", self.packed("zst"))
        self.assertIn("zstd, a random read decodes up to 4050 KiB", costly.stdout)
        self.assertEqual(costly.stderr.count("--cache-dir"), 1, costly.stderr)
        kept = npyfs("info", "--cache-dir", self.spool, self.packed("zst"))
        self.assertIn(f"kept decoded in {self.spool}", kept.stdout)
        self.assertEqual(kept.stderr, "")

    def test_a_cache_directory_that_cannot_be_is_refused(self):
        refused = npyfs("info", "--cache-dir", self.folder / "no/such", self.plain)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("no/such", refused.stderr)


if __name__ == "__main__":
    unittest.main()

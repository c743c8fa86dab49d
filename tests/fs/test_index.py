"""The kept index: what was read once is not read again, and what has changed is."""

import gzip
import io
import json
import os
import shutil
import struct
import tarfile
import unittest

import numpy as np

from mounting import MountTest, npyfs, unmount
from test_damage import flip
from writers import write_tfrecord

OLD = 1_700_000_000 * 10**9  # an mtime that nobody takes for new


def age(path):
    os.utime(path, ns=(OLD, OLD))


def write_tar(path, samples, nbytes=4096, seed=0):
    """Samples of stored bytes and a class each."""
    rng = np.random.default_rng(seed)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for i in range(samples):
            for ending, data in (("bin", rng.bytes(nbytes)), ("cls", b"%d" % (i % 10))):
                about = tarfile.TarInfo(f"sample-{i:06d}.{ending}")
                about.size = len(data)
                tar.addfile(about, io.BytesIO(data))
    age(path)


def write_ark(path, objects, rows=20):
    rng = np.random.default_rng(1)
    with open(path, "wb") as ark:
        for i in range(objects):
            matrix = rng.normal(size=(rows + i % 3, 40)).astype("<f4")
            ark.write(f"utt-{i:06d} ".encode() + b"\0BFM " + struct.pack("<bibi", 4, len(matrix), 4, 40)
                      + matrix.tobytes())
    age(path)


def write_recordio(path, records, idx=None):
    rng = np.random.default_rng(2)
    lines = []
    with open(path, "wb") as file:
        for i in range(records):
            payload = rng.bytes(3000 + i % 5)
            lines.append(f"{10 * i}\t{file.tell()}\n")
            file.write(struct.pack("<II", 0xced7230a, len(payload)) + payload + b"\0" * (-len(payload) % 4))
    age(path)
    if idx is not None:
        idx.write_text("".join(lines))
        age(idx)


class Index(MountTest):
    def setUp(self):
        super().setUp()
        self.index = self.folder / "index"

    def info(self, *sources, index=None):
        """What there is, as npyfs info tells it; refused: the message."""
        done = npyfs("info", "--json", "--index-dir", index or self.index, *sources)
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr

    def contents(self, *sources, index=None):
        """The bytes of every file of the tree."""
        self.mounts = getattr(self, "mounts", 0) + 1
        mount = self.mount("--index-dir", index or self.index, *sources, name=f"mnt{self.mounts}")
        found = {str(path.relative_to(mount)): path.read_bytes()
                 for path in sorted(mount.rglob("*")) if path.is_file()}
        unmount(mount)
        self.assertGreater(len(found), 4)
        return found

    def files(self, ending=".index"):
        return sorted(path for path in self.index.glob("*" + ending))

    def spoil(self, path, at):
        """Changes a byte that a scan would stumble over, unseen: who does not, has not scanned."""
        flip(path, at)
        age(path)

    def sources(self):
        """A source of each kind that is scanned, and a byte that the scan reads."""
        tar = self.folder / "data.tar"
        write_tar(tar, 800)
        zipped = self.folder / "zipped.tar.gz"
        zipped.write_bytes(gzip.compress(tar.read_bytes(), 1))
        age(zipped)
        records = np.random.default_rng(0).integers(0, 255, (1200, 4000), np.uint8)
        tfrecord = self.folder / "data.tfrecord"
        write_tfrecord(tfrecord, [bytes(r) for r in records])
        age(tfrecord)
        ark = self.folder / "feats.ark"
        write_ark(ark, 1500)
        plain = self.folder / "plain.rec"
        write_recordio(plain, 1500)
        listed = self.folder / "listed.rec"
        write_recordio(listed, 1500, self.folder / "listed.idx")
        return {tar: 512 * 11 * 3 + 3, tfrecord: 4016 * 7 + 2, ark: None, plain: 3008 + 1, zipped: None,
                listed: None}

    def test_every_kind_is_the_same_from_the_index(self):
        for source in self.sources():
            with self.subTest(source.name):
                plain = self.contents(f"train={source}", index="none")
                shutil.rmtree(self.index, ignore_errors=True)
                first = self.contents(f"train={source}")
                self.assertEqual(len(self.files()), 1)
                second = self.contents(f"train={source}")
                self.assertEqual(first, plain)
                self.assertEqual(second, plain)

    def test_what_is_known_is_not_read(self):
        for source, at in self.sources().items():
            if at is None:
                continue
            with self.subTest(source.name):
                whole = self.info(source)
                self.spoil(source, at)
                self.assertEqual(self.info(source), whole)
                self.assertIsInstance(self.info(source, index="none"), str)

    def test_stats_say_what_came_from_it(self):
        tar = self.folder / "data.tar"
        write_tar(tar, 800)
        for name, figures in (("first", {"hits": 0, "misses": 1}), ("second", {"hits": 1, "misses": 0})):
            mount = self.mount("--index-dir", self.index, tar, name=name)
            self.assertEqual(json.loads((mount / ".npyfs/stats").read_text())["index"], figures)

    def test_a_source_that_changed_is_read(self):
        tar = self.folder / "data.tar"
        write_tar(tar, 800)
        self.contents(f"train={tar}")
        write_tar(tar, 900, seed=1)
        self.assertEqual(self.contents(f"train={tar}"), self.contents(f"train={tar}", index="none"))
        # Of the same size, and a moment younger.
        write_tar(tar, 900, seed=2)
        os.utime(tar, ns=(OLD, OLD + 1))
        self.assertEqual(self.contents(f"train={tar}"), self.contents(f"train={tar}", index="none"))

    def test_shards_that_are_added_leave_the_others_known(self):
        shards = self.folder / "shards"
        shards.mkdir()
        for i in range(3):
            write_tar(shards / f"{i}.tar", 400, seed=i)
        self.info(shards)
        write_tar(shards / "3.tar", 400, seed=3)
        self.spoil(shards / "1.tar", 512 * 11 * 3 + 3)
        self.assertIn("1600", json.dumps(self.info(shards)))

    def test_options_that_count_are_told_apart(self):
        tar = self.folder / "data.tar"
        write_tar(tar, 800)
        with open(tar, "r+b") as file:
            file.truncate(tar.stat().st_size - 30000)
        age(tar)
        self.assertIsInstance(self.info(tar), str)
        first = npyfs("info", "--permissive", "--index-dir", self.index, tar)
        second = npyfs("info", "--permissive", "--index-dir", self.index, tar)
        self.assertEqual((first.returncode, first.stdout), (second.returncode, second.stdout))
        self.assertIn("samples before it are shown", second.stderr)
        self.assertEqual(first.stderr, second.stderr)
        self.assertIsInstance(self.info(tar), str)

    def test_a_damaged_index_is_made_anew(self):
        tar = self.folder / "data.tar"
        write_tar(tar, 800)
        whole = self.info(tar)
        [path] = self.files()
        good = path.read_bytes()
        rng = np.random.default_rng(4)
        for nbytes in [0, 10, len(good) // 2, len(good) - 1, *[len(good)] * 12]:
            bad = bytearray(good[:nbytes])
            if nbytes == len(good):
                bad[rng.integers(0, nbytes)] ^= 1 << int(rng.integers(0, 8))
            path.unlink()
            path.write_bytes(bad)
            path.chmod(0o600)
            self.assertEqual(self.info(tar), whole)
        self.assertEqual(self.info(tar), whole)

    def test_a_foreign_file_in_its_place_is_not_served(self):
        tar = self.folder / "data.tar"
        write_tar(tar, 800)
        other = self.folder / "other.tar"
        write_tar(other, 800, seed=9)
        whole = self.info(tar)
        [path] = self.files()
        elsewhere = self.folder / "elsewhere"
        self.info(other, index=elsewhere)
        [foreign] = elsewhere.glob("*.index")
        shutil.copy(foreign, path)
        self.assertEqual(self.info(tar), whole)

    def test_a_folder_that_cannot_be_used_is_no_error(self):
        tar = self.folder / "data.tar"
        write_tar(tar, 800)
        file = self.folder / "a-file"
        file.write_text("no folder")
        whole = self.info(tar, index="none")
        self.assertEqual(self.info(tar, index=file), whole)
        self.assertEqual(self.info(tar, index=file / "below"), whole)
        open_to_all = self.folder / "open"
        open_to_all.mkdir()
        open_to_all.chmod(0o777)
        self.assertEqual(self.info(tar, index=open_to_all), whole)
        self.assertEqual(list(open_to_all.iterdir()), [])

    def test_made_ahead_for_another_machine(self):
        data = self.folder / "data"
        data.mkdir()
        for i in range(3):
            write_tar(data / f"{i}.tar", 400, seed=i)
        ahead = data / "data.index"
        done = npyfs("index", "--index-dir", "none", data, "-o", ahead)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3 pages", done.stdout)
        moved = self.folder / "moved"
        shutil.copytree(data, moved)  # keeps times, as rsync -a does
        whole = self.info(moved, index="none")
        self.spoil(moved / "1.tar", 512 * 11 * 3 + 3)
        self.assertIsInstance(self.info(moved, index="none"), str)
        found = npyfs("info", "--json", "--index-dir", self.index, "--index", moved / "data.index", moved)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertEqual(json.loads(found.stdout), whole)
        # It is in the folder now.
        self.assertIsInstance(self.info(moved), dict)

    def test_an_index_that_is_none_is_refused(self):
        tar = self.folder / "data.tar"
        write_tar(tar, 10)
        done = npyfs("info", "--index", tar, tar)
        self.assertEqual(done.returncode, 1)
        self.assertIn("it is no index", done.stderr)

    def test_only_an_index_is_replaced(self):
        tar = self.folder / "data.tar"
        write_tar(tar, 10)
        before = tar.read_bytes()
        link = self.folder / "link"
        link.symlink_to(tar)
        for target in (tar, link, self.folder):
            done = npyfs("index", "--index-dir", "none", tar, "-o", target)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("no index", done.stderr)
        self.assertEqual(tar.read_bytes(), before)
        for _ in range(2):
            done = npyfs("index", "--index-dir", "none", tar, "-o", self.folder / "made.index")
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_verify_at_mount_reads_all_anew(self):
        zipped = self.folder / "data.tar.gz"
        tar = self.folder / "data.tar"
        write_tar(tar, 100)
        zipped.write_bytes(gzip.compress(tar.read_bytes(), 0))
        age(zipped)
        npyfs("index", "--index-dir", self.index, zipped)
        self.spoil(zipped, zipped.stat().st_size // 2)
        self.assertIsInstance(self.info(zipped), dict)
        done = npyfs("info", "--verify=mount", "--index-dir", self.index, zipped)
        self.assertEqual(done.returncode, 1)
        self.assertIn("data.tar.gz", done.stderr)

    def test_an_order_of_words_is_told_from_text(self):
        data = self.folder / "dir"
        data.mkdir()
        write_ark(data / "feats.ark", 3)
        (data / "feats.scp").write_text("".join(f"utt-{i:06d} {data}/feats.ark:11\n" for i in range(1)))
        (data / "text").write_text("utt-000000 0 7 8\n")
        for path in data.iterdir():
            age(path)
        as_numbers = ["--decode", "x=int32vector", f"ark:{data}/text"]
        plain = self.info(*as_numbers, index="none")
        npyfs("index", "--index-dir", self.index, "--decode", "x=int32vector", f"kaldi:{data}")
        self.assertEqual(self.info(*as_numbers), plain)

    def test_from_a_folder_that_is_gone(self):
        tar = self.folder / "data.tar"
        write_tar(tar, 10)
        gone = self.folder / "gone"
        gone.mkdir()
        done = npyfs("info", "--index-dir", self.index, tar,
                     preexec_fn=lambda: (os.chdir(gone), os.rmdir(gone)))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_command_keeps_what_is_small_too(self):
        tar = self.folder / "data.tar"
        write_tar(tar, 3)
        self.info(tar)
        self.assertEqual(self.files(), [])
        done = npyfs("index", "--index-dir", self.index, tar)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.files()), 1)
        again = npyfs("index", "--index-dir", self.index, tar)
        self.assertIn("nothing to write", again.stdout)

    def test_by_default_it_lies_in_the_cache_of_the_user(self):
        tar = self.folder / "data.tar"
        write_tar(tar, 800)
        cache = self.folder / "cache"
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
        npyfs("info", tar, env=environment)
        self.assertEqual(len(list(cache.glob("npyfs/*.index"))), 1)
        self.assertEqual((cache / "npyfs").stat().st_mode & 0o777, 0o700)


if __name__ == "__main__":
    unittest.main()

"""Arrays that are kept in --cache-dir: what it holds, who reads it, and that nothing wrong is served."""

import errno
import gzip
import io
import json
import os
import subprocess
import time
import unittest
import wave

import numpy as np

from mounting import MountTest, npyfs, read_direct, read_range, saved, unmount
from test_damage import flip
from writers import write_ffrecord, write_kaldi, write_tfrecord

MIB = 1 << 20


def read(path):
    """All bytes, past what the kernel has of earlier tests' mounts: each mount has pages of its own."""
    return path.read_bytes()


class KeptTest(MountTest):
    """5 MiB of records: three blocks, of which the last one is short."""

    def setUp(self):
        super().setUp()
        self.rows = np.random.default_rng(1).integers(0, 255, (1280, 4096), np.uint8)
        self.bytes = saved(self.rows)
        self.source = self.folder / "data.ffr"
        write_ffrecord(self.source, self.rows)
        self.cache = self.folder / "cache"

    def read_all(self, *arguments, source=None, file="train/x.npy", cache=None):
        """The bytes of the array through a mount of its own, which has ended when this returns."""
        point = self.folder / "mnt"
        point.mkdir(exist_ok=True)
        self.addCleanup(unmount, point)
        done = npyfs("mount", "--cache-dir", cache or self.cache, *arguments, source or self.source,
                     point)
        self.assertEqual(done.returncode, 0, done.stderr)
        try:
            return read(point / file)
        finally:
            unmount(point)

    def kernel_reads_files(self):
        """Whether it reads a .npy file by itself here, as test_native.py makes sure that it does."""
        file = self.folder / "file.npy"
        np.save(file, self.rows[:4])
        said = json.loads(npyfs("info", "--json", file).stdout)
        return "not_native" not in said

    def complete(self):
        return sorted(self.cache.glob("*.npy"))

    def spoil_source(self, offset=12 + 12 * 1280 + 7 * 4096 + 5):
        """Changes a byte so that nobody can see it: what is served then cannot come from there."""
        about = self.source.stat()
        flip(self.source, offset)
        os.utime(self.source, ns=(about.st_atime_ns, about.st_mtime_ns))


class Kept(KeptTest):
    def test_what_was_read_is_a_plain_file(self):
        self.assertEqual(self.read_all(), self.bytes)
        [kept] = self.complete()
        self.assertEqual(kept.read_bytes(), self.bytes)
        np.testing.assert_array_equal(np.load(kept), self.rows)

    def test_the_next_mount_reads_it(self):
        self.read_all()
        self.spoil_source()
        self.assertEqual(self.read_all(), self.bytes)

    def test_the_kernel_reads_a_complete_one(self):
        self.read_all()
        self.spoil_source()
        for more in ([], ["-o", "no_passthrough"]):
            mnt = self.mount("--cache-dir", self.cache, *more, self.source,
                             name=f"mnt-{len(more)}")
            array = np.load(mnt / "train/x.npy", mmap_mode="r")
            np.testing.assert_array_equal(array, self.rows)
            self.assertEqual(read_direct(mnt / "train/x.npy", 4096, 8192), self.bytes[4096:12288])
            native = os.getxattr(mnt / "train/x.npy", "user.npyfs.access") == b"native"
            self.assertEqual(native, not more and self.kernel_reads_files())
            del array

    def test_one_that_is_completed_while_it_is_open(self):
        mnt = self.mount("--cache-dir", self.cache, self.source)
        first = np.load(mnt / "train/x.npy", mmap_mode="r")
        np.testing.assert_array_equal(first, self.rows)
        for _ in range(50):
            if self.complete():
                break
            time.sleep(0.1)
        self.assertEqual(len(self.complete()), 1)
        inode = os.stat(mnt / "train/x.npy").st_ino
        native = b"native" if self.kernel_reads_files() else b"mapped"
        for _ in range(50):
            second = np.load(mnt / "train/x.npy", mmap_mode="r")
            if os.getxattr(mnt / "train/x.npy", "user.npyfs.access") == native:
                break
            time.sleep(0.1)
        self.assertEqual(os.getxattr(mnt / "train/x.npy", "user.npyfs.access"), native)
        self.assertEqual(os.stat(mnt / "train/x.npy").st_ino, inode)
        np.testing.assert_array_equal(second, self.rows)
        np.testing.assert_array_equal(first, self.rows)

    def test_without_it_the_spoilt_byte_is_seen(self):
        self.spoil_source()
        with self.assertRaises(OSError):
            self.read_all()

    def test_a_part_is_kept_and_completed_later(self):
        mnt = self.mount("--cache-dir", self.cache, self.source)
        self.assertEqual(read_range(mnt / "train/x.npy", 0, 2 * MIB), self.bytes[:2 * MIB])
        unmount(mnt)
        self.assertEqual(self.complete(), [])
        self.spoil_source()
        mnt = self.mount("--cache-dir", self.cache, self.source, name="again")
        path = mnt / "train/x.npy"
        self.assertEqual(read_range(path, 0, 2 * MIB), self.bytes[:2 * MIB])
        self.assertEqual(read_range(path, 2 * MIB, 3 * MIB), self.bytes[2 * MIB:5 * MIB])
        self.assertEqual(read(path), self.bytes)
        unmount(mnt)
        self.assertEqual(self.complete()[0].read_bytes(), self.bytes)

    def test_what_was_dropped_is_kept_when_most_was_read(self):
        """More blocks begun at once than there is memory for; none is read twice."""
        rows = np.random.default_rng(2).integers(0, 255, (20 * 512, 4096), np.uint8)
        source = self.folder / "large.ffr"
        write_ffrecord(source, rows)
        wanted = saved(rows)
        path = self.mount("--cache-dir", self.cache, source) / "train/x.npy"
        for half in (0, MIB):
            for begin in range(half, len(wanted), 2 * MIB):
                piece = wanted[begin:begin + MIB]
                self.assertEqual(read_range(path, begin, len(piece)), piece)
        for _ in range(100):
            if self.complete():
                break
            time.sleep(0.1)
        [kept] = self.complete()
        self.assertEqual(kept.read_bytes(), wanted)
        self.assertEqual(read(path), wanted)

    def test_a_changed_source_is_another_array(self):
        self.read_all()
        self.rows[7, 5] ^= 1
        write_ffrecord(self.source, self.rows)
        self.assertEqual(self.read_all(), saved(self.rows))
        self.assertEqual(len(self.complete()), 2)

    def test_other_options_are_other_arrays(self):
        self.read_all()
        shaped = self.read_all("--dtype", "x=<u2")
        self.assertEqual(shaped, saved(self.rows.view("<u2")))
        self.assertEqual(self.read_all("--rows", "3:700"), saved(self.rows[3:700]))
        self.assertEqual(len(self.complete()), 3)

    def test_a_list_of_keys_is_part_of_what_is_kept(self):
        keys = self.folder / "keys"
        keys.write_text("".join(f"{i}\n" for i in range(0, 600)))
        first = self.read_all("--split-list", f"val={keys}", file="val/x.npy")
        self.assertEqual(first, saved(self.rows[:600]))
        about = keys.stat()
        keys.write_text("".join(f"{i}\n" for i in range(600, 1200)))
        os.utime(keys, ns=(about.st_atime_ns, about.st_mtime_ns))
        second = self.read_all("--split-list", f"val={keys}", file="val/x.npy")
        self.assertEqual(second, saved(self.rows[600:1200]))

    def test_a_list_of_classes_is_part_of_what_is_kept(self):
        recording = self.folder / "a.npz"
        np.savez(recording, data=np.zeros((8000, 1), np.float32), samplerate=np.array(100.0))
        (self.folder / "a_annotations.csv").write_text(
            "name,start_seconds,stop_seconds\nbip,1,2\nsyll,3,4\n")
        names = self.folder / "names"
        names.write_text("noise\nbip\nsyll\n")
        about = names.stat()
        read = [self.read_all("--class-names", names, source=f"das:{recording}", file="train/y.npy")]
        names.write_text("noise\nsyll\nbip\n")
        os.utime(names, ns=(about.st_atime_ns, about.st_mtime_ns))
        read += [self.read_all("--class-names", names, source=f"das:{recording}", file="train/y.npy")]
        first, second = (np.load(io.BytesIO(one)) for one in read)
        np.testing.assert_array_equal(first[:, [0, 2, 1]], second)
        self.assertTrue((first != second).any())
        self.assertEqual(len(self.complete()), 2)

    def test_what_commands_print_is_not_kept(self):
        shown = self.folder / "shown"
        script = self.folder / "a.scp"
        script.write_text(f"utt cat {shown} |\n")
        for value in (b"\1", b"\2"):
            with wave.open(str(shown), "wb") as sound:
                sound.setnchannels(1)
                sound.setsampwidth(2)
                sound.setframerate(16000)
                sound.writeframes(value * 40000)
            read = self.read_all("--allow-pipes", source=f"scp:{script}")
            self.assertEqual(read[-40000:], value * 40000)
        self.assertEqual(list(self.cache.glob("*.npy*")), [])

    def test_files_that_change_places_make_other_arrays(self):
        """All files are the same ones, and each is another's by its name."""
        tables = {}
        for name, seed in (("a", 1), ("b", 2), ("c", 3)):
            order = np.random.default_rng(seed).permutation(200)
            lines = "".join(f"k{i:03} {' '.join(map(str, range(i, i + 40)))}\n" for i in order)
            (self.folder / f"{name}.ark").write_text(lines)
            tables[name] = order
        sources = [f"train=ark:{self.folder}/a.ark", f"val=ark:{self.folder}/c.ark"]
        joined = f"train/y=ark:{self.folder}/b.ark"

        def labels():
            mnt = self.mount("--cache-dir", self.cache, "--decode", "x=tokens", *sources, joined,
                             name=f"m{len(os.listdir(self.folder))}")
            try:
                y = np.load(mnt / "train/y.npy")
                return y.tobytes(), np.load(mnt / "train/keys.npy").tolist()
            finally:
                unmount(mnt)

        first, first_keys = labels()
        (self.folder / "a.ark").rename(self.folder / "t.ark")
        (self.folder / "c.ark").rename(self.folder / "a.ark")
        (self.folder / "t.ark").rename(self.folder / "c.ark")
        second, second_keys = labels()
        self.assertNotEqual(first_keys, second_keys)
        self.assertNotEqual(first, second)
        width = len(first) // 200
        where = {key: i for i, key in enumerate(first_keys)}
        for i, key in enumerate(second_keys):
            at = where[key]
            self.assertEqual(second[i * width:(i + 1) * width], first[at * width:(at + 1) * width])

    def test_what_verifying_leaves_out_is_part_of_what_is_kept(self):
        flip(self.source, 12 + 12 * 1280 + 2 * 4096 + 5)
        words = ["--permissive", "--part", "0of2", "--equal", "wrap", "--shuffle", "3"]
        plain = {}
        for when in ("mount", "read"):
            mnt = self.mount(*words, "--verify", when, self.source, name=f"plain-{when}")
            plain[when] = [self.row(mnt / "train/x.npy", i) for i in range(640)]
            unmount(mnt)
        self.assertNotEqual(plain["mount"], plain["read"])
        for when in ("mount", "read"):
            mnt = self.mount(*words, "--verify", when, "--cache-dir", self.cache, self.source,
                             name=f"kept-{when}")
            rows = [self.row(mnt / "train/x.npy", i) for i in range(640)]
            self.assertEqual(rows, plain[when], when)
            unmount(mnt)

    @staticmethod
    def row(path, i):
        try:
            return read_range(path, 128 + 4096 * i, 4096)
        except OSError as error:
            return error.errno

    def test_two_mounts_share_it(self):
        first = self.mount("--cache-dir", self.cache, self.source, name="first")
        second = self.mount("--cache-dir", self.cache, self.source, name="second")
        with subprocess.Popen(["cat", first / "train/x.npy"], stdout=subprocess.PIPE) as one, \
             subprocess.Popen(["cat", second / "train/x.npy"], stdout=subprocess.PIPE) as other:
            self.assertEqual(one.stdout.read(), self.bytes)
            self.assertEqual(other.stdout.read(), self.bytes)
        unmount(first)
        unmount(second)
        self.assertEqual(len(self.complete()), 1)
        self.spoil_source()
        self.assertEqual(self.read_all(), self.bytes)

    def test_decoded_arrays_are_kept(self):
        path = self.folder / "data.tfrecord"
        write_tfrecord(path, self.rows)
        packed = self.folder / "data.tfrecord.gz"
        packed.write_bytes(gzip.compress(path.read_bytes(), 1))
        self.assertEqual(self.read_all(source=packed), self.bytes)
        self.assertEqual(self.complete()[0].read_bytes(), self.bytes)


class Views(KeptTest):
    """Views read what is kept of the plain arrays, and what they read is kept there."""

    ROWS_OF_BLOCK = (2 * MIB - 128) // 4096  # those that lie within the first block

    def spoil_records(self):
        """Changes all records so that nobody can see it: any that is read now is damaged."""
        about = self.source.stat()
        with open(self.source, "r+b") as file:
            file.seek(12 + 12 * 1280)
            file.write((self.rows ^ 0xff).tobytes())
        os.utime(self.source, ns=(about.st_atime_ns, about.st_mtime_ns))

    def served(self, mnt, view, name="x"):
        """The view's array by each way to read it, which give the same, and its perm."""
        path = mnt / view / "train" / f"{name}.npy"
        mapped = np.array(np.load(path, mmap_mode="r"))
        np.testing.assert_array_equal(mapped, np.load(path))
        size = path.stat().st_size
        if size > 8192:
            self.assertEqual(read_direct(path, 4096, 4096), read_range(path, 4096, 4096))
        return mapped, np.load(mnt / view / "train/perm.npy")

    VIEWS = ("@shuffle=1", "@part=1of3", "@shuffle=2,part=0of2", "@rows=100:900,shuffle=5,block=70",
             "@part=2of3,equal=wrap", "@shuffle=3,part=6of7,equal=wrap", "@pad")

    def test_they_read_a_complete_array(self):
        self.read_all()
        self.spoil_records()
        for more in ([], ["-o", "no_passthrough"]):
            mnt = self.mount("--cache-dir", self.cache, *more, self.source, name=f"m{len(more)}")
            for view in self.VIEWS:
                x, perm = self.served(mnt, view)
                np.testing.assert_array_equal(x, self.rows[perm], view)
            empty = mnt / "@rows=7:7/train/x.npy"
            self.assertEqual(np.load(empty).shape, (0, 4096))

    def test_they_read_an_array_in_part(self):
        """From blocks that are there; the other rows come from the source, and only those."""
        mnt = self.mount("--cache-dir", self.cache, self.source)
        read_range(mnt / "train/x.npy", 0, 2 * MIB)
        unmount(mnt)
        self.spoil_records()
        mnt = self.mount(self.source, name="bare")
        self.assert_errno(errno.EIO, read_range, mnt / "@shuffle=1/train/x.npy", 4096, 4096)
        unmount(mnt)
        mnt = self.mount("--cache-dir", self.cache, self.source, name="again")
        for view in ("@shuffle=1", "@rows=300:700"):
            perm = np.load(mnt / view / "train/perm.npy")
            path = mnt / view / "train/x.npy"
            kept = 0
            for row, record in enumerate(perm):
                # The page that a row lies in has bytes of the row before it, too.
                rows = perm[max(row - 1, 0):row + 2]
                if all(rows < self.ROWS_OF_BLOCK):
                    self.assertEqual(read_range(path, 128 + 4096 * row, 4096),
                                     self.rows[record].tobytes())
                    kept += 1
                elif record >= self.ROWS_OF_BLOCK + 1:
                    self.assert_errno(errno.EIO, read_range, path, 128 + 4096 * row, 4096)
            self.assertGreater(kept, 50)

    def test_what_they_read_is_kept(self):
        """Whatever the order: all rows make all blocks."""
        for number, views in enumerate((["@shuffle=1"], ["@part=1of2", "@part=0of2"],
                                        ["@rows=0:800,shuffle=2", "@rows=800:1280"])):
            cache = self.folder / f"cache{number}"
            mnt = self.mount("--cache-dir", cache, self.source, name=f"mnt{number}")
            for view in views:
                perm = np.load(mnt / view / "train/perm.npy")
                np.testing.assert_array_equal(np.load(mnt / view / "train/x.npy"), self.rows[perm])
            unmount(mnt)
            [kept] = cache.glob("*.npy")
            self.assertEqual(kept.read_bytes(), self.bytes, views)

    def test_of_a_mount_that_is_a_view(self):
        """Its own array is the plain one, whatever it shows."""
        shown = self.read_all("--shuffle", "7", "--rows", "0:1000")
        rows = np.load(io.BytesIO(shown))
        self.assertEqual(self.complete()[0].read_bytes(), shown)
        self.spoil_records()
        mnt = self.mount("--cache-dir", self.cache, "--shuffle", "7", "--rows", "0:1000",
                         self.source, name="again")
        for view in ("@part=1of3", "@shuffle=2"):
            x, perm = self.served(mnt, view)
            np.testing.assert_array_equal(x, rows[perm])

    def test_the_array_is_dropped_meanwhile(self):
        """What is not there any more comes from the source again."""
        self.read_all()
        for what in ("complete", "in part"):
            mnt = self.mount("--cache-dir", self.cache, self.source, name=what.replace(" ", "-"))
            perm = np.load(mnt / "@shuffle=1/train/perm.npy")
            with open(mnt / "@shuffle=1/train/x.npy", "rb") as file:
                for row, record in enumerate(perm):
                    if row == 300:
                        for kept in self.cache.iterdir():
                            kept.unlink()
                    self.assertEqual(os.pread(file.fileno(), 4096, 128 + 4096 * row),
                                     self.rows[record].tobytes(), (what, row))
            read_range(mnt / "train/x.npy", 0, 2 * MIB)
            unmount(mnt)

    def test_damage_stays_damage(self):
        flip(self.source, 12 + 12 * 1280 + 700 * 4096 + 5)
        for number in range(2):
            mnt = self.mount("--cache-dir", self.cache, self.source, name=f"mnt{number}")
            perm = np.load(mnt / "@shuffle=1/train/perm.npy")
            for row, record in enumerate(perm):
                path = mnt / "@shuffle=1/train/x.npy"
                if 700 in perm[max(row - 1, 0):row + 2]:  # one page with it
                    if record == 700:
                        self.assert_errno(errno.EIO, read_range, path, 128 + 4096 * row, 4096)
                else:
                    self.assertEqual(read_range(path, 128 + 4096 * row, 4096),
                                     self.rows[record].tobytes())
            unmount(mnt)
        self.assertEqual(self.complete(), [])

    def test_records_that_are_left_out(self):
        flip(self.source, 12 + 12 * 1280 + 700 * 4096 + 5)
        rows = np.delete(self.rows, 700, axis=0)
        words = ["--permissive", "--verify", "mount"]
        self.assertEqual(self.read_all(*words), saved(rows))
        mnt = self.mount("--cache-dir", self.cache, *words, self.source, name="again")
        for view in self.VIEWS:
            x, perm = self.served(mnt, view)
            np.testing.assert_array_equal(x, rows[perm], view)

    def test_a_source_that_changes_is_found(self):
        self.read_all()
        mnt = self.mount("--cache-dir", self.cache, self.source, name="again")
        np.load(mnt / "@shuffle=1/train/x.npy")
        write_ffrecord(self.source, self.rows[::-1])
        time.sleep(1.1)  # it is looked at once a second
        self.assert_errno(errno.ESTALE, open, mnt / "@shuffle=1/train/x.npy")

    def random_view(self, random, pads):
        words = []
        if random.integers(2):
            begin = int(random.integers(0, 400))
            words.append(f"rows={begin}:{begin + int(random.integers(0, 400))}")
        if random.integers(4):
            words.append(f"shuffle={random.integers(2**63)}")
            words += [f"block={random.integers(1, 40)}"] * int(random.integers(2))
        if random.integers(2) or not words:
            world = int(random.integers(1, 6))
            words.append(f"part={random.integers(world)}of{world}")
            words += [f"equal={random.choice(['drop', 'wrap'])}"] * int(random.integers(2))
        words += ["pad"] * (pads and int(random.integers(2)))
        return "@" + ",".join(random.permutation(words))

    def check_random_views(self, arguments, cache, random):
        """Views in a mount with `cache` against those in one without."""
        number = len(os.listdir(self.folder))
        bare = self.mount(*arguments, name=f"bare-{number}")
        mnt = self.mount("--cache-dir", cache, *arguments, name=f"mnt-{number}")
        for _ in range(6):
            view = self.random_view(random, True)
            names = sorted(os.listdir(bare / view / "train"))
            self.assertEqual(sorted(os.listdir(mnt / view / "train")), names)
            for name in (name for name in names if name.endswith(".npy")):
                path, expected = mnt / view / "train" / name, bare / view / "train" / name
                for _ in range(10):
                    size = path.stat().st_size
                    at = int(random.integers(size))
                    n = min(int(random.integers(1, 30_000)), size - at)
                    self.assertEqual(read_range(path, at, n), read_range(expected, at, n),
                                     (view, name, at, n))
                self.assertEqual(path.read_bytes(), expected.read_bytes(), (view, name))
        unmount(bare)
        unmount(mnt)

    def check_in_all_states(self, *arguments):
        """With an empty cache, one with some blocks of x, and one with all arrays."""
        seed = int.from_bytes(os.urandom(4), "little")
        random = np.random.default_rng(seed)
        for state in ("empty", "part", "complete"):
            cache = self.folder / f"cache-{state}"
            if state != "empty":
                mnt = self.mount("--cache-dir", cache, *arguments, name=state)
                if state == "part":
                    read_range(mnt / "train/x.npy", 0, 2 * MIB)
                else:
                    for path in (mnt / "train").glob("*.npy"):
                        path.read_bytes()
                unmount(mnt)
                self.assertGreater(len(list(cache.glob("*.npy*"))), 0)
            with self.subTest(state=state, seed=seed):
                self.check_random_views(arguments, cache, random)

    def test_random_views_of_records_of_several_lengths(self):
        random = np.random.default_rng(3)
        items = {}
        for i in range(900):
            rows = int(random.integers(0, 90))
            items[f"utterance-{'long-' * int(random.integers(4))}{i:04d}"] = (
                random.standard_normal((rows, 40 if rows else 0)).astype(np.float32))
        write_kaldi(self.folder / "a", items)
        self.check_in_all_states(f"ark:{self.folder}/a.ark")

    def test_random_views_of_padded_records(self):
        random = np.random.default_rng(4)
        lengths = random.integers(1, 5000, 900)
        write_tfrecord(self.folder / "a.tfrecord", [random.bytes(n) for n in lengths])
        self.check_in_all_states("--layout", "x=pad", "--pad-value", "7",
                                 self.folder / "a.tfrecord")

    def test_random_views_of_stores(self):
        """Ragged arrays, and arrays of several lengths in one directory."""
        folder = self.folder / "set/train"
        folder.mkdir(parents=True)
        random = np.random.default_rng(5)
        lengths = random.integers(0, 2000, 700)
        np.save(folder / "x.npy", random.integers(0, 2**31, (lengths.sum(), 2)).astype(np.int32))
        np.save(folder / "x_offsets.npy", np.cumsum(np.append(0, lengths)))
        np.save(folder / "y.npy", random.integers(0, 9, (700, 5)))
        np.save(folder / "z.npy", random.standard_normal(3000))
        self.check_in_all_states("--header-align", "4096", f"npy:{self.folder}/set")


class Odd(KeptTest):
    """What lies in the folder may be anything."""

    def test_a_flipped_bit_is_not_served(self):
        self.read_all()
        [kept] = self.complete()
        kept.chmod(0o600)
        flip(kept, 3 * MIB)
        self.assertEqual(self.read_all(), self.bytes)

    def test_a_cut_file_is_not_served(self):
        self.read_all()
        [kept] = self.complete()
        kept.chmod(0o600)
        os.truncate(kept, 2 * MIB + 17)
        self.assertEqual(self.read_all(), self.bytes)

    def test_a_foreign_file_is_not_served(self):
        self.read_all()
        [kept] = self.complete()
        kept.unlink()
        kept.write_bytes(bytes(len(self.bytes)))
        self.assertEqual(self.read_all(), self.bytes)

    def test_a_map_of_nonsense_is_made_anew(self):
        self.read_all()
        [sidecar] = self.cache.glob("*.map")
        sidecar.write_bytes(b"nonsense" * 100)
        self.assertEqual(self.read_all(), self.bytes)
        self.assertEqual(self.complete()[0].read_bytes(), self.bytes)

    def test_who_verifies_nothing_keeps_nothing(self):
        self.assertEqual(self.read_all("--verify", "never"), self.bytes)
        self.assertEqual(list(self.cache.glob("*.npy*")), [])

    def test_damage_stays_damage(self):
        flip(self.source, 12 + 12 * 1280 + 700 * 4096 + 5)
        mnt = self.mount("--cache-dir", self.cache, self.source)
        path = mnt / "train/x.npy"
        for begin in range(0, len(self.bytes), 4096):
            piece = self.bytes[begin:begin + 4096]
            if begin // 4096 in (700, 701):  # the header moves each row by 128 bytes
                self.assert_errno(errno.EIO, read_range, path, begin, len(piece))
            else:
                self.assertEqual(read_range(path, begin, len(piece)), piece, begin)
        unmount(mnt)
        self.assertEqual(self.complete(), [])

    def test_a_folder_of_everybody_is_refused(self):
        self.cache.mkdir()
        self.cache.chmod(0o777)
        point = self.mount_point()
        done = npyfs("mount", "--cache-dir", self.cache, self.source, point)
        self.assertEqual(done.returncode, 1)
        self.assertIn(str(self.cache), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def refused(self, cache, *words, sources=None, point=None):
        point = point or self.mount_point(f"m{len(os.listdir(self.folder))}")
        done = npyfs("mount", "--cache-dir", cache, *(sources or [self.source]), point)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_folders_that_cannot_hold_it_are_refused(self):
        self.refused("", "--cache-dir: it is empty")
        self.folder.chmod(0o700)
        self.refused(self.folder, "data.ffr lies in the cache folder")
        point = self.mount_point("over")
        self.refused(point, "would hide the cache folder", point=point)

    def test_a_folder_that_may_only_be_read_is_read(self):
        self.read_all()
        mounted = subprocess.run(["mount", "--bind", "-o", "ro", self.cache, self.cache])
        if mounted.returncode != 0:
            self.skipTest("nothing can be mounted on it")
        self.addCleanup(subprocess.run, ["umount", self.cache], check=True)
        self.spoil_source()
        self.assertEqual(self.read_all(), self.bytes)

    def test_a_full_folder_is_no_error_of_a_read(self):
        self.assertEqual(self.read_all("--cache-dir-size", "1M"), self.bytes)
        self.assertEqual(self.complete(), [])

    def test_a_full_disk_is_no_error_of_a_read(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "none", disk])
        if mounted.returncode != 0:
            self.skipTest("no tmpfs can be mounted")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        for _ in range(2):
            self.assertEqual(self.read_all(cache=disk), self.bytes)


class Stores(KeptTest):
    """Arrays that are many files, looked at when the store is opened."""

    ROWS = 128  # of a chunk

    def setUp(self):
        super().setUp()
        self.store = self.folder / "s.zarr"
        self.rows[self.ROWS:2 * self.ROWS] = 0  # never written
        self.bytes = saved(self.rows)

    def write(self, compressor, **more):
        import zarr
        group = zarr.open_group(str(self.store), mode="w")
        x = group.create_dataset("x", shape=self.rows.shape, chunks=(self.ROWS, 4096), dtype="|u1",
                                 fill_value=0, compressor=compressor, **more)
        for begin in range(0, len(self.rows), self.ROWS):
            if begin != self.ROWS:
                x[begin:begin + self.ROWS] = self.rows[begin:begin + self.ROWS]
        self.assertFalse((self.store / "x/1.0").exists())

    def read_store(self):
        return self.read_all(source=self.store, file="x.npy")

    def spoil_chunks(self):
        """Changes all chunks so that nobody can see it."""
        for chunk in (self.store / "x").glob("[0-9]*"):
            about = chunk.stat()
            chunk.write_bytes(bytes(byte ^ 0x5a for byte in chunk.read_bytes()))
            os.utime(chunk, ns=(about.st_atime_ns, about.st_mtime_ns))

    def codecs(self):
        import numcodecs
        return {"plain": None, "zstd": numcodecs.Zstd(1)}

    def test_are_kept(self):
        for name, codec in self.codecs().items():
            self.write(codec)
            self.cache = self.folder / f"cache-{name}"
            self.assertEqual(self.read_store(), self.bytes)
            self.assertEqual(self.complete()[0].read_bytes(), self.bytes)
            self.spoil_chunks()
            self.assertEqual(self.read_store(), self.bytes)
            mnt = self.mount("--cache-dir", self.cache, self.store, name=f"views-{name}")
            order = np.load(mnt / "@shuffle=1/perm.npy")
            np.testing.assert_array_equal(np.load(mnt / "@shuffle=1/x.npy"), self.rows[order])
            unmount(mnt)

    def changes(self):
        """What may be done to a chunk: each gives the rows that the store then has."""
        def rewritten(folder):
            chunk = bytearray((folder / "3.0").read_bytes())
            chunk[5] ^= 1
            (folder / "3.0").write_bytes(chunk)
            self.rows[3 * self.ROWS, 5] ^= 1

        def replaced(folder):  # by a file as old and as large
            about = (folder / "4.0").stat()
            (folder / "new").write_bytes((folder / "5.0").read_bytes())
            os.utime(folder / "new", ns=(about.st_atime_ns, about.st_mtime_ns))
            os.replace(folder / "new", folder / "4.0")
            self.rows[4 * self.ROWS:5 * self.ROWS] = self.rows[5 * self.ROWS:6 * self.ROWS]

        def swapped(folder):  # each file is one that was there before
            os.replace(folder / "6.0", folder / "new")
            os.replace(folder / "7.0", folder / "6.0")
            os.replace(folder / "new", folder / "7.0")
            a, b = 6 * self.ROWS, 7 * self.ROWS
            self.rows[a:b + self.ROWS] = np.roll(self.rows[a:b + self.ROWS], self.ROWS, axis=0)

        def added(folder):
            (folder / "1.0").write_bytes((folder / "0.0").read_bytes())
            self.rows[self.ROWS:2 * self.ROWS] = self.rows[:self.ROWS]

        def removed(folder):
            (folder / "8.0").unlink()
            self.rows[8 * self.ROWS:9 * self.ROWS] = 0

        return rewritten, replaced, swapped, added, removed

    def test_changes_between_mounts(self):
        self.write(None)
        self.assertEqual(self.read_store(), self.bytes)
        for change in self.changes():
            change(self.store / "x")
            self.assertNotEqual(saved(self.rows), self.bytes)
            for _ in range(2):
                self.assertEqual(self.read_store(), saved(self.rows), change.__name__)
        self.assertEqual(len(self.complete()), 6)

    def test_changes_while_it_is_mounted(self):
        """Found when the array is opened, though the kernel or the kept file has all bytes; reads of
        the chunk itself, where it is not kept, find it as they would without --cache-dir."""
        self.write(None)
        self.read_store()
        for number, change in enumerate(self.changes()):
            mnt = self.mount("--cache-dir", self.cache, self.store, name=f"m{number}")
            self.assertEqual(read(mnt / "x.npy"), saved(self.rows))
            change(self.store / "x")
            time.sleep(1.1)  # it is looked at once a second
            self.assert_errno(errno.ESTALE, read, mnt / "x.npy")
            self.assert_errno(errno.ESTALE, read, mnt / "@shuffle=1/x.npy")
            unmount(mnt)
            self.assertEqual(self.read_store(), saved(self.rows))

    def test_changes_before_anything_is_kept(self):
        for number, change in enumerate(self.changes()):
            cache = self.folder / f"cache{number}"
            self.write(None)
            mnt = self.mount("--cache-dir", cache, self.store, name=f"m{number}")
            change(self.store / "x")
            self.assert_errno(errno.ESTALE, read, mnt / "x.npy")
            unmount(mnt)
            self.rows[...] = np.load(io.BytesIO(self.bytes))

    def test_an_archive_is_kept(self):
        import zipfile
        for name, codec in self.codecs().items():
            self.write(codec)
            archive = self.folder / f"{name}.zip"
            with zipfile.ZipFile(archive, "w") as out:
                for path in sorted(self.store.rglob("*")):
                    if path.is_file():
                        out.write(path, path.relative_to(self.store))
            self.cache = self.folder / f"cache-{name}"
            self.assertEqual(self.read_all(source=archive, file="x.npy"), self.bytes)
            self.assertEqual(self.complete()[0].read_bytes(), self.bytes)
            about = archive.stat()
            content = bytearray(archive.read_bytes())
            begin = zipfile.ZipFile(archive).getinfo("x/3.0").header_offset
            content[begin + 100] ^= 1
            archive.write_bytes(content)
            os.utime(archive, ns=(about.st_atime_ns, about.st_mtime_ns))
            self.assertEqual(self.read_all(source=archive, file="x.npy"), self.bytes)
            os.utime(archive)
            with self.assertRaises(OSError):
                self.read_all(source=archive, file="x.npy")

    def test_one_of_more_chunks_than_are_looked_at_is_not_kept(self):
        folder = self.store / "x"
        folder.mkdir(parents=True)
        (self.store / ".zgroup").write_text('{"zarr_format": 2}')
        for count in (65537, 65536):
            (folder / ".zarray").write_text(json.dumps({
                "zarr_format": 2, "shape": [count], "chunks": [1], "dtype": "|u1",
                "compressor": None, "fill_value": 7, "order": "C", "filters": None}))
            self.assertEqual(self.read_store(), saved(np.full(count, 7, np.uint8)))
            self.assertEqual(len(self.complete()), int(count == 65536))

    def test_what_is_read_at_mount_is_part_of_what_is_kept(self):
        """Offsets of ragged arrays decide what a part of x is."""
        import zarr
        group = zarr.open_group(str(self.store), mode="w")
        group.create_dataset("x", data=self.rows, chunks=(self.ROWS, 4096), compressor=None)
        for middle in (200, 900):
            offsets = np.array([0, middle, len(self.rows)])
            group.create_dataset("x_offsets", data=offsets, overwrite=True, compressor=None)
            shown = self.read_all("--part", "0of2", source=self.store, file="x.npy")
            self.assertEqual(shown, saved(self.rows[:middle]))

    def test_members_of_archives_are_kept(self):
        """.npy files that are no files of their own, packed or not."""
        for name, save in (("packed", np.savez_compressed), ("stored", np.savez)):
            source = self.folder / f"{name}.npz"
            save(source, x=self.rows, y=np.asfortranarray(self.rows[:100]))
            self.cache = self.folder / f"cache-{name}"
            mnt = self.mount("--cache-dir", self.cache, source, name=name)
            expected = read(mnt / "x.npy"), read(mnt / "y.npy")
            unmount(mnt)
            self.assertEqual(expected[0], self.bytes)
            self.assertEqual(sorted(kept.read_bytes() for kept in self.complete()),
                             sorted(expected))
            self.spoil_member(source)
            mnt = self.mount("--cache-dir", self.cache, source, name=f"{name}-again")
            self.assertEqual((read(mnt / "x.npy"), read(mnt / "y.npy")), expected)
            order = np.load(mnt / "@shuffle=1/perm.npy")
            np.testing.assert_array_equal(np.load(mnt / "@shuffle=1/x.npy"), self.rows[order])
            unmount(mnt)

    def spoil_member(self, source):
        about = source.stat()
        content = bytearray(source.read_bytes())
        for at in range(2000, 900_000, 100_000):
            content[at] ^= 1
        source.write_bytes(content)
        os.utime(source, ns=(about.st_atime_ns, about.st_mtime_ns))


if __name__ == "__main__":
    unittest.main()

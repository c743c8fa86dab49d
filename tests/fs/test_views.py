"""Views: @shuffle, @part and @pad below a mount, each the same records another way."""

import errno
import io
import json
import os
import pathlib
import signal
import tarfile
import threading
import time
import unittest

import numpy as np

from mounting import PAGE, TIMEOUT, MountTest, memory_of, npyfs, read_range, saved
from writers import write_kaldi, write_tfrecord

RECORDS = 50


class Views(MountTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(3)
        self.items = [random.standard_normal((int(random.integers(1, 9)), 5)).astype(np.float32)
                      for _ in range(RECORDS)]
        write_kaldi(self.folder / "a", {f"utt-{i:02d}": item for i, item in enumerate(self.items)})
        self.mnt = self.mount("--header-align", "4096", f"ark:{self.folder}/a.ark")

    def load(self, view, name):
        path = self.mnt / view / "train" / f"{name}.npy"
        # numpy maps no empty arrays.
        return np.load(path, mmap_mode="r" if path.stat().st_size > 4096 else None)

    def numbers(self, view):
        """The record that stands at each place of the view, by its key."""
        return [int(key.removeprefix("utt-")) for key in self.load(view, "keys")]

    def check_ragged(self, view):
        numbers = self.numbers(view)
        x, offsets = self.load(view, "x"), self.load(view, "x_offsets")
        self.assertEqual(len(offsets), len(numbers) + 1)
        for place, number in enumerate(numbers):
            np.testing.assert_array_equal(x[offsets[place]:offsets[place + 1]], self.items[number])
        self.assertEqual(len(x), offsets[-1])
        return numbers

    def test_parts_have_each_record_once(self):
        found = []
        for rank in range(7):
            found += self.check_ragged(f"@part={rank}of7")
        self.assertEqual(found, list(range(RECORDS)))

    def test_a_shuffle_has_each_record_once_in_another_order(self):
        numbers = self.check_ragged("@shuffle=7")
        self.assertEqual(sorted(numbers), list(range(RECORDS)))
        self.assertNotEqual(numbers, list(range(RECORDS)))
        parts = [n for rank in range(3) for n in self.check_ragged(f"@shuffle=7,part={rank}of3")]
        self.assertEqual(parts, numbers)

    def test_padded(self):
        x, lengths = self.load("@pad", "x"), self.load("@pad", "x_lengths")
        self.assertEqual(x.shape, (RECORDS, max(map(len, self.items)), 5))
        for item, row, length in zip(self.items, x, lengths):
            self.assertEqual(length, len(item))
            np.testing.assert_array_equal(row[:length], item)
            self.assertFalse(row[length:].any())

    def permutation(self, view):
        return self.load(view, "perm").tolist()

    def test_perm_is_the_record_of_each_row(self):
        for view in ("@part=1of3", "@shuffle=4", "@shuffle=4,epoch=1", "@shuffle=4,block=7",
                     "@shuffle=4,block=7,part=1of3,equal=wrap,rows=3:49", "@rows=5:9"):
            self.assertEqual(self.permutation(view), self.check_ragged(view), view)
        self.assertEqual(self.permutation("@pad"), list(range(RECORDS)))
        self.assertEqual(self.permutation("@rows=5:9"), [5, 6, 7, 8])
        self.assertNotEqual(self.permutation("@shuffle=4,epoch=1"), self.permutation("@shuffle=4"))

    def test_blocks_stay_together(self):
        blocks = [number // 7 for number in self.check_ragged("@shuffle=4,block=7")]
        changes = sum(a != b for a, b in zip(blocks, blocks[1:]))
        self.assertEqual(changes, (RECORDS - 1) // 7)
        self.assertNotEqual(blocks, sorted(blocks))

    def test_shards_stay_together(self):
        """Source files as blocks: of arks named by themselves, and of those that a script names."""
        sizes = (7, 1, 12, 20)
        scripts = []
        for shard, size in enumerate(sizes):
            write_kaldi(self.folder / f"part{shard}",
                        {f"{shard}-{i:02d}": self.items[i] for i in range(size)})
            scripts.append((self.folder / f"part{shard}.scp").read_text())
        (self.folder / "all.scp").write_text("".join(scripts))
        for name, source in (("arks", f"ark:{self.folder}/part{{0..3}}.ark"),
                             ("script", f"scp:{self.folder}/all.scp")):
            mnt = self.mount(source, name=name)
            plain = np.load(mnt / "train/keys.npy")
            self.assertEqual([key[0] for key in plain], list("0" * 7 + "1" + "2" * 12 + "3" * 20))
            orders = set()
            for seed in range(8):
                split = mnt / f"@shuffle={seed},block=shard/train"
                keys = np.load(split / "keys.npy")
                np.testing.assert_array_equal(keys, plain[np.load(split / "perm.npy")])
                self.assertEqual(sorted(keys), sorted(plain))
                shards = [key[0] for key in keys]
                changes = [a for a, b in zip(shards, shards[1:]) if a != b] + [shards[-1]]
                self.assertEqual(sorted(changes), list("0123"))
                orders.add("".join(changes))
            self.assertGreater(len(orders), 1)

    def test_parts_of_one_length(self):
        shuffled = self.check_ragged("@shuffle=7")
        for equal, length in (("drop", 7), ("wrap", 8)):
            parts = [self.check_ragged(f"@shuffle=7,part={rank}of7,equal={equal}")
                     for rank in range(7)]
            self.assertEqual({len(part) for part in parts}, {length})
            self.assertEqual(sum(parts, []), (shuffled + shuffled)[:7 * length])
        attributes = json.loads((self.mnt / "@part=0of7,equal=wrap/attrs.json").read_text())
        self.assertEqual(attributes["npyfs_part"], {"rank": 0, "world_size": 7, "equal": "wrap",
                                                    "repeated": {"train": 6}})

    def test_random_views_are_numpys(self):
        """Every view equals x[perm], for arrays of equal rows and ragged ones."""
        seed = int.from_bytes(os.urandom(4), "little")
        random = np.random.default_rng(seed)
        np.save(self.folder / "fixed.npy", random.standard_normal((97, 3)).astype(">f8"))
        fixed = np.load(self.folder / "fixed.npy")
        self.fixed = self.mount(f"npy:{self.folder}/fixed.npy", name="fixed")
        for _ in range(20):
            words = []
            if random.integers(2):
                begin = int(random.integers(0, 60))
                words.append(f"rows={begin}:{begin + int(random.integers(0, 90))}")
            if random.integers(4):
                words.append(f"shuffle={random.integers(2**63)}")
                words += [f"epoch={random.integers(5)}"] * int(random.integers(2))
                words += [f"block={random.integers(1, 40)}"] * int(random.integers(2))
            if random.integers(2) or not words:
                world = int(random.integers(1, 9))
                words.append(f"part={random.integers(world)}of{world}")
                words += [f"equal={random.choice(['drop', 'wrap'])}"] * int(random.integers(2))
            view = "@" + ",".join(random.permutation(words))
            with self.subTest(view=view, seed=seed):
                self.assertEqual(self.permutation(view), self.check_ragged(view))
                shown, permutation = (np.load(self.fixed / view / "train" / f"{name}.npy")
                                      for name in ("x", "perm"))
                self.assertEqual(shown.dtype, fixed.dtype)
                np.testing.assert_array_equal(shown, fixed[permutation])

    def record_or_damage(self, path, offset, nbytes):
        """The bytes; None where reading any of them fails."""
        try:
            got = read_range(path, offset, nbytes) if nbytes > 0 else b""
        except OSError as error:
            self.assertEqual(error.errno, errno.EIO)
            return None
        return got if len(got) == nbytes else None

    def test_random_views_of_damaged_shards(self):
        """Each row of a view is its record, as it is or padded, and EIO where that is damaged.

        Rows are pages: no read of one fails for its neighbour."""
        seed = int.from_bytes(os.urandom(4), "little")
        random = np.random.default_rng(seed)
        sizes = [int(n) for n in random.integers(1, 60, 4)]
        count = sum(sizes)
        items = [random.integers(0, 99, (int(random.choice([0, 1, 2, 5])), PAGE)).astype("|u1")
                 for _ in range(count)]
        items[0] = np.ones((2, PAGE), "|u1")
        bad = set(random.choice(np.arange(1, count), count // 9, replace=False).tolist())
        firsts = np.cumsum([0] + sizes).tolist()
        (self.folder / "shards").mkdir()
        for shard, (begin, end) in enumerate(zip(firsts, firsts[1:])):
            with tarfile.open(self.folder / f"shards/{shard}.tar", "w") as tar:
                for i in range(begin, end):
                    payload = saved(items[i])
                    if i in bad:
                        payload = b"\x93NUMPY\x01\x00\xff\xff" + payload[10:]
                    for extension, content in (("npy", payload), ("cls", str(i).encode())):
                        member = tarfile.TarInfo(f"{i:04}.{extension}")
                        member.size = len(content)
                        tar.addfile(member, io.BytesIO(content))
        mnt = self.mount("--header-align", str(PAGE), f"tar:{self.folder}/shards/{{0..3}}.tar",
                         name="of-shards")
        for _ in range(12):
            words = [f"shuffle={random.integers(2**63)}"]
            words += [str(random.choice(["block=shard", f"block={random.integers(1, 40)}"]))
                      ] * int(random.integers(2))
            words += [f"part={random.integers(3)}of3"] * int(random.integers(2))
            pad = bool(random.integers(2))
            view = "@" + ",".join(random.permutation(words + ["pad"] * pad))
            with self.subTest(view=view, seed=seed):
                split = mnt / view / "train"
                permutation = np.load(split / "perm.npy").tolist()
                self.assertEqual(np.load(split / "y.npy").tolist(), permutation)
                if "part" not in view:
                    self.assertEqual(sorted(permutation), list(range(count)))
                if "block=shard" in view:
                    shards = np.searchsorted(firsts, permutation, "right")
                    self.assertEqual(np.count_nonzero(np.diff(shards)), len(set(shards)) - 1)
                x = np.load(split / "x.npy", mmap_mode="r") if permutation else None
                if pad:
                    starts = np.arange(len(permutation) + 1) * x.shape[1]
                    lengths = np.load(split / "x_lengths.npy")
                else:
                    starts = np.load(split / "x_offsets.npy")
                    lengths = np.diff(starts)
                for row, record in enumerate(permutation):
                    got = self.record_or_damage(split / "x.npy", PAGE * (1 + int(starts[row])),
                                                PAGE * int(starts[row + 1] - starts[row]))
                    if record in bad:
                        self.assertIn(got, (None, b""), record)
                        continue
                    self.assertEqual(lengths[row], len(items[record]), record)
                    self.assertEqual(got, items[record].tobytes().ljust(len(got or b""), b"\0"),
                                     record)

    def test_x_says_how_many_records_there_are(self):
        """Where arrays disagree, also in Fortran order; a group without x and agreement has none."""
        for group, arrays in (("train", {"a": 10, "b": 20, "x": 30}), ("val", {"a": 10, "b": 20})):
            (self.folder / "set" / group).mkdir(parents=True)
            for name, rows in arrays.items():
                np.save(self.folder / "set" / group / name,
                        np.asfortranarray(np.arange(3 * rows).reshape(rows, 3)))
        mnt = self.mount(f"npy:{self.folder}/set", name="of-set")
        train = mnt / "@shuffle=3,part=0of4,equal=drop/train"
        permutation = np.load(train / "perm.npy")
        self.assertEqual(len(permutation), 7)
        np.testing.assert_array_equal(np.load(train / "x.npy"),
                                      np.load(mnt / "train/x.npy")[permutation])
        self.assertFalse((mnt / "@shuffle=3/val/perm.npy").exists())
        told = json.loads((mnt / "@shuffle=3,part=0of4,equal=drop/attrs.json").read_text())
        self.assertEqual(told["npyfs_part"]["left_out"], {"train": 2})

    def test_words_are_options_too(self):
        for number, (view, options) in enumerate((
                ("@shuffle=4,block=7", ["--shuffle", "4", "--block", "7"]),
                ("@rows=5:45,part=1of2,equal=wrap",
                 ["--rows", "5:45", "--rank", "1", "--world-size", "2", "--equal", "wrap"]),
                ("@shuffle=4,epoch=3,part=1of2,pad",
                 ["--shuffle", "4", "--epoch", "3", "--part", "1of2", "--pad"]))):
            mnt = self.mount("--header-align", "4096", *options, f"ark:{self.folder}/a.ark",
                             name=f"mnt{number}")
            for name in sorted(os.listdir(mnt / "train")):
                if name.endswith(".npy"):
                    self.assertEqual((mnt / "train" / name).read_bytes(),
                                     (self.mnt / view / "train" / name).read_bytes(), name)
            self.assertFalse((mnt / "train/perm.npy").exists())
        for options in (["--block", "7"], ["--equal", "drop"], ["--shuffle", "x"],
                        ["--part", "0of2", "--rank", "0"], ["--rows", "5"]):
            self.assertEqual(npyfs("info", *options, f"ark:{self.folder}/a.ark").returncode, 2,
                             options)

    def test_are_not_listed_but_read_as_a_data_set_of_their_own(self):
        view = self.mnt / "@shuffle=1"
        self.assertEqual(sorted(os.listdir(view)), ["attrs.json", "attrs.npy", "train"])
        self.assertNotIn("@shuffle=1", os.listdir(self.mnt))
        self.assertFalse((self.mnt / "@nonsense").exists())
        self.assertFalse((self.mnt / "train/@pad").exists())
        part = self.mnt / "@part=1of2/train/records"
        self.assertEqual(len(os.listdir(part)), RECORDS // 2)
        whole = self.mnt / "train/records/utt-30.bin"
        self.assertEqual((part / "utt-30.bin").read_bytes(), whole.read_bytes())


class ViewsComeAndGo(MountTest):
    """A view has another number each time it is made, so the number tells whether it has gone."""

    COUNT = 30_000  # records
    IDLE = 16       # views that are kept though nothing of them is open

    def setUp(self):
        super().setUp()
        lengths = np.repeat([32, 50, 71, 96], self.COUNT // 4)
        self.source = self.folder / "train.tfrecord"
        write_tfrecord(self.source, [bytes([i % 256]) * n for i, n in enumerate(lengths)])

    def number(self, view):
        return (self.mnt / view).stat().st_ino

    def use(self, view):
        """Opens, reads and closes; returns the arrays' bytes, the first of them and all offsets."""
        folder = self.mnt / view / "train"
        with open(folder / "x.npy", "rb") as x:
            return x.read(20_000), (folder / "x_offsets.npy").read_bytes()

    def use_others(self, first, count):
        for i in range(first, first + count):
            self.use(f"@shuffle={i}")

    def wait_until_gone(self, view, number, again=lambda: None):
        """The kernel is asked soon after there are too many, not at once."""
        deadline = time.monotonic() + TIMEOUT
        while self.number(view) == number:
            self.assertLess(time.monotonic(), deadline, f"{view} stays")
            again()

    def read_held(self, fd, nbytes, offset):
        """Past what the kernel has cached."""
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        return os.pread(fd, nbytes, offset)

    def test_idle_views_are_let_go_of(self):
        self.mnt = self.mount(self.source)
        number, before = self.number("@shuffle=0"), self.use("@shuffle=0")
        self.use_others(1, self.IDLE - 1)
        self.assertEqual(self.number("@shuffle=0"), number, "that many stay")
        self.use_others(self.IDLE, 2 * self.IDLE)
        self.wait_until_gone("@shuffle=0", number)
        self.assertEqual(self.use("@shuffle=0"), before, "the same view again")

    def test_an_open_view_stays_and_stays_right(self):
        self.mnt = self.mount(self.source)
        expected = self.use("@shuffle=0")
        number = self.number("@shuffle=0")
        files = [os.open(self.mnt / "@shuffle=0/train" / name, os.O_RDONLY)
                 for name in ("x.npy", "x_offsets.npy")]
        for fd in files:
            self.addCleanup(os.close, fd)
        for first in range(1, 200, 50):
            threads = [threading.Thread(target=self.use_others, args=(first, 50)) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(self.read_held(files[0], 20_000, 0), expected[0])
            self.assertEqual(self.read_held(files[1], len(expected[1]), 0), expected[1])
            self.assertEqual(self.number("@shuffle=0"), number)

    def test_a_listed_directory_and_a_working_directory_stay_right(self):
        self.mnt = self.mount(self.source)
        expected = self.use("@shuffle=0")
        listing = os.scandir(self.mnt / "@shuffle=0/train")
        self.addCleanup(listing.close)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.mnt / "@shuffle=1/train")
        number = self.number("@shuffle=2")
        self.use_others(2, 4 * self.IDLE)
        self.wait_until_gone("@shuffle=2", number)
        self.assertEqual(sorted(entry.name for entry in listing),
                         ["perm.npy", "x.npy", "x_offsets.npy"])
        here = pathlib.Path("x.npy").read_bytes()
        self.assertEqual(here, (self.mnt / "@shuffle=1/train/x.npy").read_bytes())
        self.assertEqual(self.use("@shuffle=0"), expected)
        self.assertEqual(os.getcwd(), str(self.mnt / "@shuffle=1/train"), "its name is used again")

    def test_the_kernel_may_drop_them_any_time(self):
        drop = pathlib.Path("/proc/sys/vm/drop_caches")
        if not os.access(drop, os.W_OK):
            self.skipTest("the kernel's caches cannot be dropped")
        self.mnt = self.mount(self.source)
        number, before = self.number("@shuffle=0"), self.use("@shuffle=0")
        self.wait_until_gone("@shuffle=0", number, again=lambda: drop.write_text("2"))
        self.assertEqual(self.use("@shuffle=0"), before)

    def test_memory_stays_flat(self):
        # A view has 8 bytes for each record, and as many in its decoded offsets: half a MiB.
        self.mnt = self.mount(self.source)
        self.use_others(0, 3 * self.IDLE)
        before = memory_of(self.daemon(self.mnt))
        self.use_others(1000, 200)
        grown = memory_of(self.daemon(self.mnt)) - before
        self.assertLess(grown, 32 << 20, "200 views have 94 MiB")

    def test_ending_while_views_come_and_go(self):
        self.mnt, process = self.mount_in_front(self.source)
        used = [0, 0, 0]

        def use_until_the_end(worker):
            try:
                while True:
                    self.number(f"@shuffle={used[worker] % 200}")
                    used[worker] += 1
            except OSError:
                pass

        threads = [threading.Thread(target=use_until_the_end, args=(i,)) for i in range(len(used))]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + TIMEOUT
        while min(used) < 2 * self.IDLE:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 0)
        for thread in threads:
            thread.join(TIMEOUT)
            self.assertFalse(thread.is_alive())


if __name__ == "__main__":
    unittest.main()

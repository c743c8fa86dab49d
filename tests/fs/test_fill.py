"""npyfs fill, npyfs mount --fill and npyfs cache: what they keep, say and leave alone."""

import gzip
import io
import json
import os
import signal
import subprocess
import tarfile
import time

import numpy as np

from mounting import NPYFS, TIMEOUT, npyfs, read_range, saved, unmount
from test_damage import flip
from test_kept import MIB, KeptTest
from writers import write_ffrecord, write_tfrecord

ACCESS = "user.npyfs.access"


class FillTest(KeptTest):
    def fill(self, *arguments, code=0, source=None, cache=None):
        done = npyfs("fill", "--cache-dir", cache or self.cache, *arguments, source or self.source)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def filled(self, *arguments, code=0, source=None):
        """What fill says of each array, by its path."""
        said = json.loads(self.fill("--json", *arguments, code=code, source=source).stdout)
        return {one["array"]: one for one in said}

    def cached(self, *arguments, code=0):
        done = npyfs("cache", "--cache-dir", self.cache, *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done


class Fill(FillTest):
    def test_a_later_mount_finds_what_was_filled(self):
        done = self.fill()
        self.assertEqual(done.stdout, "1 of 1 array complete (5.0 MiB), 0 of them before\n")
        self.assertEqual(self.complete()[0].read_bytes(), self.bytes)
        self.spoil_source()
        self.assertEqual(self.read_all(), self.bytes)
        self.assertEqual(len(self.complete()), 1)
        self.assertIn("1 of them before", self.fill().stdout)

    def test_with_the_options_of_the_mount(self):
        for options in (["--header-align", "4096"], ["--dtype", "x=<u4", "--shape", "x=32,32"],
                        ["--rows", "5:1000"], ["--shuffle", "3"], ["--verify", "mount"]):
            cache = self.folder / f"cache{options[1]}"
            self.fill(*options, cache=cache)
            [kept] = cache.glob("*.npy")
            # The keys are those of the mount: it makes no other array.
            self.assertEqual(self.read_all(*options, cache=cache), kept.read_bytes(), options)
            self.assertEqual(len(list(cache.glob("*.map"))), 1, options)

    def test_it_says_nothing_where_it_is_to_be_quiet(self):
        done = self.fill("--quiet")
        self.assertEqual(done.stdout + done.stderr, "")

    def test_decoded_formats(self):
        path = self.folder / "data.tfrecord"
        write_tfrecord(path, self.rows)
        packed = self.folder / "data.tfrecord.gz"
        packed.write_bytes(gzip.compress(path.read_bytes(), 1))
        self.fill(source=packed)
        self.assertEqual(self.complete()[0].read_bytes(), self.bytes)

    def test_many_arrays_by_many_threads(self):
        import h5py
        arrays = {f"a{i}": np.random.default_rng(i).integers(0, 9, (200 + i, 1000)) for i in range(12)}
        path = self.folder / "many.h5"
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file.create_dataset(name, data=array, chunks=(50, 100), compression="gzip",
                                    compression_opts=1)
        said = self.filled("--threads", "5", source=path)
        self.assertEqual({one["state"] for one in said.values()}, {"complete"})
        kept = sorted(file.read_bytes() for file in self.complete())
        self.assertEqual(kept, sorted(saved(array) for array in arrays.values()))

    def test_an_array_with_damage_is_filled_around_it(self):
        other = self.folder / "val.ffr"
        write_ffrecord(other, self.rows)
        offset = 12 + 12 * 1280 + 700 * 4096 + 5
        flip(self.source, offset)
        done = npyfs("fill", "--cache-dir", self.cache, "--json", f"train={self.source}",
                     f"val={other}")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in ("train/x.npy", "1 block of 2 MiB cannot be read", "first: ", "data.ffr at byte"):
            self.assertIn(word, done.stderr)
        said = {one["array"]: one for one in json.loads(done.stdout)}
        self.assertEqual(said["train/x.npy"]["state"], "damaged")
        self.assertEqual(said["train/x.npy"]["unread_blocks"], 1)
        self.assertEqual(said["val/x.npy"]["state"], "complete")
        [kept] = self.complete()
        self.assertEqual(kept.read_bytes(), self.bytes)
        rows = {row["array"]: row for row in json.loads(self.cached("--json").stdout)}
        self.assertEqual(rows["train/x.npy"]["state"], "part")
        self.assertEqual(rows["train/x.npy"]["kept_nbytes"], len(self.bytes) - 2 * MIB)

    def test_what_is_not_kept_has_a_reason(self):
        small = self.folder / "val.ffr"
        write_ffrecord(small, self.rows[:2])
        plain = self.folder / "plain.npy"
        np.save(plain, self.rows)
        done = npyfs("fill", "--cache-dir", self.cache, f"train={self.source}", f"val={small}",
                     f"test={plain}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("not kept: val/x.npy: smaller than 16 KiB\n", done.stderr)
        self.assertIn("not kept: test/x.npy: a .npy file already\n", done.stderr)
        self.assertIn("1 of 1 array complete", done.stdout)

    def test_stores_that_cannot_be_kept_are_no_success(self):
        (self.folder / "s.zarr/x").mkdir(parents=True)
        (self.folder / "s.zarr/.zgroup").write_text('{"zarr_format": 2}')
        (self.folder / "s.zarr/x/.zarray").write_text(json.dumps({
            "zarr_format": 2, "shape": [65537], "chunks": [1], "dtype": "|u1", "order": "C",
            "compressor": None, "fill_value": 7, "filters": None}))
        done = self.fill("--quiet", source=self.folder / "s.zarr", code=1)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("not kept: x.npy: of more files than", done.stderr)

    def test_a_store_is_completed(self):
        import zarr
        zarr.open_group(str(self.folder / "s.zarr"), mode="w").create_dataset("x", data=self.rows)
        self.fill("--quiet", source=self.folder / "s.zarr")
        [kept] = self.complete()
        self.assertEqual(kept.read_bytes(), self.bytes)

    def test_options_with_which_nothing_is_kept_are_refused(self):
        for option in (["--verify", "never"], ["--allow-pipes"]):
            self.assertIn(option[0], self.fill(*option, code=2).stderr)

    def test_a_full_folder_keeps_the_first_arrays(self):
        sources = []
        for split in ("a", "b", "c"):
            path = self.folder / f"{split}.ffr"
            self.rows[0, 0] = ord(split)
            write_ffrecord(path, self.rows)
            sources.append(f"{split}={path}")
        done = npyfs("fill", "--threads", "1", "--cache-dir", self.cache, "--cache-dir-size", "12M",
                     *sources)
        self.assertEqual(done.returncode, 1)
        self.assertIn("the cache is full", done.stderr)
        self.assertIn("1 array is not complete; make room", done.stderr)
        self.assertIn("2 of 3 arrays complete", done.stdout)
        self.assertEqual(len(self.complete()), 2)

    def test_folders_that_cannot_be_filled(self):
        self.assertIn("--cache-dir", npyfs("fill", self.source).stderr)
        self.folder.chmod(0o700)
        done = self.fill(cache=self.folder, code=2)
        self.assertIn("data.ffr lies in the cache folder", done.stderr)

    def begin(self, *arguments):
        """A fill that has begun to write."""
        process = subprocess.Popen([NPYFS, "fill", "--threads", "1", "--cache-dir", str(self.cache),
                                    *arguments, str(self.source)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def grow(self, times):
        self.rows = np.concatenate([self.rows] * times)
        self.bytes = saved(self.rows)
        write_ffrecord(self.source, self.rows)

    def wait_for(self, pattern):
        for _ in range(TIMEOUT * 100):
            if list(self.cache.glob(pattern)):
                return
            time.sleep(0.01)
        self.fail(f"no {pattern} in {self.cache}")

    def test_one_that_is_interrupted_goes_on_where_it_ended(self):
        self.grow(40)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            process = self.begin()
            self.wait_for("*.part")
            process.send_signal(number)
            _, said = process.communicate(timeout=TIMEOUT)
            if self.complete():
                break  # it was faster
            self.assertEqual(process.returncode, -number, said)
            if number == signal.SIGTERM:  # the others may be ended before they begin to fill
                self.assertIn("the next run goes on there", said)
        self.fill()
        self.assertEqual(self.complete()[0].read_bytes(), self.bytes)

    def test_two_at_once(self):
        self.grow(10)
        processes = [self.begin() for _ in range(2)]
        for process in processes:
            said = process.communicate(timeout=TIMEOUT)
            self.assertEqual(process.returncode, 0, said)
        [kept] = self.complete()
        self.assertEqual(kept.read_bytes(), self.bytes)

    def test_a_source_that_changes_meanwhile(self):
        self.grow(40)
        process = self.begin("--json")
        self.wait_for("*.part")
        os.utime(self.source)
        said, why = process.communicate(timeout=TIMEOUT)
        if json.loads(said)[0]["state"] == "complete":
            self.skipTest("the machine was too fast")
        self.assertEqual(process.returncode, 1)
        self.assertIn("run it again to keep what is there now", why)
        self.fill()
        [kept] = self.complete()
        self.assertEqual(kept.read_bytes(), self.bytes)


class Access(FillTest):
    """How an array is read, before anybody has opened it."""

    def told(self, *arguments):
        said = json.loads(npyfs("info", "--json", *arguments, self.source).stdout)
        return said["splits"][0]["arrays"][0]["access"]

    def test_is_told_before_the_first_open(self):
        native = "native" if self.kernel_reads_files() else "kept"
        self.assertEqual(self.told("--cache-dir", self.cache), "mapped")
        self.fill()
        self.assertEqual(self.told("--cache-dir", self.cache), native)
        self.assertEqual(self.told("--cache-dir", self.cache, "--rows", "0:9"), "mapped")
        self.assertEqual(self.told(), "mapped")
        for more, word in (([], native), (["-o", "no_passthrough"], "kept"), (["--rows", "0:9"], "mapped")):
            mnt = self.mount("--cache-dir", self.cache, *more, self.source, name=f"mnt-{len(more)}-{word}")
            path = mnt / "train/x.npy"
            self.assertEqual(os.getxattr(path, ACCESS).decode(), word)
            path.read_bytes()
            self.assertEqual(os.getxattr(path, ACCESS).decode(), word)

    def test_asking_makes_nothing(self):
        mnt = self.mount("--cache-dir", self.cache, self.source)
        self.assertEqual(os.getxattr(mnt / "train/x.npy", ACCESS), b"mapped")
        self.assertEqual(self.told("--cache-dir", self.cache), "mapped")
        self.assertEqual(list(self.cache.iterdir()), [])


class Background(FillTest):
    def wait_until(self, is_so):
        for _ in range(TIMEOUT * 20):
            if is_so():
                return
            time.sleep(0.05)
        self.fail("it does not happen")

    def test_a_mount_fills_behind_its_readers(self):
        mnt = self.mount("--fill", "--cache-dir", self.cache, self.source)
        path = mnt / "train/x.npy"
        array = np.load(path, mmap_mode="r")
        np.testing.assert_array_equal(array[7], self.rows[7])
        self.wait_until(self.complete)
        self.assertEqual(self.complete()[0].read_bytes(), self.bytes)
        native = "native" if self.kernel_reads_files() else "kept"
        self.wait_until(lambda: os.getxattr(path, ACCESS).decode() == native)
        np.testing.assert_array_equal(np.load(path, mmap_mode="r"), self.rows)
        np.testing.assert_array_equal(array, self.rows)

    def test_another_process_completes_what_is_open(self):
        mnt = self.mount("--cache-dir", self.cache, self.source)
        path = mnt / "train/x.npy"
        with open(path, "rb") as first:
            self.assertEqual(first.read(4096), self.bytes[:4096])
            self.fill()
            native = "native" if self.kernel_reads_files() else "kept"
            path.read_bytes()
            self.wait_until(lambda: path.read_bytes() and os.getxattr(path, ACCESS).decode() == native)
            self.assertEqual(first.read(), self.bytes[4096:])

    def test_damage_is_listed_and_the_rest_is_kept(self):
        flip(self.source, 12 + 12 * 1280 + 700 * 4096 + 5)
        mnt = self.mount("--fill", "--cache-dir", self.cache, self.source)
        self.wait_until(lambda: "data.ffr at byte" in (mnt / ".npyfs/errors").read_text())
        kept = lambda: json.loads(self.cached("--json").stdout)[0]["kept_nbytes"]
        self.wait_until(lambda: kept() == len(self.bytes) - 2 * MIB)
        self.assertEqual(read_range(mnt / "train/x.npy", 0, 2 * MIB), self.bytes[:2 * MIB])
        with self.assertRaises(OSError):
            read_range(mnt / "train/x.npy", 128 + 700 * 4096, 4096)
        self.assertEqual(self.complete(), [])

    def test_unmounting_ends_it(self):
        self.rows = np.concatenate([self.rows] * 60)
        write_ffrecord(self.source, self.rows)
        mnt = self.mount("--fill", "--cache-dir", self.cache, self.source)
        self.wait_until(lambda: list(self.cache.glob("*.part")))
        unmount(mnt)
        self.assertEqual(self.filled()["train/x.npy"]["state"], "complete")
        self.assertEqual(self.complete()[0].read_bytes(), saved(self.rows))


class Cache(FillTest):
    def test_what_is_kept_is_listed(self):
        self.fill()
        self.assertRegex(self.cached().stdout, r"train/x\.npy +5\.0 MiB +5\.0 MiB +complete ")
        [row] = json.loads(self.cached("--json", "--list").stdout)
        self.assertEqual(row["array"], "train/x.npy")
        self.assertEqual(row["source"], str(self.source))
        self.assertEqual((row["nbytes"], row["kept_nbytes"]), (len(self.bytes),) * 2)
        self.assertEqual(row["state"], "complete")
        self.assertLess(abs(row["used_at"] - time.time()), 60)
        self.assertFalse(row["open"])

    def test_arrays_are_dropped_by_name(self):
        self.fill()
        self.fill("--rows", "0:1000")
        [name] = [file.stem for file in self.complete() if file.stat().st_size == len(self.bytes)]
        self.cached("--drop", "nothing/x", code=1)
        self.assertEqual(len(self.complete()), 2)
        self.assertIn("1 array,", self.cached("--drop", name[:8]).stdout)
        [left] = self.complete()
        self.assertEqual(left.read_bytes(), saved(self.rows[:1000]))
        self.cached("--drop", "train/x")
        self.assertEqual(list(self.cache.iterdir()), [])
        self.assertEqual(self.read_all(), self.bytes)

    def test_a_check_finds_what_is_damaged(self):
        self.fill()
        self.cached("--check")
        [kept] = self.complete()
        kept.chmod(0o600)
        flip(kept, 3 * MIB)
        [row] = json.loads(self.cached("--check", "--json", code=1).stdout)
        self.assertEqual(row["state"], "bad")
        self.assertEqual(self.complete(), [])
        self.cached("--check")
        self.fill()
        self.assertEqual(self.complete()[0].read_bytes(), self.bytes)

    def test_no_folder_is_made(self):
        for action in ("--list", "--check", "--drop"):
            self.assertIn("No such file", self.cached(action, code=1).stderr)
        self.assertFalse(self.cache.exists())

    def test_an_array_that_is_dropped_while_it_is_open_reads_on(self):
        self.fill()
        mnt = self.mount("--cache-dir", self.cache, self.source)
        array = np.load(mnt / "train/x.npy", mmap_mode="r")
        self.cached("--drop")
        np.testing.assert_array_equal(array, self.rows)
        np.testing.assert_array_equal(np.load(mnt / "train/x.npy", mmap_mode="r"), self.rows)


class Places(FillTest):
    """What an array is found by again: not by where its sources lie, but by what they are to it."""

    def mounted(self, *sources, file):
        mnt = self.mount("--cache-dir", self.cache, *sources, name=f"m{len(os.listdir(self.folder))}")
        try:
            return (mnt / file).read_bytes()
        finally:
            unmount(mnt)

    def maps(self):
        return len(list(self.cache.glob("*.map")))

    def test_however_a_source_is_written(self):
        self.fill()
        at = {"cwd": self.folder}
        for words in (["data.ffr"], ["./data.ffr"], ["train=data.ffr"], ["val=ffrecord:data.ffr"]):
            done = npyfs("fill", "--cache-dir", self.cache, *words, **at)
            self.assertIn("1 of them before" if "ffrecord:" not in words[0] else "1 of 1", done.stdout, words)
        self.assertEqual(self.maps(), 2)  # a FORMAT may change what a file is

    def test_wherever_the_folder_lies(self):
        places = [self.folder / "one", self.folder / "two"]
        places[0].mkdir()
        for split in ("train", "val"):
            self.rows[0, 0] ^= 1
            write_ffrecord(places[0] / f"{split}.ffr", self.rows)
        self.fill(source=places[0])
        places[0].rename(places[1])
        self.assertIn("2 of them before", self.fill(source=places[1]).stdout)
        self.assertEqual(self.maps(), 2)

    def test_another_name_in_the_folder_is_another_array(self):
        folder = self.folder / "set"
        folder.mkdir()
        write_ffrecord(folder / "a.ffr", self.rows)
        write_ffrecord(folder / "b.ffr", self.rows[::-1])
        read = [self.mounted(folder, file="train/x.npy")]
        (folder / "a.ffr").rename(folder / "c.ffr")
        read.append(self.mounted(folder, file="train/x.npy"))
        self.assertEqual(read, [saved(np.concatenate([self.rows, self.rows[::-1]])),
                                saved(np.concatenate([self.rows[::-1], self.rows]))])

    def shard(self, path, seed):
        """Samples k000 to k199 in an order of their own; of each a row of its number."""
        order = np.random.default_rng(seed).permutation(200)
        with tarfile.open(path, "w") as tar:
            for i in order:
                payload = saved(np.full(64, i, "<f4"))
                member = tarfile.TarInfo(f"k{i:03}.npy")
                member.size = len(payload)
                tar.addfile(member, io.BytesIO(payload))
        return order

    def rows_of(self, order):
        return saved(np.repeat(order.astype("<f4")[:, None], 64, axis=1))

    def test_shards_that_change_places(self):
        """Each joined row is where the split's first source has its key; all files stay the same."""
        a, b, c = (self.folder / f"{name}.tar" for name in "abc")
        order_of = {path: self.shard(path, seed) for seed, path in enumerate((a, b, c))}
        sources = [f"train={a}", f"val={c}", f"train/y={b}"]
        self.assertEqual(self.mounted(*sources, file="train/y.npy"), self.rows_of(order_of[a]))
        for old, new in ((a, self.folder / "t"), (c, a), (self.folder / "t", c)):
            old.rename(new)
        self.assertEqual(self.mounted(*sources, file="train/y.npy"), self.rows_of(order_of[c]))
        swapped = [f"val={c}", f"train={a}", f"train/y={b}"]
        self.assertEqual(self.mounted(*swapped, file="train/y.npy"), self.rows_of(order_of[c]))
        other = [f"train={c}", f"val={a}", f"train/y={b}"]
        self.assertEqual(self.mounted(*other, file="train/y.npy"), self.rows_of(order_of[a]))

    def test_shards_that_change_splits_by_their_names(self):
        """Both are opened in the same order before and after."""
        folder = self.folder / "set"
        folder.mkdir()
        first = self.shard(folder / "dev-1.tar", 1)
        second = self.shard(folder / "train-2.tar", 2)
        labels = self.folder / "labels.tar"
        self.shard(labels, 3)
        sources = [folder, f"val/y={labels}"]
        self.assertEqual(self.mounted(*sources, file="val/y.npy"), self.rows_of(first))
        (folder / "dev-1.tar").rename(folder / "tr-1.tar")
        (folder / "train-2.tar").rename(folder / "val-2.tar")
        self.assertEqual(self.mounted(*sources, file="val/y.npy"), self.rows_of(second))

    def test_the_name_of_an_only_split_says_nothing(self):
        a, b = self.folder / "a.tar", self.folder / "b.tar"
        order = self.shard(a, 1)
        self.shard(b, 2)
        for split in ("train", "val", "other"):
            self.assertEqual(self.mounted(f"{split}={a}", f"{split}/y={b}", file=f"{split}/y.npy"),
                             self.rows_of(order))
        self.assertEqual(self.maps(), 1)
        # Where it is cut by its name, it says which records there are.
        cut = ["--split", "train=0.5,val=0.5", a]
        self.assertNotEqual(self.mounted(*cut, file="train/x.npy"), self.mounted(*cut, file="val/x.npy"))

    def test_scripts_stay_where_they_are(self):
        """A path that stands in a script leads elsewhere from another folder."""
        tables = {}
        for name in ("one", "two"):
            folder = self.folder / name
            folder.mkdir()
            values = np.random.default_rng(len(tables)).random((200, 40)).astype("<f4")
            with open(folder / "a.ark", "wb") as ark:
                lines = []
                for i, row in enumerate(values):
                    ark.write(f"k{i:03} ".encode())
                    lines.append(f"k{i:03} a.ark:{ark.tell()}\n")
                    ark.write(b"\0BFV \4" + np.int32(40).tobytes() + row.tobytes())
            tables[name] = values
        script = self.folder / "a.scp"
        script.write_text("".join(lines))
        for name in ("one", "two", "one"):
            done = npyfs("fill", "--cache-dir", self.cache, f"scp:{script}", cwd=self.folder / name)
            self.assertEqual(done.returncode, 0, done.stderr)
        kept = sorted(file.read_bytes() for file in self.complete())
        self.assertEqual(kept, sorted(saved(values) for values in tables.values()))


if __name__ == "__main__":
    import unittest
    unittest.main()

"""What .npyfs/stats and .npyfs/metrics say of a mount is what has happened in it."""

import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import threading
import time
import unittest

import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from mounting import (NPYFS, PAGE, TIMEOUT, MountTest, npyfs, read_direct, run, saved, unmount,
                      wait_for_exit)
from test_damage import flip
from writers import write_ffrecord

ROOT = pathlib.Path(__file__).resolve().parents[2]


def stats_of(mnt):
    return json.loads((mnt / ".npyfs/stats").read_text())


def metrics_of(mnt):
    """{(name, labels without the mountpoint's): value}, through the parser of Prometheus' own client."""
    found = {}
    for family in text_string_to_metric_families((mnt / ".npyfs/metrics").read_text()):
        for sample in family.samples:
            labels = dict(sample.labels)
            if labels.pop("mountpoint") != str(mnt):
                raise AssertionError(sample)
            key = sample.name, *sorted(labels.items())
            if key in found:
                raise AssertionError(f"{key} is there twice")
            found[key] = sample.value
    return found


class StatsTest(MountTest):
    def setUp(self):
        super().setUp()
        # A header and rows of whole pages: what is asked for is what npyfs reads.
        self.rows = np.random.default_rng(2).integers(0, 255, (64, PAGE), np.uint8)
        self.source = self.folder / "data.ffr"
        write_ffrecord(self.source, self.rows)

    def mount_pages(self, *arguments, **options):
        return self.mount("--header-align", PAGE, *arguments, self.source, **options)


class Counting(StatsTest):
    def test_nothing_yet(self):
        stats = stats_of(self.mount_pages())
        self.assertEqual(stats["reads"]["requests"], 0)
        self.assertEqual(stats["reads"]["bytes"], 0)
        self.assertGreater(stats["opening_seconds"], 0)
        self.assertIsNone(stats["reads"]["seconds"]["p99"])
        self.assertEqual(set(stats["errors"].values()), {0})
        self.assertNotIn("kept", stats)

    def test_each_read_is_counted_once(self):
        mnt = self.mount_pages()
        for row in range(20):
            self.assertEqual(read_direct(mnt / "train/x.npy", (1 + row) * PAGE, PAGE),
                             self.rows[row].tobytes())
        # A read at the end is answered with what there is.
        self.assertEqual(read_direct(mnt / "train/x.npy", 64 * PAGE, 4 * PAGE),
                         self.rows[63].tobytes())
        stats = stats_of(mnt)
        self.assertEqual(stats["reads"]["requests"], 21)
        self.assertEqual(stats["reads"]["bytes"], 21 * PAGE)
        self.assertEqual(stats["reads"]["mapped"]["requests"], 21)
        self.assertEqual(stats["reads"]["mapped"]["bytes"], 21 * PAGE)
        for way in ("cached", "decoded", "kept"):
            self.assertEqual(stats["reads"][way]["requests"], 0)
        self.assertEqual(stats["requests"]["open"]["requests"], 21)
        self.assertEqual(stats["requests"]["open_native"]["requests"], 0)
        metrics = metrics_of(mnt)
        self.assertEqual(metrics["npyfs_reads_total", ("way", "mapped")], 21)
        self.assertEqual(metrics["npyfs_read_bytes_total", ("way", "mapped")], 21 * PAGE)
        self.assertEqual(metrics["npyfs_requests_total", ("request", "open")], 21)

    def test_reading_it_counts_no_open_and_no_read(self):
        mnt = self.mount_pages()
        for _ in range(3):
            stats_of(mnt), metrics_of(mnt), (mnt / ".npyfs/errors").read_text()
        stats = stats_of(mnt)
        self.assertEqual(stats["reads"]["requests"], 0)
        self.assertEqual(stats["requests"]["open"]["requests"], 0)

    def test_times(self):
        mnt = self.mount_pages()
        for row in range(50):
            read_direct(mnt / "train/x.npy", (1 + row) * PAGE, PAGE)
        # The last request's time is counted after it was answered.
        times = stats_of(mnt)["reads"]["seconds"]
        self.assertIn(times["count"], (49, 50))
        self.assertGreater(times["p50"], 0)
        self.assertLessEqual(times["p50"], times["p90"])
        self.assertLessEqual(times["p90"], times["p99"])
        self.assertLessEqual(times["p99"], times["p999"])
        self.assertLessEqual(times["p999"], times["max"])
        self.assertLessEqual(times["max"], times["sum"])
        self.assertLessEqual(times["sum"], times["max"] * times["count"])

    def test_damage_is_an_error(self):
        flip(self.source, 12 + 12 * 64 + 7 * PAGE + 5)
        mnt = self.mount_pages()
        with self.assertRaises(OSError):
            read_direct(mnt / "train/x.npy", 8 * PAGE, PAGE)
        self.assertEqual(read_direct(mnt / "train/x.npy", 9 * PAGE, PAGE), self.rows[8].tobytes())
        stats = stats_of(mnt)
        self.assertEqual({kind: n for kind, n in stats["errors"].items() if n}, {"corrupt": 1})
        self.assertEqual(stats["reads"]["requests"], 1, "what failed was not answered")
        self.assertEqual(metrics_of(mnt)["npyfs_errors_total", ("kind", "corrupt")], 1)

    def test_a_changed_source_is_an_error(self):
        mnt = self.mount_pages()
        with open(self.source, "ab") as source:
            source.write(b"more")
        with self.assertRaises(OSError):
            read_direct(mnt / "train/x.npy", 8 * PAGE, PAGE)
        errors = stats_of(mnt)["errors"]
        self.assertGreaterEqual(errors["changed"], 1)
        self.assertEqual(sum(errors.values()), errors["changed"])


class Decoded(StatsTest):
    def setUp(self):
        super().setUp()
        import zarr
        # 8 chunks of 16 pages.
        self.array = np.random.default_rng(4).integers(0, 99, (128, PAGE), np.uint8)
        store = zarr.open_group(str(self.folder / "store.zarr"), mode="w")
        store.create_dataset("x", data=self.array, chunks=(16, PAGE))
        self.source = self.folder / "store.zarr"

    def row(self, mnt, row):
        self.assertEqual(read_direct(mnt / "x.npy", (1 + row) * PAGE, PAGE),
                         self.array[row].tobytes())

    def test_the_second_read_of_a_chunk_is_a_hit(self):
        mnt = self.mount_pages()
        self.row(mnt, 0)
        stats = stats_of(mnt)
        self.assertEqual((stats["cache"]["loads"], stats["cache"]["hits"]), (1, 0))
        self.assertEqual(stats["cache"]["decoded_bytes"], 16 * PAGE)
        self.assertEqual(stats["reads"]["decoded"]["requests"], 1)
        self.row(mnt, 1)
        self.row(mnt, 100)
        self.row(mnt, 2)
        stats = stats_of(mnt)
        self.assertEqual((stats["cache"]["loads"], stats["cache"]["hits"]), (2, 2))
        self.assertEqual(stats["reads"]["decoded"]["requests"], 2)
        self.assertEqual(stats["reads"]["cached"]["requests"], 2)
        self.assertEqual(stats["reads"]["cached"]["bytes"], 2 * PAGE)
        self.assertEqual(stats["read_ahead"], {"issued": 0, "used": 0, "wasted": 0})
        self.assertEqual(metrics_of(mnt)["npyfs_cache_hits_total",], 2)

    def test_what_is_decoded_ahead_was_for_somebody(self):
        import zarr
        array = np.arange(16 << 20, dtype=np.uint8)
        zarr.save_array(str(self.folder / "long.zarr"), array, chunks=(64 << 10,))
        self.source = self.folder / "long.zarr"
        mnt = self.mount_pages()
        self.assertEqual((mnt / "train/x.npy").read_bytes()[PAGE:], array.tobytes())
        stats = stats_of(mnt)
        ahead = stats["read_ahead"]
        self.assertGreater(ahead["issued"], 0)
        # Read to the end: everything was wanted.
        self.assertEqual(ahead, {"issued": ahead["issued"], "used": ahead["issued"], "wasted": 0})
        self.assertEqual(stats["cache"]["loads"], 256)
        self.assertEqual(stats["cache"]["decoded_bytes"], 16 << 20)
        self.assertEqual(stats["reads"]["bytes"], PAGE + (16 << 20))


class Native(StatsTest):
    def setUp(self):
        super().setUp()
        self.source = self.folder / "store"
        (self.source / "train").mkdir(parents=True)
        (self.source / "train/x.npy").write_bytes(saved(self.rows))

    def test_opens(self):
        why_not = json.loads(npyfs("info", "--json", self.source).stdout).get("not_native")
        for more, is_native in ([[], not why_not], [["-o", "no_passthrough"], False]):
            mnt = self.mount(*more, self.source, name=f"m{len(more)}")
            for _ in range(3):
                self.assertEqual((mnt / "train/x.npy").read_bytes(), saved(self.rows))
            stats = stats_of(mnt)
            self.assertEqual(stats["requests"]["open_native"]["requests"], 3 if is_native else 0)
            self.assertEqual(stats["requests"]["open"]["requests"], 0 if is_native else 3)
            self.assertEqual(stats["native"]["possible"], is_native)
            self.assertEqual("why_not" in stats["native"], not is_native)
            if is_native:
                self.assertEqual(stats["reads"]["requests"], 0, "the kernel has read it")
            elif more:
                self.assertEqual(stats["native"]["why_not"], "-o no_passthrough")


class Kept(StatsTest):
    def test_blocks(self):
        rows = np.random.default_rng(1).integers(0, 255, (1280, PAGE), np.uint8)
        write_ffrecord(self.source, rows)  # 5 MiB: three blocks
        cache = self.folder / "cache"
        mnt = self.mount_pages("--cache-dir", cache, "-o", "no_passthrough")
        self.assertEqual((mnt / "train/x.npy").read_bytes()[PAGE:], rows.tobytes())
        stats = stats_of(mnt)
        self.assertEqual(stats["kept"]["read_hits"], 0)
        self.assertGreater(stats["kept"]["read_misses"], 0)
        unmount(mnt)
        mnt = self.mount_pages("--cache-dir", cache, "-o", "no_passthrough", name="again")
        read_direct(mnt / "train/x.npy", 5 * PAGE, PAGE)
        stats = stats_of(mnt)
        self.assertEqual(stats["reads"]["kept"]["requests"], 1)
        self.assertEqual(stats["reads"]["kept"]["bytes"], PAGE)
        self.assertEqual(stats["kept"]["read_hits"], 1)
        self.assertEqual(stats["kept"]["read_bytes"], PAGE)
        self.assertEqual(stats["kept"]["blocks_written"], 0)
        self.assertEqual(metrics_of(mnt)["npyfs_kept_read_hits_total",], 1)


class Arrays(StatsTest):
    """How each array is read, and why not by the kernel itself."""

    def arrays_of(self, mnt):
        stats = stats_of(mnt)
        self.assertEqual(stats["arrays_left_out"], 0)
        for array in stats["arrays"]:
            # What a machine cannot at all is told once, of all.
            self.assertEqual("why_not_native" in array,
                             stats["native"]["possible"] and array["access"] != "native", array)
        return {array["path"]: (array["access"], array.get("why_not_native", ""))
                for array in stats["arrays"]}

    def possible(self, mnt):
        return stats_of(mnt)["native"]["possible"]

    def test_without_a_cache_folder(self):
        mnt = self.mount_pages()
        access, why = self.arrays_of(mnt)["train/x.npy"]
        self.assertEqual(access, "mapped")
        if self.possible(mnt):
            self.assertIn("--cache-dir", why)

    def test_a_file_of_its_own(self):
        store = self.folder / "store"
        (store / "train").mkdir(parents=True)
        (store / "train/x.npy").write_bytes(saved(self.rows))
        (store / "train/y.npy").write_bytes(saved(self.rows))
        mnt = self.mount(store)
        before = self.arrays_of(mnt)
        self.assertEqual(before["train/x.npy"][0], "mapped")
        (mnt / "train/x.npy").read_bytes()
        after = self.arrays_of(mnt)
        self.assertEqual(after["train/y.npy"], before["train/y.npy"], "nobody has opened it")
        self.assertEqual(after["train/x.npy"][0],
                         os.getxattr(mnt / "train/x.npy", "user.npyfs.access").decode())
        if self.possible(mnt):
            self.assertIn("not been opened", before["train/x.npy"][1])

    def test_kept(self):
        rows = np.random.default_rng(1).integers(0, 255, (1280, PAGE), np.uint8)
        write_ffrecord(self.source, rows)  # 5 MiB: three blocks
        cache = self.folder / "cache"
        mnt = self.mount_pages("--cache-dir", cache)
        self.assertEqual(self.arrays_of(mnt)["train/x.npy"][0], "mapped")
        with open(mnt / "train/x.npy", "rb", buffering=0) as file:
            file.read(3 << 20)
            access, why = self.arrays_of(mnt)["train/x.npy"]
            self.assertEqual(access, "mapped")
            if self.possible(mnt):
                self.assertRegex(why, r"^[01] of its 3 blocks")
            file.seek(0)
            file.read()
        unmount(mnt)
        for name, more in (("by-us", ["-o", "no_passthrough"]), ("by-the-kernel", [])):
            mnt = self.mount_pages("--cache-dir", cache, *more, name=name)
            path = mnt / "train/x.npy"
            self.assertEqual(path.read_bytes()[PAGE:], rows.tobytes())
            access = self.arrays_of(mnt)["train/x.npy"][0]
            self.assertEqual(access, "native" if self.possible(mnt) else "kept")

    def test_what_is_not_kept(self):
        write_ffrecord(self.source, self.rows[:2])
        mnt = self.mount_pages("--cache-dir", self.folder / "cache")
        (mnt / "train/x.npy").read_bytes()
        access, why = self.arrays_of(mnt)["train/x.npy"]
        self.assertEqual(access, "mapped")
        if self.possible(mnt):
            self.assertIn("not kept: smaller", why)

    def test_a_thousand_and_more(self):
        store = self.folder / "store"
        store.mkdir()
        for i in range(1003):
            (store / f"a{i}.npy").write_bytes(saved(self.rows[:1]))
        mnt = self.mount(store)
        stats = stats_of(mnt)
        self.assertEqual((len(stats["arrays"]), stats["arrays_left_out"]), (1000, 3))
        done = npyfs("stats", mnt)
        self.assertIn("1000 mapped, and 3 more", done.stdout)


    def test_filling_is_no_read(self):
        rows = np.random.default_rng(1).integers(0, 255, (1280, PAGE), np.uint8)
        write_ffrecord(self.source, rows)  # 5 MiB: three blocks
        mnt = self.mount_pages("--cache-dir", self.folder / "cache", "--fill")
        deadline = time.monotonic() + TIMEOUT
        while stats_of(mnt)["kept"]["arrays_completed"] == 0:
            self.assertLess(time.monotonic(), deadline, "it is not filled")
            time.sleep(0.05)
        stats = stats_of(mnt)
        self.assertEqual(stats["kept"]["blocks_written"], 3)
        self.assertEqual(stats["reads"]["requests"], 0)
        self.assertEqual(stats["cache"]["loads"], 0)


class Texts(StatsTest):
    def test_metrics_are_the_stats(self):
        mnt = self.mount_pages("--cache-dir", self.folder / "cache")
        (mnt / "train/x.npy").read_bytes()
        stats, metrics = stats_of(mnt), metrics_of(mnt)
        for group in ("cache", "read_ahead", "kept"):
            for field, value in stats[group].items():
                names = [f"npyfs_{group}_{field}_total", f"npyfs_{group}_{field}"]
                found = [metrics[name,] for name in names if (name,) in metrics]
                self.assertEqual(len(found), 1, names)
                if field != "waiting_bytes" and not field.startswith("blocks_"):
                    self.assertEqual(found[0], value, names)
        for way in ("mapped", "cached", "decoded", "kept"):
            self.assertEqual(metrics["npyfs_reads_total", ("way", way)],
                             stats["reads"][way]["requests"])
            bounds = [(float(dict(key[1:])["le"]), value) for key, value in metrics.items()
                      if key[0] == "npyfs_read_duration_seconds_bucket" and ("way", way) in key]
            self.assertGreater(len(bounds), 10)
            bounds.sort()
            self.assertEqual([n for _, n in bounds], sorted(n for _, n in bounds))
            self.assertEqual(bounds[-1], (float("inf"), metrics["npyfs_read_duration_seconds_count",
                                                                ("way", way)]))
        for kind, value in stats["errors"].items():
            self.assertEqual(metrics["npyfs_errors_total", ("kind", kind)], value)

    def test_counters_have_help_and_a_name_by_the_rules(self):
        text = (self.mount_pages() / ".npyfs/metrics").read_text()
        self.assertTrue(text.endswith("\n"))
        families = list(text_string_to_metric_families(text))
        self.assertGreater(len(families), 15)
        types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
        self.assertEqual(len(types), len(families))
        for family in families:
            self.assertTrue(family.documentation.endswith("."), family.name)
        for name, kind in types.items():
            self.assertRegex(name, r"^npyfs_[a-z_]+$")
            self.assertEqual(name.endswith("_total"), kind == "counter", name)
            if kind == "histogram":
                self.assertTrue(name.endswith("_seconds"))

    def test_a_status_file_is_like_one_of_proc(self):
        mnt = self.mount_pages()
        self.assertEqual((mnt / ".npyfs/stats").stat().st_size, 0)
        self.assertEqual(sorted(os.listdir(mnt / ".npyfs")), ["errors", "metrics", "stats"])
        self.assertNotIn(".npyfs", os.listdir(mnt))
        # One opening is one moment, however it is read.
        with open(mnt / ".npyfs/stats", "rb", buffering=0) as file:
            whole = file.read()
            read_direct(mnt / "train/x.npy", PAGE, PAGE)
            file.seek(0)
            parts = b"".join(iter(lambda: file.read(7), b""))
        self.assertEqual(parts, whole)
        copy = self.folder / "copy.prom"
        self.assertEqual(run("cp", mnt / ".npyfs/metrics", copy).returncode, 0)
        self.assertGreater(copy.stat().st_size, 1000)
        self.assertEqual(stats_of(mnt)["reads"]["requests"], 1)

    def test_a_mount_point_with_odd_characters(self):
        mnt = self.mount_pages(name='q"é')
        self.assertEqual(stats_of(mnt)["mountpoint"], str(mnt))
        self.assertGreater(len(metrics_of(mnt)), 50)

    def test_every_field_is_explained(self):
        mnt = self.mount_pages("--cache-dir", self.folder / "cache", "-o", "no_passthrough")
        page = (ROOT / "fs/SEMANTICS.md").read_text()
        section = page.split("## Statistics", 1)[1].split("\n## ", 1)[0]
        told = set(re.findall(r"`([a-z_0-9.]+)`", section))

        def fields(value, path=""):
            if isinstance(value, dict):
                for name, below in value.items():
                    yield from fields(below, f"{path}.{name}" if path else name)
            elif isinstance(value, list):
                self.assertGreater(len(value), 0)
                for below in value:
                    yield from fields(below, path)
            else:
                yield path

        for path in fields(stats_of(mnt)):
            # Figures that several have are explained once: `seconds.p50`, `requests`.
            parts = path.split(".")
            names = {".".join(parts[i:]) for i in range(len(parts))}
            self.assertTrue(names & told, f"{path} is not explained")
        for name, *_ in metrics_of(mnt):
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            self.assertTrue({name, base} & told, f"{name} is not explained")


class Command(StatsTest):
    def test_a_table(self):
        mnt = self.mount_pages()
        read_direct(mnt / "train/x.npy", PAGE, PAGE)
        for path in (mnt, mnt / "train", mnt / "train/x.npy", mnt / "@shuffle=1/train"):
            done = npyfs("stats", path)
            self.assertEqual((done.returncode, done.stderr), (0, ""), path)
            self.assertTrue(done.stdout.startswith(f"{mnt}: npyfs "), done.stdout)
            self.assertRegex(done.stdout, r"(?m)^all +1 +4\.0 KiB  ")
            self.assertRegex(done.stdout, r"(?m)^errors +none$")

    def test_json_is_the_file(self):
        mnt = self.mount_pages()
        done = npyfs("stats", "--json", ".", cwd=mnt / "train")
        self.assertEqual(done.returncode, 0, done.stderr)
        before, now = json.loads(done.stdout), stats_of(mnt)
        self.assertEqual(set(before), set(now))
        self.assertEqual(before["start_time_seconds"], now["start_time_seconds"])
        self.assertEqual(before["reads"], now["reads"])

    def test_watching_without_a_terminal(self):
        mnt = self.mount_pages()
        with subprocess.Popen([NPYFS, "stats", "--watch", str(mnt)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watch:
            for _ in range(2):
                self.assertRegex(watch.stdout.readline(),
                                 r"^[\d.]+ (bytes|KiB)/s read in \d+/s, .* errors\n$")
            unmount(mnt)
            said = watch.communicate(timeout=TIMEOUT)[1]
        self.assertEqual(watch.returncode, 1)
        self.assertEqual(said.count("\n"), 1, said)

    def test_watching_on_a_terminal(self):
        mnt = self.mount_pages()
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        with subprocess.Popen([NPYFS, "stats", "--watch", str(mnt)], stdin=subprocess.DEVNULL,
                              stdout=theirs, stderr=subprocess.PIPE) as watch:
            os.close(theirs)
            said = b""
            while said.count(b"errors ") < 2:
                said += os.read(ours, 4096)
            watch.kill()
        first, second = said.split(b"\x1b[H")[1:3]
        self.assertNotIn(b"requests/s", first, "nothing to compare with yet")
        self.assertIn(b"requests/s", second)
        self.assertIn(os.fsencode(mnt), second)

    def test_what_is_no_mount(self):
        for path, words in ((self.folder, "no npyfs mount"), (self.folder / "none", "No such file"),
                            ("/proc/self", "proc")):
            done = npyfs("stats", path)
            self.assertEqual(done.returncode, 1, path)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(words, done.stderr)

    def test_a_mount_whose_server_is_gone(self):
        mnt = self.mount_pages()
        daemon = self.daemon(mnt)
        os.kill(daemon, signal.SIGKILL)
        wait_for_exit(daemon)
        done = npyfs("stats", mnt)
        self.assertEqual(done.returncode, 1)
        self.assertIn("server is gone", done.stderr)
        self.assertIn("umount", done.stderr)


class ManyReaders(StatsTest):
    def test_at_the_same_time(self):
        """Eight readers, and two who look at the figures, which never go back."""
        mnt = self.mount_pages("--threads", 4)
        path = mnt / "train/x.npy"
        each = 200
        faults = []

        def read_rows(seed):
            try:
                for row in np.random.default_rng(seed).integers(0, 64, each).tolist():
                    if read_direct(path, (1 + row) * PAGE, PAGE) != self.rows[row].tobytes():
                        raise AssertionError(f"row {row}")
            except Exception as error:
                faults.append(error)

        readers = [threading.Thread(target=read_rows, args=(seed,)) for seed in range(8)]
        for reader in readers:
            reader.start()
        before, looks = 0, 0
        while any(reader.is_alive() for reader in readers) or looks == 0:
            now = stats_of(mnt)["reads"]["requests"]
            self.assertGreaterEqual(now, before)
            self.assertLessEqual(metrics_of(mnt)["npyfs_reads_total", ("way", "mapped")], 8 * each)
            before, looks = now, looks + 1
        for reader in readers:
            reader.join()
        self.assertEqual(faults, [])
        reads = stats_of(mnt)["reads"]
        self.assertEqual(reads["requests"], 8 * each)
        self.assertEqual(reads["bytes"], 8 * each * PAGE)


if __name__ == "__main__":
    unittest.main()

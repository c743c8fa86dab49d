"""Kaldi tables in a mount: commands, maps, channels, keys of odd bytes, files that may not be read."""

import errno
import json
import os
import pathlib
import re
import resource
import signal
import unittest
import wave

import numpy as np

from mounting import PAGE, MountTest, npyfs, read_direct
from writers import write_kaldi

COLS = 7
TABLES = pathlib.Path(__file__).resolve().parent.parent / "data/kaldi/tables"


def matrices(count, seed=0):
    random = np.random.default_rng(seed)
    return {f"utt-{i:03d}": random.standard_normal((1 + i % 5, COLS)).astype(np.float32)
            for i in range(count)}


def write_wave(path, frames, rate=8000):
    """A wave of int16 frames [T, channels], written by Python's wave module."""
    with wave.open(str(path), "wb") as out:
        out.setnchannels(frames.shape[1])
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(frames.astype("<i2").tobytes())


def record(mnt, index):
    """The index-th item of a concatenated x."""
    x = np.load(mnt / "train/x.npy", mmap_mode="r")
    offsets = np.load(mnt / "train/x_offsets.npy")
    return np.array(x[offsets[index]:offsets[index + 1]])


class Pipes(MountTest):
    def setUp(self):
        super().setUp()
        self.items = matrices(2)
        write_kaldi(self.folder / "a", self.items)
        self.places = [line.split(" ", 1)[1] for line in
                       (self.folder / "a.scp").read_text().splitlines()]
        self.runs = self.folder / "runs"

    def script(self, *commands):
        """A script of `commands`, each behind a key of its own."""
        path = self.folder / "pipes.scp"
        path.write_text("".join(f"k{i} {text}\n" for i, text in enumerate(commands)))
        return f"scp:{path}"

    def object_of(self, number):
        """A command that prints the number-th matrix and notes that it ran."""
        offset = int(self.places[number].rsplit(":", 1)[1])
        nbytes = 15 + self.items[f"utt-{number:03d}"].nbytes
        return (f"echo {number} >> {self.runs}; tail -c +{offset + 1} {self.folder}/a.ark "
                f"| head -c {nbytes} |")

    def test_are_refused_with_their_line(self):
        done = npyfs("mount", self.script(self.places[0], "cat x |"), self.mount_point())
        self.assertEqual(done.returncode, 1)
        self.assertIn("pipes.scp line 2", done.stderr)
        self.assertIn("--allow-pipes", done.stderr)

    def test_are_run_once_and_kept(self):
        mnt = self.mount("--allow-pipes", self.script(self.object_of(0), self.object_of(1)))
        for number in (1, 0, 1):
            np.testing.assert_array_equal(record(mnt, number), self.items[f"utt-{number:03d}"])
        self.assertEqual(sorted(self.runs.read_text().split()), ["0", "1"])

    def test_one_that_fails_is_its_records_damage(self):
        mnt = self.mount("--allow-pipes", "--header-align", "4096",
                         self.script("exit 3 |", self.object_of(1)))
        self.assertIn("exit code 3", self.said)
        self.assertIn("pipes.scp line 1", self.said)
        stored = mnt / "train/records"
        self.assert_errno(errno.EIO, (stored / "k0.bin").read_bytes)
        self.assertEqual(len((stored / "k1.bin").read_bytes()),
                         15 + self.items["utt-001"].nbytes)

    def test_failure_is_known_where_ended_children_are_ignored(self):
        self.mount("--allow-pipes", self.script(self.object_of(0), "exit 3 |"),
                   preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertIn("exit code 3", self.said)

    def test_one_of_several_ranges_runs_once(self):
        self.mount("--allow-pipes", self.script(f"{self.object_of(1)}[0:0]",
                                                f"{self.object_of(1)}[1:1]"))
        self.assertEqual(self.runs.read_text().split(), ["1"])

    def test_a_slow_one_is_waited_for(self):
        mnt = self.mount("--allow-pipes", self.script(f"sleep 1; {self.object_of(0)}"))
        np.testing.assert_array_equal(record(mnt, 0), self.items["utt-000"])

    def test_one_that_says_something_else_the_second_time_is_damage(self):
        # Nothing fits into the cache but the block in hand: each command runs again.
        flag = self.folder / "flag"
        first = f"test -e {flag} && head -c 10 /dev/zero || ({self.object_of(0)[:-1]}) |"
        mnt = self.mount("--allow-pipes", "--cache-size", "16",
                         self.script(first, self.object_of(1)))
        flag.touch()
        self.assertTrue((mnt / "train/records/k1.bin").read_bytes())
        self.assert_errno(errno.EIO, (mnt / "train/records/k0.bin").read_bytes)


class Maps(MountTest):
    def test_take_each_keys_value_as_the_key(self):
        utterances = matrices(4)
        speakers = {"anna": np.full((2, 3), 1, np.float32), "bert": np.full((1, 3), 2, np.float32)}
        write_kaldi(self.folder / "feats", utterances)
        write_kaldi(self.folder / "cmvn", speakers)
        told = ["bert", "anna", "anna", "bert"]
        (self.folder / "utt2spk").write_text(
            "".join(f"{key} {speaker}\n" for key, speaker in zip(utterances, told)))
        mnt = self.mount(f"train/x=scp:{self.folder}/feats.scp",
                         f"train/cmvn=scp:{self.folder}/cmvn.scp",
                         "--map", f"cmvn={self.folder}/utt2spk")
        cmvn = np.load(mnt / "train/cmvn.npy")
        offsets = np.load(mnt / "train/cmvn_offsets.npy")
        for i, speaker in enumerate(told):
            np.testing.assert_array_equal(cmvn[offsets[i]:offsets[i + 1]], speakers[speaker])

    def test_name_the_key_that_the_table_lacks(self):
        write_kaldi(self.folder / "feats", matrices(2))
        write_kaldi(self.folder / "cmvn", {"anna": np.zeros((1, 1), np.float32)})
        (self.folder / "utt2spk").write_text("utt-000 anna\nutt-001 carl\n")
        done = npyfs("mount", f"train/x=scp:{self.folder}/feats.scp",
                     f"train/cmvn=scp:{self.folder}/cmvn.scp",
                     "--map", f"cmvn={self.folder}/utt2spk", self.mount_point())
        self.assertEqual(done.returncode, 1)
        self.assertIn("carl", done.stderr)


    def refused(self, *arguments):
        """What is said of a mount of feats and cmvn with these arguments."""
        write_kaldi(self.folder / "feats", matrices(2))
        write_kaldi(self.folder / "cmvn", {"anna": np.zeros((1, 1), np.float32)})
        done = npyfs("mount", f"train/x=scp:{self.folder}/feats.scp",
                     f"train/cmvn=scp:{self.folder}/cmvn.scp", *arguments,
                     self.mount_point(f"mnt{len(os.listdir(self.folder))}"))
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_must_name_a_joined_array_and_text(self):
        self.assertIn("no array that is joined", self.refused("--map", "cmvn=" + str(
            self.write("utt-000 anna\nutt-001 anna\n")), "--map", "x=/nonexistent"))
        self.assertIn("expected text", self.refused("--map", "cmvn=x"))
        self.assertIn("no such file", self.refused("--map", "cmvn=utt2spk"))
        self.assertIn("itself joined", self.refused("--map", "cmvn=cmvn"))

    def write(self, text):
        path = self.folder / "map"
        path.write_text(text)
        return path

    def test_have_each_key_once_and_two_words(self):
        for text, what in (("utt-000 anna\nutt-000 anna\n", "further above"),
                           ("utt-000 anna extra\n", "two words"), ("utt-000\n", "two words")):
            with self.subTest(what):
                self.assertIn(what, self.refused("--map", f"cmvn={self.write(text)}"))

    def test_empty_is_the_identity(self):
        items = matrices(3)
        write_kaldi(self.folder / "feats", items)
        mnt = self.mount(f"train/x=scp:{self.folder}/feats.scp",
                         f"train/y=scp:{self.folder}/feats.scp", "--map", f"y={self.write('')}")
        np.testing.assert_array_equal(np.load(mnt / "train/y.npy"),
                                      np.concatenate(list(items.values())))


class CutMatrices(MountTest):
    """The last matrix of a script is cut: it has the rows that its header tells."""

    def rows(self, *shapes, place="", dtypes="fff", options=()):
        lines = []
        for i, rows in enumerate(shapes):
            path = self.folder / f"{i}.ark"
            kind, dtype = {"f": (b"FM ", "<f4"), "d": (b"DM ", "<f8")}[dtypes[i]]
            data = np.ones((rows, COLS), dtype)
            stored = (b"\0B" + kind + b"\4" + rows.to_bytes(4, "little") + b"\4" +
                      COLS.to_bytes(4, "little") + data.tobytes())
            last = i + 1 == len(shapes)
            path.write_bytes(stored[:-10] if last else stored)
            lines.append(f"k{i} {path}{place if last else ''}\n")
        (self.folder / "t.scp").write_text("".join(lines))
        mnt = self.mount(*options, f"scp:{self.folder}/t.scp",
                         name=f"mnt{len(os.listdir(self.folder))}")
        return np.load(mnt / "train/x_offsets.npy").tolist()

    def test_of_doubles_among_floats(self):
        self.assertEqual(self.rows(2, 3, 4, dtypes="ffd"), [0, 2, 5, 9])

    def test_of_a_range(self):
        self.assertEqual(self.rows(2, 3, 10, place="[0:1]"), [0, 2, 5, 7])

    def test_beside_one_size(self):
        self.assertEqual(self.rows(2, 10), [0, 2, 12])
        self.assertEqual(self.rows(2, 2, 2), [0, 2, 4, 6])

    def test_are_left_out_where_the_source_says_so(self):
        self.rows(2, 10)
        mnt = self.mount(f"scp,p:{self.folder}/t.scp", name="p")
        self.assertEqual(np.load(mnt / "train/x_offsets.npy").tolist(), [0, 2])


class Values(MountTest):
    """Lists, pairs, posteriors and scalars, binary and in text, as Kaldi's programs read them."""

    def values_of(self, name, table):
        mnt = self.mount(f"ark:{TABLES}/{table}", name=f"mnt-{table}")
        truth = json.loads((TABLES / f"{name}.truth.json").read_text())
        keys = truth.pop("order")
        self.assertEqual(np.load(mnt / "train/keys.npy").tolist(), keys)
        return mnt / "train", [truth[key] for key in keys]

    def both(self, name):
        for table in (f"{name}.ark", f"{name}_text.ark"):
            with self.subTest(table):
                yield self.values_of(name, table)

    def cut(self, folder, name):
        """The items of a concatenated array, as lists."""
        values = np.load(folder / f"{name}.npy")
        offsets = np.load(folder / f"{name}_offsets.npy")
        return [values[a:b].tolist() for a, b in zip(offsets[:-1], offsets[1:])]

    def test_of_scalars(self):
        for name, dtype in (("int", "<i4"), ("float", "<f4"), ("bool", "|b1")):
            for folder, truth in self.both(name):
                np.testing.assert_array_equal(np.load(folder / "x.npy"), np.array(truth, dtype))

    def test_of_pairs(self):
        for name in ("int_pairs", "float_pairs"):
            for folder, truth in self.both(name):
                self.assertEqual(self.cut(folder, "x"), truth)

    def test_of_lists_of_lists(self):
        for folder, truth in self.both("int_vecvec"):
            self.assertEqual(self.cut(folder, "x"), [sum(lists, []) for lists in truth])
            self.assertEqual(self.cut(folder, "x_counts"),
                             [[len(inner) for inner in lists] for lists in truth])

    def test_of_posteriors(self):
        for folder, truth in self.both("post"):
            flat = [sum(frames, []) for frames in truth]
            self.assertEqual(self.cut(folder, "x"), [[i for i, _ in pairs] for pairs in flat])
            self.assertEqual(self.cut(folder, "x_weights"), [[w for _, w in pairs] for pairs in flat])
            self.assertEqual(self.cut(folder, "x_counts"),
                             [[len(frame) for frame in frames] for frames in truth])


class Types(MountTest):
    def test_must_be_possible(self):
        (self.folder / "ali.ark").write_bytes(b"a \0B\4\2\0\0\0\4\1\0\0\0\4\2\0\0\0")
        (self.folder / "t.txt").write_text("a one two\nb three\n")
        for i, (table, dtype) in enumerate((("ali.ark", "float32"), ("ali.ark", "<U4"),
                                            ("t.txt", "float32"), ("t.txt", "<U3"))):
            with self.subTest(table=table, dtype=dtype):
                done = npyfs("mount", f"ark:{self.folder}/{table}", "--dtype", f"x={dtype}",
                             self.mount_point(f"refused{i}"))
                self.assertEqual(done.returncode, 2, done.stderr)
        mnt = self.mount(f"ark:{self.folder}/t.txt", "--dtype", "x=<U9")
        self.assertEqual(np.load(mnt / "train/x.npy").dtype, np.dtype("<U9"))


class Segments(MountTest):
    def cut(self, segments):
        """The keys that are left of segments of one second of one channel, and what was said."""
        frames = np.zeros((8000, 1), np.int16)
        data = self.folder / "data"
        data.mkdir()
        write_wave(data / "rec.wav", frames)
        write_wave(data / "two.wav", np.zeros((8000, 2), np.int16))
        (data / "wav.scp").write_text(f"rec {data}/rec.wav\ntwo {data}/two.wav\n")
        (data / "segments").write_text(segments)
        mnt = self.mount(f"kaldi:{data}")
        return np.load(mnt / "train/keys.npy").tolist()

    def test_are_as_long_as_kaldi_wants_them(self):
        # Its limits are float32: 0.1 s is too short.
        self.assertEqual(self.cut("a rec 0 0.1\nb rec 0 0.1000001\nc rec 0 1.5\nd rec 0 1.50001\n"),
                         ["b", "c"])

    def test_that_are_malformed_are_left_out(self):
        self.assertEqual(self.cut("\na rec 0\nb rec x 1\nc rec 0 1\nd rec 0 1 -1\n"
                                  "e two 5 6\nf rec 0 1 0 0\n"), ["c"])
        # Of each kind the first, and how many more.
        self.assertEqual(re.findall(r"segments (line \d+): .*; left out(.*)", self.said),
                         [("line 1", " (and 2 more lines)"), ("line 3", ""), ("line 5", ""),
                          ("line 6", "")])

    def test_of_one_channel_of_several(self):
        frames = np.random.default_rng(2).integers(-2**15, 2**15, (8000, 3), np.int16)
        write_wave(self.folder / "rec.wav", frames)
        data = self.folder / "data"
        data.mkdir()
        (data / "wav.scp").write_text(f"rec {self.folder}/rec.wav\n")
        (data / "segments").write_text("a rec 0.25 0.5 2\nb rec 0 0.125 0\nc rec 0.5 0.75 3\n")
        mnt = self.mount(f"kaldi:{data}")
        self.assertIn("segments line 3", self.said)
        self.assertEqual(np.load(mnt / "train/keys.npy").tolist(), ["a", "b"])
        np.testing.assert_array_equal(record(mnt, 0), frames[2000:4000, 2:3])
        np.testing.assert_array_equal(record(mnt, 1), frames[:1000, :1])


class Keys(MountTest):
    def test_that_are_no_utf8(self):
        items = {b"\xff\xfeutt": np.zeros((1, 2), np.float32), b"ok": np.ones((1, 2), np.float32)}
        write_kaldi(self.folder / "a", {os.fsdecode(key): item for key, item in items.items()})
        mnt = self.mount(f"scp:{self.folder}/a.scp")
        keys = np.load(mnt / "train/keys.npy").tolist()
        self.assertEqual([os.fsencode(key) for key in keys], list(items))
        self.assertEqual(sorted(os.listdir(mnt / "train/records")), ["%FF%FEutt.bin", "ok.bin"])
        self.assertEqual((mnt / "train/records/%FF%FEutt.bin").stat().st_size, 15 + 8)


class Files(MountTest):
    def test_more_of_them_than_descriptors(self):
        lines = []
        items = matrices(300)
        for key, item in items.items():
            write_kaldi(self.folder / key, {key: item})
            lines.append((self.folder / f"{key}.scp").read_text())
        (self.folder / "all.scp").write_text("".join(lines))

        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))

        mnt = self.mount(f"scp:{self.folder}/all.scp", preexec_fn=few)
        np.testing.assert_array_equal(np.load(mnt / "train/x.npy"),
                                      np.concatenate(list(items.values())))
        # The last one is opened again if it was closed meanwhile.
        record_file = mnt / "train/records/utt-299.bin"
        self.assertTrue(read_direct(record_file, 0, PAGE))
        os.utime(self.folder / "utt-299.ark", ns=(1, 1))
        self.assert_errno(errno.ESTALE, read_direct, record_file, 0, PAGE)

    def test_share_the_descriptors_of_the_process(self):
        scripts = []
        for half in ("a", "b"):
            lines = []
            for i in range(60):
                write_kaldi(self.folder / f"{half}{i}", {f"{half}{i:02d}": np.ones((1, 2), "f4")})
                lines.append((self.folder / f"{half}{i}.scp").read_text())
            (self.folder / f"{half}.scp").write_text("".join(lines))
            scripts.append(f"scp:{self.folder}/{half}.scp")
        mnt = self.mount(*scripts, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE,
                                                                         (100, 100)))
        self.assertEqual(np.load(mnt / "train/x.npy").shape, (120, 2))

    def test_of_a_directory_may_not_lead_out_of_it(self):
        data, outside = self.folder / "data", self.folder / "private"
        data.mkdir()
        outside.mkdir()
        write_kaldi(data / "a", matrices(1))
        os.rename(data / "a.scp", data / "feats.scp")
        (outside / "secret").write_text("utt-000 secret\n")
        (data / "text").symlink_to(outside / "secret")
        done = npyfs("mount", "-o", "allow_other", f"kaldi:{data}", self.mount_point())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("--allow-outside", done.stderr)
        self.mount("-o", "allow_other", "--base-dir", "/", f"kaldi:{data}", name="root")

    def test_found_in_a_folder_may_not_lead_out_of_it(self):
        inside, outside = self.folder / "set", self.folder / "private"
        inside.mkdir()
        outside.mkdir()
        write_kaldi(inside / "a", matrices(1))
        write_kaldi(outside / "b", matrices(1))
        (inside / "b.ark").symlink_to(outside / "b.ark")
        done = npyfs("mount", "-o", "allow_other", f"ark:{inside}", self.mount_point())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("b.ark", done.stderr)
        self.mount("-o", "allow_other", "--allow-outside", f"ark:{inside}", name="allowed")
        self.mount("-o", "allow_other", f"ark:{inside}/b.ark", name="named")

    def test_matched_by_a_glob_may_not_lead_out_of_its_folder(self):
        inside, outside = self.folder / "set", self.folder / "private"
        for name, folder in (("a", inside / "one"), ("b", outside)):
            folder.mkdir(parents=True)
            write_kaldi(folder / name, matrices(1))
        (inside / "one" / "b.ark").symlink_to(outside / "b.ark")
        (inside / "two").symlink_to(outside)
        for number, pattern in enumerate(("one/*.ark", "*/b.ark", "*")):
            with self.subTest(pattern):
                source = f"ark:{inside}/{pattern}"
                done = npyfs("mount", "-o", "allow_other", source, self.mount_point(f"m{number}"))
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("it lies outside of", done.stderr)
                self.assertEqual(npyfs("info", source).returncode, 0)
                self.mount("-o", "allow_other", "--allow-outside", source, name=f"allowed{number}")
        # A glob that leads nowhere else, and a name that the user wrote.
        self.mount("-o", "allow_other", f"ark:{inside}/one/a*", name="within")
        self.mount("-o", "allow_other", f"ark:{inside}/one/{{a,b}}.ark", name="named")

    def test_are_looked_for_below_a_base_dir_that_is_one(self):
        write_kaldi(self.folder / "a", matrices(1))
        for base, words in ((self.folder / "missing", "No such file"),
                            (self.folder / "a.ark", "not a directory")):
            done = npyfs("info", "--base-dir", base, f"scp:{self.folder}/a.scp")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"--base-dir {base}: ", done.stderr)
            self.assertIn(words, done.stderr)
            self.assertIn("expected a directory", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_that_are_urls_are_refused_by_their_scheme(self):
        (self.folder / "a.scp").write_text("utt-000 s3://bucket/a.ark:8\n")
        done = npyfs("info", f"scp:{self.folder}/a.scp")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("a.scp line 1", done.stderr)
        self.assertIn("npyfs does not read s3:// yet, expected a local path; copy", done.stderr)

    def test_with_a_key_twice_join_nothing(self):
        write_kaldi(self.folder / "a", matrices(1))
        line = (self.folder / "a.scp").read_text()
        (self.folder / "feats.scp").write_text(line + line)
        (self.folder / "text").write_text("utt-000 hello\n")
        done = npyfs("mount", f"kaldi:{self.folder}", self.mount_point())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("stands there twice", done.stderr)

    def test_that_others_may_not_read_through_the_mount(self):
        inside, outside = self.folder / "set", self.folder / "private"
        inside.mkdir()
        outside.mkdir()
        write_kaldi(outside / "a", matrices(1))
        (inside / "link.ark").symlink_to(outside / "a.ark")
        for name, place in (("dots", "../private/a.ark"), ("link", "link.ark"),
                            ("absolute", str(outside / "a.ark"))):
            (inside / f"{name}.scp").write_text(f"utt-000 {place}:8\n")
            with self.subTest(name):
                mnt = self.mount_point(name)
                done = npyfs("mount", "-o", "allow_other", f"scp:{inside}/{name}.scp", mnt)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(f"{name}.scp line 1", done.stderr)
                self.assertIn("--allow-outside", done.stderr)
                allowed = self.mount("-o", "allow_other", "--allow-outside",
                                     f"scp:{inside}/{name}.scp", name=f"{name}-allowed")
                np.testing.assert_array_equal(record(allowed, 0), matrices(1)["utt-000"])


if __name__ == "__main__":
    unittest.main()

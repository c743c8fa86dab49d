"""Kaldi tables in a mount: commands, maps, channels, keys of odd bytes, files that may not be read."""

import errno
import os
import resource
import unittest
import wave

import numpy as np

from mounting import PAGE, MountTest, npyfs, read_direct
from writers import write_kaldi

COLS = 7


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


class Segments(MountTest):
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
        # The last is opened for each read.
        record_file = mnt / "train/records/utt-299.bin"
        self.assertTrue(read_direct(record_file, 0, PAGE))
        os.utime(self.folder / "utt-299.ark", ns=(1, 1))
        self.assert_errno(errno.ESTALE, read_direct, record_file, 0, PAGE)

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

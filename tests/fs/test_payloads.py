"""Payloads through a real mount: what a user of numpy sees of images, audio and pickled samples."""

import errno
import json
import pathlib
import pickle
import unittest

import numpy as np

from mounting import MountTest, npyfs
from writers import recordio_parts, write_ffrecord

DATA = pathlib.Path(__file__).resolve().parents[1] / "data/payloads"


def payload(name):
    return (DATA / name).read_bytes()


def expected(name):
    return np.load(DATA / (name + ".npy"))


class Payloads(MountTest):
    def write(self, name, payloads):
        path = self.folder / name
        path.write_bytes(b"".join(recordio_parts(p) for p in payloads))
        return path

    def test_images_of_one_size_stack(self):
        names = ["images/rgb.png", "images/rgb.jpg", "images/lossless.webp"]
        mnt = self.mount(self.write("i.rec", [payload(n) for n in names]))
        x = np.load(mnt / "train/x.npy", mmap_mode="r")
        self.assertEqual(x.shape, (3, 23, 31, 3))
        for i, name in enumerate(names):
            difference = np.abs(x[i].astype(int) - expected(name).astype(int))
            self.assertLessEqual(difference.max(), 3 if name.endswith("jpg") else 0, name)

    def test_images_of_several_sizes_are_bytes_or_made_one_size(self):
        names = ["images/rgb.png", "images/alpha.webp", "images/grey.jpg"]
        source = self.write("i.rec", [payload(n) for n in names])
        x = np.load(self.mount(source) / "train/x.npy")
        self.assertEqual(x.tobytes(), b"".join(payload(n) for n in names))
        x = np.load(self.mount("--image", "10x12x3", source, name="sized") / "train/x.npy")
        self.assertEqual(x.shape, (3, 10, 12, 3))

    def test_audio_is_concatenated_with_its_rate(self):
        names = ["audio/s16.flac", "wav/s16-mono.wav"]
        mnt = self.mount(self.write("a.rec", [payload(n) for n in names]))
        x = np.load(mnt / "train/x.npy", mmap_mode="r")
        np.testing.assert_array_equal(x, np.concatenate([expected(n) for n in names]))
        offsets = np.load(mnt / "train/x_offsets.npy")
        self.assertEqual(offsets.tolist(), [0, 4000, 4201])
        attrs = np.load(mnt / "attrs.npy", allow_pickle=True)[()]
        self.assertEqual(attrs["samplerate_x_Hz"], 16000)

    def test_pieces_of_compressed_audio_are_slices_of_the_whole(self):
        rate = 16000
        names = ["s16.flac", "opus.ogg", "sox.mp3", "stream.flac"]
        lines, wanted = [], []
        for name in names:
            whole = expected("audio/" + name)
            wav = str(DATA / "audio" / name)
            lines.append({"key": name, "wav": wav, "txt": name})
            wanted.append(whole)
            for start, end in [(0, 0.01), (0.0312, 0.0625), (0.1, 0.1), (0.2, 77)]:
                lines.append({"key": f"{name}{start}", "wav": wav, "txt": "", "start": start, "end": end})
                wanted.append(whole[int(start * rate):int(end * rate)])
        (self.folder / "data.list").write_text("\n".join(map(json.dumps, lines)))
        train = self.mount(self.folder / "data.list") / "train"
        np.testing.assert_array_equal(np.load(train / "x.npy", mmap_mode="r"), np.concatenate(wanted))
        self.assertEqual(np.load(train / "x_offsets.npy").tolist(), np.cumsum([0] + [len(x) for x in wanted]).tolist())
        # A record's file is what is stored: of a piece, too.
        self.assertEqual((train / "records/s16.flac0.1.flac").read_bytes(), payload("audio/s16.flac"))

    def test_a_cut_jpeg_is_an_error_and_never_grey(self):
        jpeg = payload("images/rgb.jpg")
        mnt = self.mount("--header-align", "4096",
                         self.write("i.rec", [jpeg, jpeg[:len(jpeg) // 2], jpeg]))
        self.assertEqual(np.load(mnt / "train/x.npy", mmap_mode="r").shape, (3, 23, 31, 3))
        with open(mnt / "train/x.npy", "rb", buffering=0) as file:
            file.seek(4096 + 23 * 31 * 3)
            with self.assertRaises(OSError) as caught:
                file.read(100)
        self.assertEqual(caught.exception.errno, errno.EIO)
        log = (mnt / ".npyfs/errors").read_text()
        self.assertIn("jpeg is damaged", log)
        self.assertIn("i.rec at byte", log)

    def test_pickled_samples_are_their_parts(self):
        random = np.random.default_rng(4)
        samples = [{"image": random.integers(0, 255, (4, 5, 3), np.uint8), "label": i, "name": "n" * i,
                    "lengths": np.arange(i)} for i in range(20)]
        write_ffrecord(self.folder / "p.ffr", [pickle.dumps(s) for s in samples])
        train = self.mount(self.folder / "p.ffr") / "train"
        np.testing.assert_array_equal(np.load(train / "image.npy"), [s["image"] for s in samples])
        np.testing.assert_array_equal(np.load(train / "label.npy"), range(20))
        self.assertEqual(np.load(train / "name.npy").tolist(), [s["name"] for s in samples])
        lengths, offsets = np.load(train / "lengths.npy"), np.load(train / "lengths_offsets.npy")
        for i in range(20):
            self.assertEqual(lengths[offsets[i]:offsets[i + 1]].tolist(), list(range(i)))
        self.assertEqual((train / "records/3.bin").read_bytes(), pickle.dumps(samples[3]))

    def test_a_damaged_pickle_hides_its_label_alone(self):
        samples = [bytearray(pickle.dumps((np.full(5000, i, np.uint8), i))) for i in range(4)]
        path = self.folder / "p.ffr"
        write_ffrecord(path, samples)
        data = bytearray(path.read_bytes())
        data[12 + 12 * 4 + len(samples[0]) + len(samples[1]) + 2500] ^= 1
        path.write_bytes(data)
        train = self.mount("--header-align", "4096", path) / "train"
        with self.assertRaises(OSError):
            (train / "y.npy").read_bytes()  # one page holds all labels
        x = np.load(train / "x.npy", mmap_mode="r")
        self.assertEqual(x.shape, (4, 5000))
        self.assertEqual(x[0].max(), 0)
        self.assertEqual((train / "records/1.bin").read_bytes(), samples[1])

    def test_info_tells_what_is_mapped_and_what_is_decoded(self):
        write_ffrecord(self.folder / "p.ffr", [pickle.dumps((np.zeros(9), 1))] * 3)
        said = npyfs("info", self.folder / "p.ffr").stdout
        self.assertRegex(said, r"x\.npy .*mapped")


if __name__ == "__main__":
    unittest.main()

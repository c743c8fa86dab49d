"""Root's mount with allow_other serves no byte from outside of the data set.

Each of WAYS makes a data set in `inside` one part of which is a file in `foreign`.
"""

import io
import json
import os
import tarfile
import unittest

import numpy as np

from mounting import MountTest, npyfs, saved
from optional import optional
from writers import write_ffrecord, write_kaldi, write_recordio

h5py = optional("h5py")

# Of 16 bytes, so that it can be told in numbers of any width and in text.
SECRET = "secret" + "0123456789"
SECRET_TIME = 4_102_444_800  # of files outside: 2100-01-01
ROWS = np.frombuffer(SECRET.encode(), np.uint8)
REFUSALS = ("it lies outside of", "below the file's own folder")


def zarr_metadata(version):
    if version == 2:
        return ".zarray", {"zarr_format": 2, "shape": [16], "chunks": [16], "dtype": "|u1",
                           "compressor": None, "filters": None, "order": "C", "fill_value": 0}
    return "zarr.json", {
        "zarr_format": 3, "node_type": "array", "shape": [16], "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [16]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0, "codecs": [{"name": "bytes"}]}


def zarr_store(inside, version):
    """A store with an array `x` whose chunk is missing: (the store, the array's folder, the chunk)."""
    store = inside / "s.zarr"
    name, metadata = zarr_metadata(version)
    (store / "x").mkdir(parents=True)
    (store / "x" / name).write_text(json.dumps(metadata))
    if version == 2:
        (store / ".zgroup").write_text('{"zarr_format": 2}')
        return store, store / "x", store / "x/0"
    (store / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    (store / "x/c").mkdir()
    return store, store / "x", store / "x/c/0"


def zarr_chunk(inside, foreign, version):
    store, _, chunk = zarr_store(inside, version)
    (foreign / "chunk").write_text(SECRET)
    chunk.symlink_to(foreign / "chunk")
    return store


def zarr_deflated_chunk(inside, foreign, _):
    store, array, chunk = zarr_store(inside, 2)
    metadata = zarr_metadata(2)[1] | {"filters": [{"id": "delta", "dtype": "|u1"}]}
    (array / ".zarray").write_text(json.dumps(metadata))
    (foreign / "chunk").write_bytes(np.diff(ROWS, prepend=np.uint8(0)).tobytes())
    chunk.symlink_to(foreign / "chunk")
    return store


def zarr_chunk_folder(inside, foreign, _):
    store, array, chunk = zarr_store(inside, 3)
    chunk.parent.rmdir()
    (foreign / "0").write_text(SECRET)
    chunk.parent.symlink_to(foreign)
    return store


def zarr_array_folder(inside, foreign, version):
    store, array, chunk = zarr_store(inside, version)
    chunk.write_text(SECRET)
    array.rename(foreign / "x")
    array.symlink_to(foreign / "x")
    return store


def zarr_attributes(inside, foreign, _):
    store, array, chunk = zarr_store(inside, 2)
    chunk.write_bytes(bytes(16))
    (foreign / "attributes").write_text(json.dumps({"of": SECRET}))
    (array / ".zattrs").symlink_to(foreign / "attributes")
    return store


def ffrecord_entry(inside, foreign, _):
    write_ffrecord(inside / "a.ffr", [bytes(16)])
    write_ffrecord(foreign / "b.ffr", [ROWS])
    (inside / "b.ffr").symlink_to(foreign / "b.ffr")
    return inside


def ffrecord_glob(inside, foreign, _):
    ffrecord_entry(inside, foreign, _)
    return inside / "*.ffr"


def recordio_index(inside, foreign, _):
    write_recordio(inside / "a.rec", [bytes(16)])
    (foreign / "a.idx").write_text(f"{SECRET}\t0\n")
    (inside / "a.idx").symlink_to(foreign / "a.idx")
    return inside / "a.rec"


def kaldi_ark(folder):
    write_kaldi(folder / "a", {"utt": ROWS.view("<f4").reshape(1, 4)})
    return folder / "a.ark"


def kaldi_line(inside, foreign, _):
    kaldi_ark(foreign)
    (inside / "a.scp").write_text(f"utt {os.path.relpath(foreign, inside)}/a.ark:4\n")
    return f"scp:{inside}/a.scp"


def kaldi_link(inside, foreign, _):
    (inside / "link.ark").symlink_to(kaldi_ark(foreign))
    (inside / "a.scp").write_text("utt link.ark:4\n")
    return f"scp:{inside}/a.scp"


def kaldi_data_dir(inside, foreign, _):
    kaldi_line(inside, foreign, _)
    os.rename(inside / "a.scp", inside / "feats.scp")
    return f"kaldi:{inside}"


def kaldi_script(inside, foreign, _):
    (foreign / "feats.scp").write_text(f"{SECRET} {kaldi_ark(inside)}:4\n")
    (inside / "feats.scp").symlink_to(foreign / "feats.scp")
    return f"kaldi:{inside}"


def kaldi_text(inside, foreign, _):
    (inside / "feats.scp").write_text(f"utt {kaldi_ark(inside)}:4\n")
    (foreign / "text").write_text(f"utt {SECRET}\n")
    (inside / "text").symlink_to(foreign / "text")
    return f"kaldi:{inside}"


def wave(rows):
    out = io.BytesIO()
    data = rows.tobytes()
    out.write(b"RIFF" + (36 + len(data)).to_bytes(4, "little") + b"WAVEfmt \x10\0\0\0\x01\0\x01\0"
              + (8000).to_bytes(4, "little") + (8000).to_bytes(4, "little") + b"\x01\0\x08\0data"
              + len(data).to_bytes(4, "little") + data)
    return out.getvalue()


def wenet_line(inside, foreign, _):
    (foreign / "a.wav").write_bytes(wave(ROWS))
    path = os.path.relpath(foreign, inside) + "/a.wav"
    (inside / "data.list").write_text(json.dumps({"key": "a", "wav": path, "txt": "a"}) + "\n")
    return f"wenet:{inside}/data.list"


def wenet_shard(inside, foreign, _):
    with tarfile.open(foreign / "a.tar", "w") as archive:
        member = tarfile.TarInfo("a.txt")
        member.size = len(SECRET)
        archive.addfile(member, io.BytesIO(SECRET.encode()))
    (inside / "link.tar").symlink_to(foreign / "a.tar")
    (inside / "data.list").write_text("link.tar\n")
    return f"wenet:{inside}/data.list"


def das_annotations(inside, foreign, _):
    (inside / "a.wav").write_bytes(wave(ROWS * 0))
    (foreign / "rows.csv").write_text(f"name,start_seconds,stop_seconds\n{SECRET},0.0001,0.0002\n")
    (inside / "a_annotations.csv").symlink_to(foreign / "rows.csv")
    return f"das:{inside}"


def das_recording(inside, foreign, _):
    (foreign / "a.wav").write_bytes(wave(ROWS))
    (inside / "a.wav").symlink_to(foreign / "a.wav")
    (inside / "a_annotations.csv").write_text("name,start_seconds,stop_seconds\nb,0.0001,0.0002\n")
    return f"das:{inside}"


def das_beside(inside, foreign, _):
    das_annotations(inside, foreign, _)
    return f"das:{inside}/a.wav"


def npy_file(inside, foreign, _):
    np.save(inside / "own.npy", np.arange(3))
    (foreign / "x.npy").write_bytes(saved(ROWS))
    (inside / "x.npy").symlink_to(foreign / "x.npy")
    return f"npy:{inside}"


def npy_folder(inside, foreign, _):
    np.save(inside / "own.npy", np.arange(3))
    (foreign / "train").mkdir()
    (foreign / "train/x.npy").write_bytes(saved(ROWS))
    (inside / "train").symlink_to(foreign / "train")
    return f"npy:{inside}"


def npy_attributes(inside, foreign, _):
    np.save(inside / "own.npy", np.arange(3))
    (foreign / "attributes").write_text(json.dumps({"of": SECRET}))
    (inside / "attrs.json").symlink_to(foreign / "attributes")
    return f"npy:{inside}"


def hdf5_raw_file(inside, foreign, _):
    (foreign / "raw").write_text(SECRET)
    (inside / "link").symlink_to(foreign / "raw")
    with h5py.File(inside / "a.h5", "w") as file:
        file.create_dataset("own", data=np.arange(3))
        file.create_dataset("x", (16,), "u1", external=[("link", 0, 16)])
    return inside / "a.h5"


def hdf5_other_file(inside, foreign):
    with h5py.File(foreign / "b.h5", "w") as file:
        file["x"] = ROWS
    (inside / "link.h5").symlink_to(foreign / "b.h5")


def hdf5_external_link(inside, foreign, _):
    hdf5_other_file(inside, foreign)
    with h5py.File(inside / "a.h5", "w") as file:
        file.create_dataset("own", data=np.arange(3))
        file["x"] = h5py.ExternalLink("link.h5", "/x")
    return inside / "a.h5"


def hdf5_virtual_source(inside, foreign, _):
    hdf5_other_file(inside, foreign)
    layout = h5py.VirtualLayout((16,), "u1")
    layout[:] = h5py.VirtualSource("link.h5", "x", (16,))
    with h5py.File(inside / "a.h5", "w") as file:
        file.create_dataset("own", data=np.arange(3))
        file.create_virtual_dataset("x", layout)
    return inside / "a.h5"


WAYS = [(zarr_chunk, 2), (zarr_chunk, 3), (zarr_deflated_chunk, 2), (zarr_chunk_folder, 3),
        (zarr_array_folder, 2), (zarr_array_folder, 3), (zarr_attributes, 2)]
WAYS += [(way, 0) for way in (
    ffrecord_entry, ffrecord_glob, recordio_index, kaldi_line, kaldi_link, kaldi_data_dir,
    kaldi_script, kaldi_text, wenet_line, wenet_shard, das_annotations, das_recording, das_beside,
    npy_file, npy_folder, npy_attributes)]
if h5py is not None:
    WAYS += [(hdf5_raw_file, 0), (hdf5_external_link, 0), (hdf5_virtual_source, 0)]


class Outside(MountTest):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("needs root, or user_allow_other")

    def mount_for_all(self, source, name, relative):
        """(all that can be read, all that was said) of a mount of a SOURCE below the folder."""
        mnt = self.mount_point(name)
        text = str(source)
        if relative:
            text = text.replace(f"{self.folder}/", "")
        done = npyfs("mount", "-o", "allow_other", text, mnt, cwd=self.folder)
        if done.returncode != 0:
            self.assertEqual(done.returncode, 1, done.stderr)
            return b"", done.stderr
        read = []
        for path in mnt.rglob("*"):
            try:
                read.append(str(int(path.stat().st_mtime)).encode())
                read.append(path.read_bytes() if path.is_file() else b"")
            except OSError:
                pass
        return b"\n".join(read), done.stderr + (mnt / ".npyfs/errors").read_text()

    def shows_secret(self, read):
        return any(SECRET.encode(encoding) in read for encoding in ("ascii", "utf-32-le"))

    def test_nothing_is_served(self):
        for way, version in WAYS:
            for relative in (False, True):
                name = f"{way.__name__}{version or ''}-{'relative' if relative else 'absolute'}"
                with self.subTest(name):
                    inside, private = self.folder / f"set{name}", self.folder / f"private{name}"
                    inside.mkdir()
                    private.mkdir()
                    source = way(inside, private, version)
                    for path in private.rglob("*"):
                        os.utime(path, (SECRET_TIME, SECRET_TIME))
                    read, said = self.mount_for_all(source, name, relative)
                    self.assertFalse(self.shows_secret(read), said)
                    self.assertNotIn(str(SECRET_TIME).encode(), read)
                    self.assertTrue(any(words in said for words in REFUSALS), said)

    def test_what_lies_within_is_served(self):
        for way, version in WAYS:
            name = f"{way.__name__}{version or ''}"
            with self.subTest(name):
                inside = self.folder / f"set{name}"
                within = inside / ("s.zarr/.within" if name.startswith("zarr") else ".within")
                within.mkdir(parents=True)
                read, said = self.mount_for_all(way(inside, within, version), name, False)
                self.assertTrue(self.shows_secret(read), said)

    def test_a_link_that_comes_later_leads_nowhere(self):
        private = self.folder / "private"
        private.mkdir()
        (private / "chunk").write_text(SECRET)
        for version in (2, 3):
            with self.subTest(version):
                inside = self.folder / f"set{version}"
                store, _, chunk = zarr_store(inside, version)
                chunk.write_bytes(bytes(16))
                mnt = self.mount("-o", "allow_other", store.relative_to(self.folder),
                                 name=f"mnt{version}", cwd=self.folder)
                chunk.unlink()
                chunk.symlink_to(private / "chunk")
                with self.assertRaises(OSError):
                    (mnt / "x.npy").read_bytes()


if __name__ == "__main__":
    unittest.main()

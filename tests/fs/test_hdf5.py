"""HDF5 through a mount: files that h5py writes, a reader process that dies, files that change."""

import errno
import json
import os
import pathlib
import random
import signal
import struct
import time
import unittest

import numpy as np

from mounting import PAGE, TIMEOUT, MountTest, memory_of, npyfs, read_direct, read_range, saved

try:
    import h5py
except ImportError:
    h5py = None


def children_of(pid):
    """Process ids of the readers of HDF5 files that a daemon has started."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = path.read_text().rsplit(")", 1)
        except OSError:
            continue
        if int(rest.split()[1]) == pid and name.endswith("(npyfs-hdf5"):
            found.append(int(path.parent.name))
    return found


def wait_until(condition):
    end = time.monotonic() + TIMEOUT
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it does not come true")
        time.sleep(0.01)


@unittest.skipIf(h5py is None, "python3-h5py is not installed")
class Hdf5Test(MountTest):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "s.h5"

    def assert_file(self, path, array):
        self.assertEqual(path.read_bytes(), saved(np.asarray(array)), path)

    def peak_nbytes(self, mnt):
        """The most memory that the daemon has ever had."""
        return memory_of(self.daemon(mnt), "VmHWM")


class Whole(Hdf5Test):
    def test_tables_text_and_sequences(self):
        generator = np.random.default_rng(1)
        text = np.array([b"one", "zwölf".encode(), b""] * 100, dtype=object)
        sequences = [np.arange(n % 7, dtype="<f4") for n in range(50)]
        table = np.zeros(500, [("index", "<i8"), ("values", "<f4", (3,)), ("name", "S5")])
        table["index"] = np.arange(500)
        table["name"] = b"abc"
        bits = generator.random((300, 5)) > 0.5
        with h5py.File(self.path, "w") as file:
            for packed in ("gzip", "lzf"):
                file.create_dataset(f"obs/{packed}", data=text, compression=packed, chunks=(64,),
                                    dtype=h5py.string_dtype())
            file.create_dataset("table", data=table, compression="lzf", chunks=(100,))
            file.create_dataset("bits", data=bits, chunks=(64, 5), compression="gzip")
            vlen = file.create_dataset("vlen", (50,), dtype=h5py.vlen_dtype(np.dtype("<f4")))
            for i, sequence in enumerate(sequences):
                vlen[i] = sequence
        mnt = self.mount(self.path)
        for packed in ("gzip", "lzf"):
            self.assert_file(mnt / f"obs/{packed}.npy", [t.decode() for t in text])
        self.assert_file(mnt / "table.npy", table)
        self.assert_file(mnt / "bits.npy", bits)
        self.assert_file(mnt / "vlen.npy", np.concatenate(sequences))
        self.assert_file(mnt / "vlen_offsets.npy",
                         np.cumsum([0] + [len(s) for s in sequences], dtype=np.int64))

    def test_as_matlab_writes_it(self):
        with h5py.File(self.path, "w", userblock_size=512) as file:
            x = file.create_dataset("x", data=np.arange(12.).reshape(3, 4), chunks=(2, 2),
                                    compression="gzip")
            x.attrs["MATLAB_class"] = np.bytes_("double")
            refs = file.create_dataset("cells", (2,), dtype=h5py.ref_dtype)
            refs[0] = x.ref
        with open(self.path, "r+b") as file:
            file.write(b"MATLAB 7.3 MAT-file")
        done = npyfs("info", self.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("/cells: left out, as it holds references", done.stderr)
        mnt = self.mount(self.path)
        self.assertEqual(sorted(os.listdir(mnt)),
                         ["attrs.json", "attrs.npy", "x.attrs.json", "x.npy"])
        self.assert_file(mnt / "x.npy", np.arange(12.).reshape(3, 4))
        self.assertEqual(json.loads((mnt / "x.attrs.json").read_text()),
                         {"MATLAB_class": "double"})

    def test_names_that_offsets_take(self):
        with h5py.File(self.path, "w") as file:
            for name in ("v", "v_offsets"):
                vlen = file.create_dataset(f"g/{name}", (3,), dtype=h5py.vlen_dtype(np.dtype("<f4")))
                for i in range(3):
                    vlen[i] = np.full(i + len(name), i)
            file["g/v_offsets_offsets"] = np.arange(5)
            file["g/v_offsets~2"] = np.arange(6)
        mnt = self.mount(self.path)
        self.assertEqual(sorted(p.name for p in (mnt / "g").iterdir()),
                         ["v.npy", "v_offsets.npy", "v_offsets_offsets.npy", "v_offsets~2.npy",
                          "v_offsets~3.npy", "v_offsets~3_offsets.npy"])
        self.assert_file(mnt / "g/v_offsets.npy", np.array([0, 1, 3, 6]))
        self.assert_file(mnt / "g/v_offsets_offsets.npy", np.arange(5))
        self.assert_file(mnt / "g/v_offsets~2.npy", np.arange(6))
        self.assert_file(mnt / "g/v_offsets~3_offsets.npy", np.array([0, 9, 19, 30]))
        self.assertIn("v_offsets is shown as v_offsets~3, since v_offsets says where the sequences of "
                      "v begin", self.said)

    def test_attributes_of_any_size(self):
        wide = np.arange(3_000_000) % 251
        with h5py.File(self.path, "w", libver="latest") as file:
            x = file.create_dataset("x", data=np.arange(3))
            x.attrs["wide"] = wide.astype("u1")
            x.attrs["unit"] = "V"
            file.create_dataset("y", data=np.arange(4))
            file["y"].attrs["wider"] = np.zeros(5_000_000, "u1")
            file["y"].attrs["unit"] = "A"
        mnt = self.mount(self.path)
        attributes = json.loads((mnt / "x.attrs.json").read_text())
        self.assertEqual(attributes, {"unit": "V", "wide": wide.tolist()})
        self.assertEqual(json.loads((mnt / "y.attrs.json").read_text()), {"unit": "A"})
        self.assertIn("attributes (those of a file may hold 4194304 values and 33554432 bytes of "
                      "text) are left out: wider of /y", self.said)

    def test_what_is_left_out_is_said(self):
        with h5py.File(self.path, "w") as file:
            x = file.create_dataset("x", data=np.arange(3))
            for i in range(10):
                file.create_dataset(f"empty{i}", data=h5py.Empty("f4"))
            file["soft"] = h5py.SoftLink("/nowhere")
            file["away"] = h5py.ExternalLink("gone.h5", "/x")
            x.attrs["object"] = x.ref
            x.attrs["region"] = x.regionref[:2]
            x.attrs["unit"] = "V"
        mnt = self.mount(self.path)
        self.assertEqual(sorted(p.name for p in mnt.glob("*.npy")), ["attrs.npy", "x.npy"])
        self.assertEqual(json.loads((mnt / "x.attrs.json").read_text()), {"unit": "V"})
        lines = self.said.splitlines()
        self.assertEqual(len(lines), 4, lines)
        for text in ("attributes that are references are left out: object of /x, region of /x",
                     "data sets without a shape (H5S_NULL) are left out: /empty0, /empty1, /empty2, "
                     "/empty3, /empty4, /empty5, /empty6, /empty7 and 2 more",
                     "links that lead nowhere, or through other files, are left out: /soft",
                     "/away: left out: "):
            self.assertIn(text, self.said)

    def test_every_index_of_new_files(self):
        """Small chunks and many: pages, super blocks and levels of each kind of index."""
        generator = np.random.default_rng(2)
        flat = generator.integers(0, 9, 60_000, np.int32)
        square = generator.integers(0, 9, (300, 400), np.int32)
        shapes = {"single": (square, square.shape, None), "fixed": (flat, (7,), None),
                  "extensible": (flat, (7,), (None,)),
                  "second_axis": (square, (3, 5), (300, None)),
                  "tree": (square, (3, 5), (None, None))}
        with h5py.File(self.path, "w", libver="latest") as file:
            for name, (array, chunks, most) in shapes.items():
                for packed in (None, "gzip"):
                    file.create_dataset(f"{name}_{packed}", data=array, chunks=chunks,
                                        maxshape=most, compression=packed)
            sparse = file.create_dataset("sparse", (1_000_000,), "<i4", chunks=(10,),
                                         maxshape=(None,), fillvalue=-1)
            sparse[999_900:] = 5
            sparse[123_456] = 7
            fixed = file.create_dataset("sparse_fixed", (1_000_000,), "<i4", chunks=(10,))
            fixed[500_000] = 9
            expected = sparse[:]
            expected_fixed = fixed[:]
        mnt = self.mount(self.path)
        for name, (array, _, _) in shapes.items():
            for packed in (None, "gzip"):
                self.assert_file(mnt / f"{name}_{packed}.npy", array)
        self.assert_file(mnt / "sparse.npy", expected)
        self.assert_file(mnt / "sparse_fixed.npy", expected_fixed)

    def test_arrays_that_were_made_smaller(self):
        """No index keeps chunks that lie outside, but that of the one chunk of what became empty."""
        array = np.random.default_rng(5).integers(0, 99, (60, 70), np.int16)
        most = {"fixed": array.shape, "extensible": (None, 70), "second_axis": (60, None),
                "tree": (None, None)}
        smaller = {"rows": (31, 70), "columns": (60, 9), "both": (1, 1), "none": (0, 70)}
        for libver in ("earliest", "latest"):
            path = self.folder / f"{libver}.h5"
            with h5py.File(path, "w", libver=libver) as file:
                for kind, shape in most.items():
                    for packed in (None, "gzip"):
                        for name in smaller:
                            file.create_dataset(f"{kind}_{packed}_{name}", data=array, chunks=(9, 8),
                                                maxshape=shape, compression=packed)
                file.create_dataset("single_rows", data=array, chunks=array.shape,
                                    maxshape=array.shape)
                file.create_dataset("single_none", data=array, chunks=array.shape,
                                    maxshape=array.shape)
            with h5py.File(path, "r+", libver=libver) as file:
                for name, dataset in file.items():
                    dataset.resize(smaller[name.split("_")[-1]])
            mnt = self.mount(path, name=f"mnt{libver}")
            self.assertEqual(self.said, "")
            with h5py.File(path) as file:
                for name, dataset in file.items():
                    self.assert_file(mnt / f"{name}.npy", dataset[:])

    def test_narrow_addresses(self):
        """Addresses and lengths of 2 and 4 bytes, which libhdf5 writes if it is told to."""
        array = np.random.default_rng(4).integers(0, 99, (40, 50), np.int16)
        for widths in ((4, 4), (2, 2), (8, 4), (4, 8)):
            for libver in (h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_LATEST):
                with self.subTest(widths=widths, libver=libver):
                    creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
                    creation.set_sizes(*widths)
                    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
                    access.set_libver_bounds(libver, h5py.h5f.LIBVER_LATEST)
                    name = f"{widths[0]}{widths[1]}{libver}"
                    path = self.folder / f"{name}.h5"
                    with h5py.File(h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, creation,
                                                   access)) as file:
                        file["plain"] = array
                        file.create_dataset("one", data=array, chunks=array.shape,
                                            compression="lzf")
                        file.create_dataset("raw", data=array, chunks=(9, 8))
                        file.create_dataset("packed", data=array, chunks=(9, 8),
                                            compression="gzip")
                        # libhdf5 itself cannot read back an unlimited axis of such lengths.
                        if widths[1] == 8 or libver == h5py.h5f.LIBVER_EARLIEST:
                            file.create_dataset("grows", data=array, chunks=(9, 8),
                                                maxshape=(None, 60))
                            file.create_dataset("tree", data=array, chunks=(9, 8),
                                                maxshape=(None, None), compression="gzip")
                        names = list(file)
                    mnt = self.mount(path, name=f"mnt{name}")
                    self.assertEqual(self.said, "")
                    for name in names:
                        self.assert_file(mnt / f"{name}.npy", array)

    def test_a_cut_file(self):
        for block in (0, 512):
            with h5py.File(self.path, "w", userblock_size=block) as file:
                file["x"] = np.arange(1000)
            nbytes = self.path.stat().st_size
            os.truncate(self.path, nbytes - 1000)
            done = npyfs("info", self.path)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr, f"npyfs: {self.path} at byte {nbytes - 1000}: the file ends "
                             f"here, expected {nbytes} bytes, as its superblock says; it is cut "
                             "short: copy it again\n")

    def test_boxes_of_other_arrays(self):
        sources = np.arange(4 * 1000 * 3, dtype="<i2").reshape(4, 1000, 3)
        for i, source in enumerate(sources):
            with h5py.File(self.folder / f"part{i}.h5", "w") as file:
                file.create_dataset("d", data=source, chunks=(100, 3),
                                    compression="lzf" if i % 2 else None)
        layout = h5py.VirtualLayout((4, 1000, 3), "<i2")
        strided = h5py.VirtualLayout((2000, 3), "<i2")
        for i in range(4):
            source = h5py.VirtualSource(f"part{i}.h5", "d", (1000, 3))
            layout[i] = source
            strided[i * 500:(i + 1) * 500] = source[::2]
        gone = h5py.VirtualLayout((10,), "<f4")
        gone[2:5] = h5py.VirtualSource("gone.h5", "d", (3,))
        secret = h5py.VirtualLayout((3,), "<f4")
        secret[:] = h5py.VirtualSource("/etc/secret.h5", "d", (3,))
        with h5py.File(self.path, "w") as file:
            file.create_virtual_dataset("stack", layout)
            file.create_virtual_dataset("strided", strided)
            file.create_virtual_dataset("gone", gone, fillvalue=3)
            file.create_virtual_dataset("secret", secret)
        mnt = self.mount(self.path)
        self.assert_file(mnt / "stack.npy", sources)
        self.assert_file(mnt / "strided.npy", sources[:, ::2].reshape(2000, 3))
        self.assert_file(mnt / "gone.npy", np.full(10, 3, "<f4"))
        self.assertFalse((mnt / "secret.npy").exists())

    def test_boxes_of_arrays_far_larger_than_themselves(self):
        """A column of 4 GiB that lie in another file, of 4 GiB that were never written; strides."""
        rows = np.arange(0, 1 << 20, 4099)
        with open(self.folder / "wide.bin", "wb") as raw:
            raw.truncate(1 << 32)
            for row in rows:
                os.pwrite(raw.fileno(), bytes([row % 251 + 1]), int(row) * 4096 + 7)
        with h5py.File(self.folder / "wide.h5", "w") as file:
            file.create_dataset("raw", (1 << 20, 4096), "u1", external=[("wide.bin", 0, 1 << 32)])
            file.create_dataset("flat", (1 << 32,), "u1", external=[("wide.bin", 0, 1 << 32)])
            file.create_dataset("never", (1 << 20, 4096), "u1", fillvalue=9)
        layouts = {name: h5py.VirtualLayout((1 << 20,), "u1") for name in ("raw", "never")}
        layouts["flat"] = h5py.VirtualLayout((1 << 10,), "u1")
        layouts["raw"][:] = h5py.VirtualSource("wide.h5", "raw", (1 << 20, 4096))[:, 7]
        layouts["never"][:] = h5py.VirtualSource("wide.h5", "never", (1 << 20, 4096))[:, 7]
        layouts["flat"][:] = h5py.VirtualSource("wide.h5", "flat", (1 << 32,))[7::1 << 22]
        with h5py.File(self.path, "w") as file:
            for name, layout in layouts.items():
                file.create_virtual_dataset(name, layout)
        expected = np.zeros(1 << 20, "u1")
        expected[rows] = rows % 251 + 1
        mnt = self.mount(self.path)
        self.assert_file(mnt / "raw.npy", expected)
        self.assert_file(mnt / "flat.npy", expected[::1 << 10])
        self.assert_file(mnt / "never.npy", np.full(1 << 20, 9, "u1"))
        self.assertLess(self.peak_nbytes(mnt), 512 << 20)

    def test_many_boxes_of_one_array(self):
        """The array is described, and its index of 10 000 chunks read, once."""
        data = np.arange(100_000, dtype="<i4")
        with h5py.File(self.folder / "part.h5", "w") as file:
            file.create_dataset("d", data=data, chunks=(10,))
        layout = h5py.VirtualLayout((2_000,), "<i4")
        for i in range(2_000):
            layout[i] = h5py.VirtualSource("part.h5", "d", (100_000,))[i * 7]
        gone = h5py.VirtualLayout((3,), "<i4")
        for i, (name, path) in enumerate([("part.h5", "d"), ("gone.h5", "d"), ("part.h5", "g/d")]):
            gone[i] = h5py.VirtualSource(name, path, (100_000,))[i + 1]
        with h5py.File(self.path, "w") as file:
            for i in range(20):
                file.create_virtual_dataset(f"v{i}", layout)
            file.create_virtual_dataset("gone", gone, fillvalue=-1)
        mnt = self.mount(self.path)  # as one by one: more than 20 000 links
        self.assert_file(mnt / "v19.npy", data[:14_000:7])
        self.assert_file(mnt / "gone.npy", np.array([1, -1, -1], "<i4"))
        self.assertIn("/gone: 2 of the 3 arrays that it is made of are not there, the first of them "
                      "d of gone.h5: its fill value stands for them", self.said)

    def test_what_was_never_written_is_the_fill_value(self):
        for block in (0, 512, 1024):
            with self.subTest(userblock=block):
                path = self.folder / f"never{block}.h5"
                with h5py.File(path, "w", userblock_size=block) as file:
                    file.create_dataset("never", (20,), "u1")
                    file.create_dataset("filled", (5,), ">i2", fillvalue=7)
                    file.create_dataset("scalar", (), "<i8")
                    file["written"] = np.arange(4, dtype="<i4")
                mnt = self.mount(path, name=f"mnt{block}")
                self.assert_file(mnt / "never.npy", np.zeros(20, "u1"))
                self.assert_file(mnt / "filled.npy", np.full(5, 7, ">i2"))
                self.assert_file(mnt / "scalar.npy", np.array(0, "<i8"))
                self.assert_file(mnt / "written.npy", np.arange(4, dtype="<i4"))

    def test_raw_files(self):
        data = np.arange(100, dtype=">f8")
        (self.folder / "raw").mkdir()
        (self.folder / "raw/a.bin").write_bytes(b"head" + data[:60].tobytes())
        (self.folder / "raw/b.bin").write_bytes(data[60:].tobytes())
        with h5py.File(self.path, "w") as file:
            file.create_dataset("d", (100,), ">f8",
                                external=[("raw/a.bin", 4, 480), ("raw/b.bin", 0, h5py.h5f.UNLIMITED)])
            file.create_dataset("short", (101,), ">f8", external=[("raw/b.bin", 0, 808)])
            file.create_dataset("passwd", (10,), "u1", external=[("/etc/passwd", 0, 10)])
        mnt = self.mount(self.path)
        self.assert_file(mnt / "d.npy", data)
        self.assertEqual([name for name in os.listdir(mnt) if name.endswith(".npy")],
                         ["attrs.npy", "d.npy"])

    def test_links_that_go_round(self):
        with h5py.File(self.path, "w") as file:
            file.create_dataset("g/x", data=np.arange(3))
            file["g/self"] = file["g"]
            file["g/up"] = h5py.SoftLink("/")
            file["away"] = h5py.ExternalLink("t.h5", "/")
        with h5py.File(self.folder / "t.h5", "w") as file:
            file["back"] = h5py.ExternalLink("s.h5", "/")
            file["y"] = np.arange(4)
        mnt = self.mount(self.path)
        found = sorted(str(p.relative_to(mnt)) for p in mnt.rglob("*.npy"))
        self.assertIn("g/x.npy", found)
        self.assertIn("away/y.npy", found)
        self.assertLess(len(found), 10)
        self.assertIn("s.h5: links back to a group that they are in are left out: /g/self, /g/up\n",
                      self.said)
        self.assertIn("t.h5: /back: left out: it leads back to itself, in a loop of links\n",
                      self.said)

    def test_of_very_many_faults_each_kind_is_told(self):
        with h5py.File(self.folder / "other.h5", "w") as file:
            file["x"] = 1
        with h5py.File(self.folder / "s.h5", "w") as file:
            file["good"] = np.arange(3)
            for number in range(103):
                file[f"a{number:03d}"] = h5py.ExternalLink("gone.h5", "/x")
            for number in range(2):
                file[f"b{number}"] = h5py.ExternalLink("other.h5", f"/y{number}")
        told = npyfs("info", self.folder / "s.h5").stderr.splitlines()
        self.assertEqual(len(told), 102)
        self.assertRegex(told[100], r"s\.h5: /a100: left out: .*gone\.h5: .* \(and 2 more objects\)$")
        self.assertRegex(told[101], r"s\.h5: /b0: left out: .*no group or array /y0 \(and 1 more objects\)$")

    def test_links_from_file_to_file(self):
        """As h5py follows them; two that lead to each other lead nowhere."""
        array = np.arange(3)
        with h5py.File(self.path, "w") as file:
            file["chain"] = h5py.ExternalLink("b.h5", "/chain")
            file["through"] = h5py.ExternalLink("b.h5", "group/in/y")
            file["box"] = h5py.ExternalLink("b.h5", "/box")
            file["g/loop"] = h5py.ExternalLink("b.h5", "/loop")
            file["self"] = h5py.ExternalLink("s.h5", "/self")
            file["g/gone"] = h5py.ExternalLink("b.h5", "/group/in/gone")
            layout = h5py.VirtualLayout((3,), array.dtype)
            layout[:] = h5py.VirtualSource("b.h5", "chain", (3,))
            file.create_virtual_dataset("chained_box", layout)
        layout = h5py.VirtualLayout((3,), array.dtype)
        layout[:] = h5py.VirtualSource("c.h5", "x", (3,))
        with h5py.File(self.folder / "b.h5", "w") as file:
            file["chain"] = h5py.ExternalLink("c.h5", "/x")
            file["group/in"] = h5py.ExternalLink("c.h5", "/g")
            file["loop"] = h5py.ExternalLink("s.h5", "/g/loop")
            file.create_virtual_dataset("box", layout)
        with h5py.File(self.folder / "c.h5", "w") as file:
            file["x"] = array
            file["g/y"] = array
        mnt = self.mount(self.path)
        names = ["box", "chain", "chained_box", "through"]
        self.assertEqual(sorted(p.name for p in mnt.glob("[!a]*.npy")),
                         [f"{name}.npy" for name in names])
        for name in names:
            self.assert_file(mnt / f"{name}.npy", array)
        loop = "left out: it leads back to itself, in a loop of links"
        self.assertEqual(sorted(line.replace(str(self.folder), "F")
                                for line in self.said.splitlines()),
                         ["npyfs: warning: F/s.h5: /g/gone: left out: F/c.h5: it has no group or "
                          "array /g/gone",
                          f"npyfs: warning: F/s.h5: /g/loop: {loop}",
                          f"npyfs: warning: F/s.h5: /self: {loop}"])


class AsH5pyReads(Hdf5Test):
    """Whatever h5py writes is what h5py reads: types, shapes, layouts, filters, sizes, by chance."""

    DTYPES = ["u1", "<i2", ">i4", "<u8", "<f2", ">f4", "<f8", "?", "<c8", ">c16", "S3", "V5",
              np.dtype([("a", "<i2"), ("b", ">f4", (2, 3)), ("c", "V2")], align=True),
              np.dtype({"names": ["p", "q"], "formats": ["<f8", "u1"], "offsets": [4, 17],
                        "itemsize": 24})]

    def write(self, file, name, chance):
        dtype = np.dtype(chance.choice(self.DTYPES))
        shape = tuple(chance.randrange(25) if chance.random() < .2 else chance.randrange(1, 40)
                      for _ in range(chance.choice([0, 1, 1, 2, 2, 3])))
        options = {}
        if dtype.kind in "iufcS" and chance.random() < .5:
            options["fillvalue"] = np.frombuffer(chance.randbytes(dtype.itemsize), dtype)[0]
        if shape and chance.random() < .8:
            anything = (None,) * len(shape)
            options["maxshape"] = anything if 0 in shape else chance.choice([
                None, anything, (None,) + shape[1:], shape[:-1] + (None,),
                tuple(n + chance.randrange(20) for n in shape)])
            options["chunks"] = tuple(chance.randrange(1, max(2, min(n, 9) + 1)) for n in shape)
            options["compression"] = chance.choice([None, "gzip", "lzf"])
            options["shuffle"] = chance.random() < .4
            options["fletcher32"] = chance.random() < .3
        dataset = file.create_dataset(name, shape, dtype, **options)
        for step in range(chance.randrange(4)):
            if step and dataset.chunks and options["maxshape"] is not None:
                dataset.resize([chance.randrange(2 * n + 20 if most is None else most + 1)
                                for n, most in zip(dataset.shape, dataset.maxshape)])
            part = tuple(slice(chance.randrange(n + 1), None) for n in dataset.shape)
            box = np.empty(tuple(n - s.start for n, s in zip(dataset.shape, part)), dtype)
            if dtype.kind == "b":
                box[...] = chance.random() < .5
            else:
                box = np.frombuffer(chance.randbytes(box.nbytes), dtype).reshape(box.shape)
            if box.size:
                dataset[part] = box

    def whole(self, dataset):
        """As an array, also where [()] would be a scalar in the machine's byte order."""
        array = np.zeros(dataset.shape, dataset.dtype)
        if array.size:
            dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, array)
        # Without h5py's notes to its types.
        return array if array.dtype.names else array.view(array.dtype.str)

    def test_anything(self):
        seed = int(os.environ.get("NPYFS_TEST_SEED", random.randrange(1 << 30)))
        for i in range(6):
            with self.subTest(f"NPYFS_TEST_SEED={seed}", file=i):
                chance = random.Random(seed + i)
                path = self.folder / f"{i}.h5"
                with h5py.File(path, "w", libver=chance.choice(["earliest", "latest"]),
                               userblock_size=chance.choice([0, 0, 512, 2048])) as file:
                    for k in range(12):
                        self.write(file, f"d{k}", chance)
                with h5py.File(path) as file:
                    expected = {name: self.whole(dataset) for name, dataset in file.items()}
                mnt = self.mount(path, name=f"mnt{i}")
                self.assertNotIn("outside", self.said)
                for name, array in expected.items():
                    self.assert_file(mnt / f"{name}.npy", array)


class Reader(Hdf5Test):
    """The process that runs libhdf5."""

    def write_texts(self):
        # Blocks of 1 MiB for the library to read: rows of 4 * 64 bytes.
        texts = np.array(["x" * 64] * 20_000, dtype=object)
        with h5py.File(self.path, "w") as file:
            file.create_dataset("texts", data=texts, dtype=h5py.string_dtype())
            file["plain"] = np.arange(10)
        return np.array(list(texts), dtype="<U64")

    def test_is_there_only_while_it_is_needed(self):
        texts = self.write_texts()
        mnt = self.mount(self.path)
        daemon = self.daemon(mnt)
        self.assertEqual(children_of(daemon), [])
        np.load(mnt / "plain.npy")
        self.assertEqual(children_of(daemon), [])
        self.assertTrue(np.array_equal(np.load(mnt / "texts.npy"), texts))
        child, = children_of(daemon)
        links = [os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd")]
        self.assertEqual({link for link in links if not link.startswith("socket:")},
                         {"/dev/null", str(self.path.resolve())})
        status = pathlib.Path(f"/proc/{child}/status").read_text()
        self.assertIn("Seccomp:\t2", status)
        npyfs("umount", mnt)
        wait_until(lambda: not pathlib.Path(f"/proc/{child}").exists())

    def test_gives_a_long_sequence_in_pieces(self):
        """It has 96 MiB only whole; npyfs gets them a MiB at a time."""
        sequences = [np.arange(3, dtype="<i4"), np.arange(24 << 20, dtype="<i4"),
                     np.zeros(0, "<i4"), np.arange(1 << 20, dtype="<i4")]
        with h5py.File(self.path, "w") as file:
            vlen = file.create_dataset("v", (4,), dtype=h5py.vlen_dtype(np.dtype("<i4")))
            for i, sequence in enumerate(sequences):
                vlen[i] = sequence
        mnt = self.mount(self.path, "--cache-size", "8M")
        self.assertTrue(np.array_equal(np.load(mnt / "v.npy"), np.concatenate(sequences)))
        self.assertLess(self.peak_nbytes(mnt), 80 << 20)

    def test_may_be_killed(self):
        texts = self.write_texts()
        mnt = self.mount(self.path, "--header-align", "4096", "--cache-size", "1M")
        daemon = self.daemon(mnt)
        array = np.load(mnt / "texts.npy", mmap_mode="r")
        self.assertEqual(array[0], texts[0])
        child, = children_of(daemon)
        os.kill(child, signal.SIGKILL)
        # It fails one answer at most: the next one is another process's.
        last = PAGE + (len(texts) * 256 - 1) // PAGE * PAGE
        try:
            read_direct(mnt / "texts.npy", PAGE + (2 << 20), PAGE)
        except OSError as error:
            self.assertEqual(error.errno, errno.EIO)
        self.assertEqual(read_direct(mnt / "texts.npy", last, PAGE),
                         texts.tobytes()[last - PAGE:last])
        self.assertNotEqual(children_of(daemon), [child])


class Hostile(Hdf5Test):
    def test_more_text_than_a_file_can_hold(self):
        with h5py.File(self.path, "w") as file:
            file.create_dataset("texts", (1 << 50,), h5py.string_dtype(), chunks=(1000,))
            file.create_dataset("numbers", (1 << 50,), "u1", chunks=(1000,))
            file.create_dataset("deep", (1 << 20,) * 3, "u1", chunks=(1 << 10,) * 3)
            file["x"] = np.arange(3)
        mnt = self.mount(self.path)
        self.assertFalse((mnt / "texts.npy").exists())
        self.assertEqual(read_range(mnt / "numbers.npy", 1 << 49, 8), bytes(8))
        self.assertEqual(read_range(mnt / "deep.npy", 1 << 59, 8), bytes(8))
        self.assert_file(mnt / "x.npy", np.arange(3))

    def test_groups_that_share_all_they_have(self):
        """2^40 paths lead to one array."""
        with h5py.File(self.path, "w") as file:
            inner = file.create_group("g0")
            inner["x"] = np.arange(3)
            for depth in range(1, 40):
                outer = file.create_group(f"g{depth}")
                outer["a"] = inner
                outer["b"] = inner
                inner = outer
        done = npyfs("info", self.path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("more than 1000 links lead to its group /g", done.stderr)


    def test_links_that_fan_out(self):
        """2^30 paths by soft links, by links to other files, in circles and not."""
        with h5py.File(self.path, "w") as file:
            file.create_group("g0")["x"] = np.arange(3)
            for depth in range(1, 31):
                outer = file.create_group(f"g{depth}")
                outer["a"] = h5py.SoftLink(f"/g{depth - 1}")
                outer["b"] = h5py.SoftLink(f"/g{(depth + 7) % 31}")
                outer["c"] = h5py.SoftLink(f"/g{depth - 1}")
        self.assert_refused("more than 1000 links lead to its group /g")
        for i in range(16):
            with h5py.File(self.folder / f"f{i}.h5", "w") as file:
                for k in range(8):
                    file[f"l{k}"] = h5py.ExternalLink(f"f{(i + 1 + k) % 16}.h5", "/")
        with h5py.File(self.path, "w") as file:
            file["away"] = h5py.ExternalLink("f0.h5", "/")
        self.assert_refused("more than 20000 links have been followed")

    def assert_refused(self, text):
        """By one line, after at most 100 about links that lead back."""
        done = npyfs("info", self.path)
        self.assertEqual(done.returncode, 1)
        *lines, last = done.stderr.splitlines()
        self.assertLessEqual(len(lines), 100)
        self.assertIn(text, last)
        for line in lines:
            self.assertRegex(line, "leads back to itself|lead from one to the next")

    def test_attributes_that_are_told_again_and_again(self):
        """6 MB of text to which 8 links lead: 32 MiB of it are told. (How much all files that it
        leads to may tell is tested by tests/formats/hdf5_test.cc.)"""
        with h5py.File(self.path, "w") as file:
            inner = file.create_group("g")
            for i in range(100):
                inner.attrs[f"a{i}"] = b"x" * 60_000
            for i in range(8):
                file[f"l{i}"] = inner
        mnt = self.mount(self.path)
        self.assertLess(self.peak_nbytes(mnt), 512 << 20)
        line, = self.said.splitlines()
        self.assertIn("33554432 bytes of text) are left out: ", line)
        self.assertIn(" and 333 more", line)
        told = [len(json.loads(path.read_text())) for path in sorted(mnt.glob("*/attrs.json"))]
        self.assertEqual(told, [100] * 5 + [59])


class Damage(Hdf5Test):
    def write_chunks(self, **options):
        array = np.random.default_rng(3).integers(0, 9, (8 * PAGE,), np.uint8)
        with h5py.File(self.path, "w") as file:
            dataset = file.create_dataset("x", data=array, chunks=(PAGE,), **options)
            chunks = [dataset.id.get_chunk_info(i) for i in range(8)]
        return array, chunks

    def pages(self, mnt):
        """For each page of x: its bytes, or the number of the error."""
        found = []
        for page in range(8):
            try:
                found.append(read_direct(mnt / "x.npy", PAGE + page * PAGE, PAGE))
            except OSError as error:
                found.append(error.errno)
        return found

    def test_a_damaged_chunk_fails_alone(self):
        array, chunks = self.write_chunks(compression="gzip")
        with open(self.path, "r+b") as file:
            file.seek(chunks[3].byte_offset + 20)
            file.write(b"\xff" * 20)
        mnt = self.mount(self.path, "--header-align", "4096")
        expected = [array[i * PAGE:(i + 1) * PAGE].tobytes() for i in range(8)]
        expected[3] = errno.EIO
        self.assertEqual(self.pages(mnt), expected)
        errors = (mnt / ".npyfs/errors").read_text()
        self.assertIn(f"s.h5 at byte {chunks[3].byte_offset}: the chunk of /x from element", errors)

    def test_chunks_of_an_unknown_filter_fail(self):
        array, chunks = self.write_chunks(compression="gzip")
        blob = self.path.read_bytes()
        # The filter message: number, length of name, flags, values, then "deflate".
        message = struct.pack("<HHHH", 1, 8, 1, 1) + b"deflate\0"
        self.assertEqual(blob.count(message), 1)
        self.path.write_bytes(blob.replace(message, struct.pack("<H", 60123) + message[2:]))
        done = npyfs("info", self.path)
        self.assertIn("x.npy", done.stdout)
        self.assertEqual(done.stderr.splitlines(), [
            f"npyfs: warning: {self.path}: /x needs the filter 60123 (deflate), which npyfs does not "
            "have; 8 of its 8 chunks cannot be read"])
        mnt = self.mount(self.path, "--header-align", "4096")
        self.assertEqual(self.pages(mnt), [errno.EIO] * 8)
        self.assertIn("needs the filter 60123 (deflate)", (mnt / ".npyfs/errors").read_text())

    def test_very_many_damaged_chunks(self):
        """The first thousand have a line each, in which they are named."""
        with h5py.File(self.path, "w") as file:
            dataset = file.create_dataset("x", (1200 * PAGE,), "u1", chunks=(PAGE,),
                                          compression="gzip")
            for i in range(1, 1200):
                dataset.id.write_direct_chunk((i * PAGE,), b"??", filter_mask=1)
            dataset[:PAGE] = 5
        mnt = self.mount(self.path, "--header-align", "4096")
        self.assertIn("the chunk of /x from element (4096,) on: it has 2 bytes, expected 4096; 1199 of "
                      "its 1200 chunks cannot be read", self.said)
        self.assertEqual(read_direct(mnt / "x.npy", PAGE, PAGE), b"\5" * PAGE)
        for chunk in (1, 1000, 1001, 1199):
            self.assert_errno(errno.EIO, read_direct, mnt / "x.npy", PAGE * (chunk + 1), PAGE)
        errors = (mnt / ".npyfs/errors").read_text()
        self.assertIn("the chunk of /x from element (4096000,)", errors)
        self.assertIn("a chunk of /x is damaged, as 1000 others are that have been told of", errors)

    def test_an_index_that_is_gone_fails_all_of_its_chunks(self):
        array, _ = self.write_chunks(compression="gzip")
        blob = self.path.read_bytes()
        at = blob.index(b"TREE\x01")
        self.path.write_bytes(blob[:at] + b"XXXX" + blob[at + 4:])
        mnt = self.mount(self.path, "--header-align", "4096")
        self.assertEqual(self.pages(mnt), [errno.EIO] * 8)

    def test_a_key_that_moves_its_chunk_elsewhere_spoils_the_index(self):
        self.write_chunks(compression="gzip")
        blob = bytearray(self.path.read_bytes())
        # Of a key: filter mask, offset of the chunk, and 0 for the bytes of an element.
        at = blob.index(struct.pack("<IQQ", 0, 5 * PAGE, 0), blob.index(b"TREE\x01")) + 4
        struct.pack_into("<Q", blob, at, 5 * PAGE + (1 << 40))
        self.path.write_bytes(blob)
        mnt = self.mount(self.path, "--header-align", "4096")
        self.assertIn(f"chunk (6) stands behind chunk ({5 + (1 << 28)})", self.said)
        self.assertEqual(self.pages(mnt), [errno.EIO] * 8)

    def test_a_last_key_that_leads_out_of_the_array_fails_its_chunk(self):
        array, _ = self.write_chunks(compression="gzip")
        blob = bytearray(self.path.read_bytes())
        at = blob.index(struct.pack("<IQQ", 0, 7 * PAGE, 0), blob.index(b"TREE\x01")) + 4
        struct.pack_into("<Q", blob, at, 7 * PAGE + (1 << 40))
        self.path.write_bytes(blob)
        mnt = self.mount(self.path, "--header-align", "4096")
        line, = self.said.splitlines()
        self.assertIn(f"{self.path}: the index of /x names a chunk at ({7 + (1 << 28)},) in a grid "
                      "of (8,), outside its shape (32768,); chunks that it does", line)
        self.assertEqual(self.pages(mnt), [array[i * PAGE:(i + 1) * PAGE].tobytes()
                                           for i in range(7)] + [errno.EIO])

    def test_chunks_in_a_row(self):
        """An index that is arithmetic takes no memory: 2^28 chunks of a byte; a part of such."""
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        creation.set_chunk((1, 1))
        with h5py.File(self.path, "w", libver="latest") as file:
            space = h5py.h5s.create_simple((7, 5), (9, 11))
            small = h5py.h5d.create(file.id, b"small", h5py.h5t.STD_U8LE, space, creation)
            array = np.arange(35, dtype="u1").reshape(7, 5)
            small.write(h5py.h5s.ALL, h5py.h5s.ALL, array)
            space = h5py.h5s.create_simple((1 << 14, 1 << 14))
            large = h5py.h5d.create(file.id, b"large", h5py.h5t.STD_U8LE, space, creation)
            self.assertEqual(large.get_storage_size(), 1 << 28)
        mnt = self.mount(self.path)
        self.assert_file(mnt / "small.npy", array)
        self.assertEqual(read_range(mnt / "large.npy", 1 << 27, 8), bytes(8))
        self.assertLess(self.peak_nbytes(mnt), 512 << 20)

    def test_a_file_that_changes(self):
        self.write_chunks(compression="gzip")
        mnt = self.mount(self.path, "--header-align", "4096")
        read_direct(mnt / "x.npy", PAGE, PAGE)
        with h5py.File(self.path, "r+") as file:
            file["x"][:] = 1
        self.assertEqual(self.pages(mnt), [errno.ESTALE] * 8)

    def test_what_a_writer_has_open(self):
        with h5py.File(self.path, "w", libver="latest") as file:
            dataset = file.create_dataset("x", data=np.arange(50), chunks=(7,), maxshape=(None,))
            file.swmr_mode = True
            dataset.flush()
            mnt = self.mount(self.path)
            self.assert_file(mnt / "x.npy", np.arange(50))


if __name__ == "__main__":
    unittest.main()

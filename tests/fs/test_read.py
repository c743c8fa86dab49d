"""Every way of reading gives the bytes np.save would have written."""

import hashlib
import mmap
import os
import subprocess
import sys
import threading
import unittest

import numpy as np

from mounting import PAGE, MountTest, read_direct, read_range, run, saved
from writers import RECORDIO_MAGIC, write_ffrecord, write_recordio, write_tfrecord


class ReadTest(MountTest):
    """One mount of four splits, each stored in another way; `files` is what they must hold."""

    def setUp(self):
        super().setUp()
        random = np.random.default_rng(2)
        mapped = random.random((600, 1000), np.float32)
        write_ffrecord(self.folder / "m0.ffr", mapped[:250])
        write_ffrecord(self.folder / "m1.ffr", mapped[250:])
        gathered = random.integers(0, 255, (1500, 333), np.uint8)
        write_tfrecord(self.folder / "g.tfrecord", gathered)
        escaped = random.integers(0, 2**32, (400, 250), np.uint32)
        escaped[::3, 100] = np.frombuffer(RECORDIO_MAGIC, np.uint32)[0]
        write_recordio(self.folder / "e.rec", escaped)
        ragged = [random.bytes(n) for n in random.integers(0, 5000, 300)]
        write_recordio(self.folder / "r.rec", ragged)
        ends = np.cumsum([0] + [len(r) for r in ragged])
        self.arrays = {
            "mapped/x.npy": mapped,
            "gathered/x.npy": gathered,
            "escaped/x.npy": escaped.view(np.uint8),
            "ragged/x.npy": np.frombuffer(b"".join(ragged), np.uint8),
            "ragged/x_offsets.npy": ends.astype(np.int64),
        }
        self.files = {name: saved(array) for name, array in self.arrays.items()}
        self.mnt = self.mount(
            f"mapped={self.folder}/m0.ffr", f"mapped={self.folder}/m1.ffr",
            f"gathered={self.folder}/g.tfrecord", f"escaped={self.folder}/e.rec",
            f"ragged={self.folder}/r.rec", "--decode", "x=raw")
        # Raw records have no dtype of their own.
        self.arrays["mapped/x.npy"] = mapped.view(np.uint8)
        self.files["mapped/x.npy"] = saved(self.arrays["mapped/x.npy"])


class SystemCalls(ReadTest):
    def test_read_in_one_piece_and_in_odd_pieces(self):
        for name, wanted in self.files.items():
            with open(self.mnt / name, "rb", buffering=0) as file:
                self.assertEqual(b"".join(iter(lambda: file.read(77_777), b"")), wanted, name)
            self.assertEqual((self.mnt / name).read_bytes(), wanted, name)

    def test_pread_anywhere(self):
        seed = np.random.SeedSequence().entropy
        random = np.random.default_rng(seed)
        for name, wanted in self.files.items():
            fd = os.open(self.mnt / name, os.O_RDONLY)
            self.addCleanup(os.close, fd)
            for _ in range(300):
                at = int(random.integers(0, len(wanted) + 10))
                nbytes = int(random.choice([1, 7, 128, 4096, 100_000]))
                self.assertEqual(os.pread(fd, nbytes, at), wanted[at:at + nbytes],
                                 f"{name}: {nbytes} bytes at {at}, seed {seed}")

    def test_end_of_file(self):
        for name, wanted in self.files.items():
            fd = os.open(self.mnt / name, os.O_RDONLY)
            self.addCleanup(os.close, fd)
            self.assertEqual(os.lseek(fd, 0, os.SEEK_END), len(wanted))
            self.assertEqual(os.read(fd, 10), b"")
            self.assertEqual(os.pread(fd, 100, len(wanted) - 3), wanted[-3:])
            self.assertEqual(os.pread(fd, 100, len(wanted)), b"")
            self.assertEqual(os.pread(fd, 100, 2**62), b"")

    def test_mmap_shared_and_private(self):
        for name, wanted in self.files.items():
            with open(self.mnt / name, "rb") as file:
                for flags, protection in ((mmap.MAP_SHARED, mmap.PROT_READ),
                                          (mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)):
                    with mmap.mmap(file.fileno(), 0, flags=flags, prot=protection) as mapped:
                        self.assertEqual(mapped[:], wanted, name)
                        if flags == mmap.MAP_PRIVATE:
                            mapped[0] = 0  # ours alone
            self.assertEqual((self.mnt / name).read_bytes()[:8], b"\x93NUMPY\x01\0")

    def test_direct_reads(self):
        for name, wanted in self.files.items():
            for at, nbytes in ((0, PAGE), (PAGE, 3 * PAGE), (0, 64 * PAGE),
                               (len(wanted) // PAGE * PAGE, PAGE)):
                self.assertEqual(read_direct(self.mnt / name, at, nbytes), wanted[at:at + nbytes],
                                 f"{name}: {nbytes} at {at}")

    def test_sendfile(self):
        for name, wanted in self.files.items():
            with open(self.mnt / name, "rb") as file, open(self.folder / "copy", "w+b") as out:
                sent = 0
                while n := os.sendfile(out.fileno(), file.fileno(), sent, 1 << 20):
                    sent += n
                self.assertEqual(out.read(), b"")
                out.seek(0)
                self.assertEqual(out.read(), wanted, name)

    def test_splice(self):
        for name, wanted in self.files.items():
            reader, writer = os.pipe()
            got = b""
            with open(self.mnt / name, "rb") as file:
                while n := os.splice(file.fileno(), writer, 60_000):
                    got += os.read(reader, n)
            os.close(reader)
            os.close(writer)
            self.assertEqual(got, wanted, name)

    def test_an_open_file_is_read_from_eight_threads(self):
        faults = []

        def reader(seed):
            random = np.random.default_rng(seed)
            for _ in range(150):
                name = str(random.choice(list(self.files)))
                at = int(random.integers(0, len(self.files[name])))
                if os.pread(fds[name], 50_000, at) != self.files[name][at:at + 50_000]:
                    faults.append((seed, name, at))

        fds = {name: os.open(self.mnt / name, os.O_RDONLY) for name in self.files}
        threads = [threading.Thread(target=reader, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for fd in fds.values():
            os.close(fd)
        self.assertEqual(faults, [])


class Programs(ReadTest):
    def test_numpy_memmap(self):
        for name, wanted in self.arrays.items():
            array = np.load(self.mnt / name, mmap_mode="r")
            self.assertIsInstance(array, np.memmap)
            self.assertEqual((array.dtype, array.shape), (wanted.dtype, wanted.shape))
            self.assertTrue(np.array_equal(array, wanted), name)
            self.assertEqual(array[-1:].tobytes(), wanted[-1:].tobytes())

    def test_a_shuffled_reader(self):
        order = np.random.default_rng(3).permutation(600)
        array = np.load(self.mnt / "mapped/x.npy", mmap_mode="r")
        for batch in np.split(order, 20):
            self.assertTrue(np.array_equal(array[batch], self.arrays["mapped/x.npy"][batch]))
        for i in np.random.default_rng(4).permutation(400):
            row = np.load(self.mnt / "escaped/x.npy", mmap_mode="r")[i]
            self.assertEqual(row.tobytes(), self.arrays["escaped/x.npy"][i].tobytes())

    def test_records_by_offsets(self):
        x = np.load(self.mnt / "ragged/x.npy", mmap_mode="r")
        offsets = np.load(self.mnt / "ragged/x_offsets.npy")
        for i in np.random.default_rng(5).permutation(300):
            stored = (self.mnt / f"ragged/records/{i}.bin").read_bytes()
            self.assertEqual(x[offsets[i]:offsets[i + 1]].tobytes(), stored, i)

    def test_cmp_md5sum_cp_and_tail(self):
        for name, wanted in self.files.items():
            golden = self.folder / "golden"
            golden.write_bytes(wanted)
            self.assertEqual(run("cmp", golden, self.mnt / name).returncode, 0, name)
            digest = run("md5sum", self.mnt / name).stdout.split()[0]
            self.assertEqual(digest, hashlib.md5(wanted).hexdigest(), name)
            self.assertEqual(run("cp", self.mnt / name, self.folder / "copy").returncode, 0)
            self.assertEqual((self.folder / "copy").read_bytes(), wanted, name)
            (self.folder / "copy").unlink()
            tail = subprocess.run(["tail", "-c", "1000", self.mnt / name], capture_output=True)
            self.assertEqual(tail.stdout, wanted[-1000:], name)

    def test_cp_of_the_whole_tree(self):
        done = run("cp", "-r", self.mnt, self.folder / "copy")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for name, wanted in self.files.items():
            self.assertEqual((self.folder / "copy" / name).read_bytes(), wanted)

    def test_two_processes_at_once(self):
        script = """if True:
            import hashlib, sys, numpy as np
            rows = np.load(sys.argv[1], mmap_mode="r")
            order = np.random.default_rng(int(sys.argv[2])).permutation(len(rows))
            seen = {int(i): rows[i].tobytes() for i in order}
            print(hashlib.md5(b"".join(seen[i] for i in sorted(seen))).hexdigest())
            """
        for name in ("mapped/x.npy", "gathered/x.npy", "escaped/x.npy"):
            readers = [subprocess.Popen([sys.executable, "-c", script, self.mnt / name, str(seed)],
                                        stdout=subprocess.PIPE, text=True) for seed in (1, 2)]
            digests = {reader.communicate()[0].strip() for reader in readers}
            self.assertEqual(digests, {hashlib.md5(self.arrays[name].tobytes()).hexdigest()}, name)

    def test_the_header_can_be_padded_to_a_page(self):
        rows = self.arrays["gathered/x.npy"]
        mnt = self.mount("--header-align", "4096", self.folder / "g.tfrecord", name="aligned")
        path = mnt / "train/x.npy"
        self.assertEqual(path.stat().st_size, 4096 + rows.nbytes)
        self.assertEqual(read_range(path, 4096, rows.nbytes), rows.tobytes())
        self.assertTrue(np.array_equal(np.load(path, mmap_mode="r"), rows))


if __name__ == "__main__":
    unittest.main()

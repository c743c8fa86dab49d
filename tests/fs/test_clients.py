"""Programs and system calls that read arrays which the kernel reads itself: each gets the array's bytes.

Of a kept array, of a source that is a .npy file, and of an array that becomes complete while they run.
"""

import ctypes
import errno
import hashlib
import importlib.util
import mmap
import multiprocessing
import os
import socket
import struct
import subprocess
import threading
import time
import unittest

import numpy as np

from mounting import PAGE, TIMEOUT, read_direct, saved
from test_kept import KeptTest

MIB = 1 << 20
BATCH = 16

libc = ctypes.CDLL(None, use_errno=True)


class Reference:
    """The array and its file's bytes; where clients may write."""

    def __init__(self, rows, folder):
        self.rows, self.bytes, self.folder = rows, saved(rows), folder
        self.md5 = hashlib.md5(self.bytes).hexdigest()


def equal(found, wanted, what):
    """Says what differs, and not all of it."""
    if bytes(found) != bytes(wanted):
        raise AssertionError(f"{what}: {len(found)} bytes are not the {len(wanted)} expected")


def output_of(*command):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=TIMEOUT)
    if done.returncode:
        raise AssertionError(f"{command}: {done.stderr.decode(errors='replace')}")
    return done.stdout


# Each client takes the path of the array file and the reference, and raises where they differ.


def memmap(path, reference):
    array = np.load(path, mmap_mode="r")
    np.testing.assert_array_equal(array, reference.rows)
    order = np.random.default_rng(1).permutation(len(array))
    np.testing.assert_array_equal(array[order], reference.rows[order])
    plain = np.memmap(path, np.uint8, "r")
    equal(plain[-5000:], reference.bytes[-5000:], "np.memmap")
    private = np.load(path, mmap_mode="c")
    private[7] = 0
    np.testing.assert_array_equal(np.load(path, mmap_mode="r")[7], reference.rows[7])


def fetch(rows, order, results):
    """A worker of a loader: batches of a memmap that was opened before the fork."""
    for batch in order:
        results.put((batch, rows[batch].copy()))


def loader_with_workers(path, reference):
    rows = np.load(path, mmap_mode="r")
    batches = np.random.default_rng(2).permutation(len(rows))[:16 * BATCH].reshape(-1, BATCH)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    workers = [context.Process(target=fetch, args=(rows, batches[i::3].tolist(), results))
               for i in range(3)]
    for worker in workers:
        worker.start()
    for _ in batches:
        batch, found = results.get(timeout=TIMEOUT)
        np.testing.assert_array_equal(found, reference.rows[batch])
    for worker in workers:
        worker.join(TIMEOUT)


class Rows:
    """A map-style data set that opens the file in each worker."""

    def __init__(self, path):
        self.path, self.rows = path, None

    def __len__(self):
        return 16 * BATCH

    def __getitem__(self, i):
        if self.rows is None:
            self.rows = np.load(self.path, mmap_mode="r")
        return i, self.rows[i].copy()


def torch_loader(path, reference):
    from torch.utils.data import DataLoader
    seen = 0
    for numbers, rows in DataLoader(Rows(path), batch_size=BATCH, shuffle=True, num_workers=2):
        np.testing.assert_array_equal(rows.numpy(), reference.rows[numbers.numpy()])
        seen += len(numbers)
    assert seen == 16 * BATCH, seen


def md5sum(path, reference):
    found = output_of("md5sum", path).split()[0].decode()
    assert found == reference.md5, (found, reference.md5)


def copies(path, reference):
    for number, options in enumerate((["--reflink=auto"], ["--reflink=never"], ["--sparse=always"])):
        copy = reference.folder / f"copy-{os.getpid()}-{threading.get_ident()}-{number}"
        output_of("cp", *options, path, copy)
        equal(copy.read_bytes(), reference.bytes, f"cp {options}")
        copy.unlink()


def copy_file_range(path, reference):
    """Between file systems the kernel may refuse; then nothing was copied."""
    with open(path, "rb", buffering=0) as file, \
         open(reference.folder / f"range-{os.getpid()}-{threading.get_ident()}", "w+b") as out:
        os.unlink(out.name)
        done = 0
        try:
            while n := os.copy_file_range(file.fileno(), out.fileno(), len(reference.bytes) - done,
                                          done, done):
                done += n
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EOPNOTSUPP, errno.EINVAL) or done:
                raise
        out.seek(0)
        equal(out.read(), reference.bytes[:done], "copy_file_range")


def direct(path, reference):
    size = len(reference.bytes)
    for offset, nbytes in ((0, PAGE), (PAGE, 64 * PAGE), (2 * MIB - PAGE, 2 * PAGE)):
        equal(read_direct(path, offset, nbytes), reference.bytes[offset:offset + nbytes], "O_DIRECT")
    last = (size - 1) // PAGE * PAGE
    equal(read_direct(path, last, PAGE), reference.bytes[last:], "the last O_DIRECT read")
    for block in ("4k", "1M"):
        equal(output_of("dd", f"if={path}", "iflag=direct", f"bs={block}", "status=none"),
              reference.bytes, f"dd iflag=direct bs={block}")


def sendfile_and_splice(path, reference):
    with open(path, "rb", buffering=0) as file:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            found = bytearray()

            def receive():
                while piece := theirs.recv(1 << 18):
                    found.extend(piece)

            reader = threading.Thread(target=receive)
            reader.start()
            at = 0
            while n := os.sendfile(ours.fileno(), file.fileno(), at, MIB):
                at += n
            ours.shutdown(socket.SHUT_WR)
            reader.join(TIMEOUT)
            equal(found, reference.bytes, "sendfile")
        out, into = os.pipe()
        try:
            for offset in (0, 12345, len(reference.bytes) - 30000):
                n = os.splice(file.fileno(), into, 30000, offset_src=offset)
                found = b""
                while len(found) < n:
                    found += os.read(out, n - len(found))
                assert n > 0
                equal(found, reference.bytes[offset:offset + n], "splice")
        finally:
            os.close(out)
            os.close(into)


def maps(path, reference):
    with open(path, "rb") as file:
        for flags in (mmap.MAP_SHARED, mmap.MAP_PRIVATE, mmap.MAP_SHARED | mmap.MAP_POPULATE):
            with mmap.mmap(file.fileno(), 0, flags, mmap.PROT_READ) as mapped:
                for advice in (mmap.MADV_RANDOM, mmap.MADV_WILLNEED, mmap.MADV_SEQUENTIAL):
                    mapped.madvise(advice)
                equal(mapped[:], reference.bytes, f"a map with flags {flags}")
        with mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE) as own:
            own[:100] = bytes(100)
            equal(own[100:], reference.bytes[100:], "what is not written to in a private map")
        equal(os.pread(file.fileno(), 100, 0), reference.bytes[:100], "the file behind it")


def advice(path, reference):
    size = len(reference.bytes)
    with open(path, "rb", buffering=0) as file:
        fd = file.fileno()
        for word in (os.POSIX_FADV_SEQUENTIAL, os.POSIX_FADV_WILLNEED, os.POSIX_FADV_RANDOM,
                     os.POSIX_FADV_NOREUSE, os.POSIX_FADV_DONTNEED, os.POSIX_FADV_NORMAL):
            os.posix_fadvise(fd, 0, 0, word)
            for offset in (0, size // 2, size - 3 * PAGE):
                equal(os.pread(fd, 3 * PAGE, offset), reference.bytes[offset:offset + 3 * PAGE],
                      f"after posix_fadvise {word}")
        libc.readahead(fd, ctypes.c_int64(0), ctypes.c_size_t(size))
        equal(file.read(), reference.bytes, "after readahead")


def holes(path, reference):
    """What is said to be a hole has to read as zeros; all else is data."""
    size = len(reference.bytes)
    with open(path, "rb", buffering=0) as file:
        fd, at = file.fileno(), 0
        while at < size:
            try:
                data = os.lseek(fd, at, os.SEEK_DATA)
            except OSError as error:
                assert error.errno == errno.ENXIO, error
                data = size
            equal(reference.bytes[at:data], bytes(data - at), "a hole")
            if data == size:
                break
            at = os.lseek(fd, data, os.SEEK_HOLE)
            assert data < at <= size, (data, at)
        assert os.lseek(fd, 0, os.SEEK_END) == size
        for beyond in (os.SEEK_DATA, os.SEEK_HOLE):
            try:
                os.lseek(fd, size, beyond)
                raise AssertionError("there is something behind the end")
            except OSError as error:
                assert error.errno == errno.ENXIO, error


def other_programs(path, reference):
    half = len(reference.bytes) // 2
    equal(output_of("cat", path), reference.bytes, "cat")
    equal(output_of("tail", "-c", half, path), reference.bytes[-half:], "tail")
    archive = reference.folder / f"tar-{os.getpid()}"
    output_of("tar", "-cSf", archive, "-C", path.parent, path.name)
    equal(output_of("tar", "-xOf", archive), reference.bytes, "tar -S")


IO_URING_SETUP, IO_URING_ENTER = 425, 426
IORING_OP_READ, IORING_ENTER_GETEVENTS = 22, 1


def uring_read(fd, places):
    """What io_uring reads at (offset, nbytes), all submitted together; None where there is none."""
    parameters = (ctypes.c_uint32 * 30)()
    ring = libc.syscall(IO_URING_SETUP, len(places), parameters)
    if ring < 0:
        return None
    try:
        sq_entries, cq_entries = parameters[0], parameters[1]
        sq = dict(zip(("head", "tail", "mask", "entries", "flags", "dropped", "array"), parameters[10:17]))
        cq = dict(zip(("head", "tail", "mask", "entries", "overflow", "cqes"), parameters[20:26]))
        rights = (mmap.MAP_SHARED | mmap.MAP_POPULATE, mmap.PROT_READ | mmap.PROT_WRITE)
        with mmap.mmap(ring, sq["array"] + 4 * sq_entries, *rights, offset=0) as sq_ring, \
             mmap.mmap(ring, cq["cqes"] + 16 * cq_entries, *rights, offset=0x8000000) as cq_ring, \
             mmap.mmap(ring, 64 * sq_entries, *rights, offset=0x10000000) as entries:
            buffers = [ctypes.create_string_buffer(nbytes) for _, nbytes in places]
            for i, ((offset, nbytes), buffer) in enumerate(zip(places, buffers)):
                entries[64 * i:64 * i + 64] = struct.pack(
                    "<BBHiQQIIQ24x", IORING_OP_READ, 0, 0, fd, offset, ctypes.addressof(buffer), nbytes,
                    0, i)
                sq_ring[sq["array"] + 4 * i:sq["array"] + 4 * i + 4] = struct.pack("<I", i)
            sq_ring[sq["tail"]:sq["tail"] + 4] = struct.pack("<I", len(places))
            done = libc.syscall(IO_URING_ENTER, ring, len(places), len(places), IORING_ENTER_GETEVENTS,
                                None, 0)
            assert done == len(places), (done, ctypes.get_errno())
            found = [None] * len(places)
            for i in range(len(places)):
                number, result = struct.unpack_from("<Qi", cq_ring, cq["cqes"] + 16 * i)
                assert result >= 0, os.strerror(-result)
                found[number] = buffers[number].raw[:result]
            return found
    finally:
        os.close(ring)


def io_uring(path, reference):
    size = len(reference.bytes)
    places = [(0, PAGE), (12345, 70000), (2 * MIB - 10, 20), (size - 1000, 5000), (size, 10)]
    with open(path, "rb", buffering=0) as file:
        found = uring_read(file.fileno(), places)
    for (offset, nbytes), piece in zip(places, found or []):
        equal(piece, reference.bytes[offset:offset + nbytes], f"io_uring at {offset}")


CLIENTS = [memmap, loader_with_workers, md5sum, copies, copy_file_range, direct, sendfile_and_splice,
           maps, advice, holes, other_programs, io_uring]
if importlib.util.find_spec("torch"):  # takes 600 MB: no test asks for it to be installed
    CLIENTS.append(torch_loader)


def keep_reading(client, path, reference, stop, failed):
    """Again and again, until it is told to stop; at least once."""
    try:
        while True:
            client(path, reference)
            if stop.is_set():
                return
    except BaseException as error:
        failed.put(f"{client.__name__}: {error!r}")
        raise


class Clients(KeptTest):
    def setUp(self):
        super().setUp()
        self.reference = Reference(self.rows, self.folder)
        self.native = b"native" if self.kernel_reads_files() else None

    def access(self, path):
        return os.getxattr(path, "user.npyfs.access")

    def check_all(self, path):
        for client in CLIENTS:
            with self.subTest(client=client.__name__):
                client(path, self.reference)

    def test_of_a_source_that_the_kernel_reads(self):
        store = self.folder / "store/train"
        store.mkdir(parents=True)
        (store / "x.npy").write_bytes(self.bytes)
        path = self.mount(store.parent) / "train/x.npy"
        self.check_all(path)
        self.assertEqual(self.access(path), self.native or b"mapped")

    def test_of_what_is_kept(self):
        self.read_all()
        self.spoil_source()
        path = self.mount("--cache-dir", self.cache, self.source, name="native") / "train/x.npy"
        self.check_all(path)
        if self.native:
            self.assertEqual(self.access(path), self.native)
        path = self.mount("--cache-dir", self.cache, self.source, "-o", "no_passthrough",
                          name="plain") / "train/x.npy"
        self.check_all(path)
        self.assertNotEqual(self.access(path), b"native")

    def test_of_an_array_that_becomes_complete(self):
        path = self.mount("--cache-dir", self.cache, self.source) / "train/x.npy"
        context = multiprocessing.get_context("fork")
        stop, failed = context.Event(), context.Queue()
        readers = [context.Process(target=keep_reading,
                                   args=(client, path, self.reference, stop, failed))
                   for client in CLIENTS]
        for reader in readers:
            reader.start()
        try:
            self.assertTrue(self.wait_until(self.complete), "the array was not completed")
            if self.native:
                # Of those who open it from now on.
                self.assertTrue(self.wait_until(lambda: self.is_native(path)))
        finally:
            stop.set()
            for reader in readers:
                reader.join(TIMEOUT)
        self.assertTrue(failed.empty(), failed.empty() or failed.get())
        self.assertEqual([reader.exitcode for reader in readers], [0] * len(readers))
        [kept] = self.complete()
        self.assertEqual(kept.read_bytes(), self.bytes)
        self.check_all(path)

    def is_native(self, path):
        with open(path, "rb"):
            return self.access(path) == self.native

    @staticmethod
    def wait_until(condition):
        end = time.monotonic() + TIMEOUT
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True


if __name__ == "__main__":
    unittest.main()

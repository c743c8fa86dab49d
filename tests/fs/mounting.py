"""Mounting in tests: whatever happens, nothing stays mounted and no daemon stays behind.

The binary is taken from the environment variable NPYFS.
"""

import errno
import mmap
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import unittest

import numpy as np

# What one test has found out, another one has to find out anew.
_cache = tempfile.TemporaryDirectory(prefix="npyfs-cache-")
os.environ["XDG_CACHE_HOME"] = _cache.name
NPYFS = os.path.abspath(os.environ.get("NPYFS", "build/npyfs"))
PAGE = mmap.PAGESIZE
TIMEOUT = 60  # seconds after which a command counts as hanging


def why_no_mounts():
    """Why this machine cannot mount; None where it can."""
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except FileNotFoundError:
        return "/dev/fuse is missing"
    except OSError as error:
        return f"/dev/fuse: {error.strerror}"
    if os.geteuid() != 0:
        return None if shutil.which("fusermount3") else "fusermount3 is missing"
    status = pathlib.Path("/proc/self/status").read_text()
    capabilities = int(status.split("CapEff:")[1].split()[0], 16)
    return None if capabilities >> 21 & 1 else "root here lacks CAP_SYS_ADMIN"


def run(*command, **options):
    """Runs a command to its end, text captured, nothing on stdin."""
    return subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=TIMEOUT, **options)


def npyfs(*arguments, **options):
    return run(NPYFS, *arguments, **options)


def mounts_at(path):
    """(type, source, options) of each mount on `path`, lowest first."""
    found = []
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        place, _, rest = line.partition(" - ")
        if place.split()[4] == str(path):
            kind, source, options = rest.split()
            found.append((kind, source, place.split()[5] + "," + options))
    return found


def daemons_of(path):
    """Process ids whose command line names the mount point."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = entry.joinpath("cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if os.path.basename(command[0]) == os.path.basename(NPYFS).encode() and (
                os.fsencode(path) in command):
            found.append(int(entry.name))
    return found


def memory_of(pid, field="VmRSS"):
    """Bytes of a field of /proc/PID/status."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def wait_for_exit(pid):
    """Returns once the process is gone; fails after TIMEOUT."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if not select.select([handle], [], [], TIMEOUT)[0]:
            raise AssertionError(f"process {pid} does not end")
    finally:
        os.close(handle)


def wait_for_mount(path, process):
    """Returns once something is mounted on `path`; fails if the process ends before."""
    handle = os.pidfd_open(process.pid)
    with open("/proc/self/mountinfo") as table:
        poll = select.poll()
        poll.register(table, select.POLLPRI)
        poll.register(handle, select.POLLIN)
        try:
            while not mounts_at(path):
                if process.poll() is not None or not poll.poll(TIMEOUT * 1000):
                    raise AssertionError(f"{process.args} did not mount")
        finally:
            os.close(handle)


def unmount(path):
    """Unmounts whatever is there, busy or not, and waits for the daemons."""
    daemons = daemons_of(path)
    while mounts_at(path):
        if run("fusermount3", "-u", path).returncode and run("fusermount3", "-u", "-z",
                                                             path).returncode:
            raise AssertionError(f"{path} cannot be unmounted")
    for pid in daemons:
        wait_for_exit(pid)


def saved(array):
    """The bytes np.save writes for an array."""
    with tempfile.TemporaryFile() as out:
        np.save(out, array, allow_pickle=False)
        out.seek(0)
        return out.read()


def read_range(path, offset, nbytes):
    """`nbytes` from `offset` on, read without read-ahead; fails if the file is shorter."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        out = b""
        while len(out) < nbytes:
            more = os.pread(fd, nbytes - len(out), offset + len(out))
            if not more:
                raise AssertionError(f"{path} ends at {offset + len(out)}")
            out += more
        return out
    finally:
        os.close(fd)


def read_direct(path, offset, nbytes):
    """One read past the page cache: bytes, or the OSError. `offset` and `nbytes` are whole pages."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, nbytes) as buffer:
            return buffer[:os.preadv(fd, [buffer], offset)]
    finally:
        os.close(fd)


class MountTest(unittest.TestCase):
    """Gives each test a folder of its own; skips where nothing can be mounted."""

    def setUp(self):
        if reason := why_no_mounts():
            self.skipTest(reason)
        if not os.access(NPYFS, os.X_OK):
            self.fail(f"{NPYFS} is not there to be tested")
        folder = tempfile.TemporaryDirectory(prefix="npyfs-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def mount_point(self, name="mnt"):
        """A new, empty directory that will be unmounted in the end."""
        path = self.folder / name
        path.mkdir()
        self.addCleanup(unmount, path)
        return path

    def mount(self, *arguments, name="mnt", **options):
        """Mounts, and returns the mount point once `npyfs mount` says it is ready."""
        path = self.mount_point(name)
        done = npyfs("mount", *arguments, path, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(mounts_at(path)), 1, "npyfs returned, but nothing is mounted")
        self.said = done.stderr
        return path

    def mount_in_front(self, *arguments, name="mnt"):
        """(mount point, process) of a mount that stays in the foreground."""
        path = self.mount_point(name)
        process = subprocess.Popen([NPYFS, "mount", "-f", *map(str, arguments), str(path)],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True,
                                   # Whoever runs the tests may ignore it, and npyfs respects that.
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
        self.addCleanup(self.end, process)
        wait_for_mount(path, process)
        path.stat()
        return path, process

    def end(self, process):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            raise

    def daemon(self, path):
        found = daemons_of(path)
        self.assertEqual(len(found), 1, f"daemons of {path}: {found}")
        return found[0]

    def assert_errno(self, code, call, *arguments, **options):
        with self.assertRaises(OSError) as caught:
            call(*arguments, **options)
        self.assertEqual(errno.errorcode[caught.exception.errno], errno.errorcode[code])

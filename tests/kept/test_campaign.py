"""Processes that fill and evict one shared cache folder are killed, and files are damaged: every byte
read afterwards is right.

CAMPAIGN_ROUNDS (20) is how many rounds each kind has, CAMPAIGN_SEED (1) where chance begins. Run all of it:

    CAMPAIGN_ROUNDS=500 meson test -C build --timeout-multiplier 0 kept_campaign
"""

import contextlib
import fcntl
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

WORKER = os.environ["CAMPAIGN_WORKER"]
ROUNDS = int(os.environ.get("CAMPAIGN_ROUNDS", "20"))
SEED = int(os.environ.get("CAMPAIGN_SEED", "1"))
PROCESSES = 4
# linux/fs/ext4/ext4.h: the file system stops as if the power were cut; 2: without writing its journal.
EXT4_IOC_SHUTDOWN = 0x8004587D
WITHOUT_LOG = 2


def worker(verb, folder, *more):
    return [WORKER, verb, str(folder), *map(str, more)]


def damage(folder, chance):
    """Does something to one file; says what."""
    files = sorted(p for p in folder.iterdir() if p.is_file())
    if not files:
        return "nothing"
    path = chance.choice(files)
    os.chmod(path, 0o600)
    size = path.stat().st_size
    kind = chance.choice(["none", "flip", "flip", "cut", "grow", "foreign", "remove", "swap"])
    if kind == "flip" and size:
        with open(path, "r+b") as file:
            # Half of the bits where maps have their heads and entries.
            at = chance.randrange(min(size, chance.choice([12000, size])))
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1 << chance.randrange(8)]))
    elif kind == "cut":
        os.truncate(path, chance.randrange(size + 1))
    elif kind == "grow":
        os.truncate(path, size + 1 + chance.randrange(5000))
    elif kind == "foreign":
        path.write_bytes(chance.randbytes(min(size, 100000)))
        os.truncate(path, size)
    elif kind == "remove":
        path.unlink()
    elif kind == "swap":
        other = chance.choice(files)
        content = other.read_bytes()
        other.write_bytes(path.read_bytes())
        path.write_bytes(content)
    return f"{kind} {path.name}"


def is_root():
    return os.geteuid() == 0


@contextlib.contextmanager
def mounted(what, place, *options):
    subprocess.run(["mount", *options, what, place], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", place], check=True, capture_output=True)


class Campaign(unittest.TestCase):
    def setUp(self):
        self.chance = random.Random(SEED)
        folder = tempfile.TemporaryDirectory(prefix="npyfs-campaign-")
        self.addCleanup(folder.cleanup)
        self.place = pathlib.Path(folder.name)
        self.folder = self.place / "cache"

    def start(self, blocks=20):
        processes = []
        for _ in range(PROCESSES):
            command = worker("work", self.folder, self.chance.randrange(1 << 60), blocks)
            processes.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
            # However the test ends.
            self.addCleanup(processes[-1].kill)
        return processes

    def kill(self, processes):
        """Kills them, one after another; none has ended by itself."""
        for process in processes:
            time.sleep(self.chance.random() * 0.01)
            process.kill()
        for process in processes:
            said = process.communicate()[1]
            self.assertEqual(process.returncode, -signal.SIGKILL, said)

    def kill_some(self, blocks=20):
        processes = self.start(blocks)
        time.sleep(0.02 + self.chance.random() * 0.08)
        self.kill(processes)

    def run_worker(self, verb, note):
        """How many blocks were served; all were right."""
        done = subprocess.run(worker(verb, self.folder), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"seed {SEED}, {note}: {done.stderr}")
        return int(done.stdout)

    def test_killed_and_damaged(self):
        served = 0
        for round_number in range(ROUNDS):
            self.kill_some()
            note = f"round {round_number}"
            served += self.run_worker("verify", note)
            for _ in range(self.chance.randrange(3)):
                note += ", " + damage(self.folder, self.chance)
            self.run_worker("verify", note)
            if round_number % 10 == 9:
                self.assertGreater(self.run_worker("complete", note), 15)
        self.assertGreater(served, ROUNDS)

    def test_a_full_disk(self):
        if not is_root():
            self.skipTest("only root can mount a small tmpfs")
        self.folder.mkdir(mode=0o700)
        served = 0
        try:
            for round_number in range(max(1, ROUNDS // 5)):
                with mounted("none", self.folder, "-t", "tmpfs", "-o", "size=16m,mode=0700"):
                    # Bounded by the disk alone.
                    self.kill_some(blocks=1000)
                    served += self.run_worker("verify", f"round {round_number}")
        except subprocess.CalledProcessError as error:
            self.skipTest(f"no tmpfs here: {error.stderr}")
        self.assertGreater(served, 0)

    def test_power_cuts(self):
        if not is_root() or not shutil.which("mkfs.ext4"):
            self.skipTest("only root can stop a file system, an ext4 of its own")
        image = self.place / "disk"
        with open(image, "wb") as file:
            file.truncate(256 << 20)
        subprocess.run(["mkfs.ext4", "-q", image], check=True)
        mountpoint = self.place / "mounted"
        mountpoint.mkdir()
        self.folder = mountpoint / "cache"
        served = 0
        for round_number in range(max(1, ROUNDS // 5)):
            try:
                with mounted(image, mountpoint, "-o", "loop"):
                    processes = self.start()
                    time.sleep(0.1 + self.chance.random() * 0.3)
                    root = os.open(mountpoint, os.O_RDONLY)
                    try:
                        fcntl.ioctl(root, EXT4_IOC_SHUTDOWN, struct.pack("I", WITHOUT_LOG))
                    finally:
                        os.close(root)
                        self.kill(processes)
            except subprocess.CalledProcessError as error:
                self.skipTest(f"no loop device here: {error.stderr}")
            with mounted(image, mountpoint, "-o", "loop"):
                if self.folder.exists():
                    served += self.run_worker("verify", f"power cut {round_number}")
        self.assertGreater(served, 0)


if __name__ == "__main__":
    unittest.main()

"""What the measurements share: the programs that they run, built when they begin, and each other."""

import importlib.machinery
import importlib.util
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def built(folder, *targets):
    """Paths of targets of the build folder, built, in a new folder if it is not there.

    What the build says goes to standard error. Ends the program if the build fails.
    """
    if not shutil.which("meson") or not shutil.which("ninja"):
        sys.exit("meson and ninja are missing: scripts/demo.sh installs what a build needs")
    commands = [["ninja", "-C", folder, *targets]]
    if not (folder / "build.ninja").exists():
        commands.insert(0, ["meson", "setup", folder, ROOT, "-Dtests=false"])
    for command in commands:
        if subprocess.run(command, stdout=sys.stderr).returncode:
            sys.exit("the build failed")
    return [(folder / target).resolve() for target in targets]


def program(options, folder=ROOT / "build"):
    """What --npyfs names, or npyfs of the build folder."""
    return options.npyfs.resolve() if options.npyfs else built(folder, "npyfs")[0]


def load(name):
    """The script scripts/NAME as a module, for what it writes, reads and times."""
    path = ROOT / "scripts" / name
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module

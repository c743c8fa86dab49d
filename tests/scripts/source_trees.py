"""Trees of sources that the checks in scripts/ are run over."""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]


def check_tree(script, root):
    """Exit code and output of a script in scripts/ that checks the tree at `root`."""
    done = subprocess.run([sys.executable, ROOT / "scripts" / script, root], capture_output=True,
                          text=True)
    return done.returncode, done.stdout + done.stderr


def check_files(script, files):
    """The same over a tree of these files."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return check_tree(script, root)

#!/bin/bash
#
# Builds npyfs (installing what is missing), mounts a data set, looks around and unmounts.
#
#   scripts/demo.sh                        the small data set in examples/images
#   scripts/demo.sh [OPTIONS] SOURCE...    your own data, as `npyfs mount` takes it
#
# The program stays in build/npyfs.
set -eu -o pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/scripts/install_deps.sh"

install_missing "${build_packages[@]}"
if [ ! -f "$here/build/build.ninja" ]; then
  meson setup "$here/build" "$here" -Dtests=false >/dev/null
fi
if [ ! -e "$here/build/npyfs" ]; then
  # 7.5 minutes of one core of an AMD EPYC, 2026, rounded up.
  cores=$(nproc)
  echo "building: about $(((14 + 2 * cores) / (2 * cores))) min of all cores ($cores)"
fi
meson compile -C "$here/build" npyfs

say_where() {
  echo
  echo "The program is $here/build/npyfs."
  echo "To install it, as root: ninja -C $here/build install"
}

if [ $# -eq 0 ]; then
  cd "$here"
  set -- --dtype x=float32 --shape x=3,8,8 --attr 'samples="float32 images"' examples/images
fi

if [ ! -e /dev/fuse ]; then
  echo "/dev/fuse is missing: this machine cannot mount (in a container: --device /dev/fuse" \
    "--cap-add SYS_ADMIN). What would be mounted:" >&2
  "$here/build/npyfs" info "$@"
  say_where
  exit
fi

mountpoint=$(mktemp -d)
trap 'fusermount3 -q -u "$mountpoint" || true; rmdir "$mountpoint"' EXIT

show() {
  echo
  echo "\$ $*"
  "$@"
}

echo
echo "\$ npyfs mount $* $mountpoint"
"$here/build/npyfs" mount "$@" "$mountpoint"

echo
echo "\$ ls -R $mountpoint"
ls -R "$mountpoint" | awk -v most=6 '
  function rest() { if (n > most) print "... and " n - most " more" }
  /:$/ { n = -1 }
  /^$/ { rest(); print; n = -1; next }
  ++n <= most
  END { rest() }'
show cat "$mountpoint/attrs.json"

array=$(find "$mountpoint" -name '*.npy' ! -name attrs.npy ! -name keys.npy | sort | awk '
  !first { first = $0 } /\/x.npy$/ && !x { x = $0 } END { print x ? x : first }')
if [ -n "$array" ]; then
  echo
  echo "\$ python3: np.load('$array', mmap_mode='r')[0]"
  /usr/bin/python3 - "$array" <<'PYTHON'
import sys
import numpy as np

np.set_printoptions(threshold=20, edgeitems=2)
x = np.load(sys.argv[1], mmap_mode="r")
print(f"{type(x).__name__} {x.dtype} {x.shape}")
if len(x.shape) and x.shape[0]:
    print(x[0])
PYTHON
fi

show "$here/build/npyfs" umount "$mountpoint"
say_where

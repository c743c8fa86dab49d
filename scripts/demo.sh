#!/bin/bash
#
# Builds npyfs (installing what is missing), mounts a data set, looks around and unmounts.
#
#   scripts/demo.sh                        the small data set in examples/images
#   scripts/demo.sh [OPTIONS] SOURCE...    your own data, as `npyfs mount` takes it
set -eu -o pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/scripts/install_deps.sh"

install_missing "${build_packages[@]}"
if [ ! -f "$here/build/build.ninja" ]; then
  meson setup "$here/build" "$here" -Dtests=false >/dev/null
fi
echo "building"
meson compile -C "$here/build" npyfs >/dev/null

if [ $# -eq 0 ]; then
  cd "$here"
  set -- --dtype x=float32 --shape x=3,8,8 --attr 'samples="float32 images"' examples/images
fi

if [ ! -e /dev/fuse ]; then
  echo "/dev/fuse is missing: this machine cannot mount (in a container: --device /dev/fuse" \
    "--cap-add SYS_ADMIN). What would be mounted:" >&2
  exec "$here/build/npyfs" info "$@"
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
ls -R "$mountpoint" | awk 'NR <= 40; END { if (NR > 40) print "... and " NR - 40 " lines more" }'
show cat "$mountpoint/attrs.json"

array=$(find "$mountpoint" -name '*.npy' ! -name attrs.npy ! -name keys.npy | sort | awk '
  !first { first = $0 } /\/x.npy$/ && !x { x = $0 } END { print x ? x : first }')
if [ -n "$array" ]; then
  echo
  echo "\$ python3: np.load('$array', mmap_mode='r')[0]"
  /usr/bin/python3 - "$array" <<'PYTHON'
import sys
import numpy as np

x = np.load(sys.argv[1], mmap_mode="r")
print(f"{type(x).__name__} {x.dtype} {x.shape}")
if len(x.shape) and x.shape[0]:
    print(x[0])
PYTHON
fi

show "$here/build/npyfs" umount "$mountpoint"

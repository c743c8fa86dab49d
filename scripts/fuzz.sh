#!/bin/bash
#
# Fuzzes one parser with clang's libFuzzer, address and undefined-behaviour sanitizers on.
#
# usage: scripts/fuzz.sh TARGET [SECONDS]     TARGET: a file of tests/fuzz without its .cc
#
# New inputs are kept in build-fuzz/corpus/TARGET; a find is written to build-fuzz and printed. Give
# it a name, put it into tests/data and a test beside it.

set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:?usage: scripts/fuzz.sh TARGET [SECONDS]}
seconds=${2:-120}

# The row of the target: its name, its files' names, their folders.
read -r -a row < <(grep "^$target " tests/fuzz/corpora) || {
  echo "$target is not in tests/fuzz/corpora" >&2
  exit 2
}
read -r -a expected < <(grep '^- ' tests/fuzz/corpora)

# RapidJSON adds to a null pointer.
flags=(-std=c++20 -g -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
  -fno-sanitize=pointer-overflow -I.)
sources=(formats/archives/*.cc formats/payloads/*.cc
  formats/{chunk_grid,confinement,extents,format,named_files,stored_npy,zip_members}.cc
  formats/das/*.cc formats/kaldi/*.cc formats/zarr/*.cc formats/bytes/*.cc formats/bytes/codecs/*.cc
  formats/hdf5/{wire,description,object_header,chunk_index,new_chunk_index,index_entries}.cc
  formats/hdf5/{chunk_elements,fixed_array,extensible_array,chunk_tree}.cc)
mkdir -p build-fuzz/objects "build-fuzz/corpus/$target"
compiler=clang++
if command -v ccache >/dev/null; then
  compiler="ccache clang++"
fi
export compiler
printf '%s\0' "${sources[@]}" "tests/fuzz/$target.cc" |
  xargs -0 -P "$(nproc)" -I{} sh -c 'object=build-fuzz/objects/$(echo "$1" | tr / _).o; shift
    exec $compiler "$@" -o "$object"' - {} "${flags[@]}" -c {}
objects=()
for source in "${sources[@]}" "tests/fuzz/$target.cc"; do
  objects+=("build-fuzz/objects/${source//\//_}.o")
done
clang++ -fsanitize=fuzzer,address,undefined "${objects[@]}" \
  -lfmt -lroaring -lisal -lz -ljpeg -lpng -lwebp -lsndfile -lblosc -lbz2 -ldeflate -llz4 -llzma \
  -lsz -lzstd -o "build-fuzz/$target"

# Seeds without what is expected of them.
pruned=(-name "${expected[1]}")
for name in "${expected[@]:2}"; do
  pruned+=(-o -name "$name")
done
folders=("${row[@]:2}")
find "${folders[@]/#/tests/data/}" \( "${pruned[@]}" \) -prune -o -type f -name "${row[1]}" -print0 |
  while IFS= read -r -d '' file; do
    cp "$file" "build-fuzz/corpus/$target/$(sha1sum <"$file" | cut -c1-16)"
  done
exec "build-fuzz/$target" -max_total_time="$seconds" -max_len=65536 -rss_limit_mb=2048 -timeout=20 \
  -artifact_prefix=build-fuzz/ "build-fuzz/corpus/$target"

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

declare -A seeds=([tar_index]=tar [unpack]=tar/comp [pickle]=payloads/pickles [wav]=payloads/wav [image]=payloads/images
  [codecs]=zarr/v2_codecs.zarr [zarr_metadata]=zarr [zarr_shard]=zarr/v3_sharded.zarr
  [hdf5_description]=hdf5 [hdf5_index]=hdf5)
seeds+=([kaldi_script]=kaldi/tables [kaldi_range]=kaldi/tables)
mkdir -p "build-fuzz/corpus/$target"
# RapidJSON adds to a null pointer.
clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
  -fno-sanitize=pointer-overflow -I. \
  "tests/fuzz/$target.cc" formats/archives/*.cc formats/payloads/*.cc formats/extents.cc formats/format.cc \
  formats/chunk_grid.cc formats/zarr/*.cc formats/bytes/*.cc formats/bytes/codecs/*.cc \
  formats/hdf5/{wire,description,object_header,chunk_index,new_chunk_index}.cc \
  formats/kaldi/{location,script_lines,number}.cc formats/{named_files,confinement}.cc \
  -lfmt -lroaring -lisal -lz -ljpeg -lpng -lwebp -lsndfile -lblosc -lbz2 -ldeflate -llz4 -llzma \
  -lsz -lzstd \
  -o "build-fuzz/$target"
# Seeds without what is expected of them.
find "tests/data/${seeds[$target]:-$target}" -type f ! -name '*.npy' ! -name '*.json' -print0 |
  while IFS= read -r -d '' file; do
    cp "$file" "build-fuzz/corpus/$target/$(sha1sum <"$file" | cut -c1-16)"
  done
exec "build-fuzz/$target" -max_total_time="$seconds" -max_len=65536 -rss_limit_mb=2048 -timeout=20 \
  -artifact_prefix=build-fuzz/ "build-fuzz/corpus/$target"

#!/bin/bash
#
# Runs one fuzz target under libFuzzer, with the address and undefined behaviour sanitizers.
#
# usage: scripts/fuzz.sh TARGET SECONDS [SEED_FOLDER...]
#
# TARGET is a file of tests/fuzz without .cc. Seeds: tests/fuzz/corpus/TARGET and the folders named.
# What it finds is left in the current directory (crash-*, timeout-*, oom-*): give it a name that
# says what is wrong with it and put it into tests/fuzz/corpus/TARGET. Needs clang.

set -euo pipefail

if [ $# -lt 2 ]; then
  sed -n '3,9s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
root=$(cd "$(dirname "$0")/.." && pwd)
target=$1
seconds=$2
shift 2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/found"
seeds=("$@")
if [ -d "$root/tests/fuzz/corpus/$target" ]; then
  seeds+=("$root/tests/fuzz/corpus/$target")
fi

CXX=clang++ meson setup "$work/build" "$root" -Dtests=false -Dbuildtype=debugoptimized \
  -Dcpp_args=-fsanitize=address,undefined,fuzzer-no-link \
  -Dcpp_link_args=-fsanitize=address,undefined >/dev/null
libraries=(formats/libarchives.a formats/libpayloads.a formats/librecords.a formats/libbytes.a)
ninja -C "$work/build" "${libraries[@]}" >/dev/null
clang++ -std=c++20 -g -O1 -fsanitize=address,undefined,fuzzer -DNPYFS_LIBFUZZER -I"$root" \
  "$root/tests/fuzz/$target.cc" "${libraries[@]/#/$work/build/}" \
  -lfmt -lisal -lroaring -lz -lzstd -llzma -lbz2 -o "$work/$target"
"$work/$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=1024 -max_len=65536 \
  "$work/found" "${seeds[@]}"

#!/bin/bash
#
# Builds npyfs (installing what is missing) and runs every test.
#
#   scripts/test.sh              release build, all tests
#   scripts/test.sh --sanitize   the tests that need no mount, under address and undefined sanitizers
#   scripts/test.sh --threads    those of threads under the thread sanitizer, and clang's -Wthread-safety
#   scripts/test.sh --tidy       clang-tidy over all sources
#   scripts/test.sh --format     only the checks of includes, names and formatting
#   scripts/test.sh --ci         format, release build with warnings as errors, demo.sh, sanitize,
#                                threads
#
# The last line is "N passed, N failed, N skipped". Exits with 1 if anything failed or nothing ran.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
. scripts/install_deps.sh

# The comment above.
usage() {
  sed -n '3,/^set/{s/^# \{0,1\}//p}' "$0"
}

case "$*" in
  -h | --help)
    usage
    exit
    ;;
  '' | --sanitize | --threads | --tidy | --format | --ci) ;;
  *)
    usage >&2
    exit 2
    ;;
esac

junit_logs=()

fail() {
  echo "$1" >&2
  /usr/bin/python3 scripts/count_tests.py --failed "$1" "${junit_logs[@]}"
  exit 1
}

# set_up FOLDER OPTION...: configures a build folder, or changes its options.
set_up() {
  local folder=$1
  shift
  if [ -f "$folder/build.ninja" ]; then
    meson configure "$folder" -Dtests=true "$@" || fail "meson configure failed"
  else
    meson setup "$folder" -Dtests=true "$@" || fail "meson setup failed"
  fi
}

# run_tests FOLDER [OPTION | TEST]...: builds what these tests (default: all) need, and runs them.
run_tests() {
  local folder=$1
  shift
  # What an earlier run left must not be counted again.
  find "$folder" -maxdepth 1 -name '*.xml' -delete
  meson test -C "$folder" --num-processes "$(nproc)" --print-errorlogs "$@"
  [ $? -ne 125 ] || fail "the build failed"
  junit_logs+=("$folder/meson-logs")
}

check_format() {
  /usr/bin/python3 scripts/check_floors.py || fail "an include or a declaration points up the floors"
  /usr/bin/python3 scripts/check_names.py || fail "two files define one name"
  find formats threads kept fs cli tests \( -name '*.h' -o -name '*.cc' \) -print0 |
    xargs -0 -P "$(nproc)" -n 50 clang-format --dry-run -Werror ||
    fail "clang-format would change something"
}

release() {
  set_up build "$@"
  ninja -C build || fail "the build failed"
  run_tests build
}

# Most of the time of the sanitizers is the compiler's. A report needs line numbers (-g1), no more;
# with -g the compiler takes a fifth longer.
sanitize() {
  set_up build-asan -Dbuildtype=debug -Ddebug=false -Doptimization=1 \
    -Db_sanitize=address,undefined -Db_lundef=false \
    -Dcpp_args="-g1 -fno-sanitize-recover=undefined"
  LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0" \
    run_tests build-asan --no-suite mount
}

threads() {
  # Locks are in fs/ and kept/ only; their annotations mean something to clang alone.
  local flags
  read -r -a flags < <(pkg-config --cflags fuse3)
  printf '%s\0' fs/*.cc kept/*.cc |
    xargs -0 -P "$(nproc)" -n 1 clang++ -std=c++20 -I. "${flags[@]}" -fsyntax-only -Werror \
      -Wthread-safety || fail "clang's -Wthread-safety"
  set_up build-tsan -Dbuildtype=debug -Ddebug=false -Doptimization=1 -Db_sanitize=thread \
    -Db_lundef=false -Dcpp_args=-g1
  # Damage is read by one thread.
  TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp" GTEST_FILTER='-*DamageBattery*' \
    run_tests build-tsan battery fs kept
}

demo() {
  if [ ! -e /dev/fuse ]; then
    echo "demo skipped: /dev/fuse is missing"
    return
  fi
  if ! scripts/demo.sh </dev/null >build/demo.txt 2>&1 ||
    ! grep -q '^memmap float32 (64, 3, 8, 8)$' build/demo.txt; then
    cat build/demo.txt
    fail "scripts/demo.sh failed"
  fi
}

tidy() {
  set_up build
  scripts/run_tidy.py build || fail "clang-tidy found something"
}

install_missing "${build_packages[@]}" "${test_packages[@]}" || fail "packages are missing"
case "$*" in
  '') release ;;
  --sanitize) sanitize ;;
  --threads) threads ;;
  --tidy) tidy && exit 0 ;;
  --format) check_format && exit 0 ;;
  --ci)
    check_format
    release -Dwerror=true
    demo
    sanitize
    threads
    ;;
esac
/usr/bin/python3 scripts/count_tests.py "${junit_logs[@]}"

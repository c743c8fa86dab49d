# shellcheck shell=bash
#
# Debian 12 packages npyfs needs, and a function that installs those of them that are missing.
# Sourced by demo.sh and test.sh.

build_packages=(
  g++ meson ninja-build pkg-config
  fuse3 libfuse3-dev libfmt-dev libspdlog-dev libcli11-dev rapidjson-dev libroaring-dev
  libaec-dev libblosc-dev libbz2-dev libdeflate-dev liblz4-dev liblzma-dev libzstd-dev
  libhdf5-dev
  libisal-dev libssl-dev zlib1g-dev libjpeg-dev libpng-dev libwebp-dev libsndfile1-dev
  python3 python3-numpy  # demo.sh reads the mount with it
)
test_packages=(
  libgtest-dev libgmock-dev libarchive-dev
  python3-h5py python3-zarr  # other readers to hold ours against
  python3-prometheus-client  # its parser reads .npyfs/metrics
  bzip2 lz4 xz-utils zstd    # pack shards
  attr mount                 # getfattr, mount(8)
  clang clang-format clang-tidy
)

# install_missing PACKAGE...: says what it installs; asks nothing. Needs root or sudo only where
# something is missing.
install_missing() {
  local package missing=()
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
      missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    return 0
  fi
  echo "installing: ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo)
    if ! command -v sudo >/dev/null; then
      echo "these packages are missing, and there is neither root nor sudo to install them" >&2
      return 1
    fi
  fi
  "${as_root[@]}" apt-get -q -q update </dev/null &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -q -y \
      --no-install-recommends install "${missing[@]}" </dev/null >/dev/null
}

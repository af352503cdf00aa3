# SPDX-License-Identifier: Apache-2.0
# Debian packages, one list each, and how they are installed. Read by tests/run.sh and examples/quickstart.sh.
# shellcheck disable=SC2034

build_packages="gcc libc6-dev cmake ninja-build pkg-config liblua5.4-dev libjansson-dev libopenblas-openmp-dev libdnnl-dev libedit-dev"
test_packages="g++ check libsubunit-dev clang-format lua-check libonnx-testdata"
optional_packages="ccache libxnnpack-dev libpthreadpool-dev libcpuinfo-dev libopenmpi-dev openmpi-bin" # what is built and tested only where they are
model_packages="python3-torch python3-torchvision python3-onnx"

# install_packages NAME...: installs those that are not there yet, as root or through sudo.
install_packages() {
  missing=
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  sudo=
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "these packages are missing, and there is neither root nor sudo:$missing" >&2; return 1; }
    sudo=sudo
  fi
  echo "installing:$missing"
  $sudo apt-get update -qq
  # shellcheck disable=SC2086
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is needed on a fresh Debian 12, builds cleave, and runs the main job: ResNet-50, unpartitioned and
# partitioned by rules/conv_bn_relu.lua, compared in values and in time.
#
#   sh examples/quickstart.sh [--no-install] [--threads N]
set -eu
cd "$(dirname "$0")/.."
. tests/packages.sh

install=yes
threads=
while [ $# -gt 0 ]; do
  case "$1" in
    --no-install) install=no ;;
    --threads) threads=$2; shift ;;
    -h | --help) sed -n '3,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "examples/quickstart.sh: unknown option '$1' (see --help)" >&2; exit 2 ;;
  esac
  shift
done
# shellcheck disable=SC2086
[ "$install" = no ] || install_packages $build_packages

echo "building cleave (release)"
cmake --preset release -DCLEAVE_TESTS=OFF >build.log 2>&1 || { cat build.log; exit 1; }
sed -n '/^-- cleave [0-9]/,/^-- $/p' build.log
rm -f build.log
cmake --build --preset release --target cleave_program -- --quiet

cleave=build/release/cleave
model=examples/models/resnet50.lua
rules=rules/conv_bn_relu.lua
options="--warmup 2 --repeat 10 ${threads:+--threads $threads}"

median() {
  sed -n 's/.*"median_ms": *\([0-9.]*\).*/\1/p' "$1"
}

echo
echo "\$ cleave run $model"
# shellcheck disable=SC2086
$cleave run $model $options --json >build/unpartitioned.json
printf 'every node on its own, on cpu: %s ms (median of 10)\n' "$(median build/unpartitioned.json)"
echo
echo "\$ cleave run $model --rules $rules --verify"
# shellcheck disable=SC2086
$cleave run $model --rules $rules --verify $options
# shellcheck disable=SC2086
$cleave run $model --rules $rules $options --json >build/partitioned.json
echo
before=$(median build/unpartitioned.json)
after=$(median build/partitioned.json)
awk -v a="$before" -v b="$after" 'BEGIN { printf "unpartitioned %.1f ms, partitioned %.1f ms: %.1f times as fast\n", a, b, a / b }'

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The ONNX backend tests through the CUDA backend on the stand-ins of NVIDIA's libraries: what passes and fails is what
# passes and fails on cpu.
#
#   test_onnx_cuda.sh PROGRAM SOURCE BUILD
set -eu
program=$1
data=/usr/share/libonnx-testdata/data
[ -d "$data" ] || { echo "skipped: libonnx-testdata is not installed"; exit 77; }
"$program" backends | grep -q "^ *cuda " || { echo "skipped: this build has no CUDA backend"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CLEAVE_CUDA_PATH=$3/tests/cuda
CLEAVE_CUDA_CACHE=$3/tests/cuda/cache
export CLEAVE_CUDA_PATH CLEAVE_CUDA_CACHE
status=0

# names FILE SET [OPTIONS]: the tests that fail, and the counts.
names() {
  file=$1
  set=$2
  shift 2
  "$program" conform "$data/$set" "$@" >"$work/log" 2>&1 || true
  tail -n 1 "$work/log" | grep -Eq '^[1-9][0-9]* passed, [0-9]+ failed$' || { tail -n 5 "$work/log"; exit 1; }
  sed '/^==[0-9]*==/d; s/:.*//' "$work/log" | sort >"$work/$file" # without what sanitizers say of the stand-ins' fibres
}
sets="simple pytorch-converted pytorch-operator node"
# A kernel takes three times as long to compile with sanitizers: those of single nodes are left to the sweeps.
! grep -q '^CLEAVE_SANITIZE:STRING=.' "$3/CMakeCache.txt" || sets="simple pytorch-converted pytorch-operator"
for set in $sets; do
  names cpu "$set"
  names cuda "$set" --backend cuda
  if diff "$work/cpu" "$work/cuda" >"$work/diff"; then
    echo "$set: $(tail -n 1 "$work/log"), as on cpu"
  else
    echo "$set: not as on cpu:"
    head -n 20 "$work/diff"
    status=1
  fi
done
exit $status

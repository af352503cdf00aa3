#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The ONNX backend tests through the CUDA backend on the stand-ins of NVIDIA's libraries: what passes and fails, and why, is what
# it is on cpu; and cpu computes nothing of what passes, except the operators in left_by_cuda.txt, each in so many tests. A number
# there that is too large or too small fails this test, and --update writes the list anew.
#
#   test_onnx_cuda.sh PROGRAM SOURCE BUILD [--update]
set -eu
program=$1
list=$2/tests/conformance/left_by_cuda.txt
data=/usr/share/libonnx-testdata/data
[ -d "$data" ] || { echo "skipped: libonnx-testdata is not installed"; exit 77; }
"$program" backends | grep -q "^ *cuda " || { echo "skipped: this build has no CUDA backend"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CLEAVE_CUDA_PATH=$3/tests/cuda
CLEAVE_CUDA_CACHE=$3/tests/cuda/cache
export CLEAVE_CUDA_PATH CLEAVE_CUDA_CACHE
status=0

# results FILE SET [OPTIONS]: the tests that fail, why, and the counts; what is left to cpu of those that pass goes into `passes`.
results() {
  file=$1
  set=$2
  shift 2
  "$program" conform "$data/$set" --verbose --limit 120 "$@" >"$work/log" 2>&1 || true
  tail -n 1 "$work/log" | grep -Eq '^[1-9][0-9]* passed, [0-9]+ failed$' || { tail -n 5 "$work/log"; exit 1; }
  sed -n 's/^[^:]*: ok; //p' "$work/log" >"$work/passes"
  sed '/^==[0-9]*==/d; /^[^:]*: ok/d' "$work/log" >"$work/$file" # without what sanitizers say of the stand-ins' fibres
}
sets="simple pytorch-converted pytorch-operator node"
# A kernel takes three times as long to compile with sanitizers: those of single nodes are left to the sweeps.
! grep -q '^CLEAVE_SANITIZE:STRING=.' "$3/CMakeCache.txt" || sets="simple pytorch-converted pytorch-operator"
for set in $sets; do
  results cpu "$set"
  results cuda "$set" --backend cuda
  if diff "$work/cpu" "$work/cuda" >"$work/diff"; then
    echo "$set: $(tail -n 1 "$work/log"), as on cpu"
  else
    echo "$set: not as on cpu:"
    head -n 20 "$work/diff"
    status=1
  fi
  # Regions whose shapes are known only at run time are run node by node, on cuda all the same.
  if grep '.' "$work/passes" | sed 's/^on cpu: [^;]*//' | grep -q -v -e '^$' -e "its nodes run one by one on cuda:"; then
    echo "$set: notes that are not expected:"
    grep 'region' "$work/passes" | head -n 5
    status=1
  fi
  sed -n 's/^on cpu: \([^;]*\).*/\1/p' "$work/passes" | tr ' ' '\n' | LC_ALL=C sort | uniq -c | awk '{ print $2, $1 }' >"$work/left_$set"
done
for set in simple pytorch-converted pytorch-operator; do
  [ ! -s "$work/left_$set" ] || { echo "$set: left to cpu:" $(cat "$work/left_$set"); status=1; }
done
if [ -f "$work/left_node" ]; then
  if [ "${4:-}" = --update ]; then
    { echo "# Operators of ONNX's tests of single nodes that the CUDA backend leaves to cpu, and in how many tests."
      echo "# Written by: sh tests/conformance/test_onnx_cuda.sh PROGRAM SOURCE BUILD --update"
      cat "$work/left_node"; } >"$list"
  fi
  grep -v '^#' "$list" >"$work/list"
  if ! diff "$work/list" "$work/left_node" >"$work/diff"; then
    sed -n 's/^< /node: in the list:   /p; s/^> /node: left to cpu: /p' "$work/diff"
    echo "node: what is left to cpu is not what the list has (--update writes it)"
    status=1
  fi
fi
exit $status

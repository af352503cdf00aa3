#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The ONNX backend tests through the mirror library: what passes, what fails, and how, is exactly what it is on cpu,
# whole graphs at once, every operator as a region of its own, and through executors.
#
#   test_onnx_mirror.sh PROGRAM SOURCE BUILD
set -eu
program=$1
source=$2
library=$3/accelerators/libmirror.so
data=/usr/share/libonnx-testdata/data
[ -d "$data" ] || { echo "skipped: libonnx-testdata is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# conform NAME SET [OPTIONS]: failures and counts of a set of tests.
conform() {
  name=$1
  set=$2
  shift 2
  "$program" conform "$data/$set" "$@" >"$work/log" 2>&1 || true
  sed "s/operator '\([A-Za-z]*\)' (node '[^']*') is not supported by [a-z:0-9]*: /\1: /; s/region '[^']*' on mirror:[01]: //" \
    "$work/log" >"$work/$name"
  tail -n 1 "$work/$name" | grep -Eq '^[1-9][0-9]* passed, [0-9]+ failed$' || {
    echo "$set, $name: no summary:"
    tail -n 5 "$work/$name"
    exit 1
  }
}

# same NAME SET [OPTIONS]: as on cpu.
same() {
  name=$1
  set=$2
  conform "$@" --load "$library"
  if diff "$work/cpu" "$work/$name" >"$work/diff"; then
    echo "$set, $name: $(tail -n 1 "$work/$name"), as on cpu"
  else
    echo "$set, $name: not as on cpu:"
    head -n 20 "$work/diff"
    status=1
  fi
}

for set in node simple pytorch-converted pytorch-operator; do
  conform cpu "$set"
  same "whole graphs" "$set" --backend mirror
  # Sanitizers guard memory by themselves, and the other ways take minutes with them.
  ! grep -q '^CLEAVE_SANITIZE:STRING=.' "$3/CMakeCache.txt" || continue
  same "guarded, on device 1" "$set" --backend mirror --configure mirror.guard=1 --option mirror.device=1
  same "executors" "$set" --backend mirror --imperative
  same "operator by operator" "$set" --rules "$source/tests/mirror/mirror.lua" --set pieces=nodes --set shapes=true
done
exit $status

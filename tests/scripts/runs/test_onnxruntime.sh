#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Operators that ONNX Runtime has beside ONNX's, by cleave and by ONNX Runtime on the same inputs. Says `skipped: ...` and ends
# with 77 without Node.js or its package onnxruntime-node (ORT_DIR: the folder with its node_modules; build/ else), or Debian's
# python3-onnx.
#
#   test_onnxruntime.sh PROGRAM SOURCE BUILD
set -u
program=$1
source=$2
. "$2/tests/scripts/checks.sh"
command -v node >/dev/null || { echo "skipped: Node.js is not installed"; exit 77; }
export ORT_DIR="${ORT_DIR:-$2/build}"
(cd "$ORT_DIR" && node -e 'require("onnxruntime-node")') 2>/dev/null ||
  { echo "skipped: npm's onnxruntime-node is not in $ORT_DIR/node_modules"; exit 77; }
/usr/bin/python3 -c 'import numpy, onnx' 2>/dev/null || { echo "skipped: python3-onnx is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/out
/usr/bin/python3 "$2/tests/onnxruntime/operators.py" "$work/models" || exit 1

# compare ATOL FOLDER...: runs models in cleave, then on the same inputs in ONNX Runtime.
compare() {
  atol=$1
  shift
  pairs=
  for model in "$@"; do
    # shellcheck disable=SC2046
    if "$program" run "$model/model.onnx" $(cat "$model/options") --save "$model/data" --warmup 0 --repeat 1 \
      >"$out" 2>&1; then
      pairs="$pairs $model/model.onnx $model/data"
    else
      fail "${model##*/}, in cleave"
    fi
  done
  # shellcheck disable=SC2086
  node "$source/tests/onnxruntime/check.mjs" 1e-4 "$atol" $pairs >"$work/found" 2>&1 || true
  while read -r model verdict; do
    case $verdict in
      equal*) pass ;;
      *) rm -f "$out" && fail "$(basename "$(dirname "$model")"): $verdict" ;;
    esac
  done <"$work/found"
}

compare 2e-5 $(ls -d "$work"/models/[!q]* "$work"/models/quick_gelu)
compare 1 "$work"/models/q_*
finish

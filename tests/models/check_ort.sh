#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Partitions exported models by rules/canonical.lua and rules/onednn.lua, writes them as ONNX, and runs what was written in
# ONNX Runtime and in cleave: both must give PyTorch's outputs. The models are those that tests/models/export.py wrote to
# FOLDER. Ends with `N passed, M failed`; says `skipped: ...` and ends with 77 without Node.js or its package
# onnxruntime-node (npm install onnxruntime-node; ORT_DIR: the folder with its node_modules).
#
#   sh tests/models/check_ort.sh PROGRAM [small|all] [FOLDER] [OPSET]...
#
# OPSET: also in these opsets; without any in the model's own.
set -eu
program=$1
which=${2:-all}
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=${3:-${CLEAVE_MODELS:-$root/build/models}}
. "$root/tests/models/side_by_side.sh"
command -v node >/dev/null || { echo "skipped: Node.js is not installed"; exit 77; }
export ORT_DIR="${ORT_DIR:-$root/build}"
(cd "$ORT_DIR" && node -e 'require("onnxruntime-node")') 2>/dev/null ||
  { echo "skipped: npm's onnxruntime-node is not in $ORT_DIR/node_modules"; exit 77; }
if [ -z "${CLEAVE_ONE_MODEL:-}" ]; then
  models="squeezenet1_1_op13 mobilenet_v2_op17 gpt_op13 lstm_op17 gru_op13"
  [ "$which" != all ] || models=$(cd "$folder" && ls -d */model.onnx | sed 's|/.*||')
  side_by_side "$models" "$@"
  exit
fi
[ $# -lt 3 ] || shift
[ $# -lt 2 ] || shift
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# expect WHAT COMMAND...: one check; the last lines of what it printed if it failed.
expect() {
  subject=$1
  shift
  if "$@" >"$work/log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "$subject: $(tail -n 2 "$work/log" | tr '\n' ' ')"
    return 1
  fi
}

# open_sizes MODEL: options that leave the sizes open which the model leaves open.
open_sizes() {
  "$program" inspect "$1" | sed -n 's/^ *sizes: \(.*\) taken; .*/\1/p' | tr -d ' ' | tr ',' '\n' |
    sed -n 's/\(.*\)=1$/--shape \1=?/p'
}

# check NAME [OPSET]: one model, in one opset.
check() {
  name=$1
  label=$1${2:+ in opset $2}
  data=$folder/$name/test_data_set_0
  # shellcheck disable=SC2046
  expect "$label, writing" "$program" partition "$folder/$name/model.onnx" --rules "$root/rules/canonical.lua" \
    --rules "$root/rules/onednn.lua" -o "$work/model.onnx" $(open_sizes "$folder/$name/model.onnx") \
    ${2:+--opset "$2"} || return 0
  expect "$label, ONNX Runtime" node "$root/tests/onnxruntime/check.mjs" 2e-3 2e-3 "$work/model.onnx" "$data" || true
  largest=$(sed -n 's/.* equal //p' "$work/log")
  expect "$label, cleave" "$program" run "$work/model.onnx" --data "$data" --rtol 2e-3 --atol 2e-3 --warmup 0 \
    --repeat 1 || true
  [ -z "$largest" ] || echo "$label: equal, largest difference $largest"
  rm -f "$work/model.onnx" "$work/model.onnx.data"
}

if [ $# -eq 0 ]; then
  check "$CLEAVE_ONE_MODEL"
fi
for opset in "$@"; do
  check "$CLEAVE_ONE_MODEL" "$opset"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

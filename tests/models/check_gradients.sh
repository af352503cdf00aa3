#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Exports models with a loss and PyTorch's gradients (once), and compares those of `cleave gradient` with them: within
# 1e-3 of each value and 1e-5 of the largest. Ends with `N passed, M failed`.
#
#   sh tests/models/check_gradients.sh PROGRAM [small|all] [FOLDER]
set -eu
program=$1
which=${2:-all}
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=${3:-${CLEAVE_MODELS:-$root/build/models}/gradients}
models="resnet18+double gru"
if [ "$which" != small ]; then
  models="resnet18+double resnet18+train resnet50+double bert_base gpt unet+double unet+train gru lstm
    mobilenet_v3_small+double densenet121+double swin_t convnext_tiny"
fi
. "$root/tests/models/side_by_side.sh"
if [ -z "${CLEAVE_ONE_MODEL:-}" ]; then
  mkdir -p "$folder"
  # A path of its own: other Pythons of the machine do not see Debian's packages.
  # shellcheck disable=SC2086
  /usr/bin/python3 "$root/tests/models/gradients.py" "$folder" $models >/dev/null
  side_by_side "$models" "$@"
  exit
fi
model=$folder/$CLEAVE_ONE_MODEL
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if "$program" gradient "$model/model.onnx" --loss loss --wrt "$(cat "$model/wrt")" -o "$work/gradient.onnx" \
  >"$work/log" 2>&1 &&
  "$program" run "$work/gradient.onnx" --data "$model/test_data_set_0" --rtol 1e-3 --atol 1e-5 --warmup 0 \
    --repeat 1 >"$work/log" 2>&1; then
  echo "1 passed, 0 failed"
else
  echo "$CLEAVE_ONE_MODEL: $(grep -m 3 -e ' differ$' -e '^cleave: ' "$work/log" | tr '\n' ' ')"
  echo "0 passed, 1 failed"
  exit 1
fi

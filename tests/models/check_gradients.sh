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
mkdir -p "$folder"
# A path of its own: other Pythons of the machine do not see Debian's packages.
# shellcheck disable=SC2086
/usr/bin/python3 "$root/tests/models/gradients.py" "$folder" $models >/dev/null
passed=0
failed=0
for name in $models; do
  model=$folder/$name
  if "$program" gradient "$model/model.onnx" --loss loss --wrt "$(cat "$model/wrt")" -o "$model/gradient.onnx" \
    >"$folder/log" 2>&1 &&
    "$program" run "$model/gradient.onnx" --data "$model/test_data_set_0" --rtol 1e-3 --atol 1e-5 --warmup 0 \
      --repeat 1 >"$folder/log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "$name: $(grep -m 3 -e ' differ$' -e '^cleave: ' "$folder/log" | tr '\n' ' ')"
  fi
  rm -f "$model/gradient.onnx"
done
rm -f "$folder/log"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

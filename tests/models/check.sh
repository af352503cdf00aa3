#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Exports models from PyTorch (once) and checks every one against PyTorch's outputs: on cpu, and partitioned by
# rules/onednn.lua. Ends with `N passed, M failed`.
#
#   sh tests/models/check.sh PROGRAM [small|all] [FOLDER]
set -eu
program=$1
which=${2:-all}
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=${3:-${CLEAVE_MODELS:-$root/build/models}}
# A path of its own: other Pythons of the machine do not see Debian's packages.
python=/usr/bin/python3
small="squeezenet1_1@13 mobilenet_v2@17 gpt@13 lstm@17 gru@13"
mkdir -p "$folder"
if [ "$which" = small ]; then
  # shellcheck disable=SC2086
  $python "$root/tests/models/export.py" "$folder" $small >/dev/null
else
  $python "$root/tests/models/export.py" "$folder" >/dev/null
fi
passed=0
failed=0
for model in "$folder"/*/model.onnx; do
  name=$(basename "$(dirname "$model")")
  for rules in "" "$root/rules/onednn.lua"; do
    if "$program" run "$model" ${rules:+--rules "$rules"} --data "$(dirname "$model")/test_data_set_0" \
      --rtol 2e-3 --atol 2e-3 --warmup 0 --repeat 1 >"$folder/log" 2>&1; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      echo "$name${rules:+ with rules/onednn.lua}: $(tail -n 3 "$folder/log" | tr '\n' ' ')"
    fi
  done
done
rm -f "$folder/log"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

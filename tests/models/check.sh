#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Exports models from PyTorch (once) and checks every one against PyTorch's outputs: on cpu, partitioned by
# rules/onednn.lua, and by that after rules/canonical.lua. How often the rewrites of canonical.lua are made must
# be what canonical.txt says of the model (in opset 17 layer norms are operators already). Some also run through the
# mirror library. Ends with `N passed, M failed`.
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
. "$root/tests/models/side_by_side.sh"
if [ -z "${CLEAVE_ONE_MODEL:-}" ]; then
  mkdir -p "$folder"
  [ "$which" = small ] || small=
  # shellcheck disable=SC2086
  $python "$root/tests/models/export.py" "$folder" $small >/dev/null
  side_by_side "$(cd "$folder" && ls -d */model.onnx | sed 's|/.*||')" "$@"
  exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# check NAME WHAT [OPTIONS of run]: one run against PyTorch's outputs.
check() {
  name=$1
  what=$2
  shift 2
  if "$program" run "$folder/$name/model.onnx" "$@" --data "$folder/$name/test_data_set_0" --rtol 2e-3 \
    --atol 2e-3 --warmup 0 --repeat 1 >"$work/log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "$name$what: $(tail -n 3 "$work/log" | tr '\n' ' ')"
  fi
}

# check_counts NAME: what the log, as JSON, says that rules made.
check_counts() {
  tr -d '" ' <"$work/log" | awk -F '[:,]' '$1 == "name" { name = $2 } $1 == "made" { print name "=" $2 }' \
    >"$work/made"
  for expected in $(sed -n "s/^$1 //p" "$root/tests/models/canonical.txt"); do
    if grep -qx "$expected" "$work/made"; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      echo "$1: expected $expected, found $(grep "^${expected%=*}=" "$work/made" || echo nothing)"
    fi
  done
}

# check_mirror NAME: through the library of our cpu kernels, in one piece and operator by operator: PyTorch's outputs, and
# cpu's to the bit.
library=$(dirname "$program")/accelerators/libmirror.so
check_mirror() {
  name=$1
  check "$name" " on mirror" --load "$library" --rules "$root/tests/mirror/mirror.lua"
  check "$name" " on mirror, operator by operator" --load "$library" --rules "$root/tests/mirror/mirror.lua" --imperative \
    --configure mirror.guard=1 --option mirror.device=1
  if "$program" run "$folder/$name/model.onnx" --load "$library" --rules "$root/tests/mirror/mirror.lua" --verify --rtol 0 \
    --atol 0 --warmup 0 --repeat 1 >"$work/log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "$name on mirror, against cpu: $(tail -n 3 "$work/log" | tr '\n' ' ')"
  fi
}

check "$CLEAVE_ONE_MODEL" ""
check "$CLEAVE_ONE_MODEL" " with rules/onednn.lua" --rules "$root/rules/onednn.lua"
check "$CLEAVE_ONE_MODEL" " with rules/canonical.lua and rules/onednn.lua" --rules "$root/rules/canonical.lua" \
  --rules "$root/rules/onednn.lua" --json
check_counts "$CLEAVE_ONE_MODEL"
case $CLEAVE_ONE_MODEL in
  resnet50_* | bert_base_* | unet_* | mobilenet_v2_*) check_mirror "$CLEAVE_ONE_MODEL" ;;
esac
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

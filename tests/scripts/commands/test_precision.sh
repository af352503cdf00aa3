#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Precision from outside: regions in bfloat16, what is kept, cleave precision, and processors without the instructions.
set -u
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"
rules="$2/rules/onednn.lua"

if ! "$program" version | grep -q onednn; then
  echo "skipped: this build has no oneDNN backend"
  exit 77
fi

cat >net.lua <<'LUA'
local x = g.input("x", "float32", { 1, 16, 14, 14 })
local a = g.Relu(g.Conv(x, g.weight { 32, 16, 3, 3 }, nil, { pads = { 1, 1, 1, 1 }, name = "first" }))
local b = g.Relu(g.Conv(a, g.weight { 32, 32, 1, 1 }, nil, { name = "second" }))
local c = g.Flatten(g.GlobalAveragePool(b))
g.output("y", g.Gemm(c, g.weight { 10, 32 }, nil, { transB = 1, name = "last" }))
LUA

# Everywhere: a processor that lacks the instructions says so, and computes in float32.
check "refused with a reason" 0 'precision bfloat16: this processor has no AVX512_BF16' \
  env DNNL_MAX_CPU_ISA=AVX2 "$program" partition net.lua --rules "$rules" --set precision=bfloat16
also "a region in float32 all the same" "everything_0 on onednn"
check "float32 values" 0 'all outputs match' \
  env DNNL_MAX_CPU_ISA=AVX2 "$program" run net.lua --rules "$rules" --set precision=bfloat16 --verify --repeat 1
check "backends say it" 0 'bfloat16 not: this processor has no AVX512_BF16' \
  env DNNL_MAX_CPU_ISA=AVX2 "$program" backends onednn -v
check "nothing to find" 1 'no region computes in bfloat16' \
  env DNNL_MAX_CPU_ISA=AVX2 "$program" precision net.lua --rules "$rules"
also "and why" 'this processor has no AVX512_BF16'
check "a precision that is not known" 1 "expected" "$program" run net.lua --rules "$rules" --set precision=bfloat8
check "rules without the option" 1 "precision" "$program" precision net.lua --rules "$2/rules/conv_bn_relu.lua"
check "an error below zero" 2 "max-error" "$program" precision net.lua --rules "$rules" --max-error -1
check "no rules" 2 "expected --rules" "$program" precision net.lua

if ! grep -q avx512_bf16 /proc/cpuinfo; then
  echo "skipped in part: this processor has no AVX512_BF16"
  finish
  exit
fi

check "a region in bfloat16" 0 "precision = 'bfloat16'" \
  "$program" partition net.lua --rules "$rules" --set precision=bfloat16
check "verify allows for it" 0 ' 0 do not' "$program" verify net.lua --rules "$rules" --set precision=bfloat16
check "float32 is held to float32" 1 'differ' "$program" run net.lua --rules "$rules" --set precision=bfloat16 --verify \
  --repeat 1 --rtol 1e-6 --atol 1e-6
check "all that is kept is float32" 0 'all outputs match' "$program" run net.lua --rules "$rules" \
  --set precision=bfloat16 --set 'keep=Conv,la*' --verify --repeat 1 --rtol 1e-5 --atol 1e-5
check "an error that is met" 0 '^met' "$program" precision net.lua --rules "$rules" --max-error 0.05
also "the setting" '^--set precision=bfloat16$'
check "an error for which parts stay" 0 '^met' "$program" precision net.lua --rules "$rules" --max-error 1e-6
also "all of them" 'bfloat16, 3 parts kept'
setting=$(sed -n 's/.*--set \(keep=[^ ]*\).*/\1/p' "$out")
check "the setting gives what was found" 0 'all outputs match' "$program" run net.lua --rules "$rules" \
  --set precision=bfloat16 --set "$setting" --verify --repeat 1 --rtol 1e-5 --atol 1e-5
check "an error that cannot be met" 1 'NOT MET' "$program" precision net.lua --rules "$rules" --max-error 1e-12
check "as JSON" 0 '"met": true' "$program" precision net.lua --rules "$rules" --max-error 1e-6 --json
also "what is kept" '"second"'
# The advice is that of the times printed: "ms" of float32, low and found, in this order.
expected=$(sed -n 's/^ *"ms": \([-+.0-9e]*\),*$/\1/p' "$out" |
  awk '{ ms[NR] = $1 } END { if (NR == 3) print ((ms[3] >= ms[1]) ? "true" : "false") }')
also "whether float32 is as fast" "\"use_float32\": ${expected:-of three times}"

# An exported network, if there is one: as few digits more as bfloat16 explains, and the same answer.
folder=${CLEAVE_MODELS:-}/resnet50_op17
if [ -n "${CLEAVE_MODELS:-}" ] && [ -f "$folder/model.onnx" ]; then
  check "ResNet-50 in bfloat16" 0 'all outputs match' "$program" run "$folder/model.onnx" --rules "$rules" \
    --set precision=bfloat16 --data "$folder/test_data_set_0" --rtol 2e-2 --atol 2e-2 --repeat 1
else
  echo "skipped in part: no exported models (CLEAVE_MODELS)"
fi
finish

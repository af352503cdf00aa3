#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Models with QuantizeLinear and DequantizeLinear from outside: products of 8-bit integers, what verify allows for, what
# is refused, and processors whose sums saturate.
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

# `limit`: weights go from -limit to limit.
model() {
  cat <<LUA
local function through(x, scale, zero, dtype)
  local s, z = g.constant(scale), g.constant(zero, dtype or "uint8")
  return g.DequantizeLinear(g.QuantizeLinear(x, s, z), s, z)
end
local function weights(shape)
  return through(g.Clip(g.weight(shape), -$1, $1), $1 / $2, 0, "int8")
end
local x = g.input("x", "float32", { 1, 16, 14, 14 })
local a = through(x, 0.03, 120)
local b = through(g.Relu(g.Conv(a, weights { 32, 16, 3, 3 }, nil, { pads = { 1, 1, 1, 1 }, name = "first" })), 0.02, 0)
local c = through(g.Relu(g.Conv(b, weights { 32, 32, 1, 1 }, nil, { name = "second" }) + b), 0.03, 0)
local p = through(g.MaxPool(c, { kernel_shape = { 2, 2 }, strides = { 2, 2 }, name = "pool" }), 0.03, 0)
local f = through(g.Flatten(g.GlobalAveragePool(p)), 0.01, 3)
g.output("y", g.Gemm(f, weights { 10, 32 }, nil, { transB = 1, name = "last" }))
LUA
}
model 0.5 64 >small.lua
model 0.5 127 >wide.lua

check "all products are of integers" 0 'quantized .* 3 ' "$program" run small.lua --rules "$rules" --verify --repeat 1 \
  --profile trace.json
also "outputs as on cpu" 'all outputs match'
cp trace.json out
also "a convolution of integers" '"conv[^"]*\(int8\|vnni\|amx\)'
also "a pooling of integers" 'maxpool[^"]*jit_int'
check "piece by piece" 0 ' 0 do not' "$program" verify small.lua --rules "$rules"
check "in float32 if asked" 0 'all outputs match' "$program" run small.lua --rules "$rules" --set quantized=false --verify \
  --repeat 1 --profile trace.json
cp trace.json out
if grep -q '"conv[^"]*int8' out; then
  fail "in float32 if asked: a convolution of integers is in"
fi

# Weights beyond 64 need VNNI, whichever processor this is.
check "large weights saturate without VNNI" 0 'neither AVX512_VNNI nor AVX_VNNI' \
  env DNNL_MAX_CPU_ISA=AVX2 "$program" partition wide.lua --rules "$rules"
check "and are multiplied in float32" 0 'all outputs match' \
  env DNNL_MAX_CPU_ISA=AVX2 "$program" run wide.lua --rules "$rules" --verify --repeat 1
check "small ones do not" 0 'quantized .* 3 ' \
  env DNNL_MAX_CPU_ISA=AVX2 "$program" run small.lua --rules "$rules" --verify --repeat 1
also "with the same results" 'all outputs match'
check "large weights where they are multiplied" 0 'all outputs match' "$program" run wide.lua --rules "$rules" --verify --repeat 1

# Weights stay 8-bit integers in what is written.
check "written as ONNX" 0 '' "$program" partition small.lua --rules "$rules" -o small.onnx
check "and read again" 0 'all outputs match' "$program" run small.onnx --verify --repeat 1

# Packed weights: in kernels, in files, in plans, and on processors that have no such kernels.
cat >packed.lua <<'LUA'
local bytes = g.Cast(g.Round(g.uniform { low = -0.49, high = 255.49, 40, 32 }), { to = 2 })
local numbers = g.UnpackBits(bytes, { bits = 4, count = 64, signed = 1, transposed = 1 })
local scales = g.uniform { low = 0.005, high = 0.02, 4, 40 }
local x = g.input("x", "float32", { 2, 64 })
g.output("y", g.Relu(g.MatMul(x, g.DequantizeLinear(numbers, scales, nil, { axis = 0, block_size = 16 }))))
LUA
check "packed weights" 0 'narrow .* 1  *4 ' "$program" run packed.lua --rules "$rules" --verify --repeat 1 --profile trace.json
also "packed weights: outputs as on cpu" 'all outputs match'
cp trace.json out
also "a product of them" 'matmul int4'
check "without AVX2" 0 'all outputs match' env CLEAVE_INSTRUCTIONS=plain "$program" run packed.lua --rules "$rules" --verify --repeat 1
check "without rules" 0 'all outputs match' "$program" run packed.lua --backend onednn --verify --repeat 1
check "packed weights: piece by piece" 0 ' 0 do not' "$program" verify packed.lua --rules "$rules"
check "packed weights written as ONNX" 0 '' "$program" partition packed.lua --rules "$rules" --opset 21 -o packed.onnx
check "packed weights read again" 0 'all outputs match' "$program" run packed.onnx --verify --repeat 1 --profile trace.json
cp trace.json out
also "as the same kernel" 'matmul int4'
check "packed weights in a plan" 0 '' "$program" partition packed.lua --rules "$rules" -o packed.json
check "the plan of packed weights" 0 'all outputs match' "$program" run packed.lua --plan packed.json --verify --repeat 1
finish

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The XNNPACK library, loaded: it lists itself, runs models with cpu's numbers, cuts regions where layouts change,
# says what it refuses, and shares a graph with oneDNN. Skipped where it is not built.
set -u
program=$1
source=$2
build=$3
library=$build/accelerators/libxnnpack_cleave.so
[ -f "$library" ] || { echo "skipped: $library is not built"; exit 77; }
[ -r /proc/cpuinfo ] || { echo "skipped: XNNPACK needs /proc/cpuinfo"; exit 77; }
rules=$source/examples/accelerators/xnnpack
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"

# Every value changes its layout somewhere: softmax and reshapes of images between convolutions, operands that are
# broadcast, values that are the same bytes in both layouts, values used inside a region and outside.
cat >layouts.lua <<'LUA'
local x = g.input("x", "float32", { 2, 6, 10, 8 })
local r = g.input("r", "float32", { 2, 6, 1, 1 })
local low = g.input("low", "float32", { 6, 1, 1 })
local c = g.Conv(x, g.weight { 12, 6, 3, 3, name = "w1" }, { pads = { 1, 1, 1, 1 } })
local s = g.Softmax(c, { axis = -1 })
local d = g.Conv(s, g.weight { 12, 1, 3, 3, name = "w2" },
  { group = 12, auto_pad = "SAME_LOWER", strides = { 2, 2 } })
local f = g.Mul(g.batch_norm(g.Relu(d)), g.normal { 12, 1, 1, name = "k" })
local window = { kernel_shape = { 3, 3 }, pads = { 1, 1, 1, 1 }, count_include_pad = 1 }
local p = g.AveragePool(f, window)
window.count_include_pad = 0
local flat = g.Reshape(p + g.AveragePool(f, window), g.constant({ 2, -1 }, "int64"))
g.output("y", g.Softmax(g.MatMul(flat, g.weight { 12 * 5 * 4, 7, name = "w3" })))
g.output("d", d)
g.output("f", f)
local gate = g.Mul(g.HardSigmoid(g.Sub(g.GlobalAveragePool(x), r)), r)
g.output("gate", gate)
g.output("gated", g.Mul(x, gate))
g.output("lower", g.Add(g.Abs(x), low))
local t = g.ConvTranspose(x, g.weight { 6, 4, 3, 3, name = "w4" },
  { strides = { 2, 2 }, group = 2, output_padding = { 1, 1 }, pads = { 1, 1, 1, 1 } })
g.output("t", g.LeakyRelu(t))
g.output("pooled", g.MaxPool(g.Softmax(t, { axis = 1 }),
  { kernel_shape = { 3, 2 }, strides = { 2, 2 }, ceil_mode = 1 }))
local turned = g.Reshape(g.Conv(x, g.weight { 6, 6, 1, 1, name = "w5" }), g.constant({ 2, 8, 6, 10 }, "int64"))
g.output("turned", g.Conv(turned, g.weight { 4, 4, 3, 3, name = "w6" }, { group = 2, dilations = { 2, 2 } }))
g.output("padded", g.Relu(g.Pad(t, g.constant({ 0, 1, 2, 0, 0, 2, 0, 3 }, "int64"), 0.25)))
g.output("mean", g.Relu(g.ReduceMean(t, g.constant({ 2, 3 }, "int64"), { keepdims = 0 })))
g.output("mean4", g.Sub(t, g.ReduceMean(t, g.constant({ -1, 2 }, "int64"))))
g.output("gemm", g.Gemm(g.Flatten(g.GlobalAveragePool(x)), g.weight { 5, 6, name = "w7" },
  g.normal { 5, name = "b7" }, { transB = 1, alpha = 0.5, beta = 2.0 }))
g.output("one", g.Relu(g.Reshape(g.Conv(x, g.weight { 1, 6, 1, 1, name = "w8" }),
  g.constant({ 2, 80 }, "int64"))))
LUA

cat >folded.lua <<'LUA'
-- Factors and terms per channel in all their spellings, before bounds.
local x = g.input("x", "float32", { 1, 4, 9, 9 })
local function term(name) return g.normal { 4, 1, 1, name = name } end
local a = g.Mul(g.Conv(x, g.weight { 4, 4, 3, 3, name = "a" }), term "ka")
g.output("a", g.Clip(g.Add(term "ta", a), -0.5, 0.5))
local b = g.Sub(term "tb", g.Conv(x, g.weight { 4, 1, 3, 3, name = "b" }, { group = 4 }))
g.output("b", g.Relu(g.Div(b, 3.0)))
local c = g.batch_norm(g.ConvTranspose(x, g.weight { 4, 4, 2, 2, name = "c" }, { strides = { 2, 2 } }))
g.output("c", g.Relu(g.Sub(c, term "tc")))
local d = g.MatMul(g.Reshape(x, g.constant({ 36, 9 }, "int64")), g.weight { 9, 5, name = "d" })
g.output("d", g.Clip { input = g.Add(g.Mul(d, g.normal { 5, name = "kd" }), g.normal { 5, name = "td" }), min = 0.1 })
LUA

cat >refused.lua <<'LUA'
local x = g.input("x", "float32", { 1, 4, 8, 8 })
local open = g.input("open", "float32", { 1, 4, "H", 8 })
local y = g.Concat(g.Relu(x), g.MaxPool(x, { kernel_shape = { 1, 1 } }), { axis = 1 })
g.output("y", g.Transpose(y, { perm = { 0, 2, 3, 1 } }))
g.output("z", g.MatMul(x, x))
g.output("w", g.Relu(open))
LUA

check "lists itself" 0 "xnnpack" "$program" backends -v --load "$library"
also "lists itself" "rule file xnnpack.lua"
check "its rule file by name" 0 "all outputs match" "$program" run layouts.lua --load "$library" --rules xnnpack --verify --threads 1
check "no rule file of that name" 1 "xnnpak: cannot open" "$program" run layouts.lua --load "$library" --rules xnnpak
check "tests of the rule file" 0 " 0 failed" "$program" check "$rules/xnnpack.lua" --load "$library"
for model in layouts.lua folded.lua; do
  for threads in 1 2; do
    check "$model, $threads threads" 0 "all outputs match" "$program" run $model --load "$library" \
      --rules "$rules/xnnpack.lua" --verify --repeat 2 --threads $threads
    also "$model" " 0 nodes on cpu one by one"
  done
  check "$model, every region on its own" 0 "island" "$program" verify $model --load "$library" \
    --rules "$rules/xnnpack.lua" --threads 1
  check "$model without fusions" 0 "all outputs match" "$program" run $model --load "$library" --backend xnnpack \
    --verify --repeat 2 --threads 1
done
check "folds all terms" 0 "product_act .* 4 *1[0-9] " "$program" run folded.lua --load "$library" \
  --rules "$rules/xnnpack.lua" --threads 1 --repeat 1
cat >gain.lua <<'LUA'
-- SPDX-License-Identifier: Apache-2.0
return ruleset { name = "gain", backend = "xnnpack", region "worth_it" { min_gain = 1000 } }
LUA
check "estimates" 0 "min_gain" "$program" run folded.lua --load "$library" --rules gain.lua --threads 1 --repeat 1
check "profile" 0 "xnnpack stage 1" "$program" run folded.lua --load "$library" --rules "$rules/xnnpack.lua" \
  --threads 1 --repeat 1 --profile trace.json

check "runs around what it refuses" 0 "all outputs match" "$program" run refused.lua --load "$library" \
  --rules "$rules/xnnpack.lua" --verify --repeat 1 --threads 1 --shape open=1x4x8x8
check "says why" 0 "Concat: this XNNPACK has no such operator" "$program" run refused.lua --load "$library" \
  --rules "$rules/xnnpack.lua" --repeat 1 --threads 1 --shape open=1x4x8x8
also "says why" "no windows of one element"
also "says why" "constant float32 matrices only"

for model in mobilenet_v2 resnet50; do
  check "$model" 0 "all outputs match" "$program" run "$source/examples/models/$model.lua" --set size=64 \
    --set classes=10 --load "$library" --rules "$rules/xnnpack.lua" --verify --repeat 1 --threads 1
  also "$model" " 1 region, 0 nodes on cpu one by one"
done
check "regions of mobilenet_v2" 0 "island" "$program" verify "$source/examples/models/mobilenet_v2.lua" \
  --set size=32 --set classes=10 --load "$library" --rules "$rules/xnnpack.lua" --rounds 1 --threads 1

if "$program" backends | grep -q '^ *onednn '; then
  for model in mobilenet_v2 resnet50; do
    check "$model, two libraries" 0 "all outputs match" "$program" run "$source/examples/models/$model.lua" \
      --set size=64 --set classes=10 --set one_pixel=true --load "$library" --rules "$rules/mixed.lua" --verify \
      --repeat 1 --threads 1
    also "$model, two libraries" "region on onednn .*[1-9]"
    also "$model, two libraries" "its_part .* [1-9][0-9] "
    also "$model, two libraries" " 0 nodes on cpu one by one"
  done
  check "two rule files" 0 "all outputs match" "$program" run refused.lua --load "$library" \
    --rules "$rules/xnnpack.lua" --rules onednn --verify --repeat 1 --threads 1 --shape open=1x4x8x8
fi

finish

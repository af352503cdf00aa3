#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Where address space is short (`ulimit -v`): commands that compute nothing work, and matrix products are computed without
# OpenBLAS, which would wait for memory for ever. Each command gets a minute, which only one that hangs takes.
program=$1
source=$2
build=$3
grep -q '^CLEAVE_SANITIZE:STRING=.\+' "$build/CMakeCache.txt" && exit 77 # sanitizers map terabytes
. "$source/tests/scripts/checks.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
out=$folder/out
cat >"$folder/product.lua" <<'LUA'
local x = g.input("x", "float32", { 24, 40 })
g.output("y", g.Relu(g.MatMul(x, g.weight({ 40, 32 }, { name = "w" }))))
LUA
cat >"$folder/rules.lua" <<'LUA'
return ruleset { name = "products", backend = "cpu", region "all" { ops = { "MatMul", "Relu" } } }
LUA

# short KIB COMMAND...: with so much address space.
short() {
  (ulimit -v "$1" && shift && timeout -s KILL 60 "$@")
}

for kib in 150000 300000; do
  check "--help in $kib KiB" 0 'partition' short $kib "$program" --help
  check "inspect in $kib KiB" 0 'MatMul' short $kib "$program" inspect "$folder/product.lua"
  check "partition in $kib KiB" 0 '' short $kib "$program" partition "$folder/product.lua" --rules "$folder/rules.lua" -o "$folder/plan.txt"
  check "a product in $kib KiB" 0 'all outputs match' \
    short $kib "$program" run "$folder/product.lua" --rules "$folder/rules.lua" --verify --threads 1 --log warning
  also "why OpenBLAS is left out in $kib KiB" 'OpenBLAS needs 512 MiB of address space, but less is available (ulimit -v)'
done
# Limited, with room for the library and one or two products at a time.
for kib in 700000 900000; do
  check "products on threads in $kib KiB" 0 'all outputs match' \
    short $kib "$program" run "$folder/product.lua" --rules "$folder/rules.lua" --verify --threads 2 --log warning
done
check "a worker in 150000 KiB" 0 'isolated: process [0-9]' short 150000 "$program" backends -v --load "$build/accelerators/libtemplate.so" --isolate template
# The plain loops against the products of another backend, and against OpenBLAS's.
if "$program" backends | grep -q '^ *onednn '; then
  check "onednn against plain loops" 0 'all outputs match' short 300000 "$program" run "$folder/product.lua" --backend onednn --verify --log warning
  also "on onednn" '1 region, 0 nodes on cpu'
  also "the products of cpu" 'OpenBLAS needs'
fi

# What is packed is let go of the mapped file: the peak is about the weights, not twice as much. A model without weights to
# speak of tells what the program itself takes.
cat >"$folder/wide.lua" <<'LUA'
local x = g.input("x", "float32", { 8, 1024 })
for k = 1, 48 do
  x = g.Relu(g.MatMul(x, g.weight({ 1024, 1024 }, { name = "w" .. k })))
end
g.output("y", x)
LUA
number_of() {
  sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$out"
}
# measure FILE OPTION...: in MiB, the peak of a run without code, values, and weights as kernels read them.
measure() {
  "$program" run "$@" --threads 1 --warmup 0 --repeat 1 --json >"$out" 2>&1
  peak=$(($(number_of peak_rss_mb) - $(number_of code_rss_mb)))
  packed=$(($(number_of persistent) >> 20))
  values=$((($(number_of values) + $(number_of workspace) + $(number_of outputs)) >> 20))
}
# peak_of NAME FILE OPTION...: the same of the model as ONNX, with `alone`, the peak of a small one.
peak_of() {
  check "$1 as ONNX" 0 '' "$program" partition "$folder/$2.lua" --rules "$folder/rules.lua" -o "$folder/$2.onnx"
  file=$folder/$2.onnx
  shift 2
  measure "$folder/product.lua" "$@"
  alone=$peak
  measure "$file" "$@"
}
# at_most NAME MIB: the peak is at most 1.1 times that.
at_most() {
  if [ "$((peak - alone))" -le "$(($2 * 11 / 10))" ]; then
    pass
  else
    fail "$1: expected a peak of at most 1.1 times the $2 MiB that are needed, above the $alone of a small model, found $peak, in"
  fi
}
# bounded NAME FILE MIB: the peak is that of so many MiB of weights, or of the larger ones that kernels read, and of values.
bounded() {
  peak_of "$1" "$2" --backend onednn
  at_most "$1" "$(((packed > $3 ? packed : $3) + values))"
}
# stored NAME FILE MIB OPTION...: the peak is that of so many MiB of weights, however kernels read them, and of values.
stored() {
  peak_of "$1" "$2" "$4" "$5"
  at_most "$1" "$(($3 + values))"
}
# One large weight is packed, or copied, part by part. The lengths of names decide whether it lies at a multiple of four.
for name in w ww www; do
  cat >"$folder/large_$name.lua" <<LUA
local x = g.input("x", "float32", { 1, 4096 })
g.output("y", g.Gemm(x, g.weight({ 8192, 4096 }, { name = "$name" }), g.weight({ 8192 }), { transB = 1 }))
LUA
done
# Winograd's weights are larger than those of the file, of which nothing may stay in memory.
cat >"$folder/deep.lua" <<'LUA'
local x = g.input("x", "float32", { 1, 1024, 14, 14 })
g.output("y", g.Conv(x, g.weight({ 1024, 1024, 3, 3 }, { name = "w" }), { pads = { 1, 1, 1, 1 } }))
LUA
# In a model of many weights they are read as windows, which are no larger, and transformed as they are read.
cat >"$folder/deeper.lua" <<'LUA'
local x = g.input("x", "float32", { 1, 1024, 14, 14 })
for k = 1, 2 do
  x = g.Conv(x, g.weight({ 1024, 1024, 3, 3 }, { name = "w" .. k }), { pads = { 1, 1, 1, 1 } })
end
g.output("y", x)
LUA
# Vectors that are read to scale weights are let go before values take their memory.
cat >"$folder/scaled.lua" <<'LUA'
local x = g.input("x", "float32", { 1, 16384, 1, 1 })
local image = g.Reshape(x, g.constant({ 1, 64, 16, 16 }, "int64"))
local large = g.Resize(image, nil, g.constant({ 1, 1, 25, 25 }, "float32"), { mode = "nearest" })
for k = 1, 100 do
  local function vector(name)
    return g.weight({ 16384 }, { name = name .. k })
  end
  local w = g.weight({ 16384, 1, 1, 1 }, { name = "w" .. k })
  x = g.BatchNormalization(g.Conv(x, w, { group = 16384 }), vector "s", vector "b", vector "m", vector "v")
end
g.output("y", x)
g.output("z", g.ReduceMax(g.Relu(large), { axes = { 2, 3 } }))
LUA
cat >"$folder/scaled_rules.lua" <<'LUA'
return ruleset { name = "scaled", backend = "onednn",
  fuse "conv_bn" { pattern = op "Conv" >> op "BatchNormalization" },
  region "all" { ops = { "Conv", "BatchNormalization", "Reshape", "Resize", "Relu", "ReduceMax" } } }
LUA
if "$program" backends | grep -q '^ *onednn '; then
  bounded "weights of 192 MiB in 48 products" wide 192
  for name in w ww www; do
    bounded "a weight '$name' of 128 MiB" large_$name 128
  done
  bounded "weights of 36 MiB of a convolution" deep 36
  stored "weights of 72 MiB of convolutions" deeper 72 --backend onednn
  check "their numbers" 0 'all outputs match' "$program" run "$folder/deeper.onnx" --backend onednn --verify --threads 2 --warmup 0 --repeat 1
  stored "vectors of 31 MiB" scaled 31 --rules "$folder/scaled_rules.lua"
fi
finish

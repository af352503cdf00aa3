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
  also "on onednn" '1 regions, 0 nodes on cpu'
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
peak_of() {
  "$program" run "$1" --backend onednn --threads 1 --repeat 1 --json >"$out" 2>&1
  sed -n 's/.*"peak_rss_mb": *\([0-9]*\).*/\1/p' "$out"
}
if "$program" backends | grep -q '^ *onednn '; then
  check "a model of 201 MB as ONNX" 0 '' "$program" partition "$folder/wide.lua" --rules "$folder/rules.lua" -o "$folder/wide.onnx"
  alone=$(peak_of "$folder/product.lua")
  peak=$(peak_of "$folder/wide.onnx")
  if [ "$((${peak:-9999} - ${alone:-0}))" -le 221 ]; then
    pass
  else
    fail "weights of 201 MB: expected a peak of at most 221 MB above the $alone MB of a small model, found $peak, in"
  fi
fi
finish

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `--set tune=true` of rules/onednn.lua: what is measured once is said, kept with --cache, and computes the same bits
# afterwards; without it nothing is measured.
program=$1
source=$2
. "$source/tests/scripts/checks.sh"
"$program" backends | grep -q onednn || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
out=$folder/out
cat >"$folder/net.lua" <<'LUA'
local x = g.input("x", "float32", { 1, 3, 24, 24 })
local y = g.Relu(g.Conv(x, g.weight { 16, 3, 3, 3 }, { pads = { 1, 1, 1, 1 } }))
y = g.Conv(y, g.weight { 32, 16, 1, 1 }) + g.Conv(y, g.weight { 32, 4, 3, 3 }, { pads = { 1, 1, 1, 1 }, group = 4 })
g.output("y", g.MaxPool(g.Relu(y), { kernel_shape = { 2, 2 }, strides = { 2, 2 } }))
LUA
tuned() {
  "$program" run "$folder/net.lua" --rules onednn --set tune=true --cache "$folder/cache" --threads 2 --repeat 3 "$@"
}

check "a region is tuned" 0 "region 'everything_0': tuned for 2 threads: " tuned --verify --output "y=$folder/first.npy"
also "its results are right" 'all outputs match'
also "it was compiled" '0 of 1 program from'
grep 'tuned for' "$out" >"$folder/first"
check "a later process does not measure" 0 '1 of 1 program from' tuned --output "y=$folder/second.npy"
grep 'tuned for' "$out" >"$folder/second"
check "it says the same" 0 '' cmp "$folder/first" "$folder/second"
check "its results are the same to the bit" 0 '' cmp "$folder/first.npy" "$folder/second.npy"
check "JSON has the note" 0 'tuned for 2 threads' tuned --json
check "without it nothing is tuned" 0 'everything' "$program" run "$folder/net.lua" --rules onednn --repeat 1
cp "$out" "$folder/untuned"
check "and nothing says so" 1 '' grep -q tuned "$folder/untuned"
"$program" partition "$folder/net.lua" --rules onednn --set tune=true -o "$folder/plan.json" >"$out" 2>&1
check "plans say it" 0 'everything_0: tune = 1' "$program" plan show "$folder/plan.json"
finish

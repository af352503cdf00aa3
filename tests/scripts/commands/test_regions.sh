#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Regions as files, from outside: written, run as models, written again to the same bytes, refused with one line.
set -u
program=$1
build=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"

cat >tiny.lua <<'LUA'
-- y = Relu(x * w + b), z = Softmax(y)
local x = g.input("x", "float32", { options.open and "N" or 2, 40 })
local y = g.Relu(g.Add(g.MatMul(x, g.weight { 40, 30, name = "w" }), g.weight { 30, name = "b" }))
g.output("y", y)
g.output("z", g.Softmax(y * 2))
LUA
cat >rules.lua <<'LUA'
return ruleset {
  name = "tiny", backend = "cpu",
  fuse "product" { doc = "a product and its bias", pattern = op { "MatMul", as = "mm" } >> op { "Add" } },
  region "island" { doc = "all but the end", ops = { "MatMul", "Add", "Relu" } },
  region "end_of_it" { doc = "the end", ops = { "Softmax", "Mul" } },
}
LUA

check "regions are written" 0 "2 regions written to a" "$program" partition tiny.lua --rules rules.lua --regions a
check "a weight is beside its region" 0 "" test -s a/island_0.1.npy
check "a region runs on its own plan" 0 "1 fusion, 1 region, 0 nodes on cpu" "$program" run a/island_0.json --verify
check "what it computes is what cpu computes" 0 "all outputs match" "$program" run a/island_0.json --verify
check "another backend" 1 "backend 'npu' is unknown" "$program" run a/island_0.json --backend npu
check "a region is inspected" 0 "MatMul" "$program" inspect a/island_0.json
check "a region is verified" 0 "2 distinct fusions, regions and rewrites: 2 match" "$program" verify a/island_0.json
check "rules run over a region" 0 "1 fusion, 1 region, 0 nodes on cpu" "$program" partition a/island_0.json --rules rules.lua -o p.json
check "a plan goes with a region" 0 "1 fusion" "$program" run a/island_0.json --plan p.json
for region in a/*.json; do
  check "$region again" 0 "1 region written to again" "$program" partition "$region" --regions again
done
check "the same bytes" 0 "" diff -r a again

check "constants inline" 0 "2 regions" "$program" partition tiny.lua --rules rules.lua --regions inline --constants inline
check "no file beside" 1 "" test -e inline/island_0.1.npy
check "inline again" 0 "1 region written to inline2" "$program" partition inline/island_0.json --regions inline2 --constants inline
check "the same bytes inline" 0 "" cmp inline/island_0.json inline2/island_0.json
check "types alone" 0 "2 regions" "$program" partition tiny.lua --rules rules.lua --regions types --constants types
check "types run" 0 "1 fusion" "$program" run types/island_0.json --verify
check "constants are one of three" 2 "expected inline, files or types, found 'all'" \
  "$program" partition tiny.lua --rules rules.lua --regions b --constants all
check "open sizes" 0 "2 regions" "$program" partition tiny.lua --set open=true --shape 'N=?' --rules rules.lua --regions open
check "open sizes have names" 0 '"shape":\["N",40\]' cat open/island_0.json
check "open sizes again" 0 "1 region written to open2" "$program" partition open/island_0.json --shape 'N=?' --regions open2
check "open sizes are the same bytes" 0 "" cmp open/island_0.json open2/island_0.json
check "open sizes run when given" 0 "1 fusion" "$program" run open/island_0.json --shape x=3x40 --verify

sed 's/island_0.1.npy/..\/a\/island_0.1.npy/' a/island_0.json >a/outside.json
check "files elsewhere are not read" 1 "values\[1\]: file '../a/island_0.1.npy' is not beside the text" \
  "$program" inspect a/outside.json
sed 's/island_0.1.npy/nothing.npy/' a/island_0.json >a/missing.json
check "a file that is missing" 1 "nothing.npy" "$program" inspect a/missing.json
sed 's/\[40,30\]/[30,40]/' a/island_0.json >a/turned.json
check "a file of another type" 1 "file 'island_0.1.npy' is of another type" "$program" inspect a/turned.json
ln -s /etc/hostname a/link.npy
sed 's/island_0.1.npy/link.npy/' a/island_0.json >a/linked.json
check "a link that leads out" 1 "link.npy" "$program" inspect a/linked.json
check "a plan is no model" 1 "(a plan goes with its model) (--plan)" "$program" run p.json
sed 's/"opset":1[0-9]*/"opset":7/' a/island_0.json >a/old.json
check "another operator set" 1 "hash: the text says" "$program" inspect a/old.json
printf '{"format": "cleave-region",\n "version": 1,, }' >a/broken.json
check "broken text has its line" 1 "a/broken.json:2: not JSON" "$program" inspect a/broken.json
check "no folder to write to" 1 "cannot make this folder" "$program" partition tiny.lua --rules rules.lua --regions no/such/folder
check "json says where" 0 '"regions_folder"' "$program" partition tiny.lua --rules rules.lua --regions a --json

# What verify finds wrong is kept as a region, and is seen again in it.
wrong=$build/tests/accelerators/libwrong.so
echo 'local x = g.input("x", "float32", { 2, 3 }) g.output("y", g.Relu(x))' >relu.lua
echo 'return ruleset { name = "r", backend = "wrong", region "r" { doc = "d", ops = { "Relu" } } }' >wrong.lua
if [ -f "$wrong" ]; then
  check "verify keeps a region" 1 "saved: kept/r_0" "$program" verify relu.lua --load "$wrong" --rules wrong.lua --save kept
  check "it fails again" 1 "output 'Relu_0': 6 of 6 values differ" \
    "$program" run kept/r_0/region.json --load "$wrong" --input x=kept/r_0/input_0.pb --verify
  check "but not on cpu" 0 "all outputs match" "$program" run kept/r_0/region.json --backend cpu --verify
fi

finish

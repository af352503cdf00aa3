#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cleave why from outside: nodes, rules, the whole model, edits that hold when they are made, mistakes.
set -u
program=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"

cat >net.lua <<'LUA'
-- Two heads: conv >> relu >> pool is whole in the first, in the others an attribute or an operator differs.
local x = g.input("x", "float32", { 1, 8, 16, 16 })
local function head(name, group, act)
  local w = g.weight { 8, 8 // group, 3, 3, name = name .. ".w" }
  local c = g.Conv(x, w, { group = group, pads = { 1, 1, 1, 1 }, name = name .. ".conv" })
  local r = g[act](c, { name = name .. ".act" })
  return g.MaxPool(r, { kernel_shape = { 2, 2 }, name = name .. ".pool" })
end
g.output("a", head("a", 1, "Relu"))
g.output("b", head("b", 2, "Relu"))
g.output("c", head("c", 4, "Relu"))
g.output("d", head("d", 1, "Sigmoid"))
LUA
cat >rules.lua <<'LUA'
return ruleset {
  name = "net", backend = "cpu",
  fuse "trio" {
    pattern = op { "Conv", as = "conv", attrs = { group = 1 } }
      >> op { "Relu", as = "act" }
      >> op { "MaxPool", as = "pool" },
  },
  fuse "pair" { pattern = op "Relu" >> op "MaxPool", where = function() return false, "never today" end },
  region "rest" { ops = { "Conv", "MaxPool" }, min_nodes = 2 },
}
LUA

# expect NAME STATUS FILE COMMAND...: exit status and the whole output.
expect() {
  name=$1
  status=$2
  wanted=$3
  shift 3
  "$@" >out 2>&1
  found=$?
  if [ "$found" -ne "$status" ] || ! diff "$wanted" out >difference; then
    echo "$name: exit status $found (expected $status)"
    sed 's/^/    /' difference | head -n 40
    failed=$((failed + 1))
  else
    passed=$((passed + 1))
  fi
}

cat >wanted <<'TEXT'
fuse 'trio' (rules.lua:3): 1 fused out of 1 match, 3 near misses
  near misses:
    2 of 3 nodes at Conv 'b.conv'
      attribute group is 2, wanted 1
        rules.lua:4: conv
        try: attrs = { group = one_of { 1, 2 } }
    2 of 3 nodes at Conv 'c.conv'
      attribute group is 4, wanted 1
        rules.lua:4: conv
        try: attrs = { group = one_of { 1, 4 } }
    2 of 3 nodes at Sigmoid 'd.act'
      operator is Sigmoid, wanted Relu
        rules.lua:5: conv >> act
        try: op { { "Relu", "Sigmoid" }, as = "act" }
TEXT
expect "a rule's near misses" 0 wanted "$program" why net.lua --rules rules.lua --rule trio

# The edits hold: with them the rule matches four times.
sed -e 's/group = 1/group = one_of { 1, 2, 4 }/' -e 's/op { "Relu", as/op { { "Relu", "Sigmoid" }, as/' rules.lua >edited.lua
check "the edited rule" 0 "4 fused out of 4 matches" "$program" why net.lua --rules edited.lua --rule trio

cat >wanted <<'TEXT'
Relu 'b.act', number 4, float32[1, 8, 16, 16], on cpu by itself
  fuse 'pair' (rules.lua:8): matches, but refused by where
    never today
    the match: Relu 'b.act', MaxPool 'b.pool'
  region 'rest' (rules.lua:9): not taken by ops
    not in 'ops'
  fuse 'trio' (rules.lua:3): no match; 2 of 3 nodes from Conv 'b.conv'
    attribute group is 2, wanted 1
      at Conv 'b.conv'
      rules.lua:4: conv
      try: attrs = { group = one_of { 1, 2 } }
TEXT
expect "a node" 0 wanted "$program" why net.lua --rules rules.lua --node b.act
check "a node by number" 0 "Relu 'b.act', number 4" "$program" why net.lua --rules rules.lua --node '#4' --rule trio
check "a fused node" 0 "fused, Conv 'a.conv', Relu 'a.act', MaxPool 'a.pool'" "$program" why net.lua --rules rules.lua --node a.act
check "lost to another rule" 0 "matches, but lost to fuse 'trio'" "$program" why net.lua --rules rules.lua --node a.act --rule pair
check "nodes of an operator" 0 "and 3 more nodes" "$program" why net.lua --rules rules.lua --node op:Conv --limit 1
check "the whole model" 0 "^12 nodes: 3 in 1 fusion" "$program" why net.lua --rules rules.lua
check "refusals of a rule" 0 "refused by where x 2, first at Relu 'b.act' (Relu, MaxPool): never today" "$program" why net.lua --rules rules.lua --rule pair
check "losses of a rule" 0 "lost to fuse 'trio' (rules.lua:3) at Relu 'a.act' (Relu, MaxPool)" "$program" why net.lua --rules rules.lua --rule pair
check "an edit that would be refused" 0 "but that match would be refused by where: never today" "$program" why net.lua --rules rules.lua --rule pair
check "json" 0 '"edits_verified": true' "$program" why net.lua --rules rules.lua --json
check "an unknown rule" 1 "no rule is called 'tri' (did you mean 'trio'?)" "$program" why net.lua --rules rules.lua --rule tri
check "an unknown node" 1 "the model has no node 'b.actt' (did you mean 'b.act'?)" "$program" why net.lua --rules rules.lua --node b.actt
check "an unknown number" 1 "the model has no node '#99'" "$program" why net.lua --rules rules.lua --node '#99'
check "an unknown operator" 1 "the model has no operator 'Convv' (did you mean 'Conv'?)" "$program" why net.lua --rules rules.lua --node op:Convv
check "no rules" 2 "expected --rules FILE" "$program" why net.lua
check "help" 0 "usage: cleave why MODEL" "$program" why --help

# A model that comes with cleave, and a rule that nearly matches all over it.
cat >close.lua <<'LUA'
return ruleset {
  name = "close", backend = "cpu",
  fuse "block" {
    pattern = op { "Conv", as = "conv", attrs = { kernel_shape = { 1, 1 } } }
      >> op { "BatchNormalization", as = "bn", attrs = { epsilon = 0.001 } } >> op { "Relu", as = "act" },
  },
}
LUA
cat >wanted <<'TEXT'
fuse 'block' (close.lua:3): 0 fused out of 0 matches, 53 near misses
  near misses:
    2 of 3 nodes x 16, first at BatchNormalization 'layer1.1.conv1.bn'
TEXT
"$program" why "$source/examples/models/resnet50.lua" --rules close.lua --rule block >out 2>&1
head -n 3 out >first
if diff wanted first >difference && grep -q "try: attrs = { epsilon = one_of { 0.001, 1e-05 } }" out; then
  passed=$((passed + 1))
else
  echo "resnet50: "
  cat difference
  sed 's/^/    /' out | head -n 12
  failed=$((failed + 1))
fi

# Rewrites: the second nearly matches what the first made, whose constant is computed by then.
cat >steps.lua <<'LUA'
local x = g.input("x", "float32", { 2, 8 })
g.output("y", g.Exp(g.Mul(g.Mul(x, g.constant(2.0), { name = "one" }), g.constant(3.0), { name = "two" }), { name = "exp" }))
LUA
cat >steps_rules.lua <<'LUA'
return ruleset {
  name = "steps", backend = "cpu",
  rewrite "products" {
    pattern = op { "Mul", inputs = { op { "Mul", inputs = { any "x", constant "a" } }, constant "b" } },
    replace = function(m, g) return g.Mul(m.x, g.Mul(m.a, m.b)) end,
  },
  rewrite "powers" {
    pattern = op { "Mul", as = "product", inputs = { any "x", constant { value = 8 } } } >> op "Exp",
    replace = function(m, g) return g.Exp(m.x) end,
  },
}
LUA
cat >wanted <<'TEXT'
rewrite 'powers' (steps_rules.lua:7): 0 rewritten out of 0 matches, 1 near miss
  near misses:
    2 of 2 nodes at Mul 'two' (made by rewrite 'products')
      8 is 6, wanted 8 within 8e-05
        at a constant 'products/Mul'
        steps_rules.lua:8: product.inputs[2] > 8
        try: constant()
    2 of 2 nodes at Mul 'two', before other rules took it
      8 is 3, wanted 8 within 8e-05
        at a constant 'constant_1'
        steps_rules.lua:8: product.inputs[2] > 8
        try: constant()
    and 1 more kind (--limit)
TEXT
expect "a near miss on what a rewrite made" 0 wanted "$program" why steps.lua --rules steps_rules.lua --rule powers --limit 2
cat >wanted <<'TEXT'
Mul 'two' (made by rewrite 'products'), number 4, float32[2, 8], on cpu by itself
  rewrite 'products' (steps_rules.lua:3): made it
    in place of Mul 'one', Mul 'two'
  rewrite 'powers' (steps_rules.lua:7): no match; 2 of 2 nodes from Mul 'two' (made by rewrite 'products')
    8 is 6, wanted 8 within 8e-05
      at a constant 'products/Mul'
      steps_rules.lua:8: product.inputs[2] > 8
      try: constant()
TEXT
expect "a node that a rewrite made" 0 wanted "$program" why steps.lua --rules steps_rules.lua --node two
cat >wanted <<'TEXT'
Mul 'one', number 0, float32[2, 8], before the model was rewritten by rewrite 'products' (steps_rules.lua:3)
  rewrite 'products' (steps_rules.lua:3): took it
    out of Mul 'one', Mul 'two'
    made Mul 'two'
TEXT
expect "a node that a rewrite took" 0 wanted "$program" why steps.lua --rules steps_rules.lua --node one --rule products
check "a node by its number before" 0 "Mul 'two', number 1, .* before the model was rewritten" "$program" why steps.lua --rules steps_rules.lua --node '#1'
check "json of rewrites" 0 '"made_by": "products"' "$program" why steps.lua --rules steps_rules.lua --node two --json

# Diamonds: the edit that is told is made, and the rule matches. A chain of the same label, two parts for one
# node, and a group whose members have a value in common.
cat >diamond.lua <<'LUA'
local x = g.input("x", "float32", { 1, 8, 16, 16 })
local w = g.weight { 8, 8, 3, 3, name = "w" }
local c = g.Conv(x, w, { pads = { 1, 1, 1, 1 }, name = "conv" })
g.output("y", g.Mul(c, g.Sigmoid(c, { name = "sigmoid" }), { name = "mul" }))
LUA
cat >chain.lua <<'LUA'
return ruleset { name = "d", backend = "cpu", fuse "silu" { pattern = op "Conv" >> op "Sigmoid" >> op "Mul" } }
LUA
cat >wanted <<'TEXT'
3 nodes: 0 in 0 fusions, 0 in 0 regions, 3 on cpu one by one
  fuse 'silu' (chain.lua:1): 0 fused out of 0 matches, 1 near miss
near misses:
  fuse 'silu' (chain.lua:1)
    3 of 3 nodes at Mul 'mul'
      input 1 of Mul is Conv of the same match, wanted one that the pattern names
        chain.lua:1: Sigmoid >> Mul
        try: op { "Conv", as = "conv" } and op { "Mul", inputs = { any "conv" } }
TEXT
expect "a diamond" 0 wanted "$program" why diamond.lua --rules chain.lua
sed -e 's/op "Conv"/op { "Conv", as = "conv" }/' -e 's/op "Mul"/op { "Mul", inputs = { any "conv" } }/' chain.lua >edited.lua
check "the edit of a diamond" 0 "1 fused out of 1 match" "$program" why diamond.lua --rules edited.lua --rule silu
sed -e 's/op "Sigmoid" >> //' chain.lua >short.lua
check "an edit that would close a cycle" 0 "refused by cycle: would close a cycle through 'sigmoid'" "$program" why diamond.lua --rules short.lua --rule silu
cat >group.lua <<'LUA'
return ruleset { name = "d", backend = "cpu",
  fuse "pair" { pattern = group { op { "Conv", inputs = { any "z" } }, op { "Relu", inputs = { any "z" } } } } }
LUA
check "a group of values with one label" 0 "1 of 2 nodes at" "$program" why diamond.lua --rules group.lua --rule pair

# A label on two parts that cannot be one never matches: that is said when the file is loaded.
sed -e 's/op "Conv"/op { "Conv", as = "it" }/' -e 's/op "Mul"/op { "Mul", as = "it" }/' chain.lua >labels.lua
check "one label on two operators" 1 "labels.lua:1: .*label 'it' is on two parts that cannot be the same" "$program" why diamond.lua --rules labels.lua

# Refusals and losses are groups by reason and structure; the limit is for those, too.
cat >many.lua <<'LUA'
local x = g.input("x", "float32", { 2, 8 })
for k = 1, 4 do
  g.output("y" .. k, g.Exp(g.Relu(x, { name = "r" .. k }), { name = "e" .. k }))
  g.output("z" .. k, g.Sin(g.Relu(x, { name = "q" .. k }), { name = "s" .. k }))
end
LUA
cat >many_rules.lua <<'LUA'
return ruleset { name = "many", backend = "cpu",
  fuse "pair" { pattern = op "Relu" >> op { { "Exp", "Sin" } }, where = function(m) return false, "not '" .. m.nodes[1].name .. "'" end } }
LUA
cat >wanted <<'TEXT'
fuse 'pair' (many_rules.lua:2): 0 fused out of 8 matches, 8 refused
  refused by where x 4, first at Relu 'r1' (Relu, Exp): not 'r1'
  and 1 more kind of refusals (--limit)
TEXT
expect "refusals of one structure are one line" 0 wanted "$program" why many.lua --rules many_rules.lua --rule pair --limit 1

finish

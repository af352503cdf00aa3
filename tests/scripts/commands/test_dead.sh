#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Nodes that no output needs: they go before anything else, and stay with --keep-dead, to be looked at.
set -u
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"

cat >net.lua <<'LUA'
local x = g.input("x", "float32", { 2, 3 })
local live = g.Relu(x, { name = "live" })
g.Tanh(g.Sigmoid(live, { name = "half" }), { name = "dead" })
g.output("y", g.Exp(live))
LUA
cat >rules.lua <<'LUA'
return ruleset { name = "r", backend = "cpu",
  rewrite "tanh" {
    pattern = op { "Tanh", as = "t" },
    replace = function(m, g) return g.Erf(m.t.inputs[1]) end,
  },
  region "all" { ops = { "Relu", "Exp", "Tanh", "Sigmoid" } },
}
LUA

check "dead nodes go" 0 ' 2 nodes after folding, 2 removed that no output needs (--keep-dead shows)$' "$program" inspect net.lua
check "they are counted in JSON" 0 '"dead_removed": 2' "$program" inspect net.lua --json
also "none is left" '"dead_list": \[\]'
check "they stay" 0 ' 4 nodes after folding, 2 of them needed by no output$' "$program" inspect net.lua --keep-dead
also "the first of them" '^  %half = Sigmoid(%live)'
also "and the other" '^  %dead = Tanh(%half)'
check "they stay in JSON" 0 '"dead_removed": 0' "$program" inspect net.lua --json --keep-dead
also "with what they are" '"%dead = Tanh(%half) : float32\[2, 3\]"'
check "rules do not see them" 0 '1 region, 0 fusions, 0 nodes on cpu$' "$program" partition net.lua --rules rules.lua
check "rules see them" 0 '^4 nodes: .* 1 node on cpu one by one' "$program" partition net.lua --rules rules.lua --keep-dead -o kept.json
also "no backend is asked about what nothing reads" '^  dead: cpu: nothing reads what it makes$\|^  dead: nothing reads what it makes$'
check "a rewrite leaves them alone" 0 "rewrite 'tanh' (rules.lua:2): matches, but refused" \
  "$program" why net.lua --rules rules.lua --keep-dead --node dead
check "they run" 0 '^all outputs match' "$program" run net.lua --rules rules.lua --keep-dead --repeat 1 --verify
check "a plan with them" 0 'then median' "$program" run net.lua --plan kept.json --keep-dead --repeat 1
check "is of another model without them" 1 'the plan is of another model: it has 2 nodes, the plan 4' "$program" run net.lua --plan kept.json
check "they match on their own" 0 ' 0 do not' "$program" verify net.lua --rules rules.lua --keep-dead

finish

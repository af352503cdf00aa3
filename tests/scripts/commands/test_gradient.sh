#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `cleave gradient`: what it makes, files, second derivatives, rules of the user, and its errors.
set -u
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"

cat >net.lua <<'LUA'
local x = g.input("x", "float32", { "N", 3 })
local ids = g.input("ids", "int64", { "N" })
local h = g.Tanh(g.Gemm(x, g.ones { 2, 3, name = "w" }, g.zeros { 2, name = "b" }, { transB = 1 }))
g.output("loss", g.ReduceSum(h * h, { keepdims = 0 }))
g.output("steps", g.ReduceSum(g.Floor(x) + g.Cast(g.Gather(g.ones { 4, 1 }, ids), { to = "float32" })))
local corner = g.constant({ { 0, 0, 0, 2, 2 } }, "float32")
local d = g.MaxRoiPool(g.Reshape(x * x, { 1, 1, -1, 3 }), corner, { pooled_shape = { 1, 1 }, name = "roi" })
g.output("log", g.ReduceMean(g.Log(d, { name = "logarithm" }), { keepdims = 0, name = "mean" }))
LUA

check "all weights" 0 '^  grad(w)  float32\[2, 3\]$' "$program" gradient net.lua --loss loss -o weights.onnx
also "in their order" '^2 gradients of .loss.; nodes:'
also "and the file" '^written to weights.onnx$'
check "the file runs" 0 '' "$program" run weights.onnx --shape N=3 --repeat 1
check "inputs and values between" 0 '"name": "grad(x)"' "$program" gradient net.lua --loss loss --wrt x,Tanh_0 --wrt b --json
also "a value between" '"name": "grad(Tanh_0)"'
also "its type" '"type": "float32\[N, 2\]"'
check "sizes may be given" 0 '^  grad(x)  float32\[6, 3\]$' "$program" gradient net.lua --loss loss --wrt x --shape N=6

cat >chain.lua <<'LUA'
local h = g.input("x", "float32", { 64, 256 })
for _ = 1, 12 do h = g.Tanh(g.Sigmoid(g.Exp(-h * h))) end
g.output("loss", g.ReduceSum(h, { keepdims = 0 }))
LUA
check "forward values are computed again" 0 '^computed again: [1-9][0-9]* nodes, .* FLOPs; kept for backward: .*, before .*; values need .*, before ' \
  "$program" gradient chain.lua --loss loss --wrt x --recompute 0.5 -o again.onnx
check "in JSON" 0 '"nodes": [1-9]' "$program" gradient chain.lua --loss loss --wrt x --recompute 0.5 --json
also "the memory" '"peak_bytes'
check "all are kept" 0 '' "$program" gradient chain.lua --loss loss --wrt x -o kept.onnx
check "a run saves what it computed" 0 '' "$program" run kept.onnx --repeat 1 --save saved
check "to the bit" 0 'all outputs match' "$program" run again.onnx --data saved --rtol 0 --atol 0 --repeat 1
check "too small a share" 1 'a share of 0.0001 is too small, the least that was found is' \
  "$program" gradient chain.lua --loss loss --wrt x --recompute 0.0001
check "no share" 1 'expected a share of more than 0 and less than 1, found 7' "$program" gradient chain.lua --loss loss --wrt x --recompute 7

check "weights as inputs" 0 '' "$program" gradient net.lua --loss loss --open -o open.onnx
check "in the order of the gradients" 0 '^  input 2  *w  *float32\[2, 3\]$' "$program" inspect open.onnx
also "the next one" '^  input 3  *b  *float32\[2\]$'

cat >steps.lua <<'LUA'
local x = g.input("x", "float32", { "T", 1, 3 })
local y = g.GRU(x, g.weight { 1, 6, 3, name = "w" }, g.Transpose(g.weight { 1, 2, 6, name = "r" }, { perm = { 0, 2, 1 } }),
  { hidden_size = 2, outputs = 1 })
g.output("y", y)
LUA
check "recurrent layers need a number of steps" 1 'the gradient needs the number of steps, which is open' \
  "$program" gradient steps.lua --loss y
check "which may be given" 0 '^  grad(w)  float32\[1, 6, 3\]$' "$program" gradient steps.lua --loss y --shape T=4
also "constants stay those of the file" '^  grad(r)  float32\[1, 2, 6\]$'

cat >square.lua <<'LUA'
local x = g.input("x", "float64", { 3 })
g.output("y", x * x * x)
LUA
check "the first derivative" 0 '^  grad(x)  float64\[3\]' "$program" gradient square.lua --loss y --wrt x -o first.onnx
check "is differentiated again" 0 '^  grad(x)  float64\[3\]' "$program" gradient first.onnx --loss 'grad(x)' --wrt x -o second.onnx
check "and once more" 0 '^  grad(x)  float64\[3\]' "$program" gradient second.onnx --loss 'grad(x)' --wrt x -o third.onnx

check "no gradient: the way to the loss" 1 "no gradient for MaxRoiPool 'roi'; the loss depends on it through MaxRoiPool 'roi' -> Log 'logarithm' -> ReduceMean 'mean'" \
  "$program" gradient net.lua --loss log --wrt x
check "steps carry none" 1 "wrt 'x': the loss 'steps' does not depend on it, or not through floating-point values" \
  "$program" gradient net.lua --loss steps --wrt x
check "a name that is not there" 1 "loss 'losss': the model has no value of this name (did you mean 'loss'?)" \
  "$program" gradient net.lua --loss losss
check "integers" 1 "wrt 'ids': expected floating-point numbers, found int64" "$program" gradient net.lua --loss loss --wrt ids
check "given twice" 1 "wrt 'w' is given twice" "$program" gradient net.lua --loss loss --wrt w,w
check "nothing to differentiate by" 1 "loss 'y': it depends on no floating-point constant" "$program" gradient square.lua --loss y
check "no loss" 2 'expected --loss NAME' "$program" gradient net.lua
check "another file" 2 "expected a file.onnx, found 'out.txt'" "$program" gradient net.lua --loss loss -o out.txt

# ONNX's own operator: by values that it names, at other places, and of another one's result.
cat >own.lua <<'LUA'
local a, b = g.input("a", "float32", { 5 }), g.input("b", "float32", { 5 })
g.Mul(g.Mul(a, a, { name = "square" }), b, { name = "y" })
local da, db = g.Gradient(a, b, { xs = { "a", "b" }, y = "y", outputs = 2, name = "first" })
g.output("da", da)
g.output("db", db)
g.output("swapped", g.Gradient(b, a, { xs = { "a" }, zs = { "b" }, y = "y", outputs = 1 }))
g.output("second", g.Gradient(a, { xs = { "a" }, y = "first", outputs = 1 }))
LUA
cat >closed.lua <<'LUA'
local a, b = g.input("a", "float32", { 5 }), g.input("b", "float32", { 5 })
g.output("da", a * b * 2)
g.output("db", a * a)
g.output("swapped", a * b * 2)
g.output("second", b * 2)
LUA
check "Gradient" 0 '' "$program" run own.lua --repeat 1 --save own
check "and what it means" 0 '' "$program" run closed.lua --repeat 1 --save closed
for k in 0 1 2 3; do
  if cmp -s own/output_$k.pb closed/output_$k.pb; then pass; else fail "output $k of Gradient"; fi
done
sed 's/y = "first"/y = "frst"/' own.lua >unknown.lua
check "a name that is no value" 1 "y: 'frst' is no value of the graph" "$program" inspect unknown.lua
sed 's/zs = { "b" }/zs = { "a" }/' own.lua >twice.lua
check "a name twice" 1 "zs: 'a' is named twice" "$program" inspect twice.lua
sed 's/xs = { "a" }, y = "first"/xs = { "b" }, y = "square"/' own.lua >far.lua
check "no way to y" 1 "y: 'square' depends on none of the values that xs and zs name" "$program" inspect far.lua

# Rules of the user: one that is missing, one in the place of cleave's, and mistakes.
cat >mine.lua <<'LUA'
return ruleset { name = "mine",
  gradient "MaxRoiPool" { function(g, node, dy) return dy * node.inputs[1], false end },
  gradient "Tanh" { function(_, _, dy) return dy * 7 end },
}
LUA
check "an operator more" 0 '^  grad(x)  float32\[N, 3\]' "$program" gradient net.lua --loss log --wrt x --rules mine.lua
check "another rule" 0 '' "$program" gradient net.lua --loss loss --wrt x --rules mine.lua -o mine.onnx
check "is the one that is taken" 0 "grad(Tanh_0)/Mul = Mul" "$program" inspect mine.onnx --nodes
cat >wrong.lua <<'LUA'
return ruleset { name = "wrong",
  gradient "Tanh" { function(g, _, dy) return g.ReduceSum(dy) end },
}
LUA
check "another shape" 1 "wrong.lua:2: gradient 'Tanh' of node 'Tanh_0': input 'input': value 'Gemm_0' is float32\[N, 2\]" \
  "$program" gradient net.lua --loss loss --rules wrong.lua
rule() {
  echo "return ruleset { name = 'r'," "$1" "}" >rule.lua
  "$program" gradient net.lua --loss loss --rules rule.lua
}
check "nothing is said about an input" 1 "rule.lua:1: no gradient for input 'input' of Tanh 'Tanh_0'; the loss depends on it through" \
  rule 'gradient "Tanh" { function(g, node, dy) return nil end }'
check "an error in a rule" 1 "rule.lua:1: gradient 'Tanh': .*has no input 'y'" \
  rule 'gradient "Tanh" { function(g, node, dy) return node.inputs.y end }'
check "an unknown operator" 1 "operator 'Tahn' is unknown (did you mean 'Tan'?)" rule 'gradient "Tahn" { false }'
check "no function" 1 "expected one function(g, node, dy), or false for an operator without a gradient, found 3" \
  rule 'gradient "Tanh" { 3 }'
check "too few parameters" 1 'the function has 1 parameter, expected (g, node, dy)' rule 'gradient "Tanh" { function(g) end }'
check "two rules for one operator" 1 "gradient 'Tanh' is defined twice" rule 'gradient "Tanh" { false }, gradient "Tanh" { false }'
check "other results than values" 1 "result 1 is a number, expected the gradient of input 1" \
  rule 'gradient "Tanh" { function(g, node, dy) return 1 end }'

cat >two.lua <<'LUA'
return ruleset { name = "two",
  gradient "Exp" { function(_, node, dy) return dy * node.outputs[1] end },
  gradient "Sinh" { function(g, node, dy) return dy * g.Sinh(node.inputs[1]) end },
  gradient "Cosh" { function(g, node, dy) return dy * g.Sinh(node.inputs[1]) end },
  test "right" { graph = function(g, x) return g.Exp(x) end, gradient = 2 },
  test "wrong" { graph = function(g, x) return g.Sinh(x) end, gradient = true },
}
LUA
check "a wrong gradient fails its test" 1 "gradient: of 'x', element 0: expected .* (finite differences), found" \
  "$program" check two.lua --verbose
also "a right one passes" '^1 passed, 1 failed'
also "one without a test" "note: gradient 'Cosh': no test with gradient = true has the operator \[untested\]"
check "gradients are listed" 0 'gradient  *Exp' "$program" rules two.lua
check "and no rules of a plan" 0 '0 regions, 0 fusions' "$program" partition square.lua --rules two.lua
check "why says which rule is in force" 0 "^gradient 'Sinh' (two.lua:3): its rule for 'cleave gradient' and training, in the place of lua/cleave/gradients/.*:[0-9]" \
  "$program" why square.lua --rules two.lua --rule Sinh
also "and for how many nodes" '^  0 nodes of the model$'
check "why of a node has its gradient" 0 "^  gradient 'Mul' (lua/cleave/gradients/.*:[0-9]*): its rule for" \
  "$program" why square.lua --rules two.lua --node op:Mul
check "the same for programs" 0 '"replaced": "lua/cleave/gradients/.*"' "$program" why square.lua --rules two.lua --rule Exp --json
check "backends without gradients of their own" 0 '^  - *cpu *- *by rules: it has no gradients of its own$' \
  "$program" gradient net.lua --loss loss --rules two.lua --rules pointwise
check "the same as JSON" 0 '"by_rules_because": "it has no gradients of its own"' \
  "$program" gradient net.lua --loss loss --rules pointwise --json
finish

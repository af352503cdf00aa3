#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Exported models bring their plan: regions, fusions, names and attributes come back in every opset, also after rewrites, and
# run with no rule file there.
set -u
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"

# Two branches whose nodes take turns, so that a file with one region after the other has another order than the graph.
cat >model.lua <<'LUA'
local x = g.input("x", "float32", { options.open and "N" or 2, 4 })
local w = g.weight { 4, 4, name = "w" }
local a, b = g.MatMul(x, w, { name = "left" }), g.Exp(x, { name = "right" })
for k = 1, 3 do
  a, b = g.Gelu(a, { name = "gelu" .. k }), g.Swish(b, { alpha = 1.75 })
  a, b = g.Add(a, w.shape[1] * 0.5), g.RMSNormalization(b, g.weight { 4 }, { epsilon = 0.125 })
end
local first, second, last = g.Split(a, { axis = 1, num_outputs = 3 })
g.output("y", g.Softmax(g.Reshape(g.Concat(first, second, last, { axis = 1 }), { -1, 4 })))
g.output("z", g.Relu(b))
g.output("again", g.Relu(b))
LUA
cat >rules.lua <<'LUA'
return ruleset {
  name = "pair", backend = "cpu",
  rewrite "reluify" { doc = "another spelling", pattern = op { "Relu", as = "relu", inputs = { X = any "x" } },
    replace = function(m, g) return g.Max(m.x, 0.0) end },
  fuse "gelu_add" { doc = "a pair", pattern = op { "Gelu" } >> op { "Add" }, attributes = { tile = 8, mode = "fast" } },
  region "left" { doc = "one branch", ops = { "MatMul", "Gelu", "Add" },
    review = function(sub) return true, { order = { "row", "column" }, depth = #sub.nodes } end },
  region "right" { doc = "the other", ops = { "Exp", "Swish", "RMSNormalization" } },
}
LUA

check "saves the plan" 0 'gelu_add .* 3 ' "$program" partition model.lua --rules rules.lua -o plan.json
check "the plan has attributes" 0 '"order"' cat plan.json
for opset in 13 17 22 24; do
  check "exports in opset $opset" 0 'written to' "$program" partition model.lua --rules rules.lua -o model.onnx --opset $opset
  check "brings the plan in opset $opset" 0 'the plans are the same' "$program" plan diff plan.json model.onnx
  check "plans it with no rules in opset $opset" 0 'written to' "$program" partition model.onnx -o back.json
  check "the plan comes back in opset $opset" 0 'the plans are the same' "$program" plan diff plan.json back.json
  check "with the attributes in opset $opset" 0 'tile' cat back.json
  check "runs it in opset $opset" 0 'all outputs match' "$program" run model.onnx --verify --repeat 1
  check "in its regions in opset $opset" 0 'left .*region on cpu .* 1 ' "$program" run model.onnx --repeat 1
  check "exports it again in opset $opset" 0 'written to' "$program" partition model.onnx -o twice.onnx
  check "with the same plan in opset $opset" 0 'the plans are the same' "$program" plan diff plan.json twice.onnx
done
check "takes other rules all the same" 0 'nodes on cpu one by one' "$program" run model.onnx --backend cpu --repeat 1
check "exports open sizes" 0 'written to' "$program" partition model.lua --set open=true --rules rules.lua -o open.onnx
check "and runs them" 0 'left .*region on cpu' "$program" run open.onnx --repeat 1
finish

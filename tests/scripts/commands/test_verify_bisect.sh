#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cleave verify, bisect and backends from outside, with libraries that compute wrongly, fail, or do not start.
set -u
program=$1
libraries=$3/tests/accelerators
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"

cat >net.lua <<'LUA'
local x = g.input("x", "float32", { 2, 3 })
g.output("y", g.Relu(g.Sigmoid(g.Relu(x, { name = "first" })), { name = "second" }))
LUA
for name in wrong good fails; do
  cat >$name.lua <<LUA
return ruleset { name = "r", backend = "$name", region "relus" { ops = { "Relu" } } }
LUA
done
cat >off.lua <<'LUA'
return ruleset { name = "r", backend = "cpu",
  rewrite "off" {
    pattern = op { "Sigmoid", as = "s", inputs = { any "x" } },
    replace = function(m, g) return g.HardSigmoid(m.x) end,
  },
}
LUA

# Weights that a rule rounds to integers are off by its rounding, and no more.
cat >layers.lua <<'LUA'
local x = g.input("x", "float32", { 4, 64 })
local y = g.Relu(g.MatMul(x, g.weight { 64, 96 }, { name = "up" }))
g.output("y", g.Gemm(y, g.weight { 40, 96 }, nil, { transB = 1, name = "down" }))
LUA
cat >halved.lua <<'LUA'
return ruleset { name = "r", backend = "cpu",
  rewrite "halved" {
    pattern = op { "MatMul", as = "product", inputs = { any "x", constant { as = "w" } } },
    replace = function(m, g)
      local scale, zero = g.constant(0.01, "float32"), g.constant(0, "int8")
      return g.MatMul(m.x, g.DequantizeLinear(g.QuantizeLinear(m.w * 0.5, scale, zero), scale, zero))
    end,
  },
}
LUA
for weights in int8 int4; do
  check "weights as $weights match" 0 ': 2 match, 0 do not' "$program" verify layers.lua --rules "$2/rules/weights.lua" --set weights=$weights
  check "with zero points, too" 0 ': 2 match, 0 do not' "$program" verify layers.lua --rules "$2/rules/weights.lua" \
    --set weights=$weights --set zero_points=true
done
check "other weights do not" 1 "halved.lua:2: rewrite 'halved'" "$program" verify layers.lua --rules halved.lua
check "a tolerance that is asked for counts" 1 ': 0 match, 2 do not' "$program" verify layers.lua --rules "$2/rules/weights.lua" \
  --set weights=int4 --rtol 1e-5 --atol 1e-5

wrong="--load $libraries/libwrong.so --rules wrong.lua"
good="--load $libraries/libgood.so --rules good.lua"
fails="--load $libraries/libfails.so --rules fails.lua"
# shellcheck disable=SC2086
{
  check "right values match" 0 '^1 distinct .*: 1 match, 0 do not, 0 skipped' "$program" verify net.lua $good
  check "each of them" 0 '^2 distinct .*: 2 match' "$program" verify net.lua $good --each
  check "wrong values are named" 1 "wrong.lua:1: region 'relus' at 'first', the model's values: output" \
    "$program" verify net.lua $wrong --save kept
  check "the library's words" 1 'fails: the device is too hot' "$program" verify net.lua $fails
  check "what failed runs again" 0 'all outputs match against kept/relus_0' \
    "$program" run kept/relus_0/region.onnx --data kept/relus_0
  check "a failing rewrite is kept" 1 'saved: taken/off_0$' "$program" verify net.lua --rules off.lua --save taken
  check "what it took runs again" 0 'all outputs match against taken/off_0' "$program" run taken/off_0/before.onnx --data taken/off_0
  check "what took its place does not match" 1 'differ against taken/off_0' "$program" run taken/off_0/after.onnx --data taken/off_0
  check "nothing more than that" 0 ' 1 node after folding' "$program" inspect taken/off_0/after.onnx
  check "quarantine" 0 "quarantined: wrong.lua:1: 'relus'" "$program" verify net.lua $wrong --quarantine
  check "verify as JSON" 1 '"verdict": "DIFFERS"' "$program" verify net.lua $wrong --json
  check "verify needs rules" 2 'expected --rules FILE' "$program" verify net.lua
  check "nothing is broken" 0 '^nothing is broken' "$program" bisect net.lua $good
  check "the culprit" 1 '^1 of 2 applications breaks the values, by wrong.lua:1 region .relus.: alone it makes' "$program" bisect net.lua $wrong --threshold 0.1
  check "nothing is slow" 0 '^no application of a rule makes the model slower' "$program" bisect net.lua $good --metric ms --threshold 1000
  check "a rewrite is named with its line" 1 '^1 of 1 application breaks the values, by off.lua:2 rewrite .off.: alone it' \
    "$program" bisect net.lua --rules off.lua
  check "in JSON, too" 1 '"file": "off.lua"' "$program" bisect net.lua --rules off.lua --json
  also "with the line" '"line": 2'
  check "threads are those that may be used" 0 'threads (default: one per usable processor)' "$program" bisect --help
  check "bisect as JSON" 1 '"complete": true' "$program" bisect net.lua $wrong --json
  check "an unknown metric" 2 "expected max_abs or ms, found 'kg'" "$program" bisect net.lua $good --metric kg
  check "a library by another name" 0 '^  second ' "$program" backends --load "second=$libraries/libgood.so"
  check "a name that is taken" 1 "a backend called 'cpu' exists already" "$program" backends --load "cpu=$libraries/libgood.so"
  check "no library" 1 'expected an ELF file' "$program" backends --load net.lua
  check "backends in folders" 0 'not usable.*no device in slot 3' env CLEAVE_BACKEND_PATH="$libraries" "$program" backends
  check "backends as JSON" 0 '"usable": true' "$program" backends --json
}

finish

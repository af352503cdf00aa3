#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sizes that a model leaves open, from outside: every command takes them for the same, says so in one line, and
# nothing that is not known is taken for a number. And inputs of ONNX files: defaults, declared shapes, opsets.
set -u
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"

cat >open.lua <<'LUA'
-- 2 * 1000 * 1000 * N operations
local x = g.input("x", "float32", { "N", 1000 })
g.output("y", g.Relu(g.MatMul(x, g.weight { 1000, 1000, name = "w" })))
LUA
cat >big.lua <<'LUA'
return ruleset { name = "big", backend = "cpu",
  region "big" { ops = { "MatMul", "Relu" }, min_flops = 1e6 },
}
LUA
sed 's/1e6/3e6/' big.lua >bigger.lua

# One policy for every command.
taken='sizes: N = 1 taken; --shape N=SIZE sets it, N=? leaves it open'
check "partition" 0 "$taken" "$program" partition open.lua --rules big.lua -o plan.json
also "partition makes a region" '2 nodes: 0 fusions, 1 region, 0 nodes on cpu one by one'
check "partition prints" 0 "$taken" "$program" partition open.lua --rules big.lua
check "run" 0 "$taken" "$program" run open.lua --rules big.lua --repeat 1
also "run makes the same" '2 nodes: 0 fusions, 1 region, 0 nodes on cpu one by one'
check "run of the plan" 0 'sizes: N = 1 by the plan' "$program" run open.lua --plan plan.json --repeat 1
also "the plan is the same" '2 nodes: 0 fusions, 1 region, 0 nodes on cpu one by one'
check "why" 0 "$taken" "$program" why open.lua --rules big.lua --node op:Relu
check "inspect" 0 "$taken" "$program" inspect open.lua
also "inspect counts" '2.00 M FLOPs'
check "verify" 0 "$taken" "$program" verify open.lua --rules big.lua
check "bisect" 0 "$taken" "$program" bisect open.lua --rules big.lua
check "check" 0 "$taken" "$program" check big.lua --model open.lua
echo 'print(g.inputs[1].shape[1], g.nodes[1].flops)' >typed
check "repl" 0 "$taken" sh -c "'$program' repl open.lua <typed"
also "repl sees the size" '2000000'
check "check knows no size of another name" 1 "no model given has an input or an open size of the name in 'M=3'" \
  "$program" check big.lua --model open.lua --shape M=3
check "a size that nobody has" 1 "the model has no input or open size 'M'.*; its open sizes: N" \
  "$program" inspect open.lua --shape M=3
check "a size that nobody has, with rules" 1 "the model has no input or open size 'M'" \
  "$program" partition open.lua --rules big.lua --shape M=3
check "a size that is none" 1 "expected a size, or ? to leave it open, found 'N=many'" "$program" inspect open.lua --shape N=many
for command in "partition open.lua --rules big.lua -o x.json" "run open.lua --rules big.lua --repeat 1" "inspect open.lua" \
  "why open.lua --rules big.lua" "verify open.lua --rules big.lua" "bisect open.lua --rules big.lua" \
  "check big.lua --model open.lua"; do
  check "JSON of $command" 0 '"from": "given"' "$program" $command --json --shape N=2
done

# By name, by input, and left open.
check "by the name of the size" 0 'sizes: N = 2 given$' "$program" partition open.lua --rules bigger.lua --shape N=2 -o x.json
also "the size counts" '1 region'
check "by the input" 0 'sizes: N = 2 given$' "$program" run open.lua --shape x=2x1000 --repeat 1
check "too small" 0 '0 regions' "$program" partition open.lua --rules bigger.lua -o x.json
check "left open" 0 'sizes: N = ? left open$' "$program" partition open.lua --rules big.lua --shape 'N=?'
also "what is not known is refused with the reason" \
  "FLOPs are not known, size N of '.*' is open (--shape N=SIZE gives it): min_flops is 1e+06"
check "left open by the input" 0 'sizes: N = ? left open$' "$program" inspect open.lua --shape 'x=?x1000'
check "a run needs sizes" 1 "dimension 0 is left open: a run needs its size" "$program" run open.lua --shape 'N=?'

# What --shape and a tensor say must be the same.
npy() {
  { printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($2), }"; cat; } >"$1"
}
head -c 8000 /dev/zero | npy two.npy '2,1000'
check "a tensor of the size" 0 'sizes: N = 2 by an input$' "$program" run open.lua --shape N=2 --input x=two.npy --repeat 1
check "a tensor of another size" 1 "--shape: N is 3, but dimension 0 (N) of input 'x' is 2$" \
  "$program" run open.lua --shape N=3 --input x=two.npy
check "a tensor of another shape" 1 "--shape x=3x1000: the tensor for input 'x' is \[2, 1000\]$" \
  "$program" run open.lua --shape x=3x1000 --input x=two.npy
check "two sizes" 1 "--shape: N is 3, but dimension 0 (N) of input 'x' is 2$" "$program" inspect open.lua --shape N=3 --shape x=2x1000
check "an input that is given twice" 1 "--input: 'x' is given twice" "$program" run open.lua --input x=two.npy --input x=two.npy

# A name that is an expression of other sizes has their value if nothing else tells it.
cat >past.lua <<'LUA'
local mask, keys = g.input("mask", "float32", { "B", "past + 1" }), g.input("keys", "float32", { "B", "past" })
g.output("y", g.Concat(mask, keys, { axis = 1 }))
LUA
check "a size by its name" 0 'past + 1 = 5 by its name, past = 4 given' "$program" inspect past.lua --shape past=4
also "the input has it" 'float32\[1, 5\]'
check "a size that is given goes before its name" 0 'past + 1 = 9, past = 4 given' \
  "$program" inspect past.lua --shape past=4 --shape 'past + 1=9'
check "a size by the name of one that is open" 0 'past + 1 = ?, past = ? left open' "$program" inspect past.lua --shape 'past=?'
check "a size by the name of one that is taken" 0 'B = 1 taken, past + 1 = 2 by its name, past = 1 taken' "$program" inspect past.lua

# A model that cannot have the sizes that are taken.
cat >five.lua <<'LUA'
local x = g.input("x", "float32", { "N" })
local values = g.TopK(x, g.constant { 5 })
g.output("y", values)
LUA
check "a size that was taken does not fit" 1 'cannot take 5 of axis 0 (sizes: N = 1 taken; --shape N=SIZE sets it' \
  "$program" run five.lua
check "then it is left open" 0 'sizes: N = ? left open' "$program" inspect five.lua
also "with the reason" 'left open, because: .*cannot take 5 of axis 0 (sizes: N = 1 taken'
check "a size that was given does not fit" 1 'cannot take 5 of axis 0 (sizes: N = 3 given)' "$program" inspect five.lua --shape N=3
check "one that fits" 0 'float32\[7\]' "$program" inspect five.lua --shape N=7

# Slices end where the axis does, whatever their end.
cat >slice.lua <<'LUA'
local a, b = g.input("a", "float32", { "S" }), g.input("b", "float32", { "T" })
g.output("y", g.Relu(g.Slice(a, g.constant { 0 }, g.Shape(b))))
g.output("z", g.Relu(g.Slice(a, g.constant { 0 }, g.constant { 1 })))
LUA
check "an end behind the axis" 0 'output 0 .*float32\[3\]' "$program" inspect slice.lua --shape S=3 --shape T=5
check "an end within it" 0 'output 0 .*float32\[2\]' "$program" inspect slice.lua --shape S=3 --shape T=2
check "the first of none" 0 'output 1 .*float32\[0\]' "$program" inspect slice.lua --shape S=0 --shape T=2
check "a run of none" 0 'all outputs match' "$program" run slice.lua --shape S=0 --shape T=2 --repeat 1 --verify

# In Lua what is not known is nil, or the name of the size, and errors say which.
rule() {
  printf 'return ruleset { name = "r", backend = "cpu", fuse "f" { pattern = op { "Relu", as = "m" }, where = function(m) return %s end } }\n' "$1" >where.lua
}
rule 'm.m.flops == nil'
check "FLOPs are nil" 0 '1 fusion' "$program" partition open.lua --rules where.lua --shape 'N=?' -o x.json
rule 'm.m.flops > 5'
check "FLOPs that are compared" 1 "where.lua:1: .*attempt to compare .*; flops is nil: size N of '.*' is open (--shape N=SIZE gives it)" \
  "$program" partition open.lua --rules where.lua --shape 'N=?'
check "FLOPs that are known" 0 '1 fusion' "$program" partition open.lua --rules where.lua -o x.json
rule 'm.m.shape[1] % 16 == 0'
check "arithmetic on an open size" 1 \
  "attempt to mod a 'string' with a 'number'; size N of '.*' is open (--shape N=SIZE gives it); type(size) == 'number' tests for it" \
  "$program" partition open.lua --rules where.lua --shape 'N=?'
check "arithmetic on its size" 0 '0 fusions' "$program" partition open.lua --rules where.lua -o x.json
rule '("text") % 16 == 0'
check "other mistakes are not about sizes" 1 "attempt to mod a 'string' with a 'number'; at Relu 'Relu_0'$" \
  "$program" partition open.lua --rules where.lua --shape 'N=?'
sed 's/min_flops = 1e6/review = function(sub) return sub.bytes_in > 5 end/' big.lua >review.lua
check "bytes of an open size" 1 "attempt to compare .*; bytes_in is nil: size N of '.*' is open" \
  "$program" partition open.lua --rules review.lua --shape 'N=?'

# Inputs of one element that get their value from outside.
cat >fixed.lua <<'LUA'
local x, times = g.input("x", "float32", { 2 }), g.input("times", "float32", {})
g.input("a=b", "int64", { 1 })
g.output("y", x * times)
LUA
check "a fixed input" 0 '' "$program" inspect fixed.lua --fix times=0.5
if grep -q 'input.*times' "$out"; then fail "a fixed input is an input"; else pass; fi
check "a name with a =" 0 '' "$program" run fixed.lua --fix a=b=3 --fix times=2 --repeat 1
check "a value that is none" 1 "input 'a=b': expected a value of int64 to fix it, found '0.5'" "$program" inspect fixed.lua --fix a=b=0.5
check "no name" 1 "option '--fix': expected NAME=VALUE, found '=1'" "$program" inspect fixed.lua --fix =1
check "another name" 1 "expected an input to fix, found 'time' (did you mean 'times'?); the model's inputs are: x, times, a=b" \
  "$program" why fixed.lua --rules big.lua --fix time=1
check "more elements" 1 "input 'x': expected one number or bool to fix it, found float32\[2\]" "$program" check big.lua --model fixed.lua --fix x=1

# e = a * b + c * d, where only a is known.
printf '\010\010\072\170\012\017\012\001\141\012\001\142\022\002\141\142\042\003\115\165\154\012\017\012\001\143\012\001\144\022\002\143\144\042\003\115\165\154\012\020\012\002\141\142\012\002\143\144\022\001\145\042\003\101\144\144\022\001\147\132\023\012\001\141\022\016\012\014\010\001\022\010\012\002\010\002\012\002\010\003\132\011\012\001\142\022\004\012\002\010\001\132\011\012\001\143\022\004\012\002\010\001\132\011\012\001\144\022\004\012\002\010\001\142\011\012\001\145\022\004\012\002\010\001\102\004\012\000\020\015' >four.onnx
check "shapes of what is combined" 0 'sizes: b = \[2, 3\], c = \[2, 3\], d = \[2, 3\] by what it is combined with' \
  "$program" inspect four.onnx
also "all are known" 'output 0  e     float32\[2, 3\]'
check "a run of it" 0 'then median' "$program" run four.onnx --repeat 1
check "one is given" 0 'sizes: b = \[3\] given, c' "$program" run four.onnx --shape b=3 --repeat 1

# ONNX: y = x * (w + w), where w is an input with the initializer [1, 2].
printf '\010\010\072\151\012\016\012\001\167\012\001\167\022\001\164\042\003\101\144\144\012\016\012\001\170\012\001\164\022\001\171\042\003\115\165\154\022\001\147\052\021\010\002\020\001\102\001\167\112\010\000\000\200\077\000\000\000\100\132\017\012\001\170\022\012\012\010\010\001\022\004\012\002\010\002\132\017\012\001\167\022\012\012\010\010\001\022\004\012\002\010\002\142\017\012\001\171\022\012\012\010\010\001\022\004\012\002\010\002\102\004\012\000\020\015' >default.onnx
printf '\010\010\072\151\012\016\012\001\167\012\001\167\022\001\164\042\003\101\144\144\012\016\012\001\170\012\001\164\022\001\171\042\003\115\165\154\022\001\147\052\021\010\002\020\001\102\001\167\112\010\000\000\200\077\000\000\000\100\132\017\012\001\170\022\012\012\010\010\001\022\004\012\002\010\002\132\017\012\001\167\022\012\012\010\010\001\022\004\012\002\010\002\142\017\012\001\171\022\012\012\010\010\001\022\004\012\002\010\002\102\004\012\000\020\143' >newer.onnx
printf '\010\010\072\151\012\016\012\001\167\012\001\167\022\001\164\042\003\101\144\144\012\016\012\001\170\012\001\164\022\001\171\042\003\115\165\154\022\001\147\052\021\010\002\020\001\102\001\167\112\010\000\000\200\077\000\000\000\100\132\017\012\001\170\022\012\012\010\010\001\022\004\012\002\010\002\132\017\012\001\167\022\012\012\010\010\001\022\004\012\002\010\002\142\017\012\001\171\022\012\012\010\010\001\022\004\012\002\010\003\102\004\012\000\020\015' >wrong.onnx
printf '\000\000\200\077\000\000\000\100' | npy row.npy '2,'
check "a default is a constant" 0 '^  Mul  *1 ' "$program" inspect default.onnx
also "and folded" '1 node after folding'
check "a default is no input" 0 'then median' "$program" run default.onnx --input x=row.npy --repeat 1
check "a default can be given" 0 '2 nodes: ' "$program" run default.onnx --input w=row.npy --input x=row.npy --repeat 1 --verify
check "a newer opset" 1 'newer.onnx: opset 99 of ai.onnx is newer than 24, the newest that is known' "$program" inspect newer.onnx
check "a newer opset, leniently" 0 'warning: newer.onnx: opset 99 is read as opset 24' "$program" inspect newer.onnx --lenient
check "a wrong declared shape" 1 "wrong.onnx: output 'y' is declared as \[3\], inference finds \[2\]" "$program" inspect wrong.onnx
check "a wrong declared shape, leniently" 0 'float32\[2\]' "$program" inspect wrong.onnx --lenient

# ONNX: y = Relu(x) if x, of N elements, has 4, else Exp(x).
printf '\010\010\022\000\072\306\001\012\015\012\001\170\022\001\163\042\005\123\150\141\160\145\012\020\012\001\163\012\001\153\022\001\143\042\005\105\161\165\141\154\012\151\012\001\143\022\001\171\042\002\111\146\052\055\012\013\145\154\163\145\137\142\162\141\156\143\150\062\033\012\013\012\001\170\022\001\164\042\003\105\170\160\022\001\142\142\011\012\001\164\022\004\012\002\010\001\240\001\005\052\056\012\013\164\150\145\156\137\142\162\141\156\143\150\062\034\012\014\012\001\170\022\001\164\042\004\122\145\154\165\022\001\142\142\011\012\001\164\022\004\012\002\010\001\240\001\005\022\001\147\052\021\010\001\020\007\102\001\153\112\010\004\000\000\000\000\000\000\000\132\020\012\001\170\022\013\012\011\010\001\022\005\012\003\022\001\116\142\020\012\001\171\022\013\012\011\010\001\022\005\012\003\022\001\116\102\004\012\000\020\015' >if.onnx
check "a condition on an open size" 1 "depends on the shape of 'x', which is open: N" "$program" inspect if.onnx
check "a size decides" 0 'sizes: N = 4 given' "$program" run if.onnx --shape N=4 --repeat 1
check "by one branch" 0 '^  Relu ' "$program" inspect if.onnx --shape N=4
check "by the other" 0 '^  Exp ' "$program" inspect if.onnx --shape N=5
check "the model has that size alone" 1 'dimension 0 is 2, expected 4' "$program" run if.onnx --shape N=4 --input x=row.npy

finish

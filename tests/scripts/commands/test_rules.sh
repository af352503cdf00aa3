#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shipped rule files pass their own tests, with two tests or more for each rule, one of them of what it
# must leave alone; and what `check` and `rules` print, with their exit statuses.
set -u
program=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/out
. "$2/tests/scripts/checks.sh"

# Rules for GPUs find the stand-ins of NVIDIA's libraries.
CLEAVE_CUDA_PATH=$3/tests/cuda
CLEAVE_CUDA_CACHE=$3/tests/cuda/cache
export CLEAVE_CUDA_PATH CLEAVE_CUDA_CACHE
cd "$source" || exit 1
check "shipped rules pass their tests, and shipped gradients equal finite differences" 0 \
  '^  "passed": [1-9][0-9]*' "$program" check --json --coverage rules/*.lua lua/cleave/gradients/all.lua
for forbidden in '"verdict": "failed"' '"warnings": [1-9]' untested; do
  if grep "$forbidden" "$out"; then fail "shipped rules have no $forbidden"; else pass; fi
done
for file in rules/*.lua lua/cleave/gradients/all.lua; do
  check "$file is listed" 0 '^ *line  kind ' "$program" rules "$file"
done

cd "$work" || exit 1
# Rule files that include the same file: its rules are listed once, with the counts of both.
printf 'return { rewrite "twice" { pattern = op "Abs" >> op { "Abs", as = "a" }, replace = function(m) return m.a.inputs[1] end } }\n' >part.lua
for name in one two; do
  printf 'return ruleset { name = "%s", include "part.lua" }\n' $name >$name.lua
done
printf 'local x = g.input("x", "float32", { 4 })\ng.output("y", g.Abs(g.Abs(x)))\n' >abs.lua
check "one line for a rule of two files" 0 "^  rewrite 'twice' (part.lua:1) of 'one', 'two': 1 change from" \
  "$program" partition abs.lua --rules one.lua --rules two.lua
cp out listed
check "no second one" 0 '^1$' grep -c "^  rewrite 'twice'" listed
check "one row for a rule of two files" 0 '^  twice  rewrite  part.lua:1  *1 ' \
  "$program" run abs.lua --rules one.lua --rules two.lua --repeat 1
printf 'local list = include "one.lua"\nreturn ruleset { name = "three", fuse("f" .. #list) { pattern = op "Abs" } }\n' >three.lua
check "a ruleset is no list" 1 'three.lua:2: a ruleset has no length, and cannot be unpacked: write it as an entry itself' \
  "$program" partition abs.lua --rules three.lua

# A kernel of rules/pointwise.lua is one step; its two switches leave the operators apart.
cat >chain.lua <<'LUA'
local x = g.input("x", "float32", { 64, 1024 })
g.output("y", g.Tanh(g.Add(g.Relu(x), x)))
LUA
steps() {
  "$program" run chain.lua --rules "$source/rules/pointwise.lua" --set min_gain=0 --repeat 1 --profile trace.json |
    awk '/^  fusion or operator/ { inside = 1; next } inside && /^  [A-Za-z]/ { count += $3 } END { print count + 0, "steps" }'
}
check "a pointwise kernel is one step" 0 '^1 steps$' steps
check "pointwise=false makes no kernel" 0 '0 regions, 0 fusions, 3 nodes on cpu' "$program" partition chain.lua \
  --rules "$source/rules/pointwise.lua" --set min_gain=0 --set pointwise=false
check "CLEAVE_POINTWISE=0 makes none" 0 '0 regions, 0 fusions, 3 nodes on cpu' \
  env CLEAVE_POINTWISE=0 "$program" partition chain.lua --rules "$source/rules/pointwise.lua" --set min_gain=0
cat >own.lua <<'LUA'
local options = { pointwise = option.boolean(true, "kernels") }
return ruleset {
  name = "own", backend = "cpu", options = options,
  fuse "kernel" { ops = { "Relu", "Add", "Tanh" }, min_nodes = 2, enabled = options.pointwise, attributes = { kernel = true } },
}
LUA
check "another rule file makes one" 0 ', 1 fusion, ' env CLEAVE_POINTWISE=1 "$program" partition chain.lua --rules own.lua
check "and none with it" 0 ', 0 fusions, ' env CLEAVE_POINTWISE=0 "$program" partition chain.lua --rules own.lua
check "a setting goes before it" 0 '1 region, 1 fusion, 0 nodes on cpu' env CLEAVE_POINTWISE=0 "$program" partition \
  chain.lua --rules "$source/rules/pointwise.lua" --set min_gain=0 --set pointwise=true
check "a file without the option runs as ever" 0 "rewrite 'twice' (part.lua:1) of 'one': 1 change" env CLEAVE_POINTWISE=0 "$program" partition abs.lua \
  --rules one.lua
check "a value that is none" 1 "option 'pointwise': set to 'maybe', expected boolean" env CLEAVE_POINTWISE=maybe "$program" \
  partition chain.lua --rules "$source/rules/pointwise.lua"
check "kernels shows the program of a kernel" 0 '^%2 = Add %1 %0' "$program" kernels chain.lua \
  --rules "$source/rules/pointwise.lua" --set min_gain=0
check "and its CUDA text without a GPU" 0 '^extern "C" __global__ ' "$program" kernels chain.lua --cuda \
  --rules "$source/rules/pointwise.lua" --set min_gain=0
check "kernels says that there are none" 0 '^no kernels: the rules made no fusion and no region' "$program" kernels chain.lua \
  --rules "$source/rules/pointwise.lua" --set pointwise=false
# Kernels in one region, between nodes of their own, one of which stands between two nodes of a kernel in
# the order of the graph.
cat >kernels.lua <<'LUA'
return ruleset {
  name = "kernels", backend = "cpu",
  fuse "kernel" { ops = { "Exp", "Sin", "Add", "Neg" }, min_nodes = 2, attributes = { kernel = true } },
  region "all" {},
  test "two kernels, and what is between them" {
    graph = function(g, x, w)
      local a = g.Exp(g.Neg(x))
      local s = g.Softmax(a, { axis = 0 })
      local b = g.Sin(a)
      local c = g.MatMul(g.Add(b, a), w)
      return g.Neg(g.Add(g.Exp(c), s)), b
    end,
    inputs = { x = { 8, 8 }, w = { 8, 8 } },
    expect = { kernel = 2, ["regions"] = 1, fusions = 2, left = 0 },
    equal = true,
  },
  test "a reduction is no kernel of these" {
    graph = function(g, x) return g.ReduceMax(g.Exp(x)) end,
    expect_not = { "kernel" },
    equal = true,
  },
}
LUA
check "several kernels are steps of one region" 0 '^2 passed, 0 failed$' "$program" check kernels.lua
cat >sums.lua <<'LUA'
local x = g.input("x", "float32", { 64, 64 })
local a = g.Exp(g.Neg(x))
g.output("y", g.Neg(g.Exp(g.MatMul(a, a))))
LUA
check "a profile names kernels by their rule" 0 '^  kernel  *cpu  *2 ' "$program" run sums.lua --rules kernels.lua --repeat 1 --profile trace.json
check "why tells about fusions that grow" 0 "^fuse 'kernel' (kernels.lua:3): 2 fusions" "$program" why sums.lua --rules kernels.lua --rule kernel
cat >good.lua <<'LUA'
return ruleset {
  name = "good", backend = "cpu",
  options = { least = option.integer(2, "nodes of a region", { min = 1, max = 8 }) },
  fuse "pair" { doc = "two in a row", pattern = op "Exp" >> op "Sin" },
  region "rest" { ops = { "Exp", "Sin" }, review = function(sub, options) return sub.node_count >= options.least end },
  test "joins a pair" {
    graph = function(g, x) return g.Sin(g.Exp(x)) end,
    expect = { pair = 1, rest = 1 },
    equal = true,
  },
  test "leaves others alone" {
    graph = function(g, x) return g.Exp(g.Sin(x)) end,
    inputs = { x = { 2, 4 } },
    options = { least = 3 },
    expect_not = { "pair", "rest" },
  },
}
LUA
sed 's/expect = { pair = 1/expect = { pair = 2/' good.lua >wrong.lua
sed 's/pattern = op "Exp"/pattern = op "Expp"/' good.lua >broken.lua
sed 's/backend = "cpu"/backend = "elsewhere"/' good.lua >elsewhere.lua
cat >model.lua <<'LUA'
g.output("y", g.Cos(g.input("x", "float32", { 2, 4 })))
LUA

check "a good file passes" 0 '^2 passed, 0 failed$' "$program" check good.lua
check "lists tests" 0 'good.lua:6  *joins a pair  *passed' "$program" check good.lua
check "picks tests" 0 '^1 passed, 0 failed$' "$program" check good.lua --test pair
check "a test that is not there" 1 "no test has 'pears' in its name" "$program" check good.lua --test pears
mkdir -p folder/parts nothing
cp good.lua folder/parts/
cat >folder/net.lua <<'LUA'
-- a model script, not a ruleset
g.output("y", g.Relu(g.input("x", "float32", { 1 })))
LUA
check "a folder stands for its rule files" 0 '^2 passed, 0 failed$' "$program" check folder
check "names what it checks in a folder" 0 '^ *folder/parts/good.lua:6  *joins a pair' "$program" check folder/
cp wrong.lua folder/
check "a folder with a failure fails" 1 '^3 passed, 1 failed' "$program" check folder
check "a folder without rule files" 1 'nothing: no rule file in this folder' "$program" check nothing
check "enough tests" 0 '^2 passed, 0 failed$' "$program" check good.lua --coverage
check "a wrong expectation fails" 1 '^1 passed, 1 failed' "$program" check wrong.lua
check "names file and line" 1 "^wrong.lua:6: test 'joins a pair' failed" "$program" check wrong.lua
check "tells expected and found" 1 "fuse 'pair', matches: expected 2, found 1" "$program" check wrong.lua
check "tells what the rule did" 1 "fused by 'pair': Exp_0, Sin_0" "$program" check wrong.lua
cat >misspelt.lua <<'LUA'
return ruleset { name = "r", fuse "x" { pattern = op { "Exp", as = "exp" }, where = function(m) return m.exq.rank == 2, "" end } }
LUA
check "errors that no test found are counted apart" 1 '^0 passed, 0 failed, 1 error$' "$program" check misspelt.lua
check "a file that does not load fails" 1 "error: broken.lua:4: .*'Expp' is unknown" "$program" check broken.lua good.lua
check "and the others go on" 1 '^2 passed, 1 failed$' "$program" check broken.lua good.lua
check "skips what cannot run" 0 '^0 passed, 0 failed, 2 skipped$' "$program" check elsewhere.lua
check "says why" 0 "skipped: backend 'elsewhere' is unknown" "$program" check elsewhere.lua
check "strict does not skip" 1 '^0 passed, 0 failed, 2 skipped$' "$program" check elsewhere.lua --strict
check "models want to be matched" 0 "warning: fuse 'pair' matches nowhere in the 1 model given" "$program" check good.lua --model model.lua
check "strict takes warnings as failures" 1 '2 warnings' "$program" check good.lua --model model.lua --strict
check "a setting outside its range" 1 "option 'least': set to '9', expected 1 to 8" "$program" check good.lua --set least=9
check "an unknown setting" 1 "setting 'leats': .* (did you mean 'least'?)" "$program" check good.lua --set leats=3
check "prints JSON" 0 '"verdict": "passed"' "$program" check good.lua --json
check "prints failures as JSON" 1 '"report": "fuse ' "$program" check wrong.lua --json
check "wants a file" 2 'expected FILE' "$program" check
check "lists options" 0 'least  *integer  *2  *2  *1 to 8  *nodes of a region' "$program" rules good.lua
check "lists values" 0 'least  *integer  *2  *5  *1 to 8' "$program" rules good.lua --set least=5
check "lists rules" 0 '4  fuse  *pair  *cpu  *two in a row' "$program" rules good.lua
check "lists tests" 0 '6  joins a pair' "$program" rules good.lua
check "lists as JSON" 0 '"default": 2,' "$program" rules good.lua --json
printf 'return ruleset { name = "o", options = { b = option.boolean(true, "b"), n = option.number(math.huge, "n"), s = option.string("2", "s") } }\n' >options.lua
check "booleans are JSON's" 0 '"default": true,' "$program" rules options.lua --json --set b=false --set n=0.5
check "values too" 0 '"value": false,' "$program" rules options.lua --json --set b=false --set n=0.5
check "numbers are JSON's" 0 '"value": 0.5,' "$program" rules options.lua --json --set n=0.5
check "but for those that JSON has not" 0 '"default": "inf",' "$program" rules options.lua --json
check "a string stays one" 0 '"value": "2",' "$program" rules options.lua --json
check "names the options that there are" 1 "least (nodes of a region)" "$program" rules good.lua --set leats=3
for command in check rules; do
  check "explains $command" 0 "^usage: cleave $command" "$program" $command --help
done

# Colours are for terminals.
"$program" check wrong.lua >out 2>&1
if grep -q "$(printf '\033')" out; then
  echo "escape sequences without a terminal"
  failed=$((failed + 1))
fi

finish

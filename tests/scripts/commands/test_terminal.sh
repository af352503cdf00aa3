#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Names, reasons and texts from files reach the terminal escaped: every command over a model and rules whose names hold
# escape sequences, carriage returns, C1 and bidirectional controls, and newlines that would begin lines of their own.
set -u
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"

cat >net.lua <<'LUA'
local function bad(name)
  return name .. "\27[2J\r\nFALSE LINE\a\b\t\194\1552J\226\128\174\226\129\166\127"
end
local x = g.input(bad "x", "float32", { bad "N", 4 })
local function block(name, value)
  local y = g.Relu(value, { name = bad(name .. ".relu") })
  y = g.Exp(y, { name = bad(name .. ".exp") })
  return g.Neg(y, { name = bad(name .. ".neg") })
end
local y = block("a", x)
g.output(bad "half", y)
g.output(bad "whole", block("b", g.Sigmoid(y)))
LUA
cat >rules.lua <<'LUA'
local function bad(name)
  return name .. "\27[2J\r\nFALSE LINE\a\b\t\194\1552J\226\128\174\226\129\166\127"
end
return ruleset {
  name = "hostile", backend = "cpu",
  doc = bad "doc",
  options = { deep = option.boolean(true, bad "an option") },
  fuse "pair" {
    doc = bad "doc",
    pattern = op { "Relu", as = "r" } >> op { "Exp", as = "e" },
    where = function(m) return m.r.name:sub(1, 1) == "a", bad "not today" end,
  },
  fuse "triple" { pattern = op "Relu" >> op "Exp" >> op "Sin" },
  rewrite "back" { pattern = op { "Sigmoid", inputs = { any "x" } }, replace = function(m, g)
    return g.Tanh(m.x, { name = bad "new" })
  end },
  region "rest" {
    ops = { "Relu", "Exp", "Neg" },
    review = function(sub) return #sub.nodes > 9, bad "too small" end,
  },
  test "a test" {
    graph = function(g, x) return g.Exp(g.Relu(x, { name = bad "t" }), { name = bad "u" }) end,
    expect = { pair = 5, rest = 1 },
  },
}
LUA
printf 'return ruleset { name = "a\\27[2J\\nFALSE LINE" }\n' >name.lua
printf 'error("x\\27[2J\\r\\nFALSE LINE\\194\\155")\n' >error.lua
printf 'return ruleset { name = "r", fuse "x\\27[2J\\nFALSE LINE" { pattern = op "Co\\27[2Jnv" } }\n' >unknown.lua

controls=$(printf '[\001-\011\013-\037\177]|\302[\200-\237]|\330\234|\342\200[\216\217\250-\256]|\342\201[\246-\257]')

# clean NAME COMMAND...: prints, and nothing that a terminal obeys, and no line that the files made up.
clean() {
  clean_name=$1
  shift
  "$@" >"$out" 2>&1 </dev/null
  status=$?
  if [ $status -gt 2 ]; then
    fail "$clean_name: exit status $status"
  elif [ ! -s "$out" ]; then
    fail "$clean_name: printed nothing"
  elif LC_ALL=C grep -aqE "$controls" "$out"; then
    fail "$clean_name: control characters, in"
    LC_ALL=C grep -anE "$controls" "$out" | head -n 5 | od -c | head -n 20
  elif grep -aq '^FALSE' "$out"; then
    fail "$clean_name: a line that the file made up, in"
  else
    pass
  fi
}

check 'a plan' 0 '' "$program" partition net.lua --rules rules.lua -o plan.json
check 'another plan' 0 '' "$program" partition net.lua --backend cpu -o other.json
check 'a model' 0 '' "$program" partition net.lua --backend cpu -o net.onnx
shape=$("$program" inspect net.lua --json | sed -n 's/.*"name": "\(x[^"]*\)".*/\1/p' | head -n 1)
case $shape in
  *'\u001B[2J\r\nFALSE LINE\u0007'*'\u009b2J\u202e\u2066\u007f') pass ;;
  *) fail 'JSON does not have the name as it is' ;;
esac

for model in net.lua net.onnx; do
  clean "$model: inspect" "$program" inspect $model --nodes
  clean "$model: inspect as JSON" "$program" inspect $model --json
  clean "$model: partition" "$program" partition $model --rules rules.lua
  clean "$model: report" "$program" partition $model --rules rules.lua --report --rule-stats
  clean "$model: report as JSON" "$program" partition $model --rules rules.lua --report --rule-stats --json
  clean "$model: why" "$program" why $model --rules rules.lua
  clean "$model: why of operators" "$program" why $model --rules rules.lua --node op:Relu --node op:Sigmoid
  clean "$model: why of a rule" "$program" why $model --rules rules.lua --rule triple
  clean "$model: why as JSON" "$program" why $model --rules rules.lua --node op:Relu --json
  clean "$model: no such node" "$program" why $model --rules rules.lua --node nope
  clean "$model: run" "$program" run $model --rules rules.lua --check cpu --profile --rule-stats --log detail
  clean "$model: run as JSON" "$program" run $model --rules rules.lua --check cpu --profile --json
  clean "$model: no such input" "$program" run $model --rules rules.lua --shape nope=1
  clean "$model: verify" "$program" verify $model --rules rules.lua
  clean "$model: bisect" "$program" bisect $model --rules rules.lua
  clean "$model: check" "$program" check rules.lua --model $model --verbose
  clean "$model: conform" "$program" conform $model
done
clean 'check as JSON' "$program" check rules.lua --json
clean 'a plan compared' "$program" plan diff plan.json other.json
clean 'a plan compared as JSON' "$program" plan diff plan.json other.json --json
clean 'a plan shown' "$program" plan show plan.json
clean 'a plan shown as JSON' "$program" plan show plan.json --json
clean 'rules' "$program" rules rules.lua
clean 'rules as JSON' "$program" rules rules.lua --json
for file in name.lua error.lua unknown.lua; do
  clean "$file: check" "$program" check $file
  clean "$file: partition" "$program" partition net.lua --rules $file
  clean "$file: as a model" "$program" inspect $file
done
name=$(printf 'no\033[2J\nFALSE LINE')
clean 'no such command' "$program" "$name"
clean 'no such option' "$program" run "--$name"
clean 'no such file' "$program" inspect "$name"
clean 'no such backend' "$program" partition net.lua --backend "$name"
clean 'no such setting' "$program" partition net.lua --rules rules.lua --set "$name=1"
printf '%s\n' 'g.nodes[1]' 'print(g.nodes[1].name)' 'why(g.nodes[1])' 'plan' 'rules' 'g' 'error("\27[2J")' >typed
"$program" repl net.lua --rules rules.lua <typed >"$out" 2>&1
if LC_ALL=C grep -aqE "$controls" "$out"; then fail 'repl: control characters, in'; else pass; fi

# A picture: what Graphviz shows.
check 'a picture' 0 '' "$program" partition net.lua --rules rules.lua -o net.dot
cp net.dot "$out"
if LC_ALL=C grep -aqE "$controls" "$out" || grep -aq '^FALSE' "$out"; then fail 'picture: control characters, in'; else pass; fi
finish

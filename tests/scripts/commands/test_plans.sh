#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Saved plans and watching, from outside: replay, refusals, differences (byte for byte), --watch with edits and Ctrl-C.
set -u
program=$1
source=$2
work=$(mktemp -d)
watcher=
trap '[ -z "$watcher" ] || kill "$watcher" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"

cat >tiny.lua <<'LUA'
-- y = Relu(x * w + b), z = Softmax(y)
local size = options.size or 4
local x = g.input("x", "float32", { options.open and "N" or 2, size })
local y = g.Relu(g.Add(g.MatMul(x, g.weight { size, 3, name = "w" }), g.zeros { 3, name = "b" }))
g.output("y", y)
g.output("z", g.Softmax(y))
LUA
cat >rules.lua <<'LUA'
return ruleset {
  name = "tiny", backend = "cpu",
  options = { last = option.boolean(false, "take Softmax too") },
  fuse "product" { doc = "a product and its bias", pattern = op { "MatMul" } >> op { "Add" } },
  region "island" { doc = "all but the end", ops = { "MatMul", "Add", "Relu" } },
  region "end_of_it" { doc = "the end", ops = { "Softmax" }, enabled = function(o) return o.last end },
}
LUA
sed 's/ >> op { "Add" }//' rules.lua >unfused.lua

# same NAME: what the last command printed is what comes on standard input.
same() {
  cat >expected
  if diff -u expected out; then pass; else fail "$1: another output"; fi
}

check "saves a plan" 0 'written to a.json' "$program" partition tiny.lua --rules rules.lua -o a.json
(umask 027 && "$program" partition tiny.lua --rules rules.lua -o private.json >out.txt)
check "a new file has what umask leaves" 0 '^640$' stat -c %a private.json
chmod 600 private.json
ln -s private.json link.json
check "writes through a link" 0 'written to link.json' "$program" partition tiny.lua --rules rules.lua -o link.json
check "keeps the mode of a file" 0 '^600 regular file$' stat -c '%a %F' private.json
check "keeps the link" 0 '^symbolic link$' stat -c %F link.json
check "has written the file" 0 '' cmp a.json private.json
check "replays it" 0 'product .*fuse on cpu .*rules.lua:4 .* 1 ' "$program" run tiny.lua --plan a.json --repeat 1 --verify
check "replays it with no rule file there" 0 'all outputs match' \
  sh -c "mv rules.lua away.lua && '$program' run tiny.lua --plan a.json --repeat 1 --verify; status=\$?; mv away.lua rules.lua; exit \$status"
check "refuses another model" 1 "cleave: a.json: the plan is of another model: input 'x' is float32\[2, 5\], the plan was made for float32\[2, 4\]" \
  "$program" run tiny.lua --set size=5 --plan a.json
check "refuses what is no plan" 1 'tiny.lua:1: not JSON: ' "$program" run tiny.lua --plan tiny.lua
check "takes one of plan and rules" 2 "option '--plan' takes the place of --rules, --backend and --device" \
  "$program" run tiny.lua --plan a.json --rules rules.lua
sed 's/"backend": "cpu"/"backend": "npu"/' a.json >npu.json
check "names a missing backend" 1 "npu.json: region 'island_0': backend 'npu' is unknown" "$program" run tiny.lua --plan npu.json
check "falls back when told to" 0 "0 regions, 4 nodes on cpu" "$program" run tiny.lua --plan npu.json --fallback --repeat 1

# Other constants: w = 0 and b = [1, 2, 3], so that every row of y is b, by rules and by the saved plan.
# npy NAME SHAPE: float32 data from standard input as .npy.
npy() {
  { printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($2), }"; cat; } >"$1"
}
# pb NAME COLUMNS: a TensorProto, float32[2, COLUMNS].
pb() {
  { printf "\\010\\002\\010\\00$2\\020\\001\\112\\0$(printf %o $((8 * $2)))"; cat; } >"$1"
}
row='\000\000\200\077\000\000\000\100\000\000\100\100'
softmax='\363\141\270\075\032\232\172\076\073\115\052\077'
mkdir data
head -c 48 /dev/zero | npy zeros.npy '4, 3'
printf "$row" | npy row.npy '3,'
head -c 32 /dev/zero | pb data/input_0.pb 4
printf "$row$row" | pb data/output_0.pb 3
printf "$softmax$softmax" | pb data/output_1.pb 3
constants="--set-constant w=zeros.npy --set-constant b=row.npy --data data --repeat 1"
check "has other outputs than asked for as it is" 1 "output 'y': 6 of 6 values differ" "$program" run tiny.lua --data data --repeat 1
check "runs with other constants" 0 'match' "$program" run tiny.lua --rules rules.lua $constants
check "runs a saved plan with other constants" 0 'match' "$program" run tiny.lua --plan a.json $constants
check "names a constant that is not there" 1 "constant 'v': the model has no constant of this name" \
  "$program" run tiny.lua --set-constant v=row.npy
check "names what a constant is" 1 "constant 'w': expected float32\[4, 3\], found float32\[3\]" \
  "$program" run tiny.lua --set-constant w=row.npy
check "explains the option" 1 "set-constant: expected NAME=FILE, found 'row.npy'" \
  "$program" run tiny.lua --set-constant row.npy
check "names a file that is not there" 1 'none.npy' "$program" run tiny.lua --set-constant w=none.npy

# A model with an open size: plans for the open model, and for one size of it.
check "saves the plan of an open model" 0 written "$program" partition tiny.lua --set open=1 --shape 'N=?' --rules rules.lua -o open.json
also "leaves open what it is asked to" 'sizes: N = ? left open'
check "replays it for any size" 0 'then median' "$program" run tiny.lua --set open=1 --plan open.json --shape x=7x4 --repeat 1
check "saves the plan of one size" 0 written "$program" partition tiny.lua --set open=1 --shape x=3x4 --rules rules.lua -o three.json
check "replays it for that size without being told" 0 'then median' "$program" run tiny.lua --set open=1 --plan three.json --repeat 1
also "says whose size it is" 'sizes: N = 3 by the plan$'
check "replays it for another size" 0 'all outputs match' "$program" run tiny.lua --set open=1 --plan three.json --shape N=5 --verify --repeat 1
also "with its regions" '1 fusion, 1 region, 1 node on cpu one by one'
check "saves the plan of what is taken" 0 'sizes: N = 1 taken' "$program" partition tiny.lua --set open=1 --rules rules.lua -o one.json
check "replays that for another size" 0 '1 fusion, 1 region' "$program" run tiny.lua --set open=1 --plan one.json --shape x=7x4 --repeat 1
check "refuses another size where the model has one" 1 "input 'x' is float32\[2, 4\], the plan was made for float32\[3, 4\]" \
  "$program" run tiny.lua --plan three.json

# Rewrites go along with other sizes, unless they looked at them.
cat >sized.lua <<'LUA'
return ruleset { name = "sized", backend = "cpu",
  rewrite "half" { pattern = op { "Relu", as = "r", inputs = { any "x" } },
    replace = function(m, g)
      if options.looks then return g.Mul(m.x, 1 / m.x.shape[1]) end
      return g.Mul(m.x, 0.5)
    end },
}
LUA
sed 's/options.looks/true/' sized.lua >looks.lua
sed 's/options.looks/false/' sized.lua >blind.lua
sed 's/any "x" }/any { as = "x", shape = { 1, "C" } } }/; s/options.looks/false/' sized.lua >shaped.lua
for rules in looks blind shaped; do
  check "saves rewrites: $rules" 0 written "$program" partition tiny.lua --set open=1 --rules $rules.lua -o $rules.json
done
check "rewrites that do not look at sizes are done again" 0 'then median' \
  "$program" run tiny.lua --set open=1 --plan blind.json --shape N=4 --repeat 1
for rules in looks shaped; do
  check "rewrites that look at sizes are for these sizes: $rules" 1 \
    "$rules.json: the plan was made for other sizes (one made with --shape NAME=? is for all): the size of '.*' has changed, and rewrite 'half' at 'Relu_0' relied on what it was" \
    "$program" run tiny.lua --set open=1 --plan $rules.json --shape N=4 --repeat 1
  check "and for no others: $rules" 0 'then median' "$program" run tiny.lua --set open=1 --plan $rules.json --repeat 1
done

# Differences.
check "shows a plan" 0 'island_0  cpu          3        1' "$program" plan show a.json
cat >left.lua <<'LUA'
return ruleset { name = "left", backend = "cpu",
  rewrite "sigmoid" { pattern = op { "MatMul", as = "m" }, replace = function(m, g) return nil, "not this one" end },
  rewrite "exp" { pattern = op { "Relu", inputs = { any "x" } }, replace = function(m, g) return g.Abs(m.x) end },
}
LUA
check "has what rewrites left among the notes" 0 "^  left at 'MatMul_0': not this one, rewrite 'sigmoid' (left.lua:2)" \
  "$program" partition tiny.lua --rules left.lua
check "reports what rewrites left" 0 "^matches that rewrites left as they are:" "$program" partition tiny.lua --rules left.lua --report
check "saves a plan with rewrites" 0 written "$program" partition tiny.lua --rules left.lua -o left.json
check "shows what rewrites left" 0 "^  left at 'MatMul_0': not this one, rewrite 'sigmoid' (left.lua:2)" "$program" plan show left.json
cat >typed.lua <<'LUA'
return ruleset {
  name = "typed",
  pass "half" { run = function(graph, options, g) g.set_output(1, g.Cast(graph.outputs[1], { to = "float16" })) end },
  fuse "none" { pattern = op { "MatMul", as = "m" }, where = function(m) return false, "not today" end },
}
LUA
check "saves a plan with notes" 0 written "$program" partition tiny.lua --rules typed.lua -o typed.json
check "shows its notes" 0 "^  where at MatMul 'MatMul_0': not today, fuse 'none'" "$program" plan show typed.json
cat >one.lua <<'LUA'
return ruleset { name = "one", backend = "cpu",
  fuse "none" { pattern = op { "MatMul", as = "m" }, where = function(m) return false, "not today" end },
  region "relu" { ops = { "Relu" } },
}
LUA
check "saves a plan with one note" 0 written "$program" partition tiny.lua --rules one.lua -o one.json
check "one region is no regions" 0 '^1 region, 3 nodes on cpu one by one, 1 note$' "$program" plan show one.json
check "shows an output of another type" 0 "^  output at Cast 'half/Cast': output '.*' is float16\\[.*\\] now, it was float32\\[.*\\], pass 'half'" "$program" plan show typed.json
check "shows a plan as it is saved" 0 same sh -c "'$program' plan show a.json --json >again.json && cmp a.json again.json && echo same"
check "finds nothing between a plan and itself" 0 'the plans are the same: 1 region, 1 fusion' "$program" plan diff a.json a.json
check "saves another plan" 0 written "$program" partition tiny.lua --rules unfused.lua --set last=true -o b.json
check "finds what differs" 1 'nodes' "$program" plan diff a.json b.json
same "finds what differs" <<'TEXT'
  setting  before     after
  last     (not set)  true

  rule       kind           made before  after  refused before  after
  end_of_it  region on cpu            -      1               0      0

  fusions of  operators   before  after
  product     MatMul+Add       1      0
  product     MatMul           0      1

  region  before  after
  new     -       end_of_it_0 on cpu (1 node)

  nodes  operator  before                      after               first
      1  Add       product in island_0 on cpu  island_0 on cpu     Add_0
      1  Softmax   cpu                         end_of_it_0 on cpu  Softmax_0
TEXT
check "finds what differs in models" 1 'the plans are of different graphs: 4 nodes before, 4 after' "$program" plan diff a.json three.json
check "prints JSON on one line" 1 '^{"same":false,"graph":{"same":true,' "$program" plan diff a.json b.json --json
[ "$(wc -l <out)" -eq 1 ] && pass || fail "JSON of a difference is more than one line"
check "has trouble with what is not there" 2 'nowhere.json' "$program" plan diff a.json nowhere.json
check "wants two plans" 2 'expected diff BEFORE AFTER | show PLAN' "$program" plan diff a.json

# Watching: $1 and what was saved, then a pattern that must come within some seconds.
await() {
  tries=0
  while [ $tries -lt 100 ]; do
    if grep -q -e "$2" watched; then
      pass
      return
    fi
    sleep 0.1
    tries=$((tries + 1))
  done
  cp watched out
  fail "$1: '$2' does not come"
}
cp rules.lua edited.lua
"$program" run tiny.lua --rules edited.lua --repeat 1 --watch >watched 2>&1 &
watcher=$!
await "watches" 'watching edited.lua; Ctrl-C ends'
cp unfused.lua new.lua && mv new.lua edited.lua
await "takes up a file that was moved there" 'product     MatMul           0      1'
await "measures both" 'median .* ms before, .* ms now'
await "compares" 'outputs differ by at most 0 '
cat unfused.lua >edited.lua
await "gives no percentage for a plan that is the same" '^  plan unchanged: median [0-9.]* ms ([0-9]* runs*)$'
echo 'return 5' >edited.lua
await "says what is wrong" 'error: edited.lua:1: the file returns 5: end it with'
await "keeps the plan" 'the plan before stays in use'
rm edited.lua
await "says that the file is gone" 'error: edited.lua: the file was removed'
cat rules.lua >edited.lua
await "takes up a file that came back" 'product     MatMul+Add       0      1'
kill -INT "$watcher"
if wait "$watcher"; then pass; else fail "an interrupted watch does not end well: $?"; fi
watcher=
"$program" run tiny.lua --rules edited.lua --repeat 1 --watch --json >watched 2>&1 &
watcher=$!
await "has the first result in JSON" '^{"model":"tiny.lua",.*"event":"result"}$'
await "watches in JSON" '^{"event":"watching","model":"tiny.lua"}$'
cp unfused.lua new.lua && mv new.lua edited.lua
await "reports in JSON" '^{"event":"reload","path":"edited.lua","ok":true,.*"changes":{"same":false'
kill -TERM "$watcher"
if wait "$watcher"; then pass; else fail "a terminated watch does not end well: $?"; fi
watcher=
[ "$(wc -l <watched)" -eq 3 ] && pass || fail "a report in JSON is more than a line"
echo 'return 5' >edited.lua
"$program" run tiny.lua --rules edited.lua --repeat 1 --watch >watched 2>&1 &
watcher=$!
await "says what is wrong from the start" 'error: edited.lua:1: the file returns 5: end it with'
await "waits for the file" 'waiting for a rule file to be saved; Ctrl-C ends'
cat rules.lua >edited.lua
await "runs once the file is good" 'watching edited.lua; Ctrl-C ends'
await "reports as ever" '4 nodes: 1 fusion, 1 region'
kill -INT "$watcher"
if wait "$watcher"; then pass; else fail "a watch that has waited does not end well: $?"; fi
echo 'return 5' >edited.lua
"$program" run tiny.lua --rules edited.lua --repeat 1 --watch --json >watched 2>&1 &
watcher=$!
await "waits in JSON" '^{"event":"error","error":"edited.lua:1: the file returns 5: end it with'
kill -INT "$watcher"
if wait "$watcher"; then pass; else fail "an interrupted wait does not end well: $?"; fi
watcher=
check "waits for no file that is not there" 1 'cleave: nowhere.lua: cannot open' "$program" run tiny.lua --rules nowhere.lua --watch
check "watches rules only" 2 "option '--watch' is for '--rules'" "$program" run tiny.lua --watch

# A real model where there is a backend for it: the same bytes again, the same numbers.
if "$program" version | grep -q '^  onednn '; then
  check "saves a plan for onednn" 0 written "$program" partition "$source/examples/models/mobilenet_v2.lua" --rules "$source/rules/onednn.lua" -o m.json
  check "replays it" 0 'all outputs match' "$program" run "$source/examples/models/mobilenet_v2.lua" --plan m.json --verify --repeat 1
fi

finish

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `mpirun cleave run`: the bits of one process with the same plan, on 2 and 3 processes and on two hosts; requests one behind the
# other; saved plans; rules, plans and processes that do not fit.
set -u
program=$1
command -v mpirun >/dev/null || { echo "skipped: there is no mpirun"; exit 77; }
[ -f "${program%/*}/libexec/cleave/cleave_mpi.so" ] || { echo "skipped: cleave was built without MPI"; exit 77; }
work=$(mktemp -d)
. "$2/tests/scripts/hosts.sh"
end() {
  hosts_end
  rm -rf "$work"
}
trap end EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export NO_COLOR=1
export TMPDIR="$work" # Open MPI's folders

# Residual blocks; the second output is made early, and an input is read late.
cat >net.lua <<'LUA'
local x = g.input("x", "float32", { "N", 8, 12, 12 })
local shift = g.input("shift", "float32", { "N", 16 })
local function conv(v, c, k, name)
  return g.batch_norm(g.Conv(v, g.weight { c, v.shape[2], k, k, name = name }, { pads = { k // 2, k // 2, k // 2, k // 2 } }))
end
local y = g.Relu(conv(x, 16, 3, "stem"))
g.output("early", g.ReduceMean(y, g.constant { 2, 3 }))
for k = 1, 3 do
  local skip = y
  y = g.Relu(conv(y, 16, 3, "first" .. k))
  y = g.Relu(conv(y, 16, 3, "second" .. k) + skip)
end
local pooled = g.Flatten(g.GlobalAveragePool(y)) + shift
g.output("scores", g.Gemm(pooled, g.weight { 16, 10, name = "head" }))
LUA
# Two blocks of a transformer, with an open length.
cat >text.lua <<'LUA'
local x = g.input("x", "float32", { "N", "T", 16 })
local function layer(v, n, m, name) return g.MatMul(v, g.weight { n, m, name = name }, { name = name }) end
local function norm(v) return g.LayerNormalization(v, g.ones { 16 }, g.zeros { 16 }) end
for k = 1, 2 do
  local v = norm(x)
  local scores = g.MatMul(layer(v, 16, 16, "q" .. k), g.Transpose(layer(v, 16, 16, "k" .. k), { perm = { 0, 2, 1 } })) * 0.25
  x = x + g.MatMul(g.Softmax(scores, { axis = -1 }), layer(v, 16, 16, "v" .. k))
  x = x + layer(g.Relu(layer(norm(x), 16, 64, "up" .. k)), 64, 16, "down" .. k)
end
g.output("y", x)
LUA
cat >wide.lua <<'LUA'
return ruleset { name = "wide", region "all" { supported = function() return true end } }
LUA
cat >early.lua <<'LUA'
return ruleset { name = "early", stage "by_name" {
  of = function(node)
    return node.op == "Gemm" and 1 or node.op == "GlobalAveragePool" and 1 or false
  end } }
LUA

# alone, together N: run with ARGUMENT...
alone() {
  "$program" run "$@" --threads 1 --repeat 1
}
together() {
  count=$1
  shift
  mpirun --oversubscribe --bind-to none -n "$count" "$program" run "$@" --threads 1
}
# same NAME FILE...: those of one process and of several.
same() {
  name=$1
  shift
  for file in "$@"; do
    if cmp -s "one_$file" "$file"; then pass; else fail "$name: $file differs from that of one process"; fi
  done
}
# compare NAME N OUTPUTS ARGUMENT...
compare() {
  name=$1
  count=$2
  outputs=$3
  shift 3
  into= files=
  for output in $outputs; do
    into="$into --output $output=one_$output.npy"
    files="$files $output.npy"
  done
  # shellcheck disable=SC2086
  check "$name, one process" 0 '' alone "$@" $into
  # shellcheck disable=SC2086
  check "$name, $count processes" 0 '"processes": \[' together "$count" "$@" $(echo "$into" | sed 's/=one_/=/g') --json --repeat 2
  # shellcheck disable=SC2086
  same "$name" $files
  rm -f ./*.npy
}
net="net.lua --rules stages --rules wide.lua --shape N=2"
text="text.lua --rules stages --rules wide.lua"
for count in 2 3; do
  # shellcheck disable=SC2086
  compare "residual network" $count "scores early" $net --set stages=$count
  # shellcheck disable=SC2086
  compare "transformer" $count y $text --set stages=$count --shape N=2 --shape T=5
done
if "$program" version | grep -q ' onednn'; then
  compare "with fusions of onednn" 3 "scores early" net.lua --rules stages --rules onednn --rules pointwise --set stages=3 --shape N=3
fi
compare "by names" 2 "scores early" net.lua --rules early.lua

check "requests in a row" 0 'all outputs match against the unpartitioned graph' together 3 $net --set stages=3 --requests 30 --concurrency 4 --verify
also "throughput" '^ *30  *4 '
also "each process" '^ *2  *[0-9.]* '
if [ "$(grep -c 'per request:' "$out")" -eq 1 ]; then pass; else fail "more than one process prints"; fi
check "more requests at once than there are" 0 '"concurrency": 8' together 2 $net --requests 2 --concurrency 8 --json

# Plans keep stages, also those for open sizes.
check "a plan with stages" 0 '^ *1  *[0-9]* ' "$program" partition $text -o plan.json --shape N=? --shape T=?
check "in its text" 0 '^  stage 0: [0-9]* nodes, .* sends 1 value' "$program" partition $text --shape T=4
check "shown again" 0 'stage' "$program" plan show plan.json
compare "a saved plan" 2 y text.lua --plan plan.json --shape N=3 --shape T=7
cat >work.lua <<'LUA'
local x = g.input("x", "float32", { 1, 3, 16, 16 })
local z = g.ReduceMean(g.Relu(g.Conv(x, g.weight { 4, 3, 3, 3 })), g.constant { 2, 3 }, { keepdims = 0 })
g.output("y", g.MatMul(g.MatMul(z, g.weight { 4, 64 }), g.weight { 64, 27 }))
LUA
check "equal weights" 0 '^  stage 0: 4 nodes' "$program" partition work.lua --rules stages
check "equal work" 0 '^  stage 0: 1 node,' "$program" partition work.lua --rules stages --set by=work
"$program" partition $text -o three.json --shape N=? --shape T=? --set stages=3 >/dev/null
check "moves between stages" 1 ' in stage 0  .* in stage 1  ' "$program" plan diff plan.json three.json
check "what a node is in" 0 "stage 'balanced' .*: in stage 1 of 2" "$program" why $text --node up2 --shape T=4
sed 's/"stage":1/"stage":7/' plan.json >gap.json
check "a plan with a stage without nodes" 1 '^cleave: gap.json: .*a stage has no nodes' alone text.lua --plan gap.json
sed -e 's/"stage":1/"stage":2/' -e 's/"stage":0/"stage":1/' -e 's/"stage":2/"stage":0/' plan.json >back.json
check "a plan whose stages run backwards" 1 '^cleave: back.json: .*a stage reads what a later one makes' alone text.lua --plan back.json
sed 's/"stage":1/"stage":-1/' plan.json >negative.json
check "a plan with a wrong number" 1 '^cleave: negative.json.*stage' alone text.lua --plan negative.json
check "one process, one plan" 0 'median' mpirun -n 1 "$program" run $net

# Rules that do not fit.
rule() {
  echo "return ruleset { name = 'r', stage 'it' { $1 } }" >rule.lua
}
# refuse NAME PATTERN RULE
refuse() {
  rule "$3"
  check "$1" 1 "$2" "$program" partition net.lua --rules rule.lua
  check "$1, by processes" 1 "$2" together 2 net.lua --rules rule.lua
  if [ "$(grep -c '^cleave: ' "$out")" -eq 1 ]; then pass; else fail "$1: more than one line"; fi
}
refuse "a cycle" "^cleave: rule.lua:1: stage 'it': node '.*' of stage 0 reads what node '.*' of stage 1 makes" \
  "of = function(node) return node.index % 2 end"
refuse "a gap" "^cleave: rule.lua:1: stage 'it': no node is in stage 1, and the last stage is 2" \
  "of = function(node) return node.op == 'Gemm' and 2 end"
refuse "no number" "^cleave: rule.lua:1: stage 'it': of returned a string" "of = function() return 'one' end"
refuse "a number too large" "of returned stage 1024, expected 0 to 1023" "of = function() return 1024 end"
refuse "no table" "assign returned a nil" "assign = function() end"
refuse "a table of something else" "assign returned a table with a number as a key" "assign = function() return { 1 } end"
refuse "no function" "no function of or assign" ""
rule "of = function() return 0 end"
check "two rules" 1 "stage 'it': stage 'balanced' (.*stages.lua:[0-9]*) says already" "$program" partition net.lua --rules stages --rules rule.lua
check "more stages than nodes" 1 '^cleave: .*expected at least the 900 stages' "$program" partition net.lua --rules stages --set stages=900

# Processes that do not fit.
check "too few processes" 1 '^cleave: the plan has 3 stages, and there are 2 processes' together 2 $net --set stages=3
check "no stages" 1 '^cleave: the plan has 1 stage, and there are 3 processes' together 3 net.lua
check "another plan in one" 1 '^cleave: process 1 of 2: its plan differs from that of process 0' \
  mpirun --oversubscribe -n 1 "$program" run $net : -n 1 "$program" run $net --set slack=0.9 --set stages=2 --shape N=3
check "a file that one does not have" 1 '^cleave: process 1 of 2: none.npy: ' \
  mpirun --oversubscribe -n 1 "$program" run $net : -n 1 "$program" run $net --input x=none.npy
check "an output that cannot be written" 1 '^cleave: process 0 of 2: none/y.npy: ' aborted together 2 $net --output scores=none/y.npy
check "what is for one process" 1 '^cleave: options --watch, --profile and --batch-window are for one process' together 2 $net --profile p.json
cat >nonzero.lua <<'LUA'
local x = g.input("x", "float32", { 8 })
g.output("y", g.Relu(g.Cast(g.NonZero(x), { to = 1 })))
LUA
rule "of = function(node) return node.op == 'Relu' and 1 end"
check "a size that is known only at run time" 1 "value '.*' goes from one stage to another: expected numbers whose size is known" together 2 nonzero.lua --rules rule.lua

mpirun --oversubscribe -n 3 "$program" run $net --set stages=3 --threads 1 --requests 100000000 >killed.out 2>killed.err &
run=$!
sleep 2
victim=$(pgrep -P $run | tail -1)
kill -9 "${victim:-$run}"
wait $run
status=$?
cp killed.err "$out"
if [ $status -ne 0 ]; then pass; else fail "a killed process: exit status $status"; fi
also "says which one" 'process rank [0-9] .* exited on signal 9'
if ! pgrep -P $run >/dev/null; then pass; else fail "others go on after one was killed"; fi

if hosts_make "$work"; then
  check "one process" 0 '' alone $net --output scores=one_scores.npy
  check "two hosts" 0 '"processes": \[' hosts 1 "$program" run $net --threads 1 --requests 20 --concurrency 3 --output scores=scores.npy --json
  same "two hosts" scores.npy
else
  echo "not tested: two hosts; network namespaces cannot be made here"
fi
finish

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cleave repl through a pipe: what it shows, chunks over several lines, and a session that outlives mistakes.
set -u
program=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
passed=0
failed=0

cat >net.lua <<'LUA'
local x = g.input("x", "float32", { 1, 8, 4, 4 })
local c = g.Conv(x, g.weight { 8, 8, 1, 1, name = "w" }, { name = "first" })
g.output("y", g.MaxPool(g.Relu(c, { name = "act" }), { kernel_shape = { 2, 2 }, name = "pool" }))
LUA
cat >rules.lua <<'LUA'
return ruleset {
  name = "net", backend = "cpu",
  fuse "pair" { pattern = op { "Conv", as = "conv" } >> op { "Relu", as = "act" } },
  fuse "other" { pattern = op "Gelu" >> op "MaxPool" },
}
LUA

# session NAME INPUT EXPECTED [ARGUMENT...]: standard output and errors, in order.
session() {
  name=$1
  input=$2
  expected=$3
  shift 3
  printf '%s\n' "$input" | "$program" repl net.lua "$@" >out 2>&1
  status=$?
  printf '%s\n' "$expected" >wanted
  if [ $status -ne 0 ] || ! diff wanted out >difference; then
    echo "$name: exit status $status"
    sed 's/^/    /' difference | head -n 30
    failed=$((failed + 1))
  else
    passed=$((passed + 1))
  fi
}

session "expressions are shown" '1 + 1
"a text"
nil
{ 1, { b = 2 } }
true, 3' '2
"a text"
nil
{ 1, { b = 2 } }
true
3'
session "the graph and its nodes" 'g
n = g.nodes[1]
n
n.inputs.w.shape
n.inputs
n.attrs
n.users[1].op
g.nodes' "graph 'net' of 3 nodes, 1 input, 1 output
Conv 'first' #0 : float32[1, 8, 4, 4]
{ 8, 8, 1, 1 }
1  %x : float32[1, 8, 4, 4], an input
2  %w : float32[8, 8, 1, 1], a constant
{}
\"Relu\"
{
  Conv 'first' #0 : float32[1, 8, 4, 4]
  Relu 'act' #1 : float32[1, 8, 4, 4]
  MaxPool 'pool' #2 : float32[1, 8, 3, 3]
}"
session "patterns are found" 'conv = op { "Conv", as = "c" }
g:find(conv >> op { "Relu", as = "r" })
g:find "Gelu"
#g:find(conv)
g:find(conv)[1].c.name' "   c             r           nodes
1  Conv 'first'  Relu 'act'  2
no match
1
\"first\""
session "chunks of several lines" 'for k = 1, 2 do
  print(k)
end
function twice(x)
  return 2 * x
end
twice(
  21)' '1
2
42'
session "mistakes and runaways end by themselves" 'local x = = 5
if x then
  foo() end end
foo
g.nodez
n.op
error("mine")
error {}
setmetatable({}, { __gc = 1 })
op "Convv"
while true do end
pcall(function() while true do end end)
("x"):rep(1e9)
g:find(1)
why(1)
local t = {} for k = 1, 1e9 do t[k] = k end
"still here"' "unexpected symbol near '='
line 2: <eof> expected near 'end'
unknown word 'foo'
a graph has no field 'nodez' (did you mean 'nodes'?)
unknown word 'n' (did you mean 'g'?)
mine
raised a table value instead of a message
'__gc' is not available
a pattern (op)
the time budget of 2000 ms is spent
the time budget of 2000 ms is spent
string.rep: a string of more than 1048576 bytes
g:find: expected a pattern or the name of an operator, found 1
why: expected a node or a name, found a number
more than 32 MiB of memory in one piece
\"still here\""
session "rules" 'why "pair"
why(g.nodes[2])
why(g.nodes[3], "other")
why "nobody"
rules()' "fuse 'pair' (rules.lua:3): 1 fused out of 1 match
Relu 'act', number 1, float32[1, 8, 4, 4]
  fuse 'pair' (rules.lua:3): fused, Conv 'first', Relu 'act'
    in region 'pair_0' of 2 nodes on cpu
  fuse 'other' (rules.lua:4): no match; 1 of 2 nodes from Relu 'act'
    operator is Relu, wanted Gelu
      rules.lua:4: Gelu
      try: op { { \"Gelu\", \"Relu\" } }
MaxPool 'pool', number 2, float32[1, 8, 3, 3], on cpu by itself
  fuse 'other' (rules.lua:4): no match; 1 of 2 nodes from Relu 'act'
    operator is Relu, wanted Gelu
      at Relu 'act'
      rules.lua:4: Gelu
      try: op { { \"Gelu\", \"Relu\" } }
why: the model has no node 'nobody'
fuse     pair                     made     1  refused     0  rules.lua:3
fuse     other                    made     0  refused     0  rules.lua:4" --rules rules.lua
session "without rules" 'plan()' 'there are no rule files: start with cleave repl MODEL --rules FILE'

# What is left open at the end is a failure; a zero byte is none of the program's.
printf 'for k = 1, 2 do\n' | "$program" repl net.lua >out 2>&1
if [ $? -eq 1 ] && grep -q "the input ends in the middle of a chunk" out; then
  passed=$((passed + 1))
else
  echo "an open chunk: $(cat out)"
  failed=$((failed + 1))
fi
head -c 20000 /dev/urandom | "$program" repl net.lua >out 2>&1
if [ $? -le 1 ]; then
  passed=$((passed + 1))
else
  echo "random bytes: exit status"
  failed=$((failed + 1))
fi
"$program" repl "$source/examples/models/resnet50.lua" </dev/null >out 2>&1 && [ ! -s out ] && passed=$((passed + 1))

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

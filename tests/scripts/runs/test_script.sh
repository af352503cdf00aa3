#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lua programs over arrays: the checks of tests/lua/arrays.lua, serial and beside the script, on cpu and on onednn; arguments,
# libraries, and errors of programs; the prompt.
set -u
program=$1
lua=$2/tests/lua/arrays.lua
build=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"

check "beside the script" 0 '^[0-9][0-9][0-9] checks with no argument$' "$program" script "$lua"
check "serial" 0 'checks with one$' "$program" script "$lua" --serial one
check "one thread" 0 'checks with --flag$' "$program" script --threads 1 "$lua" -- --flag
check "functions by rules" 0 'checks with' "$program" script "$lua" --rules canonical --rules pointwise
if "$program" backends | grep -q '^ *onednn .*device'; then
  check "on onednn" 0 'checks with' "$program" script "$lua" --backend onednn
  check "functions by onednn's rules" 0 'checks with' "$program" script "$lua" --rules onednn
fi
check "an example that trains call by call" 0 '^right: \(9[0-9]\|100\)' "$program" script "$2/examples/train/imperative.lua"
check "unknown backend" 1 "'nowhere'" "$program" script "$lua" --backend nowhere

cat >fails.lua <<'LUA'
local x = nd.array { 1, 2 }
local function deep(v)
  local y = nd.Gather(v, nd.array { 9 })
  return y
end
deep(x)
LUA
check "an error that nobody saw" 1 "cleave.*Gather at fails.lua:3" "$program" script fails.lua
echo 'local x <const> = 1; x = 2' >syntax.lua
check "syntax" 1 'syntax.lua:1: ' "$program" script syntax.lua
echo 'error("stop here")' >stop.lua
check "an error of its own" 1 'stop.lua:1: stop here' "$program" script stop.lua
check "no such file" 1 'missing.lua' "$program" script missing.lua
echo 'print(arg[0], #arg, os.getenv("HOME") and "home"); os.exit(3)' >trusted.lua
check "all of Lua" 3 '^trusted.lua.*2.*home$' env HOME=/ "$program" script trusted.lua a b
check "says that programs are trusted" 0 'trusted, unlike rule files' "$program" script --help

# cleave repl without a model: a prompt, here through a pipe. Globals stay, mistakes end one chunk only.
cat >typed <<'LUA'
x = nd.array { -1, 2, 3 }
nd.Relu(x)
x:shape()
y = nd.Add(x,
  x); z = y:table()
z[2], "a text"
nd.Nope(x)
f = nd.hybrid(function(a) return a * 2 end)
f(y)
local gone = 1
gone
if x then
  error "of line 2"
end
LUA
cat >wanted <<'TEXT'
int64[3] { 0, 2, 3 }
{ 3 }
4
"a text"
nd has no function or operator 'Nope' (did you mean 'Not'?)
int64[3] { -4, 8, 12 }
nil
line 2: of line 2
TEXT
check "a prompt" 0 '' sh -c '"$1" repl <typed >shown 2>&1; cat shown' sh "$program"
check "shows values and mistakes" 0 '' diff wanted shown
echo 'nd.hybrid(function(a) return nd.Relu(a) + a end)(nd.array { -1, 2 })' >typed
check "its functions by rules, operator by operator" 0 '^int64\[2\] { -1, 4 }$' \
  sh -c '"$1" repl --rules pointwise --serial --threads 1 <typed' sh "$program"
check "options of the other prompt" 2 "need a model" "$program" repl --set a=1
check "options of arrays with a model" 2 "leave the model out" "$program" repl model.lua --backend cpu
check "a program is a file" 2 'FILE.lua' "$program" script
printf 'x = {\n' >typed
check "a prompt that ends in the middle" 1 'ends in the middle of a chunk' sh -c '"$1" repl <typed' sh "$program"
mkfifo lines
"$program" repl <lines >shown 2>&1 &
prompt=$!
exec 9>lines
echo 'print "runs"; io.stdout:flush(); while true do end' >&9
for _ in 1 2 3 4 5 6 7 8 9 10; do
  grep -q runs shown && break
  sleep 1
done
kill -INT "$prompt"
echo '1 + 1' >&9
exec 9>&-
check "Ctrl-C ends a chunk" 0 '' wait "$prompt"
check "and only that" 0 '^interrupted$' cat shown
also "the next one runs" '^2$'
finish

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lua programs over arrays: the checks of tests/lua/arrays.lua, serial and beside the script, on cpu and on onednn; arguments,
# libraries, and errors of programs.
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
finish

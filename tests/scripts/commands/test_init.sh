#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cleave init: what it writes works at once: the first rule passes its tests, the settings fit it, the definitions are
# those of the project; and it overwrites nothing unasked.
set -u
program=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
passed=0
failed=0

# check NAME COMMAND...
check() {
  name=$1
  shift
  if "$@" >out 2>&1; then
    passed=$((passed + 1))
  else
    echo "$name:"
    sed 's/^/    /' out
    failed=$((failed + 1))
  fi
}

# refuses NAME PATTERN COMMAND...: exit status 1, and a line with this pattern.
refuses() {
  name=$1
  pattern=$2
  shift 2
  "$@" >out 2>&1
  status=$?
  if [ $status -eq 1 ] && grep -q "$pattern" out; then
    passed=$((passed + 1))
  else
    echo "$name: exit status $status:"
    sed 's/^/    /' out
    failed=$((failed + 1))
  fi
}

check "makes a folder" "$program" init mine
for file in first.lua .luarc.json .luacheckrc .cleave/meta/words.lua .cleave/meta/graph.lua .cleave/meta/operators.lua; do
  check "writes $file" test -s "mine/$file"
done
check "the first rule passes its tests, each kind of them" "$program" check --coverage mine/first.lua
check "the first rule passes in its own folder" sh -c "cd mine && '$program' check first.lua"
check "the definitions are those of the project" diff -r mine/.cleave/meta "$3/reference/.cleave/meta"
check "the settings are JSON" python3 -c 'import json; json.load(open("mine/.luarc.json"))'
if command -v luacheck >/dev/null 2>&1; then
  check "luacheck knows the words" sh -c 'cd mine && luacheck -q .'
  check "luacheck finds what no rule file has" sh -c 'cd mine && printf "return ruleset { name = io.read() }\n" >bad.lua && ! luacheck -q bad.lua'
fi

refuses "overwrites nothing" "mine/.luacheckrc: exists already; --force" sh -c "rm -f mine/first.lua; '$program' init mine"
check "writes nothing where it refuses" test ! -e mine/first.lua
printf 'broken' >mine/.luarc.json
check "overwrites with --force" "$program" init mine --force
check "has overwritten all" sh -c "test -s mine/first.lua && grep -q runtime.version mine/.luarc.json"
check "works in a folder that is there" sh -c "mkdir there && '$program' init there && test -s there/first.lua"
: >file
refuses "needs a folder" "file/: cannot make this folder" "$program" init file
refuses "makes no folders above" "no/such/place/: cannot make this folder" "$program" init no/such/place
"$program" init >out 2>&1
[ $? -eq 2 ] && passed=$((passed + 1)) || { echo "no folder: not wrong usage"; failed=$((failed + 1)); }

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]

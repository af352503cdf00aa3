#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Golden plans: every folder here with model.lua and rules.lua must give the plan in expected.plan, byte for byte,
# twice. A folder with `arguments` adds them to the command line; one with `expected.error` must fail with that line.
# `sh tests/golden/test_golden.sh PROGRAM SOURCE BUILD --update` rewrites what is expected.
set -eu
program=$1
source=$2
update=${4:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
cd "$source/tests/golden"
for model in */model.lua; do
  name=${model%/model.lua}
  arguments=
  [ -f "$name/arguments" ] && arguments=$(cat "$name/arguments")
  expected=$name/expected.plan
  # shellcheck disable=SC2086
  if "$program" partition "$name/model.lua" --rules "$name/rules.lua" $arguments -o "$work/plan.txt" >"$work/out" 2>"$work/error"; then
    found=$work/plan.txt
    # shellcheck disable=SC2086
    "$program" partition "$name/model.lua" --rules "$name/rules.lua" $arguments -o "$work/again.txt" >/dev/null
    cmp -s "$work/plan.txt" "$work/again.txt" || { echo "$name: two runs give two plans"; failed=$((failed + 1)); }
  else
    found=$work/error
    expected=$name/expected.error
  fi
  if [ "$update" = --update ]; then
    rm -f "$name/expected.plan" "$name/expected.error"
    cp "$found" "$expected"
  fi
  if [ -f "$expected" ] && diff -u "$expected" "$found"; then
    passed=$((passed + 1))
  else
    [ -f "$expected" ] || { echo "$name: $expected is not there; found:"; cat "$found"; }
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Golden plans. A folder here holds `model.lua` and `cases`; each line of `cases` is a name, a rule file (relative to
# this folder), and further arguments of `cleave partition`. The plan must be NAME.plan, byte for byte, twice; where
# there is a NAME.error instead, the command must fail with just that line.
#
#   test_golden.sh PROGRAM SOURCE BUILD [--update]     --update rewrites what is expected
set -eu
program=$1
update=${4:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
cd "$2/tests/golden"
for cases in */cases */cases.*; do
  folder=${cases%/*}
  backend=${cases#*/cases}
  "$program" version | grep -q " ${backend#.}" || { echo "$folder: skipped, there is no backend ${backend#.}"; continue; }
  while read -r name rules arguments; do
    case "$name" in '' | '#'*) continue ;; esac
    expected=$folder/$name.plan
    found=$work/plan.txt
    # shellcheck disable=SC2086
    if "$program" partition "$folder/model.lua" --rules "$rules" $arguments -o "$found" >/dev/null 2>"$work/error"; then
      # shellcheck disable=SC2086
      "$program" partition "$folder/model.lua" --rules "$rules" $arguments -o "$work/again.txt" >/dev/null
      cmp "$found" "$work/again.txt" || { echo "$folder/$name: two runs give two plans"; failed=$((failed + 1)); }
    else
      found=$work/error
      expected=$folder/$name.error
    fi
    if [ "$update" = --update ]; then
      rm -f "$folder/$name.plan" "$folder/$name.error"
      cp "$found" "$expected"
    fi
    if [ -f "$expected" ] && diff -u "$expected" "$found"; then
      passed=$((passed + 1))
    else
      [ -f "$expected" ] || { echo "$folder/$name: $expected is not there; found:"; cat "$found"; }
      failed=$((failed + 1))
    fi
  done <"$cases"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

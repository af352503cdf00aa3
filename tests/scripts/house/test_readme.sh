#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The examples of rules/README.md and of the project's README: every block of Lua loads, and the tests in it pass. A
# block is a whole file, or rules in a row, or statements.
set -u
program=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# block_N.lua for each block of a file, with empty lines before it, so that line numbers are those of the file.
extract() {
  awk -v prefix="$2" '
    function finish() {
      if (name == "") { return }
      if (whole) { print text > name }
      else if (rules) {
        print "return ruleset { name = \"readme\"," text "}" > name
      } else { print text "return ruleset { name = \"readme\" }" > name }
      close(name)
      name = ""
    }
    /^```lua$/ {
      number++; name = prefix "_" number ".lua"; text = ""; whole = 0; rules = 0; first = 1
      for (k = 1; k <= NR - 1; k++) { text = text "\n" }
      inside = 1
      next
    }
    /^```/ && inside { inside = 0; text = text "\n"; finish(); next }
    inside {
      text = text "\n" $0
      if ($0 ~ /^return ruleset/) { whole = 1 }
      if (first && $0 !~ /^ *(--|$)/) {
        first = 0
        if ($0 ~ /^(fuse|region|rewrite|pass|stage|gradient|test|ruleset|strategy) "/) { rules = 1 }
      }
    }' "$1"
}
extract "$source/rules/README.md" rules
extract "$source/README.md" readme

blocks=0
failed=0
for file in *.lua; do
  blocks=$((blocks + 1))
  if ! "$program" check "$file" >out 2>&1; then
    echo "$file:"
    sed 's/^/    /' out
    failed=$((failed + 1))
  fi
done
echo "$((blocks - failed)) passed, $failed failed"
[ $failed -eq 0 ] && [ $blocks -ge 5 ]

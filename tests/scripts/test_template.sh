#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A library of one's own, by doing what backends/template/README.md says, word for word: the commands that stand
# indented there are run in their order, in a folder with nothing but the copy and one header.
set -eu
program=$1
source=$2
build=$3
sanitizer=$(sed -n 's/^CLEAVE_SANITIZE:STRING=//p' "$build/CMakeCache.txt")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/include/cleave" "$folder/backends"
cp "$source/src/include/cleave/backend.h" "$folder/include/cleave"
cp -r "$source/backends/template" "$folder/backends/template"
cat >"$folder/model.lua" <<'LUA'
local x = g.input("x", "float32", { 2, 3, 4 })
local y = g.Relu(g.Add(g.Relu(x), g.weight({ 2, 3, 4 }, { name = "w" })))
g.output("y", g.Tanh(y))
g.output("z", g.Relu(g.Add(y, x)))
LUA

lines=$(wc -l <"$source/backends/template/template.c")
[ "$lines" -lt 150 ] || { echo "template.c has $lines lines, expected less than 150"; exit 1; }

# The commands, with the two words that stand for something else.
sed -n 's/^       //p' "$source/backends/template/README.md" |
  sed -e "s|<include>|$folder/include|" -e "s|MODEL|$folder/model.lua|" >"$folder/steps"
steps=$(wc -l <"$folder/steps")
[ "$steps" -ge 6 ] || { echo "README.md has $steps commands, expected six"; exit 1; }
cat >"$folder/script" <<'SH'
set -e
cleave() { "$program" "$@"; }
cc() { command "${CC:-cc}" -Wall -Wextra -Werror ${sanitizer:+-fsanitize=$sanitizer} "$@"; }
cd "$folder"
. "$folder/steps"
SH
program=$program folder=$folder sanitizer=$sanitizer sh "$folder/script" >"$folder/out" 2>&1 ||
  { echo "a step of README.md fails:"; cat "$folder/steps" "$folder/out"; exit 1; }
for expected in "npu " "libnpu.so" "2 passed, 0 failed" "all outputs match"; do
  grep -q -e "$expected" "$folder/out" || { echo "expected '$expected' in"; cat "$folder/out"; exit 1; }
done
"$program" run "$folder/model.lua" --load "$folder/npu/libnpu.so" --rules "$folder/npu/relu_add.lua" >"$folder/out"
grep -q '^ *everything .*region on npu' "$folder/out" && grep -q '1 regions, 1 nodes on cpu' "$folder/out" ||
  { echo "expected all but Tanh in one region on npu:"; cat "$folder/out"; exit 1; }
"$program" verify "$folder/model.lua" --load "$folder/npu/libnpu.so" --rules "$folder/npu/relu_add.lua" >"$folder/out" ||
  { cat "$folder/out"; exit 1; }
echo "$steps commands of README.md, $lines lines"

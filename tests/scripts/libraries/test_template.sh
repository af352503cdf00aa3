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
[ "$lines" -lt 280 ] || { echo "template.c has $lines lines, expected less than 280"; exit 1; }

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
grep -q '^ *everything .*region on npu' "$folder/out" && grep -q '1 region, 1 node on cpu' "$folder/out" ||
  { echo "expected all but Tanh in one region on npu:"; cat "$folder/out"; exit 1; }
"$program" verify "$folder/model.lua" --load "$folder/npu/libnpu.so" --rules "$folder/npu/relu_add.lua" >"$folder/out" ||
  { cat "$folder/out"; exit 1; }
# Its operator, and the versions that it has.
cat >"$folder/twice.lua" <<'LUA'
local x = g.input("x", "float32", { 2, 3 })
g.output("y", g["npu.ops.Twice"](g.Relu(x)))
LUA
"$program" backends -v --load "$folder/npu/libnpu.so" >"$folder/out"
grep -q "has .*backward" "$folder/out" || { cat "$folder/out"; exit 1; }
grep -q 'operator npu.ops.Twice, versions 1 to 2: X -> Y' "$folder/out" || { cat "$folder/out"; exit 1; }
"$program" backends -v --load "$folder/npu/libnpu.so" --isolate npu >"$folder/out"
grep -q 'operator npu.ops.Twice, versions 1 to 2: X -> Y' "$folder/out" || { cat "$folder/out"; exit 1; }
"$program" run "$folder/twice.lua" --load "$folder/npu/libnpu.so" --repeat 1 >"$folder/out" || { cat "$folder/out"; exit 1; }
"$program" partition "$folder/twice.lua" --load "$folder/npu/libnpu.so" --backend cpu -o "$folder/twice.onnx" >"$folder/out"
# The same file with import 2, and with 3: the version is the byte behind the domain's text.
for version in 1 2 3; do
  perl -pe 's/(npu\.ops\x10)\x01/$1\x0'"$version"'/' <"$folder/twice.onnx" >"$folder/import$version.onnx"
  expected=$([ "$version" -le 2 ] && echo 0 || echo 1)
  status=0
  "$program" run "$folder/import$version.onnx" --load "$folder/npu/libnpu.so" --repeat 1 >"$folder/out" 2>&1 || status=$?
  [ "$status" -eq "$expected" ] || { echo "import of version $version: exit status $status"; cat "$folder/out"; exit 1; }
done
grep -q "operator 'npu.ops.Twice' of version 3 of 'npu.ops': library 'npu' has versions 1 to 2" "$folder/out" ||
  { cat "$folder/out"; exit 1; }

# Its gradients, in training: the losses of cleave's own, and the backward nodes in its regions.
cat >"$folder/train.lua" <<'LUA'
local x = g.input("x", "float32", { "N", 6 })
local w = g.weight { 6, 6, name = "w" }
local y = g.MatMul(x, w)
local z = g.Relu(g.Add(g.Relu(y), y))
g.output("y", g.MatMul(g.Add(z, y), g.weight { 6, 1, name = "v" }))
LUA
mkdir "$folder/samples"
# array FILE SHAPE COUNT: numbers of float32, as NumPy keeps them.
array() {
  header="{'descr': '<f4', 'fortran_order': False, 'shape': $2, }"
  while [ $(((10 + ${#header} + 1) % 64)) -ne 0 ]; do header="$header "; done
  { printf '\223NUMPY\001\000'; printf "\\$(printf %o $((${#header} + 1)))\\000"; printf '%s\n' "$header"
    awk -v n="$3" 'BEGIN { for (k = 0; k < n; k++) printf "\\000\\000\\%03o\\%03o", 128 * (k * 7 % 2), k * 5 % 3 == 0 ? 191 : 63 }' |
      { read -r text || :; printf "$text"; }; } >"$folder/samples/$1.npy"
}
array x '(16, 6)' 96
array targets '(16, 1)' 16
training() {
  "$program" train "$folder/train.lua" --data "$folder/samples" --loss mse --rate 0.05 --batch 8 --epochs 3 --keep-order "$@"
}
training --load "$folder/npu/libnpu.so" --rules "$folder/npu/relu_add.lua" --save-plan "$folder/plan.txt" >"$folder/out" ||
  { cat "$folder/out"; exit 1; }
grep -q '^gradients: 1 region by their backends, 0 by rules$' "$folder/out" || { cat "$folder/out"; exit 1; }
awk '/^  *region .* npu|^[a-z_0-9]* on npu|npu/ { inside = 1 } /ReluGrad/ { found = 1 } END { exit !(inside && found) }' "$folder/plan.txt" ||
  { echo "expected ReluGrad in a region on npu:"; cat "$folder/plan.txt"; exit 1; }
grep '^ *[1-3] ' "$folder/out" | awk '{ print $1, $3, $4 }' >"$folder/theirs"
training | grep '^ *[1-3] ' | awk '{ print $1, $3, $4 }' >"$folder/ours"
[ "$(wc -l <"$folder/ours")" -eq 3 ] && cmp "$folder/ours" "$folder/theirs" ||
  { echo "losses and gradients by the library:"; paste "$folder/ours" "$folder/theirs"; exit 1; }
"$program" gradient "$folder/train.lua" --loss y --shape N=8 --load "$folder/npu/libnpu.so" \
  --rules "$folder/npu/relu_add.lua" >"$folder/out" ||
  { cat "$folder/out"; exit 1; }
grep -q '^  [a-z_0-9]* *npu *[0-9][0-9]* *by its backend$' "$folder/out" || { cat "$folder/out"; exit 1; }
sed -i 's/"N", 6/8, 6/; s/g.Add(z, y)/g.Reshape(g.Relu(g.Add(z, g.Reshape(g.Relu(y), g.constant { 1, 8, 6 }))), g.constant { 8, 6 })/' "$folder/train.lua"
training --load "$folder/npu/libnpu.so" --rules "$folder/npu/relu_add.lua" >"$folder/out" || { cat "$folder/out"; exit 1; }
grep -q "^gradients: .* by rules: everything_[0-9]*: npu: 'Add': no gradient, or one of another rank$" "$folder/out" ||
  { cat "$folder/out"; exit 1; }

# As C++, too.
if command -v "${CXX:-c++}" >/dev/null; then
  for language in c++11 c++20; do
    "${CXX:-c++}" "-std=$language" -pedantic-errors -Wall -Wextra -Werror ${sanitizer:+-fsanitize=$sanitizer} -shared -fPIC -x c++ \
      -I "$folder/include" "$folder/npu/npu.c" -o "$folder/libcxx.so" || { echo "it does not compile as $language"; exit 1; }
    "$program" run "$folder/model.lua" --load "npu=$folder/libcxx.so" --rules "$folder/npu/relu_add.lua" --verify >"$folder/out" 2>&1 ||
      { cat "$folder/out"; exit 1; }
    grep -q 'all outputs match' "$folder/out" || { cat "$folder/out"; exit 1; }
  done
fi
echo "$steps commands of README.md, $lines lines"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `cleave calibrate`: ranges from samples and from test folders, what rules see of them, products of 8-bit integers of a
# float model, and errors.
set -u
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"
rules="$2/rules/onednn.lua"

# npy FILE SHAPE: a NumPy file of bytes.
npy() {
  header="{'descr': '|u1', 'fortran_order': False, 'shape': $2, }"
  while [ $(((10 + ${#header} + 1) % 64)) -ne 0 ]; do header="$header "; done
  { printf '\223NUMPY\001\000'; printf "\\$(printf %o $((${#header} + 1)))\\000"; printf '%s\n' "$header"; cat pixels; } >"$1"
}
awk 'BEGIN { for (k = 0; k < 5 * 2 * 36; k++) printf "\\%03o", k % 199 + (k == 700 % 360 ? 50 : 0) }' |
  { read -r text; printf "$text"; } >pixels
mkdir data empty
npy data/image.npy '(5, 2, 6, 6)'

cat >net.lua <<'LUA'
local x = g.input("image", "float32", { "N", 2, 6, 6 }) / 100
local y = g.Relu(g.Conv(x, g.weight { 16, 2, 3, 3 }, g.normal { 16 }, { pads = { 1, 1, 1, 1 }, name = "first" }))
local z = g.Relu(g.Conv(y, g.weight { 16, 16, 1, 1 }, nil, { name = "second" }) + y)
local p = g.MaxPool(z, { kernel_shape = { 2, 2 }, strides = { 2, 2 }, name = "pool" })
g.output("scores", g.Gemm(g.Flatten(p), g.weight { 10, 144, name = "linear" }, g.zeros { 10 }, { transB = 1, name = "last" }))
LUA
cat >seen.lua <<'LUA'
return ruleset { name = "seen", pass "ranges" { run = function(graph)
  local low, high = 1e30, -1e30
  for _, value in ipairs(graph.inputs) do
    if value.range then low, high = value.range.min, value.range.max end
  end
  return false, string.format("input from %g to %g", low, high)
end } }
LUA

cat >passed.lua <<'LUA'
return ruleset { name = "passed",
  rewrite "max" { pattern = op { "Relu", as = "relu" }, replace = function(m, g) return g.Max(m.relu.inputs.X, 0.0) end },
  pass "ranges" { run = function(graph)
    for node in graph:topological() do
      local range = node.outputs[1].range
      if node.op == "Max" then
        return false, string.format("max from %g", range and range.min or -1)
      end
    end
  end } }
LUA

check "ranges of all samples" 0 '^10 values, minmax of 5 samples: all.json$' "$program" calibrate net.lua --data data -o all.json
cp all.json out
also "what they are of" '"method": "minmax",'
also "a value a line" '"input":0,"name":"image","min":0.0,"max":198.0'
check "rules see them" 0 'input from 0 to 198' "$program" partition net.lua --rules seen.lua --ranges all.json --report
check "and nothing without" 0 'input from 1e+30 to -1e+30' "$program" partition net.lua --rules seen.lua --report
check "what takes the place of a value has its range" 0 'max from 0' "$program" partition net.lua --rules passed.lua --ranges all.json \
  --report
check "the first samples" 0 '"samples": 1,' "$program" calibrate net.lua --data data -o one.json --samples 1 --json
also "how many values" '"values": 10'
cp one.json out
also "fewer numbers" '"name":"image","min":0.0,"max":71.0'
check "minibatches" 0 '^10 values, minmax of 5 samples' "$program" calibrate net.lua --data data -o batch.json --batch 2
head -8 all.json >all.head
head -8 batch.json >batch.head
check "find the same input" 0 '' cmp all.head batch.head
check "percentile" 0 'percentile 90 of' "$program" calibrate net.lua --data data -o cut.json --method percentile --percentile 90
check "numbers are cut off" 1 '' cmp all.json cut.json
check "entropy" 0 '^10 values, entropy of' "$program" calibrate net.lua --data data -o entropy.json --method entropy
mkdir sets
check "inputs of a run" 0 '' "$program" run net.lua --shape N=2 --save sets/test_data_set_0 --repeat 1
check "are data as well" 0 'minmax of 1 sample:' "$program" calibrate net.lua --data sets/test_data_set_0 -o set.json
check "a folder of them" 0 'minmax of 1 sample: sets.json' "$program" calibrate net.lua --data sets -o sets.json
check "the same ranges" 0 '' cmp set.json sets.json

check "no output" 2 'expected --data DIR and -o FILE' "$program" calibrate net.lua --data data
check "a method" 2 "option '--method': expected minmax, percentile or entropy, found 'mean'" \
  "$program" calibrate net.lua --data data -o x.json --method mean
check "a percentile" 2 "option '--percentile': expected a number above 0, up to 100, found 101" \
  "$program" calibrate net.lua --data data -o x.json --method percentile --percentile 101
check "no folder" 1 'nowhere: expected a folder with .npy files, or an .npz file' "$program" calibrate net.lua --data nowhere -o x.json
check "an empty folder" 1 'empty: expected arrays of samples, found no .npy file' "$program" calibrate net.lua --data empty -o x.json
check "samples that do not fit" 1 "input 'image' is float32\[?, 2, 6, 6\], and the array 'image' is" \
  sh -c "mkdir wrong; cp data/image.npy wrong; sed -i 's/(5, 2, 6, 6)/(5, 6, 2, 6)/' wrong/image.npy; '$program' calibrate net.lua --data wrong -o x.json"
check "nothing was written" 1 '' test -e x.json
check "help" 0 'percent of the numbers of a value' "$program" calibrate --help
sed 's/weight { 16, 16, 1, 1 }/weight { 16, 16, 3, 3 }/; s/name = "second"/pads = { 1, 1, 1, 1 }, name = "second"/' net.lua >other.lua
check "ranges of another model" 1 'all.json: the ranges are of another model: its hash is' \
  "$program" partition other.lua --rules seen.lua --ranges all.json
head -c 200 all.json >broken.json
check "a broken file" 1 'broken.json:[0-9]*: not JSON' "$program" partition net.lua --rules seen.lua --ranges broken.json

if ! "$program" version | grep -q onednn; then
  finish
  exit
fi
int8() {
  command=$1
  shift
  case $command in
    precision) "$program" precision "$@" --rules "$rules" --ranges all.json --shape N=2 ;;
    *) "$program" "$command" "$@" --rules "$rules" --set precision=int8 --ranges all.json --shape N=2 ;;
  esac
}
check "products of integers" 0 'quantized .* 3 ' int8 run net.lua --verify --atol 0.05 --repeat 1 --profile trace.json
also "close to those of float32" 'all outputs match'
cp trace.json out
also "a convolution of integers" '"conv[^"]*\(int8\|vnni\|amx\)'
also "a pooling of integers" 'maxpool[^"]*jit_int'
check "piece by piece" 0 ' 0 do not' int8 verify net.lua
cat >attend.lua <<'LUA'
local x = g.input("x", "float32", { 2, 8, 32 })
local function project() return g.MatMul(x, g.weight { 32, 32 }) + g.normal { 32 } end
local y = g.Attention(project(), project(), project(), { q_num_heads = 4, kv_num_heads = 4 })
g.output("y", g.MatMul(y, g.weight { 32, 32 }) + x)
LUA
check "inputs of attention" 0 '' "$program" run attend.lua --save sets/attend --repeat 1
check "their ranges" 0 '^10 values, minmax of 1 sample: attend.json' "$program" calibrate attend.lua --data sets/attend -o attend.json
check "products beside an operator that is spelled out" 0 'matmul,[^,]*,[^,]*,src_u8' env DNNL_VERBOSE=1 "$program" run attend.lua \
  --rules "$rules" --set precision=int8 --ranges attend.json --data sets/attend --atol 0.05 --repeat 1
also "all of them" 'quantized .* 4 '
also "are close to float32" 'all outputs match'
cat >deep.lua <<'LUA'
local x = g.input("x", "float32", { 2, 12, 512 })
local up = g.Gelu(g.MatMul(x, g.weight { 512, 576 }) + g.normal { 576 })
g.output("y", g.MatMul(up, g.weight { 576, 512 }) + g.normal { 512 } + x)
LUA
check "inputs of deep products" 0 '' "$program" run deep.lua --save sets/deep --repeat 1
check "their ranges" 0 'deep.json' "$program" calibrate deep.lua --data sets/deep -o deep.json
check "deep products of integers" 0 'all outputs match' "$program" run deep.lua --rules "$rules" --set precision=int8 --ranges deep.json \
  --data sets/deep --atol 0.3 --repeat 1 --profile deep_trace.json
if grep -qw amx_int8 /proc/cpuinfo && grep -qw amx_bf16 /proc/cpuinfo; then
  check "both by AMX" 0 '^2$' sh -c 'grep -o "matmul amx" deep_trace.json | wc -l'
fi
check "what is kept stays float32" 0 'quantized .* 2 ' int8 run net.lua --set 'keep=la*' --repeat 1
check "by operator" 0 'quantized .* 1 ' int8 run net.lua --set keep=Conv --repeat 1
check "weights of 8 bits need VNNI" 0 'neither AVX512_VNNI nor AVX_VNNI' \
  env DNNL_MAX_CPU_ISA=AVX2 "$program" partition net.lua --rules "$rules" --set precision=int8 --ranges all.json --set reduce_range=false
check "no ranges" 1 "int8.lua:[0-9]*: .*the ranges of values are not known: 'cleave calibrate MODEL --data DIR -o FILE'" \
  "$program" partition net.lua --rules "$rules" --set precision=int8
check "an error that all integers meet" 0 '^met' int8 precision net.lua --precision int8 --max-error 0.1
also "the setting" '^--set precision=int8 --ranges all.json$'
check "an error for which parts stay" 0 '^met' int8 precision net.lua --precision int8 --max-error 1e-5
also "all of them" 'int8, 3 parts kept'
also "by the names of products" '^ *second  *quantized .* float32'
setting=$(sed -n 's/.*--set \(keep=[^ ]*\).*/\1/p' "$out")
check "the setting gives what was found" 0 'all outputs match' int8 run net.lua --set "$setting" --verify --repeat 1 --rtol 1e-4 --atol 1e-5
check "precision without ranges" 1 'the ranges of values are not known' \
  "$program" precision net.lua --rules "$rules" --precision int8 --shape N=2
check "a QDQ model and nothing else" 0 '0 fusions, 0 regions' "$program" partition net.lua --rules "$2/rules/int8.lua" --ranges all.json \
  --shape N=2 -o plain.onnx
also "of all products" 'int8 .* 1 '
check "whose products are of integers" 0 'quantized .* 3 ' "$program" run plain.onnx --rules "$rules" --verify --repeat 1
also "with the same values" 'all outputs match'
check "as a file" 0 '' int8 partition net.lua -o net.onnx
check "which runs without ranges" 0 'all outputs match' "$program" run net.onnx --verify --repeat 1
finish

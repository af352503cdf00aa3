#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Whole models by rules/cuda.lua on the stand-ins of NVIDIA's libraries: equal to cpu, with nothing left there; and the
# same without cuBLASLt and cuDNN. CLEAVE_MODELS is a folder of exported models, of which small ones are run, too.
#
#   test_cuda_models.sh PROGRAM SOURCE BUILD
set -u
program=$1
source=$2
"$program" backends | grep -q "^ *cuda " || { echo "skipped: this build has no CUDA backend"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/out
. "$2/tests/scripts/checks.sh"
CLEAVE_CUDA_PATH=$3/tests/cuda
CLEAVE_CUDA_CACHE=$3/tests/cuda/cache
export CLEAVE_CUDA_PATH CLEAVE_CUDA_CACHE

# verified MODEL [OPTIONS]
verified() {
  "$program" run "$@" --rules "$source/rules/cuda.lua" --verify --repeat 2
}
models=$source/examples/models
check "a recurrent cell" 0 'all outputs match' verified "$models/gru_residual.lua"
check "a GPU by its number" 0 'memory of cuda:0: ' verified "$models/gru_residual.lua" --device cuda:0
check "no GPU of this number" 1 "option '--device': backend 'cuda' has 1 device, there is no device 1" \
  verified "$models/gru_residual.lua" --device cuda:1
check "a transformer" 0 'all outputs match' verified "$models/bert_base.lua" --set layers=1 --set T=16 --set vocabulary=64
check "convolutions, depthwise ones among them" 0 'all outputs match' verified "$models/mobilenet_v2.lua" --set size=32
also "it leaves nothing" " 0 nodes on cpu one by one"
check "other kinds of products" 0 'all outputs match' verified "$models/gru_residual.lua" --set precision=tf32 --set fast_math=true
check "convolutions of float16" 0 'all outputs match' verified "$models/mobilenet_v2.lua" --set size=32 --set precision=float16 \
  --rtol 0.01 --atol 0.01
also "it leaves nothing" " 0 nodes on cpu one by one"
check "a transformer in bfloat16" 0 'all outputs match' verified "$models/bert_base.lua" --set layers=1 --set T=16 \
  --set vocabulary=64 --set precision=bfloat16 --set 'keep=*LayerNorm*' --rtol 0.05 --atol 0.05
cat >"$work/infinities.lua" <<'LUA'
local inf = math.huge
local x = g.input("x", "float32", { 1 })
local rows = g.constant({ { -inf, -inf, -inf }, { inf, 1, 2 }, { -inf, 1, 2 }, { 3, 1, 2 } }, "float32")
local values = g.Where(g.Less(x, 1e9), rows, g.Neg(rows))
g.output("inner", g.ReduceLogSumExp(values, g.constant { 1 }, { keepdims = 0 }))
g.output("outer", g.ReduceLogSumExp(values, g.constant { 0 }, { keepdims = 0 }))
LUA
check "reductions of infinities" 0 'all outputs match' verified "$work/infinities.lua"
also "it leaves nothing" " 0 nodes on cpu one by one"
check "images that grow again" 0 'all outputs match' verified "$models/unet.lua" --set size=32 --set width=8
also "it leaves nothing" " 0 nodes on cpu one by one"
check "the tests of its rules" 0 ' passed, 0 failed$' "$program" check "$source/rules/cuda.lua"
CLEAVE_CUDA_PATH=$3/tests/cuda/alone
check "a recurrent cell without cuBLASLt" 0 'all outputs match' verified "$models/gru_residual.lua"
CLEAVE_CUDA_PATH=$3/tests/cuda
check "kernels are printed" 0 '^extern "C" __global__' "$program" kernels "$models/gru_residual.lua" --rules "$source/rules/cuda.lua"
for name in squeezenet1_1_op13 lstm_op13; do
  for file in "${CLEAVE_MODELS:-/nowhere}/$name"/*.onnx; do
    [ ! -f "$file" ] || check "$name" 0 'all outputs match' verified "$file"
  done
done
finish

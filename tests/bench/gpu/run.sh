#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Kernels and models on a GPU, with their data on it: bandwidth against a copy in the same run, and PyTorch's times for the same
# work where PyTorch is installed.
#
#   run.sh PROGRAM BENCH SOURCE [--quick]      PROGRAM is cleave, BENCH is bench_gpu
set -eu
program=$1
bench=$2
source=$3
runs=20
scale=1
[ "${4:-}" != --quick ] || { runs=2; scale=64; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
list=

# region NAME MODEL OPTIONS...: the region of a model that computes most, as a file.
region() {
  name=$1
  model=$2
  shift 2
  "$program" partition "$model" --backend cuda --rules "$source/rules/cuda.lua" "$@" --regions "$work/$name" \
    --constants inline >"$work/log" 2>&1 || "$program" partition "$model" "$@" --rules "$source/rules/cuda.lua" \
    --regions "$work/$name" --constants inline >"$work/log" 2>&1 || { cat "$work/log"; return 0; }
  file=$(ls -S "$work/$name"/*.json 2>/dev/null | head -n 1)
  [ -z "$file" ] || list="$list $name=$file"
}
# kernel NAME WORK ROWS COLUMNS [DTYPE]: as a region of everything, which for a copy alone no rule would make.
kernel() {
  "$program" partition "$source/tests/bench/gpu/workloads.lua" --backend cuda --set "work=$2" --set "rows=$(($3 / scale))" \
    --set "columns=$4" --set "dtype=${5:-float32}" --regions "$work/$1" --constants inline >"$work/log" 2>&1 ||
    { cat "$work/log"; return 0; }
  list="$list $1=$(ls -S "$work/$1"/*.json | head -n 1)"
}
# fused NAME WORK ROWS COLUMNS [DTYPE [OPTIONS...]]
fused() {
  fused_name=$1
  fused_work=$2
  fused_rows=$(($3 / scale))
  fused_columns=$4
  fused_dtype=${5:-float32}
  [ $# -le 4 ] || shift
  shift 4
  region "$fused_name" "$source/tests/bench/gpu/workloads.lua" --set "work=$fused_work" --set "rows=$fused_rows" \
    --set "columns=$fused_columns" --set "dtype=$fused_dtype" "$@"
}
kernel copy copy 8192 8192
fused chain4 chain4 8192 8192
fused chain16 chain16 8192 8192
fused chain4_f16 chain4 8192 8192 float16
fused softmax_768 softmax 16384 768
fused softmax_4096 softmax 8192 4096
fused softmax_32768 softmax 4096 32768
fused layer_norm_768 layer_norm 16384 768
fused layer_norm_4096 layer_norm 8192 4096
fused bias_gelu_4096 bias_gelu 8192 4096
fused transpose transpose 8192 8192
fused columns columns 8192 4096
fused product_768 product 4096 768
# Attention of 12 heads x 128 x 64, of 1 and of 32 sequences: in one kernel, and as products and a softmax.
for dtype in float32 float16; do
  for tokens in 128 4096; do
    [ "$scale" -eq 1 ] || [ $tokens -ge 4096 ] || continue
    fused "attention_$((tokens / 128))_$dtype" attention $tokens 768 $dtype
    fused "attention_apart_$((tokens / 128))_$dtype" attention_apart $tokens 768 $dtype --set attention=false
  done
done
fused attention_32_tf32 attention 4096 768 float32 --set precision=tf32
if [ "$scale" -eq 1 ]; then
  fused attention_4096_float16 attention 4096 768 float16 --set length=4096
  fused attention_4096_causal_float16 attention 4096 768 float16 --set length=4096 --set causal=1
fi
region gru_residual "$source/examples/models/gru_residual.lua"
if [ "$scale" -eq 1 ]; then
  region gru_residual_500 "$source/examples/models/gru_residual.lua" --set features=500 --set batch=100 --set hidden=1500
  region resnet50 "$source/examples/models/resnet50.lua"
  region bert_base "$source/examples/models/bert_base.lua"
fi
# shellcheck disable=SC2086
"$bench" "$runs" $list
if command -v python3 >/dev/null && python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
  python3 "$source/tests/bench/gpu/torch_times.py" "$runs"
else
  echo "PyTorch with CUDA is not installed: no times of it"
fi

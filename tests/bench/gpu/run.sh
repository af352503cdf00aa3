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
models=$source/examples/models
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
names=
running=0

# partitioned NAME ARGUMENTS...: the regions of a model, in the background: models of many weights take seconds, and
# gigabytes; there are as many at a time as processors.
partitioned() {
  [ "$running" -lt "$(nproc)" ] || { wait; running=0; }
  running=$((running + 1))
  names="$names $1"
  name=$1
  shift
  "$program" partition "$@" --regions "$work/$name" --constants inline >"$work/$name.log" 2>&1 &
}
# region NAME MODEL OPTIONS...: what the rules make of it.
region() {
  name=$1
  shift
  partitioned "$name" "$@" --backend cuda --rules "$source/rules/cuda.lua"
}
# kernel NAME WORK ROWS COLUMNS [DTYPE]: as a region of everything, which for a copy alone no rule would make.
kernel() {
  partitioned "$1" "$source/tests/bench/gpu/workloads.lua" --backend cuda --set "work=$2" --set "rows=$(($3 / scale))" \
    --set "columns=$4" --set "dtype=${5:-float32}"
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
fused chain16_fast chain16 8192 8192 float32 --set fast_math=true
fused chain4_f16 chain4 8192 8192 float16
for work_name in softmax layer_norm bias_gelu; do
  fused ${work_name}_768 $work_name 16384 768
  fused ${work_name}_4096 $work_name 8192 4096
  fused ${work_name}_32768 $work_name 4096 32768
done
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
region gru_residual "$models/gru_residual.lua"
if [ "$scale" -eq 1 ]; then
  region gru_residual_500 "$models/gru_residual.lua" --set features=500 --set batch=100
  for precision in float32 tf32 float16; do
    for batch in 1 32 128; do
      region "resnet50_${precision}_$batch" "$models/resnet50.lua" --set batch=$batch --set precision=$precision
    done
    for batch in 1 32; do
      region "bert_base_${precision}_$batch" "$models/bert_base.lua" --set batch=$batch --set precision=$precision
    done
  done
fi
wait
list=
for name in $names; do
  # The region that computes most, if there are several.
  file=$(ls -S "$work/$name"/*.json 2>/dev/null | head -n 1)
  if [ -n "$file" ]; then
    list="$list $name=$file"
  else
    echo "$name: no region"
    tail -n 3 "$work/$name.log"
  fi
done
status=0
# shellcheck disable=SC2086
"$bench" "$runs" $list || status=1
if command -v python3 >/dev/null && python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
  python3 "$source/tests/bench/gpu/torch_times.py" "$runs" || status=1
else
  echo "PyTorch with CUDA is not installed: no times of it"
fi
exit $status

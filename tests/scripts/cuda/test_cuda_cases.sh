#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# MXNet's cases of pointwise fusion, forward, on the stand-ins of NVIDIA's libraries.
#
#   test_cuda_cases.sh PROGRAM SOURCE BUILD
set -eu
program=$1
source=$2
"$program" backends | grep -q "^ *cuda " || { echo "skipped: this build has no CUDA backend"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CLEAVE_CUDA_PATH=$3/tests/cuda
CLEAVE_CUDA_CACHE=$3/tests/cuda/cache
export CLEAVE_CUDA_PATH CLEAVE_CUDA_CACHE
cp -r "$source/rules/pointwise" "$source/tests/lua/fusion_cases.lua" "$work"
"$program" check --strict "$work/fusion_cases.lua" >"$work/log" 2>&1 || { grep -v ' passed  ' "$work/log"; exit 1; }
tail -n 1 "$work/log"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# MXNet's cases of pointwise fusion on the stand-ins of NVIDIA's libraries, forward and with gradients: the backend takes each.
#
#   test_cuda_cases.sh PROGRAM SOURCE BUILD
set -eu
program=$1
"$program" backends | grep -q "^ *cuda " || { echo "skipped: this build has no CUDA backend"; exit 77; }
CLEAVE_CUDA_PATH=$3/tests/cuda
CLEAVE_CUDA_CACHE=$3/tests/cuda/cache
export CLEAVE_CUDA_PATH CLEAVE_CUDA_CACHE
log=$("$3/tests/sweep" --backend cuda fusion) || { echo "$log"; exit 1; }
echo "$log" | grep '^fusion: [0-9]* cases, 0 refused,' || { echo "$log"; echo "a case is refused"; exit 1; }
# A compiler runs for each kernel: a third of the cases.
log=$("$3/tests/sweep" --backend cuda --gradients --every 3 fusion) || { echo "$log"; exit 1; }
echo "$log" | grep '^fusion: [0-9]* cases, 0 refused,' || { echo "$log"; echo "a case is refused"; exit 1; }

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The backend's own headers for NVIDIA's libraries against the toolkit's, where one is installed: numbers, structs, and that
# libraries have every entry point.
#
#   test_cuda_headers.sh PROGRAM SOURCE BUILD
set -eu
source=$2
toolkit=${CUDA_PATH:-/usr/local/cuda}
[ -f "$toolkit/include/cublasLt.h" ] || { echo "skipped: no CUDA toolkit in $toolkit (CUDA_PATH)"; exit 77; }
cudnn=
[ ! -f "$toolkit/include/cudnn.h" ] || cudnn=-DHAS_CUDNN
${CC:-cc} -std=c17 -fsyntax-only $cudnn -I"$source/backends" -I"$source/src/include" -isystem "$toolkit/include" \
  "$source/tests/cuda/headers.c"
status=0
# entries HEADER LIBRARY...: the symbols of the header's list that the library does not have.
entries() {
  header=$1
  library=$2
  [ -f "$library" ] || return 0
  tr '\n' ' ' <"$source/backends/cuda/library/$header" | grep -o '\(cu\|nvrtc\|cublasLt\|cudnn\)[A-Z][A-Za-z_0-9]*, *\\\? *(' |
    sed 's/,.*//' | sort -u | while read -r symbol; do
    nm -D --defined-only "$library" | grep -q " $symbol\(@\|\$\)" || echo "$library has no $symbol"
  done
}
for pair in driver.h:libcuda.so nvrtc.h:libnvrtc.so cublaslt.h:libcublasLt.so cudnn.h:libcudnn.so; do
  library=$toolkit/lib64/${pair#*:}
  [ -f "$library" ] || library=$toolkit/lib64/stubs/${pair#*:}
  missing=$(entries "${pair%:*}" "$library")
  [ -z "$missing" ] || { echo "$missing"; status=1; }
done
[ $status -eq 0 ] && echo "as in $toolkit"
exit $status

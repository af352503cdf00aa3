#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The CUDA backend on a machine with an NVIDIA GPU: builds, compares everything with cpu, then measures. It needs gcc, CMake and
# the driver with NVRTC (the toolkit brings it), and Lua 5.4 and jansson, which may lie in a folder of their own (include, lib).
# OpenBLAS is used where it is; without it cpu multiplies by plain loops, and large models take it minutes.
#
#   sh tests/gpu/run.sh [--deps DIR] [--build DIR] [--quick] [--no-bench]
set -u
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$source/build/gpu
deps=
quick=
bench=1
while [ $# -gt 0 ]; do
  case $1 in
    --deps) deps=$2; shift ;;
    --build) build=$2; shift ;;
    --quick) quick=--quick ;;
    --no-bench) bench= ;;
    *) echo "usage: $0 [--deps DIR] [--build DIR] [--quick] [--no-bench]"; exit 2 ;;
  esac
  shift
done
if [ -z "${CLEAVE_CUDA_PATH:-}" ] && ! nvidia-smi -L 2>/dev/null | grep -q GPU; then
  echo "skipped: no NVIDIA GPU (nvidia-smi -L lists none)"
  exit 77
fi
if [ -n "$deps" ]; then
  PKG_CONFIG_PATH=$deps/lib/pkgconfig:$deps/share/pkgconfig:${PKG_CONFIG_PATH:-}
  LD_LIBRARY_PATH=$deps/lib:${LD_LIBRARY_PATH:-}
  CMAKE_PREFIX_PATH=$deps:${CMAKE_PREFIX_PATH:-}
  export PKG_CONFIG_PATH LD_LIBRARY_PATH CMAKE_PREFIX_PATH
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "== building in $build"
cmake -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCLEAVE_TESTS=OFF -DCLEAVE_GPU_TESTS=ON -DCLEAVE_ONEDNN=OFF \
  -DCLEAVE_OPENBLAS=AUTO -DCLEAVE_EDITLINE=OFF -DCLEAVE_XNNPACK=OFF -DCLEAVE_MPI=OFF >"$work/log" 2>&1 &&
  cmake --build "$build" -j "$(nproc)" >>"$work/log" 2>&1 || { tail -n 30 "$work/log"; exit 1; }
program=$build/cleave
sweep=$build/tests/gpu/gpu_sweep

passed=0
failed=0
# step NAME COMMAND...: its last line, or what it printed.
step() {
  name=$1
  shift
  if "$@" >"$work/out" 2>&1; then
    passed=$((passed + 1))
    echo "ok      $name: $(tail -n 1 "$work/out" | cut -c 1-140)"
  else
    failed=$((failed + 1))
    echo "FAILED  $name"
    tail -n 40 "$work/out" | sed 's/^/    /'
  fi
}
verified() {
  "$program" run "$@" --rules "$source/rules/cuda.lua" --verify --repeat 3 >"$work/verified" 2>&1
  status=$?
  grep 'all outputs match\|match\|differ\|error' "$work/verified" || tail -n 5 "$work/verified"
  return $status
}
# More than 2^31 elements; the GPU needs 7 GB, the host 7 more.
large() {
  cat >"$work/large.lua" <<'LUA'
local x = g.input("x", "uint8", { 65537, 32769 })
g.output("y", g.Max(x + 1, g.constant(3, "uint8")))
LUA
  "$program" run "$work/large.lua" --backend cuda --verify --repeat 1 | grep 'all outputs match'
}

echo "== what is there"
"$program" backends cuda || exit 1
echo "== against cpu"
subjects="pointwise types window product reduction movement recurrent epilogue spelling fusion random indices rest attention"
[ -z "$quick" ] || subjects="product movement attention"
for subject in $subjects; do
  step "sweep $subject" "$sweep" --backend cuda "$subject"
done
for subject in fusion window; do
  step "sweep $subject, with gradients" "$sweep" --backend cuda --gradients $subject
done
models=$source/examples/models
step "a recurrent cell" verified "$models/gru_residual.lua"
step "a transformer, one layer" verified "$models/bert_base.lua" --set layers=1 --set T=16 --set vocabulary=64
step "mobilenet, small images" verified "$models/mobilenet_v2.lua" --set size=32
step "mobilenet of float16" verified "$models/mobilenet_v2.lua" --set size=32 --set precision=float16 --rtol 0.01 --atol 0.01
step "a transformer in bfloat16" verified "$models/bert_base.lua" --set layers=1 --set T=16 --set vocabulary=64 \
  --set precision=bfloat16 --rtol 0.05 --atol 0.05
step "the tests of the rules" "$program" check "$source/rules/cuda.lua"
if [ -z "$quick" ]; then
  step "bert_base" verified "$models/bert_base.lua"
  step "resnet50" verified "$models/resnet50.lua"
  step "mobilenet_v2" verified "$models/mobilenet_v2.lua"
  step "unet" verified "$models/unet.lua"
  step "more than 2^31 elements" large
fi
if command -v compute-sanitizer >/dev/null; then
  step "compute-sanitizer" compute-sanitizer --error-exitcode 9 "$program" run "$models/gru_residual.lua" --rules \
    "$source/rules/cuda.lua" --verify --repeat 1
  step "compute-sanitizer, races" compute-sanitizer --tool racecheck --error-exitcode 9 "$program" run \
    "$models/bert_base.lua" --set layers=1 --set T=16 --set vocabulary=64 --rules "$source/rules/cuda.lua" --repeat 1
else
  echo "skipped: compute-sanitizer is not installed"
fi
# measured FOLDER MODEL [OPTIONS]: milliseconds to compile and of a run, with what the folder keeps.
measured() {
  CLEAVE_CUDA_CACHE=$work/$1
  export CLEAVE_CUDA_CACHE
  shift
  "$program" run "$@" --rules "$source/rules/cuda.lua" --repeat 20 --json 2>/dev/null | awk -F '[:,]' '
    /^  "compile_ms"/ { compile = $2 } /^  "median_ms"/ { median = $2 } END { printf "%9.1f %9.3f", compile, median }'
  unset CLEAVE_CUDA_CACHE
}
if [ -n "$bench" ]; then
  echo "== compiling and a run, ms: with first algorithms; with measured ones, nothing kept; with what was kept"
  for name in bert_base resnet50 mobilenet_v2; do
    for precision in float32 float16; do
      printf '%-14s %-9s' "$name" $precision
      for how in "first false" "kept true" "kept true"; do
        printf '  %s' "$(measured "$name-$precision-${how% *}" "$models/$name.lua" --set precision=$precision --set tune="${how#* }")"
      done
      echo
    done
  done
  echo "== times"
  sh "$source/tests/bench/gpu/run.sh" "$program" "$build/tests/gpu/gpu_bench" "$source" $quick || failed=$((failed + 1))
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what the tests need, builds, and runs all of them. Ends with `N passed, M failed`.
#
#   sh tests/run.sh [--no-install] [--preset NAME]... [--models none|small|all] [--only PATTERN]
#
# --preset   build and test with these presets instead of release, asan and minimal
# --models   exported PyTorch models checked with and without rules (default: all; needs about 3 GB of disk)
# --only     only tests whose names match the pattern (a regular expression), and no models
set -eu
cd "$(dirname "$0")/.."
. tests/packages.sh

install=yes
presets=
models=all
only=
while [ $# -gt 0 ]; do
  case "$1" in
    --no-install) install=no ;;
    --preset) presets="$presets $2"; shift ;;
    --models) models=$2; shift ;;
    --only) only=$2; models=none; shift ;;
    -h | --help) sed -n '3,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "tests/run.sh: unknown option '$1' (see --help)" >&2; exit 2 ;;
  esac
  shift
done
presets=${presets:-release asan minimal}
packages="$build_packages $test_packages"
[ "$models" = none ] || packages="$packages $model_packages"
[ "$install" = no ] || install_packages $packages
[ "$install" = no ] || install_packages $optional_packages || echo "without $optional_packages"

# What runs exported models in ONNX Runtime (tests/models/check_ort.sh), into build/; without npm or the network these
# checks are skipped.
install_onnxruntime() {
  [ ! -d "${ORT_DIR:-build}/node_modules/onnxruntime-node" ] || return 0
  command -v npm >/dev/null || { echo "without npm's onnxruntime-node: npm is not installed"; return 0; }
  mkdir -p build
  npm install --ignore-scripts --no-save --no-audit --no-fund --prefix build onnxruntime-node >build/npm.log 2>&1 ||
    { echo "without npm's onnxruntime-node: $(tail -n 1 build/npm.log)"; rm -rf build/node_modules; }
}

[ "$install" = no ] || [ "$models" = none ] || install_onnxruntime

passed=0
failed=0
export CTEST_OUTPUT_ON_FAILURE=1 OMP_WAIT_POLICY=passive

# Adds up what a run of ctest says: the checks inside Check programs, other tests as one each, skipped ones as none.
count() {
  counts=$(awk '
    /^Checks: |: Checks: / { gsub(/,/, ""); for (i = 1; i < NF; i++) { if ($i == "Checks:") c = $(i + 1);
                             if ($i == "Failures:") f = $(i + 1); if ($i == "Errors:") e = $(i + 1) }
                             checks += c - f - e; bad += f + e; seen = 1; next }
    /^skipped: /           { skipped = 1 }
    /^Test Passed\.$/      { if (!seen && !skipped) checks++; seen = skipped = 0 }
    /^Test Failed\.$/      { if (!seen || !(f + e)) bad++; seen = skipped = f = e = 0 }
    END { print checks + 0, bad + 0 }' "$1")
  passed=$((passed + ${counts% *}))
  failed=$((failed + ${counts#* }))
}

# What tests that failed printed: of each the last 40 lines.
show_failed() {
  awk '
    / Testing: /         { name = $NF; count = 0 }
    /^<end of output>$/  { inside = 0 }
    inside && !/^-+$/    { lines[count++] = $0 }
    /^Output:$/          { inside = 1 }
    /^Test Failed\.$/ {
      print "== failed: " name
      for (i = (count > 40 ? count - 40 : 0); i < count; i++) print "    " lines[i]
    }' "$1"
}

# What does not depend on the libraries that the preset minimal lacks; release runs it, with the same optimization.
same_in_minimal='attack|isolate|replay|mirror|kernels|random|contraction|contention|house|onnx_backend'
same_in_minimal="$same_in_minimal|sweep_(gradients|avx2|plain)|library|script_clock|embedded|watch"
# What looks at sources alone.
same_in_asan='house|layering|readme|cuda_headers'
export CCACHE_DIR="${CCACHE_DIR:-$PWD/build/ccache}"
for preset in $presets; do
  echo "== $preset"
  launcher=
  case $preset in # minimal compiles nearly everything as release does: once, with ccache
    release | minimal) ! command -v ccache >/dev/null || launcher=-DCMAKE_C_COMPILER_LAUNCHER=ccache ;;
  esac
  cmake --preset "$preset" -DCLEAVE_TESTS=ON $launcher >build-"$preset".log 2>&1 || { cat build-"$preset".log; rm -f build-"$preset".log; exit 1; }
  sed -n '/^-- cleave [0-9]/,/^-- $/p' build-"$preset".log
  rm -f build-"$preset".log
  cmake --build --preset "$preset" -- --quiet
  rm -f "build/$preset/Testing/Temporary/LastTestsFailed.log"
  case $preset in
    minimal) excluded=$same_in_minimal ;;
    asan) excluded=$same_in_asan ;;
    *) excluded= ;;
  esac
  # Three at a time, because some wait for most of their time; those that measure time have the machine to themselves.
  ctest --preset "$preset" ${only:+-R "$only"} ${excluded:+-E "$excluded"} -j 3 --quiet || true
  log=build/$preset/Testing/Temporary/LastTest.log
  before=$failed
  count "$log"
  if [ -s "build/$preset/Testing/Temporary/LastTestsFailed.log" ]; then
    # A test that ended without saying so (a time limit, a missing program) has failed all the same.
    [ "$failed" -gt "$before" ] || failed=$((failed + $(wc -l <"build/$preset/Testing/Temporary/LastTestsFailed.log")))
    echo "failed with preset $preset:"
    cat "build/$preset/Testing/Temporary/LastTestsFailed.log"
    show_failed "$log"
  fi
done

# Adds the last line `N passed, M failed` of a log; a log without one is a failure, unless it says why it was skipped.
count_log() {
  last=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$1" | tail -n 1)
  if [ -n "$last" ]; then
    passed=$((passed + ${last%% passed*}))
    last=${last##*passed, }
    failed=$((failed + ${last%% failed*}))
  elif ! grep -q '^skipped: ' "$1"; then
    failed=$((failed + 1))
  fi
}

if [ "$models" != none ]; then
  echo "== models"
  sh tests/models/check.sh build/release/cleave "$models" | tee build/models.log
  count_log build/models.log
  echo "== gradients of models"
  sh tests/models/check_gradients.sh build/release/cleave "$models" | tee build/models_gradients.log
  count_log build/models_gradients.log
  echo "== training of models"
  mkdir -p build/models/training
  /usr/bin/python3 tests/models/training.py build/release/cleave build/models/training | tee build/models_training.log
  count_log build/models_training.log
  echo "== generation of models"
  /usr/bin/python3 tests/models/check_generate.py build/release/cleave build/models | tee build/models_generation.log
  count_log build/models_generation.log
  echo "== models in ONNX Runtime"
  sh tests/models/check_ort.sh build/release/cleave "$models" | tee build/models_ort.log
  count_log build/models_ort.log
fi

echo
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

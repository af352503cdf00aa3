# SPDX-License-Identifier: Apache-2.0
# Sourced by tests of checks on the stand-ins of NVIDIA's libraries, with their arguments PROGRAM SOURCE BUILD: a folder of
# their own, rules/cuda.lua, and where the stand-ins are. Without the backend the test is skipped.
# shellcheck shell=sh disable=SC2034
set -u
program=$1
rules=$2/rules/cuda.lua
"$program" backends | grep -q "^ *cuda " || { echo "skipped: this build has no CUDA backend"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/out
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"
CLEAVE_CUDA_PATH=$3/tests/cuda
CLEAVE_CUDA_CACHE=$3/tests/cuda/cache
export CLEAVE_CUDA_PATH CLEAVE_CUDA_CACHE

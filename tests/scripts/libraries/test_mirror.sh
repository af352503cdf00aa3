#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The mirror library on the command line: it lists itself, runs models with cpu's numbers to the bit on either device,
# guarded, by regions and by single operators, from blobs, and says what it was used for wrongly.
set -u
program=$1
source=$2
library=$3/accelerators/libmirror.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset CLEAVE_BACKEND_PATH CLEAVE_CACHE
. "$2/tests/scripts/checks.sh"

cat >model.lua <<'LUA'
local x = g.input("x", "float32", { 2, 6, 10, 8 })
local c = g.Conv(x, g.weight { 12, 6, 3, 3, name = "w" }, { pads = { 1, 1, 1, 1 } })
local s = g.Softmax(g.Relu(g.batch_norm(c)), { axis = 1 })
g.output("y", s)
g.output("z", g.ReduceMean(g.Mul(s, c), g.constant({ 2, 3 }, "int64")))
LUA

cat >open.lua <<'LUA'
-- How many elements are not zero is known only at run time.
local x = g.input("x", "float32", { 4, 5 })
g.output("y", g.Mul(g.Cast(g.NonZero(g.Relu(x)), { to = "float32" }), 2.0))
LUA

check "lists itself" 0 "has devices, single operators, blobs" "$program" backends -v --load "$library"
also "devices" "device 1: mirror 1"
also "rule file" "rule file mirror.lua"
check "answers" 0 "runs  *0" "$program" backends mirror --load "$library" --ask runs
check "is set" 0 "latency_ns  *5" "$program" backends mirror --load "$library" --ask latency_ns=5
check "unknown setting" 1 "setting 'gard' is unknown; there are: guard" "$program" backends mirror --load "$library" \
  --ask gard=1
check "wrong value" 1 "setting 'guard': expected 0 or 1, found 'x'" "$program" run model.lua --load "$library" \
  --configure mirror.guard=x

rules=$source/tests/mirror/mirror.lua
check "its tests run with it" 0 "^6 passed, 0 failed$" "$program" check --coverage "$rules" --load "$library"
check "and are skipped without" 0 "^0 passed, 0 failed, 6 skipped$" "$program" check --coverage "$rules"
also "saying what to do" "skipped: backend 'mirror' is unknown; .*if it is a library, it is not loaded"
check "no run without" 1 "backend 'mirror' is unknown; .*if it is a library, it is not loaded" "$program" run model.lua --rules "$rules"

# same NAME MODEL OPTIONS: on mirror, as on cpu, to the bit.
same() {
  name=$1
  model=$2
  shift 2
  check "$name" 0 "all outputs match" "$program" run "$model" --load "$library" --verify --rtol 0 --atol 0 \
    --repeat 2 --threads 1 "$@"
}

for model in model.lua open.lua; do
  for mode in "" --imperative "--configure mirror.guard=1 --option mirror.device=1"; do
    # shellcheck disable=SC2086
    same "$model $mode" $model --rules mirror $mode
    also "$model $mode" " 0 nodes on cpu one by one"
    # shellcheck disable=SC2086
    same "$model in pieces $mode" $model --rules mirror --set pieces=nodes $mode
    also "$model in pieces $mode" "single  *region on mirror"
    # shellcheck disable=SC2086
    same "$model without rules $mode" $model --backend mirror $mode
  done
done
for model in resnet50 mobilenet_v2 unet; do
  same "$model" "$source/examples/models/$model.lua" --set size=32 --rules mirror --configure mirror.guard=1
  also "$model" " 1 region, 0 nodes on cpu one by one"
done
if "$program" backends | grep -q '^ *onednn '; then
  check "beside oneDNN" 0 "all outputs match" "$program" run model.lua --load "$library" --rules onednn --rules mirror \
    --verify --threads 1 --repeat 1
fi

check "no such device" 1 "mirror' has 2 devices, there is no device 2" "$program" run model.lua --load "$library" \
  --rules mirror --option mirror.device=2
# device NAME LIBRARY: the second device computes; a library in a process of its own has memory that both see, which is no
# memory of a device.
device() {
  check "device $1:1" 0 "region on $1" "$program" run model.lua --load "$2" --device "$1:1" --repeat 1
  "$program" backends -v --load "$2" | grep -q "isolated: process" || also "memory of device $1:1" "memory of $1:1: "
}
device mirror "$library"
device my "my=$library"
check "a device in place of the rule file's" 0 "region on cpu" "$program" run model.lua --load "$library" --rules mirror \
  --device cpu --repeat 1
check "no device of this number" 1 "option '--device': backend 'mirror' has 2 devices, there is no device 2" "$program" run \
  model.lua --load "$library" --device mirror:2
check "no number" 1 "option '--device': expected the number of a device, found 'x'" "$program" run model.lua --device cpu:x
check "no such backend" 1 "option '--device': backend 'miror' is unknown (did you mean 'mirror'?)" "$program" run model.lua \
  --load "$library" --device miror:1
check "one of two backends" 1 "option '--device': expected a device of --backend mirror, found 'cpu'" "$program" verify \
  model.lua --load "$library" --backend mirror --device cpu
check "a plan has its devices" 2 "takes the place of --rules, --backend and --device" "$program" run model.lua --plan no.json \
  --device cpu
check "unknown option" 1 "option 'mirror.speed': backend 'mirror' has no such option; there are: device, latency_ns" "$program" run model.lua --load "$library" \
  --rules mirror --option mirror.speed=2
check "a full device" 1 "device 0 is full" "$program" run model.lua --load "$library" --rules mirror \
  --configure mirror.memory_bytes=8192
check "a full device, and cpu" 0 "all outputs match" "$program" run model.lua --load "$library" --rules mirror \
  --configure mirror.memory_bytes=8192 --fallback --verify --repeat 1
also "a full device, and cpu" "run one by one.*device 0 is full"
check "weights beyond a device" 0 "its weights have [0-9]* bytes, a device has 4096" "$program" partition \
  "$source/examples/models/resnet50.lua" --set size=32 --load "$library" --rules mirror \
  --configure mirror.memory_bytes=4096

check "profile" 0 "mirror" "$program" run model.lua --load "$library" --rules mirror --threads 1 --repeat 1 \
  --profile trace.json
check "verify without rules" 0 "mirror  *region .* match$" "$program" verify model.lua --load "$library" --device mirror:1
check "verify" 0 "island" "$program" verify model.lua --load "$library" --rules mirror --threads 1

for round in first second; do
  same "cache, $round time" model.lua --rules mirror --cache cache
done
if ls cache/* >/dev/null 2>&1; then
  passed=$((passed + 1))
else
  echo "cache: nothing is in it"
  failed=$((failed + 1))
fi
for file in $(find cache -type f); do
  printf 'x' | dd of="$file" bs=1 seek=100 conv=notrunc 2>/dev/null
done
same "damaged cache" model.lua --rules mirror --cache cache

finish

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Libraries in processes of their own, from outside: exit statuses, errors of one line, cpu in their place, real
# accelerators with the right numbers, and no process left behind.
set -u
program=$1
source=$2
build=$3
hostile=$build/tests/hostile
[ -f "$hostile/libcrash_run.so" ] || { echo "skipped: $hostile is not built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"

# refuse NAME PATTERN COMMAND...: exit status 1, and one line, which holds the pattern.
refuse() {
  name=$1
  pattern=$2
  shift 2
  "$@" >out 2>err
  status=$?
  if [ $status -ne 1 ] || [ "$(wc -l <err)" -ne 1 ] || ! grep -q -e "^cleave: .*$pattern" err; then
    cat err >>out
    fail "$name: exit status $status, expected 1 and one line with '$pattern' in"
  else
    passed=$((passed + 1))
  fi
}

# Processes of workers that live; those that nobody has reaped are dead.
count_workers() {
  count=0
  for state in /proc/[0-9]*/stat; do
    grep -q -s '(cleave_worker) [^Z]' "$state" && count=$((count + 1))
  done
  echo $count
}

cat >model.lua <<'LUA'
local x = g.input("x", "float32", { 3, 33 })
local y = g.Relu(x)
g.output("y", g.Exp(g.Neg(g.Relu(g.Neg(g.Sub(y, x))))))
g.output("z", g.Relu(g.Neg(y)))
LUA
cat >rules.lua <<'LUA'
return ruleset { name = "relus", backend = "good", region "relus" { ops = { "Relu" } } }
LUA
cat >shapes.lua <<'LUA'
g.output("y", g.Relu(g.input("x", "float32", { 3, 33 })))
g.output("b", g.Relu(g.input("a", "float32", { 4, 5 })))
LUA

# run LIBRARY OPTIONS...: the model through a library, in a process of its own.
run() {
  library=$1
  shift
  "$program" run model.lua --rules rules.lua --backend "$library" --load "$hostile/lib$library.so" --verify \
    --repeat 3 --threads 1 "$@"
}

before=$(count_workers)
while read -r library message; do
  refuse "$library" "library '$library' $message" run "$library" --isolate "$library=2"
  check "$library, falling back" 0 "all outputs match" run "$library" --isolate "$library=2" --fallback
done <<'CASES'
crash_start crashed (segmentation fault at 0x10) while initialising
crash_supports crashed (segmentation fault at 0x10) while asked about 'Relu'
crash_compile crashed (segmentation fault at 0x10) while compiling region 'relus_0'
crash_run crashed (segmentation fault at 0x10) while running region 'relus_0'
crash_later crashed (segmentation fault at 0x10) while running region 'relus_
abort_run crashed (abort) while running region 'relus_0'
exit_run ended its process (exit status [0-9]*) while running region 'relus_0'
closes closed the descriptors of its process while running region 'relus_0'
forks_crash crashed (segmentation fault at 0x10) while running region 'relus_0'
writes_behind wrote 16 bytes behind the end of output 0 while running region 'relus_0'
writes_before wrote 16 bytes before output 0 while running region 'relus_0'
writes_far wrote byte [0-9]* behind the end of output 0 (segmentation fault at 0x[0-9a-f]*) while running region 'relus_0'
writes_input wrote into input 0 (segmentation fault at 0x[0-9a-f]*) while running region 'relus_0'
CASES
for library in hang_start hang_run; do
  refuse "$library" "library '$library' did not answer within 0.3 s while" run $library --isolate $library=0.3
  check "$library, falling back" 0 "all outputs match" run $library --isolate $library=0.3 --fallback
done
grep -q "runs on cpu from run 1 on, not on hang_run" out || fail "no note about the fallback in"
check "a process that stays" 0 "all outputs match" run forks --isolate forks
check "threads that log" 0 "all outputs match" run threads --isolate threads
check "output that nobody wants" 0 "all outputs match" run prints --isolate prints
if grep -q "that this library prints" out; then
  fail "what the library prints is in the output:"
fi
refuse "no status" "region 'relus_0' on bad_status: xxx" run bad_status --isolate bad_status

# Every region is checked, in a new process where the one before is lost.
check "verify" 1 "0 match, 2 do not, 0 skipped" "$program" verify shapes.lua --rules rules.lua --backend crash_run \
  --load "$hostile/libcrash_run.so" --isolate crash_run
grep -q "while running region 'relus_1'" out || fail "the second region is not checked in"

# Two sessions run at a time: the request in which the library crashes ends the command, or both go on.
echo 'g.output("y", g.Relu(g.input("x", "float32", { 3, 33 })))' >one.lua
requests() {
  "$program" run one.lua --rules rules.lua --backend crash_later --load "$hostile/libcrash_later.so" --isolate crash_later \
    --verify --requests 40 --concurrency 2 --threads 1 "$@"
}
refuse "requests" "library 'crash_later' crashed (segmentation fault at 0x10) while running region 'relus_0'" requests
check "requests, falling back" 0 "all outputs match" requests --fallback

# Options.
good=$build/tests/accelerators/libgood.so
check "by another name" 0 "all outputs match" "$program" run model.lua --rules rules.lua --backend other \
  --load "other=$good" --isolate other --verify --repeat 1
check "listed" 0 "isolated: process [0-9][0-9]* runs" "$program" backends -v --load "$good" --isolate good
check "listed as JSON" 0 '"isolated": true' "$program" backends --json --load "$good" --isolate good
check "listed when lost" 0 "isolated, and lost: library 'crash_start' crashed" "$program" backends -v \
  --load "$hostile/libcrash_start.so" --isolate crash_start --fallback
check "found in a folder" 0 "isolated: process" env CLEAVE_BACKEND_PATH="$build/tests/accelerators" "$program" \
  backends -v --isolate good
refuse "linked in" "backend 'cpu' is linked in: it cannot be isolated" "$program" backends --isolate cpu
refuse "not there" "backend 'nobody' is unknown" "$program" backends --isolate nobody
refuse "no seconds" "expected NAME or NAME=SECONDS, found 'good=x'" "$program" backends --load "$good" \
  --isolate good=x
refuse "no worker" "/nowhere: no program (from CLEAVE_WORKER)" env CLEAVE_WORKER=/nowhere "$program" backends \
  --load "$good" --isolate good
check "fallback from nothing" 0 "all outputs match" "$program" run model.lua --fallback --verify --repeat 1

# A library in this process that fails without crashing.
fails="--rules rules.lua --backend fails --load $build/tests/accelerators/libfails.so --verify --repeat 2 --threads 1"
# shellcheck disable=SC2086
refuse "a failure in this process" "on fails: the device is too hot" "$program" run model.lua $fails
# shellcheck disable=SC2086
check "a failure in this process, falling back" 0 "all outputs match" "$program" run model.lua $fails --fallback
also "a failure in this process, falling back" "runs on cpu from run 1 on, not on fails: the device is too hot"

# A library in this process that ends it, as if all were well.
refuse "an exit in this process" "a library ended this process before the command was done" run exit_run

# Accelerators that ship.
accelerators=$build/accelerators
while read -r library backend; do
  [ -f "$accelerators/$library" ] || continue
  for model in resnet50 mobilenet_v2; do
    check "$backend runs $model" 0 "all outputs match" "$program" run "$source/examples/models/$model.lua" \
      --set size=32 --set classes=10 --load "$accelerators/$library" --rules "$backend" --isolate "$backend" --verify \
      --repeat 1 --threads 1
    grep -q " 0 nodes on cpu one by one" out || fail "$backend leaves nodes of $model on cpu"
  done
done <<'ACCELERATORS'
libmirror.so mirror
libxnnpack_cleave.so xnnpack
ACCELERATORS
# What libraries add: operators, partitioners and passes that crash are named in one line.
for does in infer execute well; do
  [ $does = well ] && what=well || what="crash $does"
  echo "g.output('y', g['bad.op.Twice'](g.input('x', 'float32', { 4 }), { does = '$what' }))" >"twice_$does.lua"
done
twice="--load $hostile/libbad_operators.so --isolate bad_operators=5 --repeat 1"
rules="--load $hostile/libbad_rules.so --isolate bad_rules=5"
cat >exps.lua <<'LUA'
g.output("y", g.Neg(g.Log(g.Exp(g.input("x", "float32", { 4 })))))
LUA
# shellcheck disable=SC2086
{
  check "an operator" 0 "1 node on cpu one by one" "$program" run twice_well.lua $twice
  refuse "an operator that crashes in infer" \
    "library 'bad_operators' crashed (segmentation fault at 0x10) while inferring types of operator 'bad.op.Twice'" \
    "$program" run twice_infer.lua $twice
  for fallback in "" --fallback; do
    refuse "a kernel that crashes $fallback" \
      "library 'bad_operators' crashed (segmentation fault at 0x10) while running operator 'bad.op.Twice'" \
      "$program" run twice_execute.lua $twice $fallback
    refuse "a pass that crashes $fallback" \
      "pass 'change' of library 'bad_rules': run: library 'bad_rules' crashed (segmentation fault at 0x10) while in pass" \
      "$program" run exps.lua $rules --rules bad_rules/change --set pass=halfway --repeat 1 $fallback
  done
  refuse "a selector that crashes" \
    "select: library 'bad_rules' crashed (segmentation fault at 0x10) while selecting for partitioner 'picker'" \
    "$program" run exps.lua $rules --rules bad_rules/picker --set "part=crash select" --repeat 1
  check "a selector that crashes, falling back" 0 "all outputs match" "$program" run exps.lua $rules \
    --rules bad_rules/picker --set "part=crash select" --repeat 1 --verify --fallback
}

# Several at once, and none of them stays.
k=0
while [ $k -lt 4 ]; do
  run crash_run --isolate crash_run --fallback >"out$k" 2>&1 &
  k=$((k + 1))
done
wait
k=0
while [ $k -lt 4 ]; do
  cp "out$k" out
  check "at once" 0 "all outputs match" cat "out$k"
  k=$((k + 1))
done
tries=0
while [ "$(count_workers)" -gt "$before" ] && [ $tries -lt 50 ]; do
  sleep 0.1
  tries=$((tries + 1))
done
if [ $tries -ge 50 ]; then
  echo "$(count_workers) workers are left, there were $before"
  failed=$((failed + 1))
fi

finish

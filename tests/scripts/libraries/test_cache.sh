#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiled regions across processes, options of backends, and what libraries are told and asked, from outside.
set -u
program=$1
libraries=$3/tests/accelerators
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset CLEAVE_CACHE
. "$2/tests/scripts/checks.sh"

cat >net.lua <<'LUA'
local x = g.input("x", "float32", { 2, 3 })
g.output("y", g.Sigmoid(g.Relu(x)))
LUA
cat >rules.lua <<'LUA'
return ruleset {
  name = "r", backend = "blobs",
  region "relus" { ops = { "Relu" } },
  test "same values" {
    graph = function(g) return g.Relu(g.input("x", "float32", { 4 })) end,
    expect = { relus = 1 }, equal = true,
  },
}
LUA
"$program" inspect net.lua >/dev/null || exit 1

# expect NAME WANTED FOUND
expect() {
  if [ "$2" = "$3" ]; then
    passed=$((passed + 1))
  else
    echo "$1: expected '$2', found '$3'"
    failed=$((failed + 1))
  fi
}

run="$program run net.lua --rules rules.lua --load $libraries/libblobs.so --repeat 1 --threads 1"
# shellcheck disable=SC2086
{
  # Across processes.
  check "the first process compiles" 0 '(0 of 2 programs from cache)' $run --cache cache
  check "the second one loads" 0 '(1 of 2 programs from cache)' $run --cache cache
  check "from the environment" 0 '(1 of 2 programs from cache)' env CLEAVE_CACHE=cache $run
  check "the option wins" 0 '(0 of 2 programs from other)' env CLEAVE_CACHE=cache $run --cache other
  check "as JSON" 0 '"loaded": 1' $run --cache cache --json
  check "other values of nothing else" 0 'all outputs match' $run --cache cache --verify
  check "another option compiles" 0 '(0 of 2 programs' $run --cache cache --option blobs.level=3
  check "which is kept beside" 0 '(1 of 2 programs' $run --cache cache --option blobs.level=3
  check "another device compiles" 0 '(0 of 2 programs' $run --cache cache --option blobs.device=1
  check "another setting compiles" 0 '(0 of 2 programs' $run --cache cache --configure blobs.mood=bad
  check "another version compiles" 0 '(0 of 2 programs' env CLEAVE_TEST_VERSION=2 $run --cache cache
  check "more threads compile" 0 '(0 of 2 programs' $run --cache cache --threads 2
  check "the first one is still there" 0 '(1 of 2 programs' $run --cache cache
  check "without a folder nothing is said" 0 'compile [0-9.]* ms$' $run
  check "verify" 0 '1 match, 0 do not' "$program" verify net.lua --rules rules.lua --load "$libraries/libblobs.so" --cache cache --threads 1
  check "bisect" 0 'nothing is broken' "$program" bisect net.lua --rules rules.lua --load "$libraries/libblobs.so" --cache cache --threads 1
  check "tests of rule files" 0 '^1 passed, 0 failed' "$program" check rules.lua --load "$libraries/libblobs.so" --cache checked
  expect "which keep regions too" 1 "$(ls checked | wc -l | tr -d ' ')"

  # The folder.
  check "a list" 0 '/cache: 6 compiled regions, ' "$program" cache --cache cache
  check "devices in it" 0 'blobs  *1  *abacus 1  *[0-9a-f]*, 1 node' "$program" cache --cache cache
  check "a list as JSON" 0 '"backend": "blobs"' env CLEAVE_CACHE=cache "$program" cache --json
  file=$(ls cache | head -n 1)
  : >"cache/$file"
  check "an unreadable one" 0 '(unreadable)' "$program" cache --cache cache
  echo mine >cache/notes.txt
  check "cleared" 0 '0 compiled regions, 0 B of 64.0 MiB' "$program" cache --cache cache --clear --cache-limit 64
  expect "but for what is not ours" notes.txt "$(ls cache)"
  check "a folder is needed" 2 'expected --cache DIR, or a folder in CLEAVE_CACHE' "$program" cache
  check "a folder that is a file" 1 "folder for compiled regions 'net.lua': Not a directory" $run --cache net.lua
  check "compiled again" 0 '(0 of 2 programs' $run --cache cache
  for file in cache/*.blob; do
    printf 'X' | dd of="$file" bs=1 seek=60 conv=notrunc 2>/dev/null
  done
  check "the log says why" 0 'cleave: warning: .*\.blob: not used: its content was changed after it was written' \
    $run --cache cache --log warning
  check "and it is put right" 0 '(1 of 2 programs' $run --cache cache
  check "a process with a file size limit" 0 'not written: the file would exceed the file size limit of the process' \
    sh -c "(ulimit -f 0; $run --cache small --log warning 2>&1) | cat"

  # Two at once, over and over.
  for k in 1 2 3 4; do
    $run --cache shared --verify >"out$k" 2>&1 || echo "process $k failed" >>failures &
  done
  wait
  expect "several processes" "" "$(cat failures 2>/dev/null)"
  expect "leave one file" 1 "$(ls -A shared | wc -l | tr -d ' ')"

  # oneDNN's packed weights.
  if "$program" backends 2>/dev/null | grep -q '^ *onednn  *[0-9]'; then
    cat >conv.lua <<'LUA'
local x = g.input("x", "float32", { 1, 16, 12, 12 })
local y = g.Relu(g.Conv(x, g.weight({ 32, 16, 3, 3 }), { kernel_shape = { 3, 3 }, pads = { 1, 1, 1, 1 } }))
g.output("y", g.Conv(y, g.weight({ 24, 32, 1, 1 })))
LUA
    conv="$program run conv.lua --rules onednn --repeat 1 --threads 1 --verify"
    check "weights are packed" 0 '(0 of 1 program from weights)' $conv --cache weights
    check "and mapped by the next process" 0 '(1 of 1 program from weights)' $conv --cache weights
    also "with the same values" 'all outputs match'
    check "another instruction set packs again" 0 '(0 of 1 program from weights)' \
      env DNNL_MAX_CPU_ISA=SSE41 $conv --cache weights
    also "with the right values" 'all outputs match'
    for file in weights/*.blob; do
      printf 'X' | dd of="$file" bs=1 seek=4000 conv=notrunc 2>/dev/null
    done
    check "damaged weights are not used" 0 'its content was changed after it was written' $conv --cache weights --log warning
    also "but packed" 'all outputs match'
    rm -f failures
    for k in 1 2 3 4; do
      $conv --cache packed --repeat 3 >"out$k" 2>&1 || echo "process $k failed" >>failures &
    done
    wait
    expect "several processes pack" "" "$(cat failures 2>/dev/null)"
    expect "and leave one file" 1 "$(ls -A packed | wc -l | tr -d ' ')"

    # Plans of shipped rule files.
    # Weights of a file that changed within the last two seconds are known by their bytes, later by the file: two keys.
    "$program" partition conv.lua --rules onednn -o conv.onnx >/dev/null
    sleep 2.5
    plan="$program run conv.onnx --rules onednn --repeat 1 --threads 1 --verify"
    check "rules run once" 0 '(0 of 1 program from plans)' $plan --cache plans
    check "and their plan is kept" 0 '(the plan and 1 of 1 program from plans)' $plan --cache plans
    also "with the same values" 'all outputs match'
    also "and the same report" 'product .*fuse on onednn'
    check "as JSON" 0 '"plan_loaded": true' $plan --cache plans --json
    check "a plan in the list" 0 '/plans: 1 compiled region, 1 plan, ' "$program" cache --cache plans
    check "in JSON too" 0 '"plans": \[$' "$program" cache --cache plans --json
    check "statistics are of rules that run" 0 '(1 of 1 program from plans)' $plan --cache plans --rule-stats
    check "another setting runs them" 0 ' (1 of 1 program from plans)' $plan --cache plans --set precision=float32
    check "another instruction set runs them" 0 ' (0 of 1 program from plans)' env DNNL_MAX_CPU_ISA=SSE41 $plan --cache plans
    mkdir own
    cp -R "$2/rules/." own
    check "files of people run" 0 ' ([01] of 1 program from plans)' "$program" run conv.onnx \
      --rules own/onednn.lua --repeat 1 --threads 1 --cache plans
    for file in plans/*.plan; do
      printf 'X' | dd of="$file" bs=1 seek=2000 conv=notrunc 2>/dev/null
    done
    check "a damaged one is not used" 0 'plan: not used: its content was changed after it was written; the rules run' $plan --cache plans --log warning
    also "and the rules run" ' (1 of 1 program from plans)'
    check "which puts it right" 0 '(the plan and 1 of 1 program from plans)' $plan --cache plans
    check "cleared" 0 '0 compiled regions, 0 B' "$program" cache --cache plans --clear
    expect "with the plans" "" "$(ls -A plans)"
    cat >half.lua <<'LUA'
local x = g.input("x", "float32", { 1, 8 })
g.output("y", g.Mul(x, g.constant(FACTOR)))
LUA
    for factor in 0.5 0.25; do
      sed "s/FACTOR/$factor/" half.lua >factor.lua
      "$program" partition factor.lua --rules onednn -o factor.onnx >/dev/null
      check "a model with $factor" 0 ' ([0-9]* of [0-9]* programs* from factors)' \
        "$program" run factor.onnx --rules onednn --repeat 1 --threads 1 --verify --cache factors
      also "has its own plan" 'all outputs match'
    done
    check "a full disk" 0 'not written' sh -c "(ulimit -f 8; $conv --cache little --log warning 2>&1) | cat"
    also "costs the cache alone" 'all outputs match'
  fi

  # Options.
  check "an option of nobody" 0 "warning: option 'blobs.a' has no effect: nothing runs on blobs" \
    "$program" run net.lua --load "$libraries/libblobs.so" --option blobs.a=1 --repeat 1
  check "an unknown backend" 1 "option 'blops.a': backend 'blops' is unknown (did you mean 'blobs'?)" $run --option blops.a=1
  check "no such device" 1 "backend 'blobs' has 2 devices, there is no device 7" $run --option blobs.device=7
  check "no value" 1 "option '--option': expected BACKEND.KEY=VALUE, found 'blobs.a'" $run --option blobs.a
  check "no key" 1 "expected BACKEND.KEY=VALUE, found 'blobs.=1'" $run --option blobs.=1
  check "no backend" 1 "expected BACKEND.KEY=VALUE, found '.a=1'" $run --option .a=1
  check "not for those that run nothing" 2 "option '--option' is unknown" "$program" rules rules.lua --option blobs.a=1
  check "names with points" 0 '(0 of 2 programs' "$program" run net.lua --backend my.blobs --load \
    "my.blobs=$libraries/libblobs.so" --cache cache --option my.blobs.level.of=1=2 --repeat 1 --threads 1

  # Settings and answers.
  backends="$program backends blobs --load $libraries/libblobs.so"
  check "an answer" 0 '^  mood  *fair$' $backends --ask mood
  check "told by --configure" 0 '^  mood  *a=b.c$' $backends --configure blobs.mood=a=b.c --ask mood
  check "told by --ask" 0 '"value": "bad"' $backends --ask mood=bad --json
  check "an unknown key" 1 "backend 'blobs': key 'moood' is unknown" $backends --ask moood
  check "an unknown key is told" 1 "backend 'blobs': key 'moood' is unknown" $backends --configure blobs.moood=1
  check "an unknown setting" 1 "backend 'cpu': setting 'x' is unknown; expected hint.kernels" "$program" backends cpu --ask x
  check "an unknown backend" 1 "backend 'cpo' is unknown" "$program" backends cpo
  check "all about one" 0 'device 1: abacus 1' $backends
  check "asked of nobody" 2 "'--ask' needs the NAME of a backend" "$program" backends --ask x
  check "an unknown level" 1 "option '--log': expected error, warning" $run --log all
}

finish

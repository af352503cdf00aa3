#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `mpirun cleave train`: the losses of one process, on 1, 2 and 4 of them and on two hosts; checkpoints; processes that are
# killed or that fail.
set -u
program=$1
command -v mpirun >/dev/null || { echo "skipped: there is no mpirun"; exit 77; }
[ -f "${program%/*}/libexec/cleave/cleave_mpi.so" ] || { echo "skipped: cleave was built without MPI"; exit 77; }
work=$(mktemp -d)
. "$2/tests/scripts/hosts.sh"
end() {
  hosts_end
  rm -rf "$work"
}
trap end EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export TMPDIR="$work" # Open MPI's folders

cat >net.lua <<'LUA'
local x = g.input("x", "float64", { "N", 8 })
local function layer(v, name) return g.MatMul(v, g.weight { 8, 8, name = name, dtype = "float64" }) end
local y = g.Dropout(g.Relu(layer(x, "first")), 0.2)
y = g.Relu(layer(y, "second")) + g.zeros { 8, name = "shift", dtype = "float64" }
g.output("scores", layer(y, "last"))
LUA
# 48 samples of which the class is where the largest number is.
awk 'BEGIN {
  for (n = 0; n < 48; n++) for (k = 0; k < 8; k++) printf "\\%03o", (n * 37 + k * 11) % 60 + (k == n % 8 ? 60 : 0) }' |
  { read -r text; printf "$text"; } >numbers
awk 'BEGIN { for (n = 0; n < 48; n++) printf "\\%03o", n % 8 }' | { read -r text; printf "$text"; } >classes
npy() {
  header="{'descr': '|u1', 'fortran_order': False, 'shape': $2, }"
  while [ $(((10 + ${#header} + 1) % 64)) -ne 0 ]; do header="$header "; done
  { printf '\223NUMPY\001\000'; printf "\\$(printf %o $((${#header} + 1)))\\000"; printf '%s\n' "$header"; cat "$3"; } >"$1"
}
mkdir data
npy data/x.npy '(48, 8)' numbers
npy data/labels.npy '(48,)' classes

options="net.lua --data data --loss cross_entropy --optimizer adam --rate 0.002 --batch 8 --seed 5 --hold-out 0.2 --json --each-step"
alone() {
  "$program" train $options "$@"
}
# together N ARGUMENT...
together() {
  count=$1
  shift
  mpirun --oversubscribe -n "$count" "$program" train $options "$@"
}
losses() {
  sed -n -e 's/.*"loss":\([^,]*\),"gradient_norm":\([^,]*\),.*/\1 \2/p' -e 's/.*"held_out_loss":\([^,}]*\).*/\1/p' "$1"
}

alone --epochs 4 >one.json
losses one.json >one
[ "$(wc -l <one)" -ge 20 ] || fail "losses of one process"
for count in 1 2 4; do
  for bucket in 25 0.0001; do
    check "$count processes, buckets of $bucket MB" 0 '"event":"communication"' together $count --epochs 4 --bucket $bucket
    losses "$out" >several
    if cmp -s one several; then pass; else fail "losses of $count processes with buckets of $bucket MB: $(paste one several)"; fi
  done
done
also "and all small buckets" '"buckets":[3-9]'
cp "$out" kept
check "each line once" 0 '^4$' grep -c '"event":"epoch"' kept

# 9 MB of float32, in one bucket before.
cat >wide.lua <<'LUA'
local y = g.MatMul(g.Cast(g.input("x", "uint8", { "N", 8 }), { to = "float32" }), g.weight { 8, 768, name = "w0" })
for k = 1, 4 do y = g.Relu(g.MatMul(y, g.weight { 768, 768, name = "w" .. k })) end
g.output("scores", g.MatMul(y, g.weight { 768, 8, name = "last" }))
LUA
check "large buckets, and small ones at the end" 0 '"buckets":5,' mpirun --oversubscribe -n 2 "$program" train wide.lua --data data --loss cross_entropy \
  --rate 0.001 --batch 8 --epochs 1 --json

check "rules, in parts" 0 '"event":"epoch","epoch":2' together 2 --epochs 2 --bucket 0.0001 --rules pointwise --save-plan plan.txt -o out.onnx
check "a plan for each part" 0 'ReduceSum\|MatMul' cat plan.1.txt plan.2.txt
check "the model" 0 '[1-9] nodes' "$program" run out.onnx --shape N=3 --repeat 1

check "half of a run" 0 '' together 2 --epochs 2 --checkpoint part.npz
losses "$out" >parts
check "the other half" 0 '' together 2 --epochs 4 --resume part.npz
losses "$out" >>parts
if cmp -s one parts; then pass; else fail "a resumed run has other losses: $(paste one parts)"; fi
check "by other numbers of processes" 0 '"event":"epoch","epoch":4' together 4 --epochs 4 --resume part.npz
check "and by one" 0 '"event":"epoch","epoch":4' alone --epochs 4 --resume part.npz

# Errors that all processes have, that one has, and a process that ends.
check "a folder that is not there" 1 '^cleave: nowhere: expected a folder' together 2 --data nowhere
cp "$out" kept
check "one line of it" 0 '^1$' grep -c '^cleave: ' kept
check "minibatches that cannot be shared" 1 'batch: expected a multiple of the 3 processes' together 3
check "processes with other options" 1 '^cleave: process 1 of 2: model, samples or options differ' \
  mpirun --oversubscribe -n 1 "$program" train $options : -n 1 "$program" train $options --decay 0.1
check "a process without its files" 1 '^cleave: process 1 of 2: nowhere: expected a folder' \
  mpirun --oversubscribe -n 1 "$program" train $options : -n 1 "$program" train $options --data nowhere
check "a checkpoint that cannot be written" 1 '^cleave: process 0 of 2: /proc/none/a.npz: ' aborted together 2 --checkpoint /proc/none/a.npz

mpirun --oversubscribe -n 4 "$program" train $options --epochs 100000000 --checkpoint killed.npz >killed.out 2>killed.err &
run=$!
# Until there was a second checkpoint: the first is that of a whole run of one epoch.
for _ in $(seq 600); do
  [ -s first.npz ] || cp killed.npz first.npz 2>/dev/null
  [ -s first.npz ] && ! cmp -s first.npz killed.npz && break
  sleep 0.1
done
victim=$(pgrep -P $run | tail -1)
kill -9 "$victim"
wait $run
status=$?
cp killed.err "$out"
if [ $status -ne 0 ]; then pass; else fail "a killed process: exit status $status"; fi
also "says which one" 'process rank [0-9] .* exited on signal 9'
if ! pgrep -P $run >/dev/null; then pass; else fail "others go on after one was killed"; fi
check "its checkpoint can be read" 1 'the checkpoint has [0-9]* steps, and this run 4 in all' alone --epochs 1 --resume killed.npz
epochs=$(($(sed -n 's/.*the checkpoint has \([0-9]*\) steps.*/\1/p' "$out") / 4 + 1))
check "and gone on from" 0 "\"event\":\"epoch\",\"epoch\":$epochs," alone --epochs $epochs --resume killed.npz

if hosts_make "$work"; then
  check "processes on two hosts" 0 '^host-b$' hosts 2 hostname
  check "two hosts train" 0 '"processes":4' hosts 2 "$program" train $options --epochs 4 --bucket 0.0001
  losses "$out" >several
  if cmp -s one several; then pass; else fail "losses on two hosts: $(paste one several)"; fi
else
  echo "not tested: two hosts; network namespaces cannot be made here"
fi
finish

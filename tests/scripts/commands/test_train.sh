#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `cleave train`: what it prints and writes, checkpoints, rules, and its errors.
set -u
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"

# npy FILE DESCR SHAPE BYTES_FILE: a NumPy file of a type and shape.
npy() {
  header="{'descr': '$2', 'fortran_order': False, 'shape': $3, }"
  while [ $(((10 + ${#header} + 1) % 64)) -ne 0 ]; do header="$header "; done
  { printf '\223NUMPY\001\000'; printf "\\$(printf %o $((${#header} + 1)))\\000"; printf '%s\n' "$header"; cat "$4"; } >"$1"
}

# Sixty images of 4x4 bytes of which the class is where the bright row is.
mkdir data
awk 'BEGIN { for (n = 0; n < 60; n++) for (y = 0; y < 4; y++) for (x = 0; x < 4; x++)
  printf "\\%03o", (n * 7 + y * 5 + x * 3) % 40 + (y == n % 4 ? 150 : 0) }' | { read -r text; printf "$text"; } >pixels
awk 'BEGIN { for (n = 0; n < 60; n++) printf "\\%03o", n % 4 }' | { read -r text; printf "$text"; } >classes
npy data/image.npy '|u1' '(60, 1, 4, 4)' pixels
npy data/labels.npy '|u1' '(60,)' classes

cat >net.lua <<'LUA'
local x = g.input("image", "float32", { "N", 1, 4, 4 }) / 255
local y = g.Conv(x, g.weight { 8, 1, 3, 3, name = "conv" }, { pads = { 1, 1, 1, 1 } })
local function vector(name, value) return g.fill { 8, value = value, name = name } end
y = g.BatchNormalization(y, vector("scale", 1), vector("bias", 0), vector("mean", 0), vector("var", 1))
y = g.Dropout(g.Flatten(g.Relu(y)), 0.1)
g.output("scores", g.Gemm(y, g.weight { 4, 128, name = "linear" }, g.zeros { 4, name = "shift" }, { transB = 1 }))
LUA

train() {
  "$program" train net.lua --data data --loss cross_entropy --optimizer adam --rate 0.01 --batch 10 --seed 5 "$@"
}
losses() {
  sed -n 's/.*"loss":\([^,]*\),"gradient_norm":\([^,]*\),.*/\1 \2/p' "$1"
}

check "trains" 0 '^ *10  *50 .* 100.00 %' train --epochs 10 --hold-out 0.1 -o out.onnx --picture out.svg --save-plan plan.txt
also "says what there is" '^54 samples, 6 held out; 5 steps of 10 in an epoch, 50 in all$'
also "and what it wrote" '^model: out.onnx$'
check "the model runs" 0 '^6 nodes' "$program" run out.onnx --shape N=3 --repeat 1
check "and is in inference" 0 'BatchNormalization' "$program" inspect out.onnx
check "the picture is one" 0 'polyline' cat out.svg
check "the plan is of the step" 0 'ConvGradWeight' cat plan.txt

train --epochs 6 --json --each-step >whole.json || fail "a whole run"
check "lines of JSON" 0 '"event":"epoch","epoch":6,"step":36' cat whole.json
train --epochs 2 --json --each-step --checkpoint part.npz >first.json || fail "the first part"
train --epochs 6 --json --each-step --resume part.npz >second.json || fail "the second part"
losses whole.json >whole
{ losses first.json; losses second.json; } >parts
if [ "$(wc -l <whole)" -ge 36 ] && cmp -s whole parts; then pass; else fail "a resumed run has other losses"; fi

check "rules partition the step" 0 ' [1-9][0-9]* fusions' train --epochs 2 --rules pointwise

cat >through.lua <<'LUA'
return ruleset { name = "through", gradient "Relu" { function(_, _, dy) return dy end } }
LUA
first() {
  train --epochs 1 --json --each-step --keep-order --no-dropout "$@" | losses /dev/stdin | head -1
}
plain=$(first)
through=$(first --rules through.lua)
if [ -n "$plain" ] && [ "${plain% *}" = "${through% *}" ] && [ "${plain#* }" != "${through#* }" ]; then pass; else
  fail "a gradient rule of --rules: '$plain', '$through'"
fi
seeded=$(first --seed 6)
if [ "${plain% *}" != "${seeded% *}" ] && [ "$plain" = "$(first --seed 5)" ]; then pass; else
  fail "weights by --seed: '$plain', '$seeded'"
fi
check "one thread, and seeds" 0 '"epoch":1' train --epochs 1 --threads 1 --json
if "$program" version | grep -q ' onednn'; then
  train --epochs 2 --no-dropout --json --each-step >alone.json
  check "forward, backward and update in one region" 0 '' train --epochs 2 --no-dropout --json --each-step \
    --rules onednn --rules pointwise --save-plan one.txt
  also "with the losses of single nodes" '"step":12,'
  cp "$out" region.json
  check "a region" 0 '^plan .*: 1 region,' cat one.txt
  also "holds the gradients" '^    BatchNormalizationGrad '
  losses alone.json >alone
  losses region.json >region
  if paste alone region | awk '{ d = $1 - $3; if (d < 0) d = -d; if (d > 1e-3 * $1) exit 1 } END { exit NR < 12 }'; then pass; else
    fail "losses of a region: $(paste alone region)"
  fi
fi
if "$program" version | grep -q ' onednn'; then
  check "a precision that there may be" 0 '^precision bfloat16: \(1 region$\|float32 in its place: onednn: precision bfloat16: \)' \
    train --epochs 2 --no-dropout --rules onednn --precision bfloat16
  check "a precision that this processor has not" 0 \
    '^precision bfloat16: float32 in its place: onednn: precision bfloat16: this processor has no AVX512_BF16$' \
    env DNNL_MAX_CPU_ISA=AVX2 "$program" train net.lua --data data --loss cross_entropy --rate 0.01 --batch 10 --rules onednn \
    --precision bfloat16
fi
check "no rule for a precision" 0 "^precision float16: float32 in its place: no rule file has the option 'precision' (onednn has)$" \
  train --epochs 2 --precision float16
also "and the scale of the loss" '^loss scale 65536 in the last step; 0 of 12 steps skipped$'

# A model that multiplies in float16 itself: the first scale overflows.
sed 's/local x = g.input.*/local x = g.Cast(g.input("image", "float32", { "N", 1, 4, 4 }) \/ 255, { to = "float16" })/
  s/g.weight { 8, 1, 3, 3, name = "conv" }/g.Cast(g.weight { 8, 1, 3, 3, name = "conv" }, { to = "float16" })/
  s/^y = g.BatchNorm/y = g.Cast(y, { to = "float32" })\n&/' net.lua >half.lua
half() {
  "$program" train half.lua --data data --loss cross_entropy --optimizer adam --rate 0.01 --batch 10 --seed 5 --precision float16 \
    --loss-scale 1048576 --scale-steps 4 --json --each-step "$@"
}
half --epochs 6 >whole.json || fail "a run in float16"
check "steps are skipped" 0 '"loss_scale":1.04858e6,"skipped":true' cat whole.json
also "and others are not" '"skipped":false'
half --epochs 2 --checkpoint scaled.npz >first.json || fail "the first part in float16"
half --epochs 6 --resume scaled.npz >second.json || fail "the second part in float16"
scales() {
  sed -n 's/.*"event":"step".*"loss":\([^,]*\),.*"loss_scale":\(.*\)}/\1 \2/p' "$@"
}
scales whole.json >whole
scales first.json second.json >parts
if [ "$(wc -l <whole)" -eq 36 ] && cmp -s whole parts; then pass; else fail "a resumed run in float16 has other losses"; fi
check "another precision's checkpoint" 1 'scaled.npz: the checkpoint is of another run: its precision is 2, expected 0' \
  "$program" train half.lua --data data --loss cross_entropy --optimizer adam --rate 0.01 --batch 10 --seed 5 --epochs 6 --resume scaled.npz
check "an unknown precision" 2 "option '--precision': expected float32, bfloat16 or float16, found 'half'" train --precision half
check "a scale that is no power of two" 1 'loss scale: expected a power of two, found 1000' train --precision float16 --loss-scale 1000

check "frozen norms, some weights, momentum" 0 '^ *2  *12 ' "$program" train net.lua --data data --loss cross_entropy \
  --optimizer momentum --nesterov --rate 0.01 --batch 10 --epochs 2 --norms frozen --weights 'lin*' --schedule step --step-epochs 1

check "another run's checkpoint" 1 'part.npz: the checkpoint is of another run: its seed is 5, expected 6' \
  train --epochs 6 --resume part.npz --seed 6
head -c 3000 part.npz >broken.npz
check "a broken checkpoint" 1 'broken.npz: archive: expected a zip archive' train --epochs 6 --resume broken.npz
check "no loss" 2 'expected --data DIR, --loss NAME and --rate NUMBER' "$program" train net.lua --data data
train --epochs 2 --json >kept.json 2>&1
check "forward values are computed again" 0 '' sh -c "'$program' train net.lua --data data --loss cross_entropy --optimizer adam --rate 0.01 \
  --batch 10 --seed 5 --epochs 2 --recompute 0.99 --json >again.json"
losses kept.json >kept.losses
losses again.json >again.losses
check "the losses are the same" 0 '' cmp kept.losses again.losses
check "there are losses" 0 '[0-9]' cat again.losses
check "what was computed again is told" 0 '"recompute": *{' cat again.json
check "an unknown optimizer" 2 "option '--optimizer': expected sgd, momentum, adam or adamw, found 'adan'" train --optimizer adan
check "no folder" 1 'nowhere: expected a folder with .npy files, or an .npz file' train --data nowhere
mkdir empty few wrong
check "an empty folder" 1 'empty: expected arrays of samples, found no .npy file' train --data empty
npy few/image.npy '|u1' '(60, 1, 4, 4)' pixels
check "no labels" 1 "few: the loss's array 'labels': expected an array of this name, found 'image' uint8\[60, 1, 4, 4\]" \
  train --data few
cp data/image.npy wrong/image.npy
npy wrong/labels.npy '|u1' '(30,)' classes
check "numbers of samples" 1 "wrong: array 'image' has 60 samples, and array 'labels' has 30" train --data wrong
npy wrong/labels.npy '|u1' '(15, 4)' classes
npy wrong/image.npy '|u1' '(15, 4, 4, 4)' pixels
check "shapes" 1 "wrong: input 'image' is float32\[?, 1, 4, 4\], and the array 'image' is uint8\[15, 4, 4, 4\]" train --data wrong
npy wrong/image.npy '|u1' '(60, 1, 4, 4)' pixels
npy wrong/labels.npy '|u1' '(60,)' pixels
check "labels" 1 "wrong: array 'labels', sample 0: label 150, expected a class from 0 to 3" train --data wrong
head -c 500 data/image.npy >wrong/image.npy
check "a file that is cut off" 1 'wrong/image.npy: data: 372 bytes, fewer than the shape needs' train --data wrong
check "help" 0 'a folder with NAME.npy for each input NAME' "$program" train --help
finish

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `cleave generate`: tokens, a state that goes from run to run, caches of a fixed capacity, and its errors.
set -u
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"

# The next token is the last one plus the number of those that were read, modulo 10.
cat >count.lua <<'LUA'
local tokens = g.input("tokens", "int64", { 1, "T" })
local past = g.input("past", "float32", { 1 })
local length = g.Slice(g.Shape(tokens), g.constant({ 1 }, "int64"), g.constant({ 2 }, "int64"))
local present = past + g.Cast(length, { to = "float32" })
local next = g.Mod(g.Cast(tokens, { to = "float32" }) + present, g.constant(10, "float32"), { fmod = 1 })
g.output("scores", g.OneHot(g.Cast(next, { to = "int64" }), g.constant(10, "int64"), g.constant({ 0, 5 }, "float32")))
g.output("present", present)
LUA

check "counts on" 0 '^6 0 5 1 8 6$' "$program" generate count.lua --prompt 1,2,3 --steps 6
also "says how fast" '^  prompt of 3 tokens: the first token after .* ms$'
check "states by their names" 0 '^6 0 5 1$' "$program" generate count.lua --prompt 1,2,3 --steps 4 --state past=present
check "ends early" 0 '^6 0 5$' "$program" generate count.lua --prompt 1,2,3 --steps 9 --stop 5
check "one token" 0 '^6$' "$program" generate count.lua --prompt 1,2,3 --steps 1
check "in JSON" 0 '"prompt_tokens": 3' "$program" generate count.lua --prompt 1,2,3 --steps 4 --json
also "the speed" '"tokens_per_second": [0-9]'
check "one thread" 0 '^6 0 5 1$' "$program" generate count.lua --prompt 1,2,3 --steps 4 --threads 1
check "on a device" 0 '^6 0 5 1$' "$program" generate count.lua --prompt 1,2,3 --steps 4 --device cpu
check "on none" 1 "option '--device': backend 'nobody' is unknown" \
  "$program" generate count.lua --prompt 1,2,3 --steps 4 --device nobody:1
check "a draw" 0 '^[0-9 ]*$' "$program" generate count.lua --prompt 1,2,3 --steps 20 --temperature 50 --seed 3
cp "$out" first
check "the same by the same seed" 0 '^[0-9 ]*$' "$program" generate count.lua --prompt 1,2,3 --steps 20 --temperature 50 --seed 3
if [ "$(head -1 first)" = "$(head -1 "$out")" ]; then pass; else fail "a seed draws other tokens"; fi
check "another one by another" 0 '^[0-9 ]*$' "$program" generate count.lua --prompt 1,2,3 --steps 20 --temperature 50 --seed 4
if [ "$(head -1 first)" != "$(head -1 "$out")" ]; then pass; else fail "two seeds draw the same tokens"; fi

# The next token is the last one, plus how many tokens the mask says there are, plus the last position, modulo 10; the
# mask has a size of its own.
cat >masked.lua <<'LUA'
local tokens = g.input("input_ids", "int64", { "B", "T" })
local mask = g.input(options.mask or "attention_mask", "int32", { "B", "all" })
local places = g.input(options.places or "position_ids", "int64", { "B", "T" })
local function last(x)
  return g.Gather(x, g.constant({ -1 }), { axis = 1 })
end
local count = g.Cast(g.ReduceSum(mask, g.constant({ 1 })), { to = "int64" })
local next = g.Mod(last(tokens) + count + last(places), g.constant(10))
g.output("scores", g.Cast(g.OneHot(next, g.constant(10), g.constant({ 0, 5 }, "float32")), { to = options.dtype or "float32" }))
LUA

check "a mask and positions" 0 '^8 5 4 5 8 3$' "$program" generate masked.lua --prompt 1,2,3 --steps 6
check "with room for more" 0 '^8 5 4 5 8 3$' "$program" generate masked.lua --prompt 1,2,3 --steps 6 --capacity 100
check "of other names" 0 '^8 5 4 5$' "$program" generate masked.lua --set mask=there --set places=at --prompt 1,2,3 --steps 4 \
  --mask there --positions at
check "that nobody names" 1 "input 'there' is neither the tokens (integers of rank 2, one input), nor their mask (--mask) or positions" \
  "$program" generate masked.lua --set mask=there --prompt 1,2,3
check "that are not there" 1 "option '--mask': the model has no input 'there'" "$program" generate masked.lua --prompt 1,2,3 --mask there
check "float16" 0 '^8 5 4 5$' "$program" generate masked.lua --set dtype=float16 --prompt 1,2,3 --steps 4
check "bfloat16" 0 '^8 5 4 5$' "$program" generate masked.lua --set dtype=bfloat16 --prompt 1,2,3 --steps 4
check "no scores" 1 'output 0 is int64 of rank 3, expected float32, float16 or bfloat16 scores' \
  "$program" generate masked.lua --set dtype=int64 --prompt 1,2,3 --steps 4

# An encoder's caches would be empty.
printf '%s\n' 'local t = g.input("tokens", "int64", { 1, "T" })' 'local past = g.input(options.name, "float32", { 1, 2, "E", 4 })' \
  'g.output("y", g.Cast(t, { to = "float32" }) + g.ReduceSum(past))' >encoder.lua
for name in encoder_hidden_states past_key_values.0.encoder.key; do
  check "an input of an encoder" 1 "encoder.lua: expected a decoder alone, found input '$name', which is of an encoder$" \
    "$program" generate encoder.lua --set name=$name --prompt 1
done

# Decoders that are merged with one for the prompt: the tokens of the decoder by itself.
cat >decoder.lua <<'LUA'
-- Two layers of attention with keys and values of earlier calls. With `step` they are for one token at a time: no causal mask.
local tokens = g.input("input_ids", "int64", { 1, "T" })
local mask = g.input("attention_mask", "int64", { 1, "all" })
local function product(x, name, count)
  return g.MatMul(x, g.weight { 8, count or 8, name = name })
end
local function heads(x, name)
  return g.Transpose(g.Reshape(product(x, name), g.constant { 0, 0, 2, 4 }), { perm = { 0, 2, 1, 3 } })
end
local x = g.Gather(g.normal { 20, 8, name = "table" }, tokens)
local hidden = g.Unsqueeze((1 - g.Cast(mask, { to = "float32" })) * -1e9, g.constant { 1, 2 })
local present = {}
for layer = 0, 1 do
  local function joined(kind)
    local name = layer .. "." .. kind
    local past = g.input("past_key_values." .. name, "float32", { 1, 2, "P", 4 })
    present[#present + 1] = { "present." .. name, g.Concat(past, heads(x, name), { axis = 2 }) }
    return present[#present][2], past
  end
  local keys, past = joined("key")
  local values = joined("value")
  if layer == 0 and not options.step then
    local before = g.Squeeze(g.Gather(g.Shape(past), g.constant { 2 }))
    local count = before + g.Squeeze(g.Gather(g.Shape(tokens), g.constant { 1 }))
    local at = g.Unsqueeze(g.Range(before, count, g.constant(1)), g.constant { 1 })
    local seen = g.LessOrEqual(g.Range(g.constant(0), count, g.constant(1)), at)
    hidden = hidden + g.Where(seen, g.constant(0, "float32"), g.constant(-1e9, "float32"))
  end
  local scores = g.MatMul(heads(x, layer .. ".query"), g.Transpose(keys, { perm = { 0, 1, 3, 2 } })) * 0.5
  local mixed = g.Transpose(g.MatMul(g.Softmax(scores + hidden), values), { perm = { 0, 2, 1, 3 } })
  x = x + product(g.Reshape(mixed, g.constant { 0, 0, 8 }), layer .. ".out")
end
g.output("logits", product(x, "head", 20))
for _, state in ipairs(present) do
  g.output(state[1], state[2])
end
LUA
draw() {
  "$program" generate "$@" --prompt 1,2,3,7,9,14 --steps 12 --temperature 3 --seed 5
}
if /usr/bin/python3 -c 'import onnx' 2>/dev/null; then
  for step in false true; do
    check "a decoder as a file" 0 '' "$program" partition decoder.lua --set step=$step -o step_$step.onnx --backend cpu \
      --shape T=? --shape P=? --shape all=?
  done
  for step in false true; do
    /usr/bin/python3 "$2/tests/models/merged.py" step_$step.onnx step_false.onnx merged_$step.onnx || fail "merged.py"
  done
  check "a decoder" 0 '^[0-9 ]*$' draw step_false.onnx
  tokens=$(head -n 1 "$out")
  check "a merged decoder" 0 "^$tokens$" draw merged_false.onnx
  check "with a past for one token at a time" 0 "^$tokens$" draw merged_true.onnx
  check "that is asked for" 0 "^$tokens$" draw merged_true.onnx --fix use_cache_branch=1
  check "in JSON, what was fixed" 0 '^    "use_cache_branch=true"$' draw merged_true.onnx --json
  check "in the log" 0 'merged_true.onnx: fixed input use_cache_branch=true$' draw merged_true.onnx --log information
  check "the branch without a past" 1 "state 'past_key_values.0.key' has another size in each run, .*: no output is an input of rank 4" \
    draw merged_true.onnx --fix use_cache_branch=false
  check "other commands take no branch" 1 "'use_cache_branch' .*; --fix use_cache_branch=VALUE decides it)$" \
    "$program" inspect merged_true.onnx
  check "unless they are told" 0 'input 5 *past_key_values.1.value' "$program" inspect merged_true.onnx --fix use_cache_branch=true
fi

check "no prompt" 2 'expected --prompt' "$program" generate count.lua
check "words" 1 "option '--prompt': expected numbers of tokens with commas between them, or a file, found '1,,2'" \
  "$program" generate count.lua --prompt 1,,2
check "a prompt that is not there" 1 'nowhere.npy' "$program" generate count.lua --prompt nowhere.npy
check "too little room" 1 "option '--capacity': a prompt of 3 tokens and 4 more need 6, found 5" \
  "$program" generate count.lua --prompt 1,2,3 --steps 4 --capacity 5
check "a state that is not there" 1 "has no output .nothing" "$program" generate count.lua --prompt 1 --state past=nothing
check "a mask of floats" 1 "option '--mask': expected integers .1, an open size., found float32 of rank 1 for input 'past'" \
  "$program" generate count.lua --prompt 1,2,3 --mask past
check "no state for an input" 1 "input 'other' is neither the tokens (integers of rank 2, one input), nor their mask" \
  sh -c "printf '%s\n' 'local t = g.input(\"tokens\", \"int64\", { 1, \"T\" })' 'local o = g.input(\"other\", \"float32\", { 1 })' \
    'g.output(\"y\", g.Cast(t, { to = \"float32\" }) + o)' >other.lua; '$program' generate other.lua --prompt 1"
check "help" 0 'Generates token by token' "$program" generate --help
finish

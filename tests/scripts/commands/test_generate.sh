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

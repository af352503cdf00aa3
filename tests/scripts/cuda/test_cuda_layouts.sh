#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Convolutions with channels last by rules/cuda.lua on the stand-ins of NVIDIA's libraries: equal to cpu in all dtypes, with
# images turned only where somebody wants them otherwise, and with channels first if cuDNN has no such convolutions.
#
#   test_cuda_layouts.sh PROGRAM SOURCE BUILD
. "$2/tests/scripts/cuda/stand_ins.sh"

cat >chain.lua <<'LUA'
-- A residual block with poolings: nothing in it wants channels first.
local x = g.input("x", "float32", { 2, 3, 18, 16 })
local function norm(value, channels)
  return g.BatchNormalization(value, g.weight { channels }, g.weight { channels }, g.weight { channels }, g.ones { channels })
end
local h = g.Relu(norm(g.Conv(x, g.weight { 8, 3, 3, 3 }, { pads = { 1, 1, 1, 1 }, strides = { 2, 1 } }), 8))
h = g.MaxPool(h, { kernel_shape = { 3, 3 }, strides = { 2, 2 }, pads = { 1, 1, 1, 1 } })
local own = g.Relu(norm(g.Conv(h, g.weight { 8, 8, 3, 3 }, { pads = { 1, 1, 1, 1 } }), 8))
own = norm(g.Conv(own, g.weight { 8, 8, 1, 1 }), 8)
h = g.Relu(own + h)
h = g.AveragePool(h, { kernel_shape = { 2, 2 }, strides = { 2, 2 } })
g.output("y", g.Conv(h, g.weight { 6, 8, 2, 2 }, g.weight { 6 }))
LUA
cat >mixed.lua <<'LUA'
-- Groups, depthwise convolutions, Concat and Split of channels, factors per channel and per place, and what wants
-- channels first: a Reshape, a reduction, a Softmax over channels, two outputs on the way.
local x = g.input("x", "float32", { 2, 4, 9, 7 })
local h = g.Conv(x, g.weight { 8, 2, 3, 3 }, g.weight { 8 }, { pads = { 1, 1, 1, 1 }, group = 2 })
g.output("grouped", h)
local wide = g.Concat(h, g.Sigmoid(h), x, { axis = 1 })
wide = g.Conv(wide, g.weight { 20, 1, 3, 3 }, g.weight { 20 }, { pads = { 2, 2, 2, 2 }, dilations = { 2, 2 }, group = 20 })
wide = g.Clip(wide, g.constant(0.0), g.constant(6.0))
local gate = g.Sigmoid(g.Conv(g.GlobalAveragePool(wide), g.weight { 20, 20, 1, 1 }, g.weight { 20 }))
wide = wide * gate * g.weight { 9, 7 } + g.weight { 20, 1, 1 }
local left, right = g.Split(g.Conv(wide, g.weight { 12, 20, 1, 1 }), { axis = 1, num_outputs = 2 })
local sum = g.Softmax(left + g.Transpose(g.Transpose(right, { perm = { 0, 2, 3, 1 } }), { perm = { 0, 3, 1, 2 } }), { axis = 1 })
g.output("middle", sum)
local deep = g.Conv(sum, g.weight { 1, 6, 3, 3 }, g.weight { 1 }, { pads = { 0, 1, 0, 1 } })
g.output("mean", g.ReduceMean(deep * deep, g.constant({ 2, 3 }), { keepdims = 0 }))
g.output("flat", g.Reshape(deep, g.constant({ 2, -1 })))
LUA

# verified MODEL [OPTIONS]: cpu in one line for each output.
verified() {
  model=$1
  shift
  "$program" run "$model.lua" --rules "$rules" --verify --repeat 3 "$@"
}
# turned MODEL [OPTIONS]: prints how often images are turned.
turned() {
  model=$1
  shift
  "$program" run "$model.lua" --rules "$rules" --repeat 2 --profile profile.json "$@" >/dev/null || return
  for order in last first; do
    echo "channels $order: $(grep -c "\"channels $order\"" profile.json)"
  done
}
for model in chain mixed; do
  check "$model: channels last" 0 'all outputs match' verified "$model" --option cuda.channels_last=1
  also "in one region, with nothing left" ' 1 region, 0 nodes on cpu one by one'
  check "$model: channels first" 0 'all outputs match' verified "$model" --option cuda.channels_last=0
  check "$model: without graphs" 0 'all outputs match' verified "$model" --option cuda.channels_last=1 --option cuda.graphs=0
  check "$model: tf32" 0 'all outputs match' verified "$model" --set precision=tf32 --rtol 0.01 --atol 0.01
  for short in float16 bfloat16; do
    check "$model: $short" 0 'all outputs match' verified "$model" --set precision=$short --rtol 0.05 --atol 0.1
  done
  # cuDNN refuses channels last, or the calls with bias and activation, or has no convolution at all.
  for call in cudnnSetFilterNdDescriptor:1 cudnnCreateActivationDescriptor cudnnGetConvolutionForwardAlgorithm_v7; do
    check "$model: $call fails" 0 'all outputs match' \
      env "CLEAVE_CUDA_FAIL=$call=1" "$program" run "$model.lua" --rules "$rules" --verify --option cuda.channels_last=1
  done
done
check "the chain turns its input" 0 'channels last: 1$' turned chain --option cuda.channels_last=1
also "and its output" 'channels first: 1$'
check "channels first turn nothing" 0 'channels last: 0$' turned chain --option cuda.channels_last=0
CLEAVE_CUDA_PATH=$3/tests/cuda/alone
check "without cuDNN" 0 'all outputs match' verified mixed --option cuda.channels_last=1
finish

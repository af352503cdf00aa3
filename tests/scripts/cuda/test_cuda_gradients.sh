#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Forward and backward of a convolutional network by rules/cuda.lua on the stand-ins of NVIDIA's libraries: equal to cpu,
# in one region; the same without cuDNN, and if cuDNN does not have one of its steps.
#
#   test_cuda_gradients.sh PROGRAM SOURCE BUILD
. "$2/tests/scripts/cuda/stand_ins.sh"

cat >net.lua <<'LUA'
-- Strides, groups, a depthwise convolution, one that makes images larger, and poolings with borders.
local x = g.input("x", "float32", { 2, 3, 13, 12 })
local h = g.Relu(g.Conv(x, g.weight { 8, 3, 3, 3, name = "first" }, g.zeros { 8, name = "bias" },
  { pads = { 1, 1, 1, 1 }, strides = { 2, 1 } }))
h = g.MaxPool(h, { kernel_shape = { 3, 3 }, strides = { 2, 2 }, pads = { 1, 1, 1, 1 } })
h = g.Relu(g.Conv(h, g.weight { 8, 4, 3, 3, name = "grouped" }, { pads = { 1, 1, 1, 1 }, group = 2 }) + h)
h = g.Relu(g.Conv(h, g.weight { 8, 1, 3, 3, name = "depthwise" },
  { pads = { 2, 2, 2, 2 }, dilations = { 2, 2 }, group = 8 }))
h = g.BatchNormalization(h, g.weight { 8, name = "scale" }, g.zeros { 8 }, g.zeros { 8 }, g.ones { 8 },
  { training_mode = 1 })
h = g.AveragePool(h, { kernel_shape = { 2, 2 }, strides = { 2, 2 }, ceil_mode = 1 })
h = g.ConvTranspose(h, g.weight { 8, 4, 2, 2, name = "up" }, { strides = { 2, 2 } })
g.output("loss", g.ReduceSum(h * h, { keepdims = 0 }))
LUA
check "the gradients" 0 '^  grad(bias)' "$program" gradient net.lua --loss loss --wrt first,bias,scale,grouped,depthwise,up,x -o back.onnx

# verified [OPTIONS]: cpu in one line for each output.
verified() {
  "$program" run back.onnx --rules "$rules" --verify --repeat 3 "$@"
}
check "forward and backward" 0 'all outputs match' verified
also "in one region, with nothing left" ' 1 region, 0 nodes on cpu one by one'
for op in ConvGradWeight ConvTranspose MaxPoolGrad AveragePoolGrad BatchNormalizationGrad; do
  check "$op is on the GPU" 0 "^    $op " "$program" partition back.onnx --rules "$rules"
done
check "without graphs" 0 'all outputs match' verified --option cuda.graphs=0

# What is cuDNN's really is called, and where it fails, that is said.
while read -r call op; do
  check "$call fails" 1 "cuDNN cannot compute $op" env "CLEAVE_CUDA_FAIL=$call=1" "$program" run back.onnx --rules "$rules"
done <<'CALLS'
cudnnConvolutionBackwardData ConvTranspose
cudnnConvolutionBackwardFilter ConvGradWeight
cudnnPoolingBackward AveragePoolGrad
cudnnBatchNormalizationBackward BatchNormalizationGrad
CALLS
# Kernels take over where cuDNN has no algorithm, and where there is no cuDNN.
for call in cudnnGetConvolutionBackwardDataAlgorithm_v7 cudnnGetConvolutionBackwardFilterAlgorithm_v7 \
  cudnnSetPoolingNdDescriptor; do
  check "no algorithm from $call" 0 'all outputs match' \
    env "CLEAVE_CUDA_FAIL=$call=1" "$program" run back.onnx --rules "$rules" --verify --repeat 2
  also "nothing is left to cpu" ' 1 region, 0 nodes on cpu one by one'
done
CLEAVE_CUDA_PATH=$3/tests/cuda/alone
check "without cuBLASLt and cuDNN" 0 'all outputs match' verified
CLEAVE_CUDA_PATH=$3/tests/cuda
check "in float16" 0 'all outputs match' verified --set precision=float16 --rtol 0.02 --atol 0.05
finish

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Convolutions and what follows them by rules/cuda.lua on the stand-ins of NVIDIA's libraries: which of them cuDNN computes
# in one call, in how many steps, and that they equal cpu; also where cuDNN has no such call, and where it is missing.
#
#   test_cuda_convolutions.sh PROGRAM SOURCE BUILD
. "$2/tests/scripts/cuda/stand_ins.sh"

cat >nets.lua <<'LUA'
-- One network, or all of them.
local x = g.input("x", "float32", { 2, 8, 7, 6 })
local pads = { pads = { 1, 1, 1, 1 } }
local function conv(with_bias, attributes)
  local each = attributes and attributes.group and 8 // attributes.group or 8
  return g.Conv(x, g.weight { 8, each, 3, 3 }, with_bias and g.normal { 8 } or nil, attributes or pads)
end
local nets = {
  bias = function() return conv(true) end,
  norm = function()
    local y = g.BatchNormalization(conv(false), g.normal { 8 }, g.normal { 8 }, g.normal { 8 },
      g.ones { 8 })
    return g.Relu(y + g.input("r", "float32", { 2, 8, 7, 6 }))
  end,
  relu = function() return g.Relu(conv(false)) end,
  residual = function() return conv(true) + x end,
  sigmoid = function() return g.Sigmoid(conv(true)) end,
  broadcast = function() return g.Relu(conv(true) + g.input("row", "float32", { 1, 8, 1, 1 })) end,
  shared = function()
    local y = conv(true)
    return g.Relu(y) * y
  end,
  depthwise = function() return g.Relu(conv(true, { group = 8, pads = pads.pads })) end,
  grouped = function() return g.Relu(conv(true, { group = 2, pads = pads.pads })) end,
  line = function()
    local l = g.input("line", "float32", { 2, 6, 11 })
    return g.Relu(g.Conv(l, g.weight { 4, 6, 3 }, g.normal { 4 }, { strides = { 2 } }))
  end,
  cube = function()
    local c = g.input("cube", "float32", { 1, 3, 5, 4, 6 })
    return g.Relu(g.Conv(c, g.weight { 4, 3, 2, 3, 2 }, g.normal { 4 }, { dilations = { 1, 1, 2 } }))
  end,
}
local names = {}
for name in pairs(nets) do
  names[#names + 1] = name
end
table.sort(names)
for _, name in ipairs(names) do
  if options.net == nil or options.net == name then
    g.output(name, nets[name]())
  end
end
LUA

# verified [OPTIONS]: cpu in one line for each output, and the steps of a run.
verified() {
  "$program" run nets.lua --rules "$rules" --verify --repeat 2 --profile trace.json "$@"
}
# steps NAME COUNT [OPTIONS]: it equals cpu, all of it in one region of so many steps. Rows of the table have what made
# them, the backend, and how many there are.
steps() {
  steps_name=$1
  steps_count=$2
  shift 2
  check "$steps_name" 0 'all outputs match' verified "$@"
  also "nothing is left" ' 1 region, 0 nodes on cpu one by one'
  made=$(awk '/^time per fusion/ { on = 1 } on && $2 == "cuda" { n += $3 } END { print n + 0 }' "$out")
  if [ "$made" -eq "$steps_count" ]; then
    pass
  else
    fail "$steps_name: $made steps, expected $steps_count, in"
  fi
}

# Steps where cuDNN computes bias, residual and Relu in the call, where it has no such call, and whether it is made. What
# follows that it cannot do is one kernel.
while read -r net whole bare is_whole; do
  steps "$net" "$whole" --set net="$net"
  CLEAVE_CUDA_FAIL=cudnnCreateActivationDescriptor=1
  export CLEAVE_CUDA_FAIL
  steps "$net by bare convolutions" "$bare" --set net="$net"
  CLEAVE_CUDA_FAIL=cudnnConvolutionBiasActivationForward=1
  if [ "$is_whole" = yes ]; then
    check "$net is one call" 1 "cuDNN cannot compute Conv" verified --set net="$net" --set tune=false
    CLEAVE_CUDA_CACHE= steps "$net is a bare convolution where measuring shows that the call fails" "$bare" --set net="$net"
  else
    steps "$net is a bare convolution" "$bare" --set net="$net"
  fi
  unset CLEAVE_CUDA_FAIL
done <<'NETS'
bias 1 2 yes
norm 1 2 yes
relu 1 2 yes
residual 1 2 yes
sigmoid 2 2 yes
broadcast 2 2 yes
shared 2 3 yes
depthwise 2 2 no
grouped 2 2 no
line 1 2 yes
cube 1 2 yes
NETS

check "all of them" 0 'all outputs match' verified
check "without graphs" 0 'all outputs match' verified --option cuda.graphs=0
check "without cuDNN by an option" 0 'all outputs match' verified --option cuda.cudnn=0
check "bare convolutions" 0 'all outputs match' env CLEAVE_CUDA_FAIL=cudnnCreateActivationDescriptor=1 \
  "$program" run nets.lua --rules "$rules" --verify --repeat 2
CLEAVE_CUDA_PATH=$3/tests/cuda/alone
check "without cuBLASLt and cuDNN" 0 'all outputs match' verified
also "nothing is left" ' 0 nodes on cpu one by one'
CLEAVE_CUDA_PATH=$3/tests/cuda

# In 16 bits; cuDNN is not said to have the call for bfloat16.
check "in float16" 0 'all outputs match' verified --set precision=float16 --rtol 0.02 --atol 0.05
check "in float16 with channels first" 0 'all outputs match' verified --set precision=float16 --option cuda.channels_last=0 \
  --rtol 0.02 --atol 0.05
check "with channels last" 0 'all outputs match' verified --option cuda.channels_last=1
check "in bfloat16" 0 'all outputs match' verified --set precision=bfloat16 --rtol 0.05 --atol 0.2
CLEAVE_CUDA_FAIL=cudnnConvolutionBiasActivationForward=1
export CLEAVE_CUDA_FAIL
check "float16 has the call" 1 "cuDNN cannot compute Conv" verified --set precision=float16 --set tune=false
check "bfloat16 does without" 0 'all outputs match' verified --set precision=bfloat16 --rtol 0.05 --atol 0.2
CLEAVE_CUDA_FAIL=cudnnCreateActivationDescriptor=1
check "float16 by bare convolutions" 0 'all outputs match' verified --set precision=float16 --rtol 0.02 --atol 0.05
unset CLEAVE_CUDA_FAIL
CLEAVE_CUDA_PATH=$3/tests/cuda/alone
for precision in float16 bfloat16; do
  check "$precision without cuDNN" 0 'all outputs match' verified --set precision=$precision --rtol 0.05 --atol 0.2
done
finish

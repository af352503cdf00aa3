-- SPDX-License-Identifier: Apache-2.0
-- MobileNetV2 (Sandler et al., "Inverted Residuals and Linear Bottlenecks", 2018), width 1.0. Relu6
-- is Clip from 0 to 6; batch norm is an operator of its own.
--
--   options   batch = 1, size = 224, classes = 1000
local batch = options.batch or 1
local size = options.size or 224
local classes = options.classes or 1000

-- Convolution (depthwise where group equals the channels) and batch norm.
local function conv_bn(x, name, channels, kernel, stride, group, var)
  local pad = (kernel - 1) // 2
  local inputs = x.shape[2] // group
  local w = g.weight { channels, inputs, kernel, kernel, name = name .. ".weight" }
  local y = g.Conv(x, w, {
    name = name,
    kernel_shape = { kernel, kernel },
    strides = { stride, stride },
    pads = { pad, pad, pad, pad },
    group = group,
  })
  local normal = g.batch_norm(y, { name = name .. ".bn", var = var })
  return normal
end

local function relu6(x)
  local y = g.Clip(x, 0.0, 6.0)
  return y
end

-- Widen by `factor` with 1x1, filter each channel with 3x3, narrow with 1x1 and no activation: the
-- bottleneck is linear, and is what the residual adds.
local function inverted_residual(x, name, channels, stride, factor)
  local inputs = x.shape[2]
  local wide = inputs * factor
  local y = x
  if factor ~= 1 then
    y = relu6(conv_bn(y, name .. ".expand", wide, 1, 1, 1, 2))
  end
  y = relu6(conv_bn(y, name .. ".depthwise", wide, 3, stride, wide))
  y = conv_bn(y, name .. ".project", channels, 1, 1, 1)
  if stride == 1 and inputs == channels then
    y = g.Add(x, y, { name = name .. ".add" })
  end
  return y
end

-- Expansion, channels, blocks, stride of the first block.
local STAGES = {
  { 1, 16, 1, 1 }, { 6, 24, 2, 2 }, { 6, 32, 3, 2 }, { 6, 64, 4, 2 },
  { 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 },
}

local x = g.input("image", "float32", { batch, 3, size, size })
x = relu6(conv_bn(x, "stem", 32, 3, 2, 1, 2))
for stage, shape in ipairs(STAGES) do
  local factor, channels, blocks, stride = table.unpack(shape)
  for block = 1, blocks do
    local name = string.format("stage%d.%d", stage, block)
    x = inverted_residual(x, name, channels, block == 1 and stride or 1, factor)
  end
end
x = relu6(conv_bn(x, "head", 1280, 1, 1, 1, 2))

x = g.Flatten(g.GlobalAveragePool(x))
local w = g.weight { classes, x.shape[2], name = "classifier.weight", gain = 1 }
local b = g.normal { classes, std = 0.01, name = "classifier.bias" }
g.output("logits", g.Gemm(x, w, b, { name = "classifier", transB = 1 }))

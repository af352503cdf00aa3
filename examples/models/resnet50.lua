-- SPDX-License-Identifier: Apache-2.0
-- ResNet-50 v1.5 (He et al., "Deep Residual Learning for Image Recognition", 2015; the stride of a
-- stage sits on its 3x3 convolution). Batch norm is an operator of its own everywhere: folding it
-- into the convolutions is the work of rules/conv_bn_relu.lua.
--
--   options   batch = 1, size = 224, classes = 1000
local batch = options.batch or 1
local size = options.size or 224
local classes = options.classes or 1000

-- Convolution without bias, then batch norm. `gain` is about how much of its input's size the batch
-- norm lets through; `var` is the variance that it expects.
local function conv_bn(x, name, channels, kernel, stride, gain, var)
  local pad = (kernel - 1) // 2
  local w = g.weight { channels, x.shape[2], kernel, kernel, name = name .. ".weight" }
  local y = g.Conv(x, w, {
    name = name,
    kernel_shape = { kernel, kernel },
    strides = { stride, stride },
    pads = { pad, pad, pad, pad },
  })
  return g.batch_norm(y, { name = name .. ".bn", gain = gain, var = var })
end

-- 1x1 to narrow, 3x3, 1x1 to widen by four; the input is added at the end, through a 1x1
-- convolution where its shape changes.
local function bottleneck(x, name, channels, stride)
  local wide = 4 * channels
  local y = g.Relu(conv_bn(x, name .. ".conv1", channels, 1, 1))
  y = g.Relu(conv_bn(y, name .. ".conv2", channels, 3, stride))
  y = conv_bn(y, name .. ".conv3", wide, 1, 1, 0.4)
  local shortcut = x
  if x.shape[2] ~= wide or stride ~= 1 then
    shortcut = conv_bn(x, name .. ".downsample", wide, 1, stride)
  end
  return g.Relu(g.Add(y, shortcut, { name = name .. ".add" }))
end

-- Blocks per stage, and the stride of each stage's first block.
local STAGES = { { 3, 1 }, { 4, 2 }, { 6, 2 }, { 3, 2 } }

local x = g.input("image", "float32", { batch, 3, size, size })

-- Stem: 7x7 convolution and max pooling, a quarter of the resolution.
x = g.Relu(conv_bn(x, "stem", 64, 7, 2, 1, 2))
x = g.MaxPool(x, { kernel_shape = { 3, 3 }, strides = { 2, 2 }, pads = { 1, 1, 1, 1 } })

for stage, shape in ipairs(STAGES) do
  local blocks, stride = shape[1], shape[2]
  for block = 1, blocks do
    local name = string.format("layer%d.%d", stage, block)
    x = bottleneck(x, name, 64 << (stage - 1), block == 1 and stride or 1)
  end
end

-- Head: mean over the image, one linear layer.
x = g.Flatten(g.GlobalAveragePool(x))
local w = g.weight { classes, x.shape[2], name = "fc.weight", gain = 1 }
local b = g.normal { classes, std = 0.01, name = "fc.bias" }
g.output("logits", g.Gemm(x, w, b, { name = "fc", transB = 1 }))

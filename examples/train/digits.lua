-- SPDX-License-Identifier: Apache-2.0
-- A small residual network (He et al., 2015) for digits of 8x8 pixels: a stem, three residual
-- blocks, the mean over the image, dropout and one linear layer. The batch is open: training and
-- inference have sizes of their own.
--
--   options   width = 16, classes = 10
local width = options.width or 16
local classes = options.classes or 10

local function conv(x, name, channels, kernel, stride)
  local pad = (kernel - 1) // 2
  local w = g.weight { channels, x.shape[2], kernel, kernel, name = name .. ".weight" }
  local y = g.Conv(x, w, {
    name = name,
    kernel_shape = { kernel, kernel },
    strides = { stride, stride },
    pads = { pad, pad, pad, pad },
  })
  -- Before training: mean 0 and variance 1, and so are scale and bias.
  local function vector(suffix, number)
    return g.fill { channels, value = number, name = name .. ".norm." .. suffix }
  end
  return (g.BatchNormalization(y, vector("scale", 1), vector("bias", 0), vector("mean", 0),
    vector("var", 1), { name = name .. ".norm", epsilon = 1e-5, momentum = 0.9 }))
end

local function block(x, name, channels, stride)
  local y = g.Relu(conv(x, name .. ".1", channels, 3, stride))
  y = conv(y, name .. ".2", channels, 3, 1)
  if stride ~= 1 or x.shape[2] ~= channels then
    x = conv(x, name .. ".shortcut", channels, 1, stride)
  end
  return g.Relu(x + y)
end

local x = g.input("image", "float32", { "N", 1, 8, 8 })
x = g.Relu(conv(x, "stem", width, 3, 1))
x = block(x, "block1", width, 1)
x = block(x, "block2", 2 * width, 2)
x = block(x, "block3", 4 * width, 2)
x = g.Dropout(g.Flatten(g.GlobalAveragePool(x)), 0.2)
local w = g.weight { classes, 4 * width, name = "linear.weight", gain = 1 }
local b = g.fill { classes, value = 0, name = "linear.bias" }
g.output("scores", g.Gemm(x, w, b, { name = "linear", transB = 1 }))

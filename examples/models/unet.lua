-- SPDX-License-Identifier: Apache-2.0
-- U-Net (Ronneberger et al., 2015) with padded convolutions and batch norm: four steps down with
-- max pooling, four up with transposed convolutions; each step up is joined with what came down at
-- its resolution.
--
--   options   batch = 1, size = 256 (a multiple of 16), width = 64, classes = 2
local batch = options.batch or 1
local size = options.size or 256
local width = options.width or 64
local classes = options.classes or 2

local function conv(x, name, channels, kernel)
  local pad = (kernel - 1) // 2
  local w = g.weight { channels, x.shape[2], kernel, kernel, name = name .. ".weight" }
  local y = g.Conv(x, w, {
    name = name,
    kernel_shape = { kernel, kernel },
    pads = { pad, pad, pad, pad },
  })
  return y
end

-- Twice 3x3, batch norm, Relu. `var` is the variance that the first batch norm expects.
local function double_conv(x, name, channels, var)
  for k = 1, 2 do
    local part = string.format("%s.%d", name, k)
    x = conv(x, part, channels, 3)
    x = g.Relu(g.batch_norm(x, { name = part .. ".bn", var = k == 1 and var or 1 }))
  end
  return x
end

-- Doubles the resolution: kernel 2, stride 2, so that no output is written twice.
local function up(x, name, channels)
  local inputs = x.shape[2]
  local w = g.weight { inputs, channels, 2, 2, name = name .. ".weight", fan_in = inputs, gain = 1 }
  local b = g.normal { channels, std = 0.01, name = name .. ".bias" }
  local y = g.ConvTranspose(x, w, b, { name = name, kernel_shape = { 2, 2 }, strides = { 2, 2 } })
  return y
end

local x = g.input("image", "float32", { batch, 3, size, size })

local skips = {}
for k = 1, 4 do
  x = double_conv(x, "down" .. k, width << (k - 1), k == 1 and 2 or 1)
  skips[k] = x
  x = g.MaxPool(x, { kernel_shape = { 2, 2 }, strides = { 2, 2 } })
end
x = double_conv(x, "bottom", width << 4)
for k = 4, 1, -1 do
  x = up(x, "up" .. k, width << (k - 1))
  x = g.Concat(skips[k], x, { axis = 1 })
  x = double_conv(x, "join" .. k, width << (k - 1))
end

local w = g.weight { classes, width, 1, 1, name = "head.weight", gain = 1 }
local b = g.normal { classes, std = 0.01, name = "head.bias" }
g.output("probabilities", g.Softmax(g.Conv(x, w, b, { name = "head" }), { axis = 1 }))

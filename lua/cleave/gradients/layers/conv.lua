-- SPDX-License-Identifier: Apache-2.0
-- Convolutions. The gradient of the input of one is a ConvTranspose, and the other way round; that
-- of the weights is ConvGradWeight, which is ours.
local common = include "common.lua"

-- What an operator slides by, with pads that are numbers also for auto_pad.
local function window(node, x, what)
  local attrs, rank = node.attrs, common.rank(x, what)
  local kernel, strides, dilations = attrs.kernel_shape, attrs.strides, attrs.dilations
  if not kernel then
    error(what .. ": the gradient needs the size of its kernel")
  end
  local pads, axes = attrs.pads, rank - 2
  if attrs.auto_pad ~= "NOTSET" and attrs.auto_pad ~= "VALID" then
    pads = {}
    for k = 1, axes do
      local size = x.shape[k + 2]
      if math.type(size) ~= "integer" then
        error(what .. ": with auto_pad, the gradient needs the size of its input")
      end
      local count = (size + strides[k] - 1) // strides[k]
      local all = math.max((count - 1) * strides[k] + (kernel[k] - 1) * dilations[k] + 1 - size, 0)
      local small = all // 2
      local first = attrs.auto_pad == "SAME_UPPER" and small or all - small
      pads[k], pads[axes + k] = first, all - first
    end
  elseif not pads then
    pads = {}
    for k = 1, 2 * axes do
      pads[k] = 0
    end
  end
  return { kernel_shape = kernel, strides = strides, dilations = dilations, pads = pads,
    group = attrs.group }, axes
end

-- The same of ConvTranspose, where the sizes of the result may say what is cut off at each end; and
-- the part of dy that windows reach.
local function transposed_window(g, node, x, dy)
  local attrs = node.attrs
  local is_upper = attrs.auto_pad == "SAME_UPPER"
  if not is_upper and attrs.auto_pad ~= "SAME_LOWER" and not attrs.output_shape then
    return (window(node, x, "ConvTranspose")), dy
  end
  local kernel, pads, y = attrs.kernel_shape, {}, node.outputs[1]
  local axes = #kernel
  for k = 1, axes do
    local size, result = x.shape[k + 2], y.shape[k + 2]
    if math.type(size) ~= "integer" or math.type(result) ~= "integer" then
      error("ConvTranspose: the gradient needs sizes that are known")
    end
    local more = attrs.output_padding and attrs.output_padding[k] or 0
    local whole = attrs.strides[k] * (size - 1) + more + (kernel[k] - 1) * attrs.dilations[k] + 1
    local all = math.max(whole - result, 0)
    pads[k] = is_upper and all // 2 or all - all // 2
    pads[axes + k] = all - pads[k]
    if whole < result then -- windows do not reach the rest
      dy = g.Slice(dy, { 0 }, { whole }, { k + 1 })
    end
  end
  return { kernel_shape = kernel, strides = attrs.strides, dilations = attrs.dilations, pads = pads,
    group = attrs.group }, dy
end

-- The gradient of the input x of a convolution with window w: nothing is cut off at the ends, and
-- then the ends are cut, or filled with zeros where no window reached, to the size of x.
local function to_input(g, dy, weight, x, w, axes)
  local attributes, spatial, pads, missing = {}, {}, {}, {}
  for key, value in pairs(w) do
    attributes[key] = value
  end
  for k = 1, axes do
    pads[k], pads[axes + k], spatial[k] = w.pads[k], 0, k + 1
  end
  attributes.pads = pads
  local fits = x.shape ~= nil
  for k = 1, axes do
    local size, count = fits and x.shape[k + 2], dy.shape and dy.shape[k + 2]
    if math.type(size) == "integer" and math.type(count) == "integer" then
      local reach = (count - 1) * w.strides[k] + (w.kernel_shape[k] - 1) * w.dilations[k] + 1
      local over = reach - w.pads[k] - size
      pads[axes + k], missing[k] = math.max(over, 0), math.max(-over, 0)
    else
      fits = false
    end
  end
  if fits then
    attributes.output_padding = missing
    return g.ConvTranspose(dy, weight, attributes)
  end
  for k = 1, axes do
    pads[axes + k] = 0
  end
  local whole = g.ConvTranspose(dy, weight, attributes)
  local sizes = g.Sub(g.Shape(x, { start = 2 }), g.Shape(whole, { start = 2 }))
  local zeros = g.Sub(sizes, sizes)
  return g.Pad(whole, g.Concat(zeros, sizes, { axis = 0 }), g.constant(0, dy.dtype),
    g.constant(spatial))
end

local function bias_of(g, dy, bias)
  return bias and g.ReduceSum(dy, common.but_channels(common.rank(dy, "Conv")), { keepdims = 0 })
end

local function results(dx, dw, db)
  if db then
    return dx, dw, db
  end
  return dx, dw
end

return {
  gradient "Conv" { function(g, node, dy)
    local x, weight, bias = node.inputs[1], node.inputs[2], node.inputs[3]
    local w, axes = window(node, x, "Conv")
    return results(to_input(g, dy, weight, x, w, axes), g.ConvGradWeight(x, dy, w),
      bias_of(g, dy, bias))
  end },

  gradient "ConvTranspose" { function(g, node, dy)
    local x, weight, bias = node.inputs[1], node.inputs[2], node.inputs[3]
    local w, reached = transposed_window(g, node, x, dy)
    -- dy is longer than the windows reach where there is output padding.
    return results(g.Conv(reached, weight, w), g.ConvGradWeight(reached, x, w),
      bias_of(g, dy, bias))
  end },

  gradient "ConvGradWeight" { function(g, node, dweight)
    local x, dy = node.inputs[1], node.inputs[2]
    local w, axes = window(node, x, "ConvGradWeight")
    return to_input(g, dy, dweight, x, w, axes), g.Conv(x, dweight, w)
  end },

  test "Conv with strides, dilations, pads and groups" {
    graph = function(g, x, w, v, b)
      return g.Conv(x, w, b), g.Conv(x, w, { strides = { 2, 3 }, pads = { 1, 0, 2, 1 } }),
        g.Conv(x, w, { dilations = { 2, 1 }, pads = { 1, 1, 1, 1 } }), g.Conv(x, v, { group = 2 }),
        g.Conv(x, w, { auto_pad = "SAME_UPPER", strides = { 2, 2 } }),
        g.Conv(x, w, { auto_pad = "SAME_LOWER" })
    end,
    inputs = { x = { 2, 4, 6, 7 }, w = { 2, 4, 3, 2 }, v = { 4, 2, 3, 3 }, b = { 2 } },
    gradient = 2,
  },
  test "Conv with one channel per group, and of 1 and 3 axes" {
    graph = function(g, x, w, y, v, z, u)
      return g.Conv(x, w, { group = 3, pads = { 1, 1, 1, 1 } }), g.Conv(y, v, { strides = { 2 } }),
        g.Conv(z, u, { pads = { 0, 1, 0, 1, 0, 1 } }),
        g.Conv(x, g.Slice(w, { 0, 0 }, { 1, 1 }, { 2, 3 }), { group = 3 })
    end,
    inputs = { x = { 2, 3, 4, 4 }, w = { 3, 1, 3, 3 }, y = { 2, 3, 8 }, v = { 2, 3, 3 },
      z = { 1, 2, 3, 3, 3 }, u = { 2, 2, 2, 2, 2 } },
    gradient = 2,
  },
  test "Conv of open sizes" {
    graph = function(g, x, w)
      return g.Conv(x, w), g.Conv(x, w, { strides = { 2, 2 }, pads = { 1, 1, 1, 1 } })
    end,
    inputs = { x = { "N", 2, "H", "W" }, w = { 3, 2, 2, 2 } },
    gradient = 2,
  },
  test "ConvTranspose to sizes that are given" {
    graph = function(g, x, w)
      return g.ConvTranspose(x, w, { strides = { 2, 2 }, output_shape = { 6, 7 } }),
        g.ConvTranspose(x, w, { strides = { 2, 2 }, output_shape = { 9, 10 } }),
        g.ConvTranspose(x, w, { strides = { 2, 1 }, auto_pad = "SAME_UPPER" }),
        g.ConvTranspose(x, w, { strides = { 2, 1 }, auto_pad = "SAME_LOWER" })
    end,
    inputs = { x = { 2, 2, 3, 3 }, w = { 2, 2, 3, 2 } },
    gradient = 2,
  },
  test "ConvTranspose" {
    graph = function(g, x, w, b, v)
      return g.ConvTranspose(x, w, b), g.ConvTranspose(x, w, { strides = { 2, 2 },
        pads = { 1, 0, 0, 1 }, output_padding = { 1, 0 } }), g.ConvTranspose(x, v, { group = 2 }),
        g.ConvTranspose(x, w, { dilations = { 2, 1 } })
    end,
    inputs = { x = { 2, 4, 3, 3 }, w = { 4, 2, 3, 2 }, b = { 2 }, v = { 4, 1, 2, 2 } },
    gradient = 2,
  },
}

-- SPDX-License-Identifier: Apache-2.0
-- Normalizations. Statistics are computed again from the input, so that a second derivative goes
-- through them.
local common = include "common.lua"

local KEEP = { keepdims = 1 }

-- (x - mean) / deviation over axes, and the inverse deviation.
local function normalized(g, x, axes, epsilon)
  local centred = x - g.ReduceMean(x, axes, KEEP)
  local inverse = 1 / g.Sqrt(g.ReduceMean(centred * centred, axes, KEEP) + epsilon)
  return centred * inverse, inverse
end

-- Back through `normalized`, from the gradient of its first result.
local function through(g, dy, normal, inverse, axes)
  local inner = g.ReduceMean(dy * normal, axes, KEEP)
  return inverse * (dy - g.ReduceMean(dy, axes, KEEP) - normal * inner)
end

local function batch_norm(g, node, dy)
  local x, scale, bias = node.inputs[1], node.inputs[2], node.inputs[3]
  local mean, var = node.inputs[4], node.inputs[5]
  local rank = common.rank(x, "BatchNormalization")
  local axes, epsilon = common.but_channels(rank), node.attrs.epsilon
  local wide_scale = common.channels(g, scale, rank)
  local dx, normal
  if node.attrs.training_mode == 1 then
    local inverse
    normal, inverse = normalized(g, x, axes, epsilon)
    dx = through(g, dy * wide_scale, normal, inverse, axes)
  else
    local inverse = common.channels(g, 1 / g.Sqrt(var + epsilon), rank)
    normal = (x - common.channels(g, mean, rank)) * inverse
    dx = dy * (wide_scale * inverse)
  end
  local dscale = g.ReduceSum(dy * normal, axes, { keepdims = 0 })
  local dbias = g.ReduceSum(dy, axes, { keepdims = 0 })
  return dx, g.sum_to(dscale, scale), g.sum_to(dbias, bias), false, false
end

-- Scale and bias of channels after a normalization of `normal`, which has the shape of x.
local function by_channels(g, node, dy, normal)
  local rank = common.rank(node.inputs[1], node.op)
  local axes = common.but_channels(rank)
  return dy * common.channels(g, node.inputs[2], rank),
    g.ReduceSum(dy * normal, axes, { keepdims = 0 }), g.ReduceSum(dy, axes, { keepdims = 0 })
end

-- The sum of neighbours over `size` channels, as LRN has it, or in the mirror.
local function channel_window(g, value, size, mirrored)
  local before, after = (size - 1) // 2, size // 2
  if mirrored then
    before, after = after, before
  end
  local shape = g.Shape(value)
  local plane = g.Reshape(value, g.Concat(g.Slice(shape, { 0 }, { 1 }), { 1 },
    g.Slice(shape, { 1 }, { 2 }), { -1 }, { axis = 0 }))
  local mean = g.AveragePool(plane, { kernel_shape = { size, 1 }, pads = { before, 0, after, 0 },
    count_include_pad = 1 })
  return g.Reshape(mean * size, shape)
end

return {
  gradient "BatchNormalization" {
    doc = "By the input, scale and bias; the statistics that it is given are not parameters.",
    batch_norm,
  },

  gradient "GroupNormalization" { function(g, node, dy)
    local x, groups = node.inputs[1], node.attrs.num_groups
    local shape = g.Shape(x)
    local grouped = g.Concat(g.Slice(shape, { 0 }, { 1 }), { groups, -1 }, { axis = 0 })
    local axes = { 2 }
    local normal, inverse = normalized(g, g.Reshape(x, grouped), axes, node.attrs.epsilon)
    local dnormal, dscale, dbias = by_channels(g, node, dy, g.Reshape(normal, shape))
    local dx = through(g, g.Reshape(dnormal, grouped), normal, inverse, axes)
    return g.Reshape(dx, shape), dscale, dbias
  end },

  gradient "InstanceNormalization" { function(g, node, dy)
    local x = node.inputs[1]
    local axes = common.axes_from(2, common.rank(x, "InstanceNormalization"))
    local normal, inverse = normalized(g, x, axes, node.attrs.epsilon)
    local dnormal, dscale, dbias = by_channels(g, node, dy, normal)
    return through(g, dnormal, normal, inverse, axes), dscale, dbias
  end },

  gradient "LayerNormalization" { function(g, node, dy)
    local x, scale, bias = node.inputs[1], node.inputs[2], node.inputs[3]
    local rank = common.rank(x, "LayerNormalization")
    local axes = common.axes_from(common.axis(node.attrs.axis, rank), rank)
    local normal, inverse = normalized(g, x, axes, node.attrs.epsilon)
    local dx = through(g, dy * scale, normal, inverse, axes)
    if not bias then
      return dx, g.sum_to(dy * normal, scale)
    end
    return dx, g.sum_to(dy * normal, scale), g.sum_to(dy, bias)
  end },

  gradient "LRN" { function(g, node, dy)
    local x, attrs = node.inputs[1], node.attrs
    local size, alpha, beta = attrs.size, attrs.alpha / attrs.size, attrs.beta
    local s = channel_window(g, x * x, size, false) * alpha + attrs.bias
    local power = g.Pow(s, g.constant(-beta, x.dtype))
    local around = channel_window(g, dy * x * power / s, size, true)
    return dy * power - x * around * (2 * alpha * beta)
  end },

  gradient "MeanVarianceNormalization" { function(g, node, dy)
    local axes = node.attrs.axes
    local normal, inverse = normalized(g, node.inputs[1], axes, 1e-9)
    return through(g, dy, normal, inverse, axes)
  end },

  gradient "RMSNormalization" { function(g, node, dy)
    local x, scale = node.inputs[1], node.inputs[2]
    local rank = common.rank(x, "RMSNormalization")
    local axes = common.axes_from(common.axis(node.attrs.axis, rank), rank)
    local inverse = 1 / g.Sqrt(g.ReduceMean(x * x, axes, KEEP) + node.attrs.epsilon)
    local normal = x * inverse
    local dnormal = dy * scale
    local dx = inverse * (dnormal - normal * g.ReduceMean(dnormal * normal, axes, KEEP))
    return dx, g.sum_to(dy * normal, scale)
  end },

  test "batch norm as trained, and in training" {
    graph = function(g, x, scale, bias)
      local mean = g.constant({ 0.1, -0.2, 0.3 }, "float64")
      local var = g.constant({ 0.5, 1, 2 }, "float64")
      return g.BatchNormalization(x, scale, bias, mean, var),
        (g.BatchNormalization(x, scale, bias, mean, var, { training_mode = 1, outputs = 3 }))
    end,
    inputs = { x = { 2, 3, 2, 2 }, scale = { 3 }, bias = { 3 } },
    gradient = 2,
  },
  test "norms of channels" {
    graph = function(g, x, scale, bias)
      return g.GroupNormalization(x, scale, bias, { num_groups = 2 }),
        g.InstanceNormalization(x, scale, bias)
    end,
    inputs = { x = { 2, 4, 3, 2 }, scale = { 4 }, bias = { 4 } },
    gradient = 2,
  },
  test "norms of the last axes" {
    graph = function(g, x, scale, bias, wide)
      return (g.LayerNormalization(x, scale, bias)), (g.LayerNormalization(x, wide, { axis = 1 })),
        g.RMSNormalization(x, scale)
    end,
    inputs = { x = { "N", 3, 4 }, scale = { 4 }, bias = { 4 }, wide = { 3, 4 } },
    gradient = 2,
  },
  test "norms without parameters" {
    graph = function(g, x)
      return g.LRN(x, { size = 3, alpha = 0.5 }), g.LRN(x, { size = 4, alpha = 0.5, bias = 2 }),
        g.MeanVarianceNormalization(x)
    end,
    inputs = { x = { 2, 5, 2, 2 } },
    gradient = true,
  },
}

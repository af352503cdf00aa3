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

local function sum_of_channels(g, value, rank)
  return g.ReduceSum(value, common.but_channels(rank), { keepdims = 0 })
end

-- What the gradients of statistics of the data give to the data.
local function from_statistics(g, x, mean, dmean, dvar)
  local rank, dx = common.rank(x, "BatchNormalization"), nil
  local count = (dmean or dvar) and common.ratio(g, x, mean)
  if dmean then
    dx = g.Expand(common.channels(g, dmean / count, rank), g.Shape(x))
  end
  if dvar then
    local centred = x - common.channels(g, mean, rank)
    local share = centred * common.channels(g, dvar * 2 / count, rank)
    dx = dx and dx + share or share
  end
  return dx
end

local function sum_of(a, b)
  return a and b and a + b or a or b
end

-- In training, by the input, scale, bias and the statistics from before; `mean` and `var`: of the
-- data, whose own gradients are dmean and dvar; running ones keep a part of what they were.
local function in_training(g, node, dy, mean, var, drunning_mean, drunning_var, dmean, dvar)
  local x, scale, attrs = node.inputs[1], node.inputs[2], node.attrs
  local kept, dx, dscale, dbias = attrs.momentum, nil, nil, nil
  if dy then
    dx, dscale, dbias = g.BatchNormalizationGrad(dy, x, scale, mean, var,
      { epsilon = attrs.epsilon })
  end
  local more = from_statistics(g, x, mean,
    sum_of(dmean, drunning_mean and drunning_mean * (1 - kept)),
    sum_of(dvar, drunning_var and drunning_var * (1 - kept)))
  return sum_of(dx, more), dscale or false, dbias or false,
    drunning_mean and drunning_mean * kept or false, drunning_var and drunning_var * kept or false
end

local function batch_norm(g, node, dy, dmean, dvar)
  local x, scale, bias = node.inputs[1], node.inputs[2], node.inputs[3]
  local mean, var, epsilon = node.inputs[4], node.inputs[5], node.attrs.epsilon
  local rank = common.rank(x, "BatchNormalization")
  if node.attrs.training_mode == 1 then
    local _, _, _, own_mean, own_var = g.BatchNormalizationTraining(x, scale, bias, mean, var,
      { epsilon = epsilon })
    return in_training(g, node, dy, own_mean, own_var, dmean, dvar)
  end
  local inverse = common.channels(g, 1 / g.Sqrt(var + epsilon), rank)
  local normal = (x - common.channels(g, mean, rank)) * inverse
  return dy * (common.channels(g, scale, rank) * inverse), sum_of_channels(g, dy * normal, rank),
    sum_of_channels(g, dy, rank), false, false
end

-- With n = (x - mean) r, r = 1 / sqrt(var + epsilon), M elements of a channel and s its scale:
--   dscale = sum(dy n), dbias = sum(dy), dx = s r (dy - dbias / M - n dscale / M).
-- Back from their gradients ddx, ddscale and ddbias, by all five inputs.
local function batch_norm_grad(g, node, ddx, ddscale, ddbias)
  local inputs = node.inputs
  local dy, x, scale, mean, var = inputs[1], inputs[2], inputs[3], inputs[4], inputs[5]
  local rank = common.rank(x, "BatchNormalizationGrad")
  local function wide(vector)
    return common.channels(g, vector, rank)
  end
  local function sum(value)
    return sum_of_channels(g, value, rank)
  end
  local r = 1 / g.Sqrt(var + node.attrs.epsilon)
  local centred, count = x - wide(mean), common.ratio(g, x, mean)
  local n = centred * wide(r)
  local by_product, by_sum, to_dy, to_n, to_factor
  if ddx then
    local factor, product, total = scale * r, sum(dy * n), sum(dy)
    local ddx_n, ddx_total = sum(ddx * n), sum(ddx)
    by_product, by_sum = -factor * ddx_n / count, -factor * ddx_total / count
    to_dy, to_n = ddx * wide(factor), -ddx * wide(factor * product / count)
    to_factor = sum(ddx * dy) - (ddx_total * total + ddx_n * product) / count
  end
  if ddscale then
    by_product = by_product and by_product + ddscale or ddscale
  end
  if ddbias then
    by_sum = by_sum and by_sum + ddbias or ddbias
  end
  if by_product then
    to_dy = to_dy and to_dy + n * wide(by_product) or n * wide(by_product)
    to_n = to_n and to_n + dy * wide(by_product) or dy * wide(by_product)
  end
  if by_sum then
    local share = g.Expand(wide(by_sum), g.Shape(dy))
    to_dy = to_dy and to_dy + share or share
  end
  if not to_n then
    return to_dy, false, false, false, false
  end
  local to_x, to_r = to_n * wide(r), sum(to_n * centred)
  if to_factor then
    to_r = to_r + scale * to_factor
  end
  return to_dy, to_x, to_factor and r * to_factor or false, -sum(to_x), to_r * r * r * r * -0.5
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
  gradient "BatchNormalizationTraining" { function(g, node, dy, ...)
    return in_training(g, node, dy, node.outputs[4], node.outputs[5], ...)
  end },
  gradient "BatchNormalizationGrad" { batch_norm_grad },

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
        g.BatchNormalization(x, scale, bias, mean, var, { training_mode = 1, outputs = 3 })
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
    gradient = 2,
  },
}

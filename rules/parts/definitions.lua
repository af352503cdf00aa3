-- SPDX-License-Identifier: Apache-2.0
-- Operators that are functions of others, as these, for backends that have no kernel for them.
-- They become pointwise operators and reductions, which fuse with what is around them. Those of
-- float16 and bfloat16 are computed in float32 and rounded once.

local definitions = option.boolean(true, "operators that are functions of others become these")

local CODES = { -- of the attribute `to`
  float32 = 1, uint8 = 2, int8 = 3, uint16 = 4, int16 = 5, int32 = 6, float16 = 10, bfloat16 = 16,
}
local LIMITS = {
  uint8 = { 0, 255 }, int8 = { -128, 127 }, uint16 = { 0, 65535 }, int16 = { -32768, 32767 },
}
local INTEGERS = { uint8 = true, int8 = true, uint16 = true, int16 = true, int32 = true }

local function is_short(value)
  return value.dtype == "float16" or value.dtype == "bfloat16"
end

-- In float32, unless it is float64.
local function widened(g, value)
  return is_short(value) and g.Cast(value, { to = CODES.float32 }) or value
end

-- In the dtype of `like` again.
local function narrowed(g, value, like)
  return is_short(like) and g.Cast(value, { to = CODES[like.dtype] }) or value
end

local function number(g, value, like)
  return g.constant(value, like.dtype)
end

-- A scale or zero point, one number or one per index of an axis, as it broadcasts to `x`; nil if it
-- has another form.
local function beside(g, value, x, axis)
  if value.rank == 0 or value.rank == 1 and value.shape[1] == 1 and x.rank > 0 then
    return value
  end
  axis = axis < 0 and axis + x.rank or axis
  local shape = { -1 }
  for k = 2, x.rank - axis do
    shape[k] = 1
  end
  return #shape == 1 and value or g.Reshape(value, g.constant(shape))
end

local function scales_fit(m)
  local rank, block = m.scale.rank, m.node.attrs.block_size
  return m.x.rank ~= nil and rank ~= nil and rank <= 1 and (block == nil or block == 0)
    and (m.scale.dtype == "float32" or is_short(m.scale)), "its scales are in blocks, or float64"
end

-- ---- losses over classes, which are axis 1 of the scores ----

local function loss_of(g, node, logarithms)
  local target, weights = node.inputs[2], node.inputs[3]
  local ignored, reduction = node.attrs.ignore_index, node.attrs.reduction
  local is_ignored = ignored and g.Equal(target, number(g, ignored, target))
  local zero = number(g, 0.0, logarithms)
  local safe = is_ignored and g.Where(is_ignored, number(g, 0, target), target) or target
  local picked = g.GatherElements(logarithms, g.Unsqueeze(safe, { 1 }), { axis = 1 })
  local loss, share = -g.Squeeze(picked, { 1 }), nil
  if weights then
    share = g.Gather(widened(g, weights), safe, { axis = 0 })
    loss = loss * share
  end
  if is_ignored then
    loss = g.Where(is_ignored, zero, loss)
    share = g.Where(is_ignored, zero, share or number(g, 1.0, logarithms))
  end
  if reduction == "none" then
    return loss
  elseif reduction == "mean" and not share then
    return g.ReduceMean(loss, { keepdims = 0 })
  end
  local sum = g.ReduceSum(loss, { keepdims = 0 })
  return reduction == "sum" and sum or sum / g.ReduceSum(share, { keepdims = 0 })
end

local function spell_losses(graph, _, g)
  local count = 0
  for node in graph:topological() do
    local is_softmax = node.op == "SoftmaxCrossEntropyLoss"
    if node.domain == "" and (is_softmax or node.op == "NegativeLogLikelihoodLoss") then
      local scores = node.inputs[1]
      local logarithms = widened(g, scores)
      logarithms = is_softmax and g.LogSoftmax(logarithms, { axis = 1 }) or logarithms
      if node.outputs[2] then
        g.replace(node.outputs[2], narrowed(g, logarithms, scores))
      end
      if node.outputs[1] then
        g.replace(node.outputs[1], narrowed(g, loss_of(g, node, logarithms), scores))
      end
      g.remove(node)
      count = count + 1
    end
  end
  return count > 0, "there are no losses"
end

-- ---- 8-bit integers of the range that a tensor has ----

-- As `cpu`: NaN is not in the range, and an empty range has the zero point 0.
local function quantized(g, x)
  local zero = g.constant(0.0, "float32")
  local known = g.Where(g.IsNaN(x), zero, x)
  local low = g.Min(g.ReduceMin(known, { keepdims = 0 }), zero)
  local high = g.Max(g.ReduceMax(known, { keepdims = 0 }), zero)
  local scale = (high - low) / g.constant(255.0, "float32")
  local point = g.Where(g.Greater(scale, zero), g.Round(-low / scale), zero)
  local from = g.Clip(point, zero, g.constant(255.0, "float32"))
  from = g.Cast(from, { to = CODES.uint8 })
  return g.QuantizeLinear(x, scale, from), scale, from
end

local function spell_ranges(graph, _, g)
  local count = 0
  for node in graph:topological() do
    if node.op == "DynamicQuantizeLinear" and node.domain == "" then
      for k, value in ipairs { quantized(g, node.inputs[1]) } do
        if node.outputs[k] then
          g.replace(node.outputs[k], value)
        end
      end
      g.remove(node)
      count = count + 1
    end
  end
  return count > 0, "no range is looked for"
end

-- 8-bit integers less their zero point: one, or one per row of the left matrix or per column of
-- the right one.
local function less(g, integers, zero, is_left)
  local value = g.Cast(integers, { to = CODES.int32 })
  if not zero then
    return value
  end
  local points = g.Cast(zero, { to = CODES.int32 })
  return value - (is_left and zero.rank == 1 and g.Unsqueeze(points, { 1 }) or points)
end

return {
  options = { definitions = definitions },

  pass "ranges" {
    doc = "DynamicQuantizeLinear: the smallest and largest number, and QuantizeLinear.",
    enabled = definitions,
    run = spell_ranges,
  },

  rewrite "integer_product" {
    doc = "MatMulInteger: a product of 32-bit integers, exact as it is.",
    enabled = definitions,
    pattern = op { "MatMulInteger", as = "node", inputs = { A = any "a", B = any "b" } },
    where = function(m)
      local left, right = m.node.inputs.a_zero_point, m.node.inputs.b_zero_point
      return m.a.rank ~= nil and m.a.rank >= 2 and m.b.rank ~= nil and m.b.rank >= 2
        and (left == nil or left.rank ~= nil and left.rank <= 1)
        and (right == nil or right.rank ~= nil and right.rank <= 1),
        "it has vectors, or zero points of other ranks"
    end,
    replace = function(m, g)
      local zeros = m.node.inputs
      return g.MatMul(less(g, m.a, zeros.a_zero_point, true), less(g, m.b, zeros.b_zero_point))
    end,
  },

  pass "losses" {
    doc = "Losses over classes: logarithms of softmax, of which labels pick one each.",
    enabled = definitions,
    run = spell_losses,
  },

  rewrite "mean_variance_norm" {
    doc = "MeanVarianceNormalization: (x - mean) / (deviation + 1e-9).",
    enabled = definitions,
    pattern = op { "MeanVarianceNormalization", as = "node", inputs = { any "x" } },
    replace = function(m, g)
      local x, axes = widened(g, m.x), g.constant(m.node.attrs.axes)
      local distance = x - g.ReduceMean(x, axes)
      local variance = g.ReduceMean(distance * distance, axes)
      return narrowed(g, distance / (g.Sqrt(variance) + number(g, 1e-9, x)), m.x)
    end,
  },

  rewrite "lp_norm" {
    doc = "LpNormalization: x over its norm along an axis; where that is 0, x.",
    enabled = definitions,
    pattern = op { "LpNormalization", as = "node", inputs = { any "x" } },
    replace = function(m, g)
      local x, reduce = widened(g, m.x), m.node.attrs.p == 1 and g.ReduceL1 or g.ReduceL2
      local norm = reduce(x, g.constant { m.node.attrs.axis })
      local is_zero = g.Equal(norm, number(g, 0.0, x))
      return narrowed(g, x / g.Where(is_zero, number(g, 1.0, x), norm), m.x)
    end,
  },

  rewrite "lp_pool" {
    doc = "GlobalLpPool: the norm of each channel.",
    enabled = definitions,
    pattern = op { "GlobalLpPool", as = "node", inputs = { any "x" } },
    where = function(m) return m.x.rank ~= nil and m.x.rank > 2, "its rank is not known" end,
    replace = function(m, g)
      local x, axes, p = widened(g, m.x), {}, m.node.attrs.p
      for k = 2, m.x.rank - 1 do
        axes[#axes + 1] = k
      end
      axes = g.constant(axes)
      if p <= 2 then
        return narrowed(g, (p == 1 and g.ReduceL1 or g.ReduceL2)(x, axes), m.x)
      end
      local sum = g.ReduceSum(g.Pow(g.Abs(x), number(g, p, x)), axes)
      return narrowed(g, g.Pow(sum, number(g, 1 / p, x)), m.x)
    end,
  },

  rewrite "dequantize" {
    doc = "DequantizeLinear: (x - zero point) * scale.",
    enabled = definitions,
    pattern = op {
      "DequantizeLinear",
      as = "node",
      inputs = { x = any "x", x_scale = any "scale" },
    },
    where = function(m)
      if not INTEGERS[m.x.dtype] then
        return false, "its integers have neither 8, 16 nor 32 bits"
      end
      if m.node.dtype ~= "float32" and not is_short(m.node) then
        return false, "its result is float64"
      end
      return scales_fit(m)
    end,
    replace = function(m, g)
      local zero, axis = m.node.inputs[3], m.node.attrs.axis
      local value = g.Cast(m.x, { to = CODES.float32 })
      if zero then
        value = value - beside(g, g.Cast(zero, { to = CODES.float32 }), m.x, axis)
      end
      return narrowed(g, value * beside(g, widened(g, m.scale), m.x, axis), m.node)
    end,
  },

  rewrite "quantize" {
    doc = "QuantizeLinear: x / scale, rounded, plus the zero point, within the bounds of the type.",
    enabled = definitions,
    pattern = op {
      "QuantizeLinear",
      as = "node",
      inputs = { x = any "x", y_scale = any "scale" },
    },
    where = function(m)
      if m.x.dtype ~= "float32" and not is_short(m.x) or not LIMITS[m.node.dtype] then
        return false, "not from floats of up to 32 bits to integers of 8 or 16"
      end
      return scales_fit(m)
    end,
    replace = function(m, g)
      local zero, axis, limits = m.node.inputs[3], m.node.attrs.axis, LIMITS[m.node.dtype]
      local x = widened(g, m.x)
      local value = g.Round(x / beside(g, widened(g, m.scale), m.x, axis))
      if zero then
        value = value + beside(g, g.Cast(zero, { to = CODES.float32 }), m.x, axis)
      end
      value = g.Clip(value, number(g, limits[1], x), number(g, limits[2], x))
      return g.Cast(value, { to = CODES[m.node.dtype] })
    end,
  },

  -- ---- tests ----

  test "losses are spelled out, with the logarithms of probabilities" {
    graph = function(g, x, weights)
      local labels, all = g.constant { { 1, 0 }, { 3, -100 }, { 2, 2 } }, {}
      for k, reduction in ipairs { "mean", "sum", "none" } do
        all[k] = g.SoftmaxCrossEntropyLoss(x, labels, weights,
          { reduction = reduction, ignore_index = -100 })
        all[k + 3] = g.NegativeLogLikelihoodLoss(x, labels,
          { reduction = reduction, ignore_index = -100 })
        all[k + 6] = g.NegativeLogLikelihoodLoss(x, g.constant { { 1, 0 }, { 3, 3 }, { 2, 2 } },
          weights, { reduction = reduction })
      end
      local loss, log = g.SoftmaxCrossEntropyLoss(x, g.constant { { 1, 0 }, { 3, 1 }, { 2, 2 } },
        { outputs = 2 })
      all[10], all[11] = loss * 2.0, g.Exp(log)
      return table.unpack(all)
    end,
    inputs = { x = { 3, 4, 2 }, weights = { 4, low = 0.5, high = 2 } },
    expect = { losses = 1, SoftmaxCrossEntropyLoss = 0, NegativeLogLikelihoodLoss = 0 },
    equal = true,
  },
  test "norms and pools are spelled out" {
    graph = function(g, x)
      return g.MeanVarianceNormalization(x), g.MeanVarianceNormalization(x, { axes = { 1 } }),
        g.LpNormalization(g.Relu(x)), g.LpNormalization(x, { axis = 1, p = 1 }),
        g.LpNormalization(x * 0.0), g.GlobalLpPool(x), g.GlobalLpPool(x, { p = 1 }),
        g.GlobalLpPool(x, { p = 3 })
    end,
    inputs = { x = { 2, 3, 4, 5 } },
    expect = { mean_variance_norm = 2, lp_norm = 3, lp_pool = 3 },
    equal = true,
  },
  test "integers and their numbers are spelled out" {
    graph = function(g, x)
      local scale, zero = g.constant(0.02, "float32"), g.constant(120, "uint8")
      local scales, zeros = g.constant { 0.5, 0.25, 0.01 }, g.constant({ -3, 0, 7 }, "int8")
      local a = g.QuantizeLinear(x, scale, zero)
      local b = g.QuantizeLinear(x, scales, zeros, { axis = 1 })
      local c = g.QuantizeLinear(x, g.constant { 0.1 })
      local d = g.DequantizeLinear(b, scales, zeros, { axis = -2 })
      return g.DequantizeLinear(a, scale, zero), d, g.DequantizeLinear(c, g.constant { 0.1 }), a, b
    end,
    inputs = { x = { 2, 3, 4 } },
    expect = { quantize = 3, dequantize = 3 },
    equal = true,
  },
  test "ranges are looked for, and integers multiplied" {
    graph = function(g, x, w)
      local q, scale, zero = g.DynamicQuantizeLinear(x)
      local b, _, point = g.DynamicQuantizeLinear(w)
      local none = g.DynamicQuantizeLinear(x * 0.0)
      local sums = g.MatMulInteger(q, b, zero, point)
      return sums, q, scale, zero, none,
        g.MatMulInteger(q, b, nil, g.constant({ 1, 2, 3, 4 }, "uint8"))
    end,
    inputs = { x = { 2, 5, 8 }, w = { 8, 4 } },
    expect = { ranges = 1, integer_product = 2, DynamicQuantizeLinear = 0, MatMulInteger = 0 },
    equal = true,
  },
  test "scales in blocks stay as they are" {
    graph = function(g, x)
      local scales = g.uniform { 2, 2, low = 0.1, high = 0.2 }
      local zeros = g.constant({ { 0, 1 }, { 2, 3 } }, "int8")
      local blocks = { axis = 1, block_size = 4 }
      return g.DequantizeLinear(g.QuantizeLinear(x, scales, zeros, blocks), scales, zeros, blocks)
    end,
    inputs = { x = { 2, 8 } },
    expect = { QuantizeLinear = 1, DequantizeLinear = 1 },
    expect_not = { "quantize", "dequantize" },
    equal = true,
  },
  test "numbers of 16 bits are computed in 32" {
    graph = function(g, x, y)
      local scale, zero = g.constant(0.02, "float16"), g.constant(-3, "int8")
      return g.LpNormalization(x * 100), g.MeanVarianceNormalization(x), g.GlobalLpPool(x * 60),
        g.DequantizeLinear(g.QuantizeLinear(x, scale, zero), scale, zero),
        g.SoftmaxCrossEntropyLoss(y, g.constant { 3, 5 })
    end,
    inputs = {
      x = { 2, 3, 40, 50, dtype = "float16" }, y = { 2, 8, dtype = "float16" },
    },
    expect = {
      lp_norm = 1, mean_variance_norm = 1, lp_pool = 1, quantize = 1, dequantize = 1, losses = 1,
    },
    equal = true,
  },
  test "operators may stay as they are" {
    graph = function(g, x)
      local q, _, zero = g.DynamicQuantizeLinear(x)
      return g.GlobalLpPool(x), g.NegativeLogLikelihoodLoss(x, g.constant { { { 1, 0 } } }),
        g.LpNormalization(x), g.MeanVarianceNormalization(x),
        g.MatMulInteger(q, g.Transpose(q, { perm = { 0, 1, 3, 2 } }), zero, zero)
    end,
    inputs = { x = { 1, 2, 1, 2 } },
    options = { definitions = false },
    expect_not = {
      "lp_pool", "losses", "lp_norm", "mean_variance_norm", "ranges", "integer_product",
    },
    equal = true,
  },
}

-- SPDX-License-Identifier: Apache-2.0
-- Operators of 8-bit integers, as the convolutions and products of dequantized numbers that they
-- are, so that there is one form for integers: QLinearConv, QLinearMatMul, and ConvInteger and
-- MatMulInteger whose sums become float32. parts/quantized.lua multiplies the integers again. Sums
-- are the same up to the rounding of float32; a result that is rounded to integers may be the next.
--
-- What DynamicQuantizeLinear makes has a zero point that only a run knows: it is taken off after
-- the product, with the sums of the weights.

local qlinear = option.boolean(true, "operators of 8-bit integers are dequantized ones")

local function scalar(label)
  return constant { as = label, rank = 0 }
end

-- Attributes of a convolution for another one.
local function window(node)
  local attrs = node.attrs
  local result = { strides = attrs.strides, dilations = attrs.dilations, group = attrs.group }
  if attrs.auto_pad == "NOTSET" then
    result.pads = attrs.pads
  else
    result.auto_pad = attrs.auto_pad
  end
  return result
end

local function convolve(g, node, x, w, bias)
  local call = window(node)
  call.X, call.W, call.B = x, w, bias
  return g.Conv(call)
end

-- Integers as they are.
local function as_numbers(g, integers, zero)
  return g.DequantizeLinear(integers, g.constant(1.0, "float32"), zero)
end

-- One scale, or one per index of the dimension `axis`, from 0.
local function scales_fit(scales, weights, axis)
  return scales.rank == 0
    or scales.rank == 1 and weights.rank ~= nil and scales.shape[1] == weights.shape[axis + 1]
end

local function is_constant_scalar(value)
  return value == nil or value.is_constant and value.rank == 0
end

-- ---- subgraphs for tests ----

-- Weights of 8-bit integers from -60 to 60, with the scale 0.01.
local function small(g, shape)
  return g.QuantizeLinear(g.Clip(g.weight(shape), -0.6, 0.6), g.constant(0.01, "float32"),
    g.constant(0, "int8"))
end

-- A QLinearMatMul with matrices of 32 rows and 24 columns.
local function multiply(g, x)
  local scale, zero = g.constant(0.03, "float32"), g.constant(120, "uint8")
  return g.QLinearMatMul(g.QuantizeLinear(x, scale, zero), scale, zero, small(g, { 32, 24 }),
    g.constant(0.01, "float32"), g.constant(0, "int8"), g.constant(0.05, "float32"),
    g.constant(128, "uint8"))
end

return {
  options = { qlinear = qlinear },

  rewrite "qlinear_conv" {
    doc = "QLinearConv: a convolution of dequantized numbers, quantized.",
    enabled = qlinear,
    pattern = op {
      "QLinearConv",
      as = "conv",
      inputs = {
        x_scale = scalar "x_scale", x_zero_point = scalar(),
        w = constant "w", w_scale = constant "w_scale", w_zero_point = constant(),
        y_scale = scalar(), y_zero_point = scalar(),
      },
    },
    where = function(m)
      return scales_fit(m.w_scale, m.w, 0), "the scales of its weights are not one per output"
    end,
    replace = function(m, g)
      local given = m.conv.inputs
      local x = g.DequantizeLinear(given.x, m.x_scale, given.x_zero_point)
      local w = g.DequantizeLinear(m.w, m.w_scale, given.w_zero_point, { axis = 0 })
      local bias = given.B and g.Cast(given.B, { to = 1 }) * (m.x_scale * m.w_scale) or nil
      return g.QuantizeLinear(convolve(g, m.conv, x, w, bias), given.y_scale, given.y_zero_point)
    end,
  },

  rewrite "qlinear_matmul" {
    doc = "QLinearMatMul: a product of dequantized numbers, quantized.",
    enabled = qlinear,
    pattern = op {
      "QLinearMatMul",
      as = "product",
      inputs = {
        a_scale = scalar(), a_zero_point = scalar(),
        b = any "b", b_scale = constant "b_scale", b_zero_point = constant(),
        y_scale = scalar(), y_zero_point = scalar(),
      },
    },
    where = function(m)
      return m.b.rank ~= nil and scales_fit(m.b_scale, m.b, m.b.rank - 1),
        "the scales of its second operand are not one per column"
    end,
    replace = function(m, g)
      local given = m.product.inputs
      local a = g.DequantizeLinear(given.a, given.a_scale, given.a_zero_point)
      local b = g.DequantizeLinear(m.b, m.b_scale, given.b_zero_point, { axis = m.b.rank - 1 })
      return g.QuantizeLinear(g.MatMul(a, b), given.y_scale, given.y_zero_point)
    end,
  },

  rewrite "conv_integer" {
    doc = "ConvInteger whose sums become float32: a convolution of dequantized numbers.",
    enabled = qlinear,
    pattern = op { "ConvInteger", as = "conv", inputs = { w = constant() } }
      >> op { "Cast", attrs = { to = 1 } },
    where = function(m)
      local given = m.conv.inputs
      return is_constant_scalar(given.x_zero_point) and is_constant_scalar(given.w_zero_point),
        "its zero points are not constant numbers"
    end,
    replace = function(m, g)
      local given = m.conv.inputs
      return convolve(g, m.conv, as_numbers(g, given.x, given.x_zero_point),
        as_numbers(g, given.w, given.w_zero_point))
    end,
  },

  rewrite "matmul_integer" {
    doc = "MatMulInteger whose sums become float32: a product of dequantized numbers.",
    enabled = qlinear,
    pattern = op { "MatMulInteger", as = "product", inputs = { B = constant { rank = 2 } } }
      >> op { "Cast", attrs = { to = 1 } },
    where = function(m)
      local given = m.product.inputs
      local zero = given.a_zero_point
      return is_constant_scalar(given.b_zero_point) and (zero == nil or zero.rank == 0),
        "its zero points are not numbers"
    end,
    replace = function(m, g)
      local given = m.product.inputs
      local zero, b = given.a_zero_point, as_numbers(g, given.B, given.b_zero_point)
      if zero == nil or zero.is_constant then
        return g.MatMul(as_numbers(g, given.A, zero), b)
      end
      local weights = g.Cast(given.B, { to = 1 }) -- folded
      if given.b_zero_point then
        weights = weights - g.Cast(given.b_zero_point, { to = 1 })
      end
      local sums = g.ReduceSum(weights, g.constant { 0 }, { keepdims = 0 })
      return g.MatMul(as_numbers(g, given.A), b) - g.Cast(zero, { to = 1 }) * sums
    end,
  },

  -- ---- tests ----

  test "QLinearConv is a convolution of integers, with a bias and a scale per channel" {
    graph = function(g, x)
      local scale, zero = g.constant(0.03, "float32"), g.constant(120, "uint8")
      local scales = g.uniform { 32, low = 0.01, high = 0.02 }
      local w = g.QuantizeLinear(g.Clip(g.weight { 32, 16, 3, 3 }, -0.6, 0.6), scales,
        g.zeros { 32, dtype = "int8" }, { axis = 0 })
      local bias = g.Cast(g.normal { 32, std = 200 }, { to = 6 })
      local y = g.QLinearConv(g.QuantizeLinear(x, scale, zero), scale, zero, w, scales,
        g.zeros { 32, dtype = "int8" }, g.constant(0.05, "float32"), g.constant(128, "uint8"), bias,
        { pads = { 1, 1, 1, 1 }, strides = { 2, 2 } })
      return g.DequantizeLinear(y, g.constant(0.05, "float32"), g.constant(128, "uint8"))
    end,
    inputs = { x = { 1, 16, 9, 9 } },
    expect = { qlinear_conv = 1, QLinearConv = 0 },
    equal = { rtol = 0, atol = 0.06 },
  },
  test "QLinearMatMul is a product of integers" {
    graph = function(g, x)
      return multiply(g, x)
    end,
    inputs = { x = { 8, 32 } },
    expect = { qlinear_matmul = 1, QLinearMatMul = 0 },
    equal = true,
  },
  test "sums of integers that become float32 are products of integers" {
    graph = function(g, x, y)
      local one, zero = g.constant(0.03, "float32"), g.constant(120, "uint8")
      local u = g.ConvInteger(g.QuantizeLinear(x, one, zero), small(g, { 16, 16, 3, 3 }), zero,
        nil, { pads = { 1, 1, 1, 1 } })
      local v = g.MatMulInteger(g.QuantizeLinear(y, one, zero), small(g, { 32, 24 }), zero)
      return g.Relu(g.Cast(u, { to = 1 }) * 0.0003), g.Cast(v, { to = 1 }) * 0.0003
    end,
    inputs = { x = { 1, 16, 8, 8 }, y = { 8, 32 } },
    expect = { conv_integer = 1, matmul_integer = 1 },
    equal = true,
  },
  test "zero points of a run are taken off with the sums of the weights" {
    graph = function(g, x)
      local q, scale, zero = g.DynamicQuantizeLinear(x)
      local y = g.Cast(g.MatMulInteger(q, small(g, { 32, 24 }), zero), { to = 1 })
      return y * (scale * 0.01) + g.normal { 24 }
    end,
    inputs = { x = { 2, 8, 32 } },
    expect = { matmul_integer = 1 },
    equal = { rtol = 1e-4, atol = 1e-4 },
  },
  test "sums that stay integers are what they are" {
    graph = function(g, x)
      local one, zero = g.constant(0.03, "float32"), g.constant(120, "uint8")
      return g.MatMulInteger(g.QuantizeLinear(x, one, zero), small(g, { 32, 24 }), zero)
    end,
    inputs = { x = { 8, 32 } },
    expect_not = { "matmul_integer" },
    equal = true,
  },
  test "convolutions with zero points of a run stay: their padding is none of zeros" {
    graph = function(g, x)
      local q, scale, zero = g.DynamicQuantizeLinear(x)
      local w = small(g, { 16, 16, 3, 3 })
      local y = g.Cast(g.ConvInteger(q, w, zero, nil, { pads = { 1, 1, 1, 1 } }), { to = 1 })
      return y, g.QLinearConv(q, scale, zero, w, g.constant(0.01, "float32"), g.constant(0, "int8"),
        g.constant(0.05, "float32"), g.constant(128, "uint8"))
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    expect = { ConvInteger = 1, QLinearConv = 1 },
    expect_not = { "conv_integer", "qlinear_conv" },
    refused = { conv_integer = "not constant numbers" },
    equal = true,
  },
  test "operators of integers can be left alone" {
    graph = function(g, x)
      return multiply(g, x)
    end,
    inputs = { x = { 8, 32 } },
    options = { qlinear = false },
    expect = { QLinearMatMul = 1 },
    expect_not = { "qlinear_matmul" },
    equal = true,
  },
}

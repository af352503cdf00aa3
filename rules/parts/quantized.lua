-- SPDX-License-Identifier: Apache-2.0
-- Models with QuantizeLinear and DequantizeLinear around their operators (QDQ): products whose data
-- and weights are 8-bit integers multiply the integers, and what follows them in the kernel is
-- computed in float32, QuantizeLinear included. Weights are signed, without zero points, with one
-- scale or one per output channel; data have one scale and any zero point. Other products of
-- dequantized values are computed in float32, and the plan says why.
--
-- Between kernels values stay integers: DequantizeLinear alone costs nothing in a region.

local values = include("parts/integers.lua")
local step = include("parts/steps.lua").step

local quantized = option.boolean(true, "multiply 8-bit integers if data and weights are stored so")

local product = op {
  { "Conv", "Gemm", "MatMul" },
  as = "product",
  inputs = { any "data", op { "DequantizeLinear", as = "weights" } },
}

-- ---- subgraphs for tests ----

-- As integers and back.
local function through(g, x, scale, zero, dtype)
  local step_size, point = g.constant(scale), g.constant(zero, dtype or "uint8")
  return g.DequantizeLinear(g.QuantizeLinear(x, step_size, point), step_size, point)
end

-- Weights from -64 to 64, which processors without VNNI multiply, too.
local function weights(g, shape, zero, dtype)
  return through(g, g.Clip(g.weight(shape), -0.64, 0.64), 0.01, zero or 0, dtype or "int8")
end

-- The same with a scale per output channel.
local function weights_by_channel(g, shape, axis)
  local scales, zeros = {}, {}
  for c = 1, shape[axis + 1] do
    scales[c], zeros[c] = 0.01 + 0.001 * (c % 5), 0
  end
  local step_sizes, points = g.constant(scales), g.constant(zeros, "int8")
  local numbers = g.Clip(g.weight(shape), -0.64, 0.64)
  local integers = g.QuantizeLinear(numbers, step_sizes, points, { axis = axis })
  return g.DequantizeLinear(integers, step_sizes, points, { axis = axis })
end

return {
  options = { quantized = quantized },

  fuse "quantized" {
    doc = "A convolution or product of 8-bit integers with what follows it, to integers again.",
    enabled = quantized,
    priority = 1,
    pattern = product >> maybe(repeated { step(), max = 12 }) >> maybe "QuantizeLinear",
    where = function(m)
      return values.are_in(m.data), "its data are not 8-bit integers"
    end,
    attributes = { precision = "int8" },
  },

  fuse "quantized_chain" {
    doc = "Pointwise operators in a row whose result becomes integers.",
    enabled = quantized,
    pattern = step() >> maybe(repeated { step(), max = 12 }) >> op "QuantizeLinear",
  },

  -- ---- tests ----

  test "a convolution of integers is one kernel, to integers again" {
    graph = function(g, x)
      local y = g.Conv(through(g, x, 0.03, 120), weights_by_channel(g, { 32, 16, 3, 3 }, 0),
        g.normal { 32 }, { pads = { 1, 1, 1, 1 } })
      return through(g, g.Relu(y), 0.02, 0)
    end,
    inputs = { x = { 1, 16, 9, 9 } },
    expect = { quantized = 1, ["quantized.weights"] = 1, fusions = 1, left = 0 },
    expect_not = { "product", "chain" },
    equal = true,
  },
  test "groups, strides, other zero points and a clip" {
    graph = function(g, x)
      local y = g.Conv(through(g, x, 0.03, 7), weights(g, { 32, 1, 3, 3 }), nil,
        { group = 32, strides = { 2, 2 }, pads = { 1, 1, 1, 1 } })
      local z = through(g, g.Clip(y, 0, 6), 0.03, 0)
      return through(g, g.Conv(z, weights(g, { 24, 32, 1, 1 })), 0.03, -5, "int8")
    end,
    inputs = { x = { 2, 32, 9, 9 } },
    expect = { quantized = 2, left = 0 },
    expect_not = { "product" },
    equal = true,
  },
  test "sums of products of integers, and of integers alone" {
    graph = function(g, x)
      local a = through(g, x, 0.03, 128)
      local y = through(g, g.Conv(a, weights(g, { 16, 16, 1, 1 })), 0.03, 100)
      local z = through(g, g.Conv(a, weights(g, { 16, 16, 1, 1 })), 0.04, 2, "int8")
      local s = through(g, g.Relu(z + y), 0.03, 0)
      local u = through(g, g.Relu(g.Conv(s, weights(g, { 16, 16, 1, 1 })) + s), 0.03, 0)
      return through(g, u + x, 0.05, 128)
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    expect = { quantized = 3, quantized_chain = 2, left = 0 },
    expect_not = { "product", "chain" },
    equal = true,
  },
  test "poolings, views and concatenations of integers" {
    graph = function(g, x)
      local window = { kernel_shape = { 3, 3 }, pads = { 1, 1, 1, 1 } }
      local a = through(g, x, 0.03, 128)
      local b = through(g, g.MaxPool(a, window), 0.03, 128)
      local c = through(g, g.AveragePool(a, window), 0.02, 128)
      local d = through(g, g.Concat(a, b, c, { axis = 1 }), 0.03, 128)
      local e = through(g, g.Concat(a, b, { axis = 1 }), 0.03, 128)
      local f = through(g, g.Conv(d, weights(g, { 16, 48, 1, 1 })), 0.05, 128)
      return through(g, g.Transpose(f, { perm = { 0, 2, 3, 1 } }), 0.05, 128), e
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    expect = { quantized = 1, left = 0 },
    equal = true,
  },
  test "matrix products of integers, with weights either way round" {
    graph = function(g, x)
      local a = through(g, g.Relu(x), 0.02, 3)
      local y = g.Gemm(a, weights_by_channel(g, { 24, 32 }, 0), g.normal { 24 },
        { transB = 1, alpha = 0.5 })
      local z = g.MatMul(a, weights_by_channel(g, { 32, 24 }, 1)) + g.normal { 24 }
      return g.Gelu(y), through(g, z, 0.05, 120)
    end,
    inputs = { x = { 8, 32 } },
    expect = { quantized = 2, left = 0 },
    expect_not = { "product" },
    equal = true,
  },
  test "products of many rows and a large depth, with sums and functions" {
    graph = function(g, x, y)
      local a = through(g, x, 0.03, 100)
      local up = g.MatMul(a, weights_by_channel(g, { 512, 576 }, 1)) + g.normal { 576 }
      local b = through(g, g.Gelu(up), 0.1, 3)
      local down = g.MatMul(b, weights_by_channel(g, { 576, 512 }, 1)) + g.normal { 512 } + x
      local c = through(g, y, 0.03, -5, "int8")
      return down, through(g, g.MatMul(c, weights(g, { 512, 70 })), 0.2, 2, "int8")
    end,
    inputs = { x = { 2, 12, 512 }, y = { 17, 512 } },
    expect = { quantized = 3, left = 0 },
    expect_not = { "product" },
    equal = true,
  },
  test "products of batches and of few rows" {
    graph = function(g, x)
      local a = through(g, x, 0.03, 128)
      local y = through(g, g.MatMul(a, weights(g, { 32, 24 })), 0.05, 128)
      local row = through(g, g.ReduceMean(y, { 1 }), 0.02, 128)
      return g.Softmax(y), g.MatMul(row, weights(g, { 24, 40 }))
    end,
    inputs = { x = { 2, 5, 32 } },
    expect = { quantized = 2, left = 0 },
    expect_not = { "product" },
    equal = true,
  },
  test "operators of 8-bit integers are products of integers, sums and all" {
    graph = function(g, x, y)
      local scale, zero = g.constant(0.03, "float32"), g.constant(120, "uint8")
      local function small(shape)
        return g.QuantizeLinear(g.Clip(g.weight(shape), -0.6, 0.6), g.constant(0.01, "float32"),
          g.constant(0, "int8"))
      end
      local u = g.QLinearConv(g.QuantizeLinear(x, scale, zero), scale, zero, small { 32, 16, 3, 3 },
        g.constant(0.01, "float32"), g.constant(0, "int8"), g.constant(0.05, "float32"), zero)
      local v = g.QLinearMatMul(g.QuantizeLinear(y, scale, zero), scale, zero, small { 32, 24 },
        g.constant(0.01, "float32"), g.constant(0, "int8"), g.constant(0.05, "float32"), zero)
      local q, _, own = g.DynamicQuantizeLinear(y)
      return g.DequantizeLinear(u, scale, zero), v,
        g.Cast(g.MatMulInteger(q, small { 32, 24 }, own), { to = 1 }) * 0.0003
    end,
    inputs = { x = { 1, 16, 9, 9 }, y = { 8, 32 } },
    expect = { qlinear_conv = 1, qlinear_matmul = 1, matmul_integer = 1, quantized = 3 },
    equal = { rtol = 1e-4, atol = 0.06 },
  },
  test "weights with zero points, or unsigned, are multiplied in float32" {
    graph = function(g, x)
      local a = through(g, x, 0.03, 128)
      return g.Relu(g.Conv(a, weights(g, { 16, 16, 1, 1 }, 3))),
        g.Conv(a, weights(g, { 16, 16, 1, 1 }, 64, "uint8"))
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    expect = { product = 1, left = 0 },
    expect_not = { "quantized" },
    refused = { quantized = "zero points" },
    equal = true,
  },
  test "data in float32 stay so" {
    graph = function(g, x)
      return g.Relu(g.Conv(x, weights(g, { 16, 16, 1, 1 })))
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    expect = { product = 1, left = 0 },
    expect_not = { "quantized" },
    refused = { quantized = "not 8-bit integers" },
    equal = true,
  },
  test "integers can be left to float32" {
    graph = function(g, x)
      local a = through(g, x, 0.03, 128)
      return through(g, g.Relu(g.Conv(a, weights(g, { 16, 16, 1, 1 }))), 0.02, 0)
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    options = { quantized = false },
    expect = { product = 1, left = 0 },
    expect_not = { "quantized", "quantized_chain" },
    equal = true,
  },
}

-- SPDX-License-Identifier: Apache-2.0
-- The cases of MXNet's tests of pointwise fusion, forward, as far as they are ONNX: each operator
-- in a kernel on the CUDA backend, in float16, float32 and float64.
-- tests/scripts/cuda/test_cuda_cases.sh copies it beside the shipped rules, to include them.

local grow = include("pointwise/grow.lua")

local DTYPES = { "float16", "float32", "float64" }

-- Two identities behind every output, so that something always fuses.
local function twice(g, y)
  return g.Identity(g.Identity(y))
end

local function slice(g, x, from, to, axes)
  return g.Slice(x, g.constant(from), g.constant(to), g.constant(axes))
end

local UNARY = {
  { "relu", function(g, x) return g.Relu(x) end },
  { "sigmoid", function(g, x) return g.Sigmoid(x) end },
  { "softsign", function(g, x) return g.Softsign(x) end },
  { "exp", function(g, x) return g.Exp(x) end },
  { "expm1", function(g, x) return g.Exp(x) - 1 end },
  { "log", function(g, x) return g.Log(x) end },
  { "log10", function(g, x) return g.Log(x) / math.log(10) end },
  { "log1p", function(g, x) return g.Log(x + 1) end },
  { "degrees", function(g, x) return g.Mul(x, 180 / math.pi) end },
  { "sin", function(g, x) return g.Sin(x) end },
  { "cos", function(g, x) return g.Cos(x) end },
  { "tan", function(g, x) return g.Tan(x) end },
  { "arcsin", function(g, x) return g.Asin(x) end },
  { "arccos", function(g, x) return g.Acos(x) end },
  { "arctan", function(g, x) return g.Atan(x) end },
  { "sinh", function(g, x) return g.Sinh(x) end },
  { "cosh", function(g, x) return g.Cosh(x) end },
  { "tanh", function(g, x) return g.Tanh(x) end },
  { "arcsinh", function(g, x) return g.Asinh(x) end },
  { "arccosh", function(g, x) return g.Acosh(x + 1) end },
  { "arctanh", function(g, x) return g.Atanh(g.Mul(x, 0.9)) end },
  { "sqrt", function(g, x) return g.Sqrt(x) end },
  { "rsqrt", function(g, x) return g.Reciprocal(g.Sqrt(x)) end },
  { "square", function(g, x) return g.Mul(x, x) end },
  { "rint", function(g, x) return g.Round(x) end },
  { "floor", function(g, x) return g.Floor(x) end },
  { "ceil", function(g, x) return g.Ceil(x) end },
  { "sign", function(g, x) return g.Sign(x) end },
  { "reciprocal", function(g, x) return g.Reciprocal(x) end },
  { "abs", function(g, x) return g.Abs(x) end },
  { "erf", function(g, x) return g.Erf(x) end },
  { "negative", function(g, x) return g.Neg(x) end },
  { "softrelu", function(g, x) return g.Softplus(x) end },
  { "softrelu of large numbers", function(g, x) return g.Softplus(g.Mul(x, 1000)) end },
  { "clip", function(g, x) return g.Clip(x, 0.3, 0.7) end },
  { "clip without a bound", function(g, x) return g.Clip(x, -math.huge, 0.7) end },
  { "clip to infinity", function(g, x) return g.Clip(x, -math.huge, math.huge) end },
  { "smooth_l1", function(g, x)
    return g.Where(g.Less(g.Abs(x), 1 / 0.09), g.Mul(g.Mul(x, x), 0.045), g.Abs(x) - 1 / 0.18)
  end },
  { "sum with a number", function(_, x) return x + 3 end },
  { "number minus it", function(g, x) return g.Sub(3, x) end },
  { "quotient of a number", function(g, x) return g.Div(3, x) end },
  { "power of a number", function(g, x) return g.Pow(x, 3) end },
  { "leaky relu", function(g, x) return g.LeakyRelu(x - 0.5) end },
}

local BINARY = {
  { "sum", function(_, a, b) return a + b end },
  { "difference", function(_, a, b) return a - b end },
  { "product", function(_, a, b) return a * b end },
  { "quotient", function(_, a, b) return a / (b + 1) end },
  { "power", function(g, a, b) return g.Pow(a, b) end },
  { "maximum", function(g, a, b) return g.Max(a, b) end },
  { "minimum", function(g, a, b) return g.Min(a, b) end },
  { "hypot", function(g, a, b) return g.Sqrt(a * a + b * b) end },
  { "gelu of a sum", function(g, a, b) return g.Gelu(a + b) end },
  { "sum of three", function(g, a, b) return g.Sum(a, b, a) end },
}

local rules = {
  name = "fusion_cases",
  backend = "cuda",

  fuse "kernel" {
    selector = function()
      return grow.grower { reductions = true, max_nodes = 64 }
    end,
    min_nodes = 2,
  },

  region "everything" {},

  -- Two kernels that read each other's sums may not become one.
  test "two sums crosswise make no cycle" {
    graph = function(g, x, y)
      local u, v = g.Relu(x), g.Relu(y)
      return u + g.ReduceSum(v), v + g.ReduceSum(u)
    end,
    inputs = { x = { 8, 8 }, y = { 8, 8 } },
    expect = { everything = true, left = 0 },
    equal = true,
  },
  test "operands in another order, with a product behind" {
    graph = function(g, x, y, z)
      local s = g.Mul(x, 2)
      local t = s + z
      return g.MatMul(s + y * y, t)
    end,
    inputs = { x = { 10, 10 }, y = { 10, 1 }, z = { 10, 10 } },
    expect = { everything = true, left = 0 },
    equal = true,
  },
  test "truth values become numbers" {
    graph = function(g, x)
      local b = g.Greater(x, 0.5)
      return g.Cast(b, { to = 1 }) * g.Unsqueeze(g.Cast(b, { to = 1 }), g.constant { 1 })
    end,
    inputs = { x = { 10 } },
    expect = { everything = true, left = 0 },
    equal = true,
  },
  test "casts to every dtype" {
    graph = function(g, x)
      local y = g.Mul(x, 100)
      return twice(g, g.Cast(y, { to = 10 })), twice(g, g.Cast(y, { to = 11 })),
        twice(g, g.Cast(y, { to = 6 }))
    end,
    inputs = { x = { 7, 9 } },
    expect = { everything = true, left = 0 },
    equal = true,
  },
  test "views and slices" {
    graph = function(g, x)
      local y = g.Relu(x)
      return twice(g, g.Reshape(y, g.constant { -1 })), twice(g, g.Unsqueeze(y, g.constant { 1 })),
        twice(g, slice(g, y, { 1 }, { 4 }, { -3 })),
        twice(g, slice(g, y, { -4, -6 }, { -1, -2 }, { 0, 2 })),
        twice(g, g.Expand(slice(g, y, { 0 }, { 1 }, { 1 }), g.constant { 5, 3, 7 }))
    end,
    inputs = { x = { 5, 3, 7 } },
    expect = { everything = true, left = 0 },
    equal = true,
  },
}

for _, case in ipairs(UNARY) do
  for _, dtype in ipairs(DTYPES) do
    rules[#rules + 1] = test(case[1] .. " of " .. dtype) {
      graph = function(g, x)
        return twice(g, case[2](g, x))
      end,
      inputs = { x = { 9, 13, dtype = dtype, low = 0.05, high = 0.95 } },
      expect = { everything = 1, left = 0 },
      equal = true,
    }
  end
end
for _, case in ipairs(BINARY) do
  for _, dtype in ipairs(DTYPES) do
    rules[#rules + 1] = test(case[1] .. " of " .. dtype) {
      graph = function(g, a, b)
        return twice(g, case[2](g, a, b))
      end,
      inputs = {
        a = { 9, 13, dtype = dtype, low = 0.05, high = 0.95 },
        b = { 9, 13, dtype = dtype, low = 0.05, high = 0.95 },
      },
      expect = { everything = 1, left = 0 },
      equal = true,
    }
  end
end

return ruleset(rules)

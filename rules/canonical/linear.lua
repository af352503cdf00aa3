-- SPDX-License-Identifier: Apache-2.0
-- Rewrites a matrix product with its bias to Gemm, and folds batch norm into the product or
-- convolution before it. The folded weights are constants that are computed again if their sources
-- change.

local linear = option.boolean(true, "make Gemm out of products of matrices and an added bias")
local batch_norm = option.boolean(true, "fold batch norm into the weights before it")

local function norm()
  return op {
    "BatchNormalization",
    as = "norm",
    attrs = { training_mode = 0 },
    inputs = {
      scale = constant "scale", B = constant "shift",
      input_mean = constant "mean", input_var = constant "variance",
    },
  }
end

-- The factor of batch norm per channel.
local function factor_of(m, g)
  return m.scale / g.Sqrt(m.variance + m.norm.attrs.epsilon)
end

-- The bias after batch norm, from the bias before it.
local function bias_of(m, factor, bias)
  if bias then
    return (bias - m.mean) * factor + m.shift
  end
  return m.shift - m.mean * factor
end

-- Reshapes one entry per channel to `rank` dimensions, with the channels in dimension `place`.
local function along(g, vector, place, rank)
  local shape = {}
  for d = 1, rank do
    shape[d] = d == place and -1 or 1
  end
  return g.Reshape(vector, shape)
end

local CONV = { "auto_pad", "dilations", "group", "kernel_shape", "pads", "strides" }
local TRANSPOSED = {
  "auto_pad", "dilations", "group", "kernel_shape", "output_padding", "output_shape", "pads",
  "strides",
}

local function attributes_of(node, names)
  local attributes = {}
  for _, name in ipairs(names) do
    attributes[name] = node.attrs[name]
  end
  return attributes
end

local function has_constant_bias(m, input)
  local bias = m.product.inputs[input]
  return not bias or bias.is_constant, "its bias is not a constant"
end

-- Weights [in, out / group, ...] of ConvTranspose: each group of inputs has its own channels.
local function scale_transposed(m, g, factor)
  local weights, group = m.weights, m.product.attrs.group
  local shape = weights.shape
  if group == 1 then
    return weights * along(g, factor, 2, weights.rank)
  end
  local apart = { group, shape[1] // group }
  local factors = { group, 1 }
  for d = 2, #shape do
    apart[#apart + 1] = shape[d]
    factors[#factors + 1] = d == 2 and shape[d] or 1
  end
  return g.Reshape(g.Reshape(weights, apart) * g.Reshape(factor, factors), shape)
end

-- ---- tests ----

local function uniform(g, ...)
  return g.uniform { low = 0.5, high = 1.5, ... }
end

return {
  options = { linear = linear, batch_norm = batch_norm },

  rewrite "linear" {
    doc = "A product of a matrix and constant weights with an added bias is Gemm.",
    enabled = linear,
    pattern = op { "Add", as = "sum", inputs = {
      op { "MatMul", as = "product", rank = 2,
        inputs = { A = any { as = "x", rank = 2 }, B = constant { as = "weights", rank = 2 } } },
      constant { as = "bias", rank = 1 },
    } },
    where = function(m)
      return m.sum.shape[2] == m.product.shape[2] and m.sum.shape[1] == m.product.shape[1],
        "the bias makes the product larger"
    end,
    replace = function(m, g)
      return g.Gemm(m.x, m.weights, m.bias)
    end,
  },

  rewrite "batch_norm_conv" {
    doc = "Folds batch norm after Conv into its weights and bias.",
    enabled = batch_norm,
    pattern = op { "Conv", as = "product", inputs = { X = any "x", W = constant "weights" } }
      >> norm(),
    where = function(m)
      return has_constant_bias(m, "B")
    end,
    replace = function(m, g)
      local factor = factor_of(m, g)
      return g.Conv(m.x, m.weights * along(g, factor, 1, m.weights.rank),
        bias_of(m, factor, m.product.inputs.B), attributes_of(m.product, CONV))
    end,
  },

  rewrite "batch_norm_conv_transpose" {
    doc = "Folds batch norm after ConvTranspose into its weights and bias.",
    enabled = batch_norm,
    pattern = op { "ConvTranspose", as = "product",
      inputs = { X = any "x", W = constant "weights" } } >> norm(),
    where = function(m)
      return has_constant_bias(m, "B")
    end,
    replace = function(m, g)
      local factor = factor_of(m, g)
      return g.ConvTranspose(m.x, scale_transposed(m, g, factor),
        bias_of(m, factor, m.product.inputs.B), attributes_of(m.product, TRANSPOSED))
    end,
  },

  rewrite "batch_norm_gemm" {
    doc = "Folds batch norm after Gemm into its weights and bias.",
    enabled = batch_norm,
    pattern = op { "Gemm", as = "product", attrs = { beta = 1 },
      inputs = { A = any "x", B = constant "weights" } } >> norm(),
    where = function(m)
      return has_constant_bias(m, "C")
    end,
    replace = function(m, g)
      local factor, attrs = factor_of(m, g), m.product.attrs
      local place = attrs.transB ~= 0 and 1 or 2
      return g.Gemm(m.x, m.weights * along(g, factor, place, 2),
        bias_of(m, factor, m.product.inputs.C),
        { alpha = attrs.alpha, transA = attrs.transA, transB = attrs.transB })
    end,
  },

  test "a product of matrices with a bias is Gemm" {
    inputs = { x = { 3, 8 } },
    graph = function(g, x)
      return g.normal { 5 } + g.MatMul(x, g.normal { 8, 5 })
    end,
    expect = { linear = 1 },
    equal = true,
  },

  test "batches, and a bias that makes the product larger, are not a Gemm" {
    inputs = { x = { 3, 8 }, y = { 2, 3, 8 } },
    graph = function(g, x, y)
      return g.MatMul(x, g.normal { 8, 1 }) + g.normal { 5 },
        g.MatMul(y, g.normal { 8, 5 }) + g.normal { 5 }
    end,
    expect_not = { "linear" },
    equal = true,
  },

  test "batch norm goes into the convolution before it" {
    inputs = { x = { 2, 4, 6, 6 } },
    graph = function(g, x)
      local y = g.Conv(x, g.normal { 6, 2, 3, 3 }, g.normal { 6 },
        { group = 2, pads = { 1, 1, 1, 1 } })
      local z = g.Conv(g.batch_norm(y), g.normal { 3, 6, 3, 3 }, { strides = { 2, 2 } })
      return g.batch_norm(z)
    end,
    expect = { batch_norm_conv = 2 },
    equal = { rtol = 1e-4, atol = 1e-4 },
  },

  test "a convolution that is used elsewhere keeps its weights" {
    inputs = { x = { 2, 4, 6, 6 } },
    graph = function(g, x)
      local y = g.Conv(x, g.normal { 6, 4, 3, 3 })
      return g.batch_norm(y), g.Relu(y)
    end,
    expect_not = { "batch_norm_conv" },
    equal = { rtol = 1e-4, atol = 1e-4 },
  },

  test "batch norm goes into a transposed convolution, with groups too" {
    inputs = { x = { 2, 4, 5, 5 } },
    graph = function(g, x)
      local y = g.ConvTranspose(x, g.normal { 4, 3, 2, 2 }, { strides = { 2, 2 } })
      local z = g.ConvTranspose(x, g.normal { 4, 3, 3, 3 }, g.normal { 6 }, { group = 2 })
      return g.batch_norm(y), g.batch_norm(z)
    end,
    expect = { batch_norm_conv_transpose = 2 },
    equal = { rtol = 1e-4, atol = 1e-4 },
  },

  test "batch norm with an activation before it stays" {
    inputs = { x = { 2, 4, 5, 5 } },
    graph = function(g, x)
      return g.batch_norm(g.Relu(g.ConvTranspose(x, g.normal { 4, 3, 2, 2 })))
    end,
    expect_not = { "batch_norm_conv_transpose" },
    equal = { rtol = 1e-4, atol = 1e-4 },
  },

  test "batch norm goes into Gemm, transposed or not" {
    inputs = { x = { 3, 8 } },
    graph = function(g, x)
      local y = g.batch_norm(g.Gemm(x, g.normal { 5, 8 }, g.normal { 5 }, { transB = 1 }))
      return y, g.batch_norm(g.Gemm(x, g.normal { 8, 5 }, { alpha = 0.5 }))
    end,
    expect = { batch_norm_gemm = 2 },
    equal = { rtol = 1e-4, atol = 1e-4 },
  },

  test "batch norm whose scale is computed stays" {
    inputs = { x = { 3, 8 }, scale = { 5 } },
    graph = function(g, x, scale)
      local y = g.Gemm(x, g.normal { 5, 8 }, { transB = 1 })
      return g.BatchNormalization(y, scale, g.zeros { 5 }, g.zeros { 5 }, uniform(g, 5))
    end,
    expect_not = { "batch_norm_gemm" },
    equal = { rtol = 1e-4, atol = 1e-4 },
  },
}

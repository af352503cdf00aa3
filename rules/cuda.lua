-- SPDX-License-Identifier: Apache-2.0
-- Rules for GPUs: they fuse products and convolutions with their epilogues and pointwise operators
-- with the reductions of their rows, and put everything that the backend supports into a region.
-- Attention is one kernel. Rewrites of the folder canonical/ run first, so that the rules need only
-- match operators, not the subgraphs that exporters write for them.
--
-- Rules only propose fusions. If the backend refuses one, it gives a reason, and the next shorter
-- match is tried.

local grow = include("pointwise/grow.lua")
local moves = include("parts/moves.lua")

local options = {
  pointwise = option.boolean(true, "make kernels of pointwise operators"),
  reductions = option.boolean(true, "kernels take reductions over the last axes"),
  max_nodes = option.integer(64, "most nodes in one kernel", { min = 2, max = 512 }),
  kernel_reads = option.boolean(true, "kernels read views in front of them by strides"),
  join_run = option.integer(0, "fewest elements of each part of a Concat in a row, on average, for "
    .. "kernels to read it where it lies; 0: they read no parts", { min = 0 }),
  epilogues = option.boolean(true, "products and convolutions take what follows them along"),
  precision = option.enum("float32", "exact; products rounded to TF32; or values of 16 bits", {
    "float32", "tf32", "float16", "bfloat16",
  }),
  fast_math = option.boolean(false, "functions with fewer digits, for speed"),
  tune = option.boolean(true,
    "algorithms of cuBLASLt and cuDNN are measured when regions are compiled, the fastest kept"),
  regions = option.boolean(true, "make regions of all that the backend supports"),
}

-- Pointwise operators that may follow a product in its kernel.
local POINTWISE = {}
for name in pairs(grow.pointwise) do
  POINTWISE[#POINTWISE + 1] = name
end
table.sort(POINTWISE)

local function step()
  return op { POINTWISE }
end

-- Batch norm with constant parameters is folded into the weights.
local function constant_norm()
  return op {
    "BatchNormalization",
    attrs = { training_mode = 0 },
    inputs = {
      scale = constant "scale", B = constant "shift", input_mean = constant "mean",
      input_var = constant "variance",
    },
  }
end

-- Arithmetic on shapes stays on the host, whose operators read the few integers.
local function is_shape(value)
  return value.dtype == "int64" and value.rank ~= nil and value.rank <= 1
end

local function reviewed(sub, set)
  local keep, reason = moves.computes(sub)
  return keep, reason,
    { tf32 = set.precision == "tf32", fast_math = set.fast_math, tune = set.tune }
end

-- An attention block as exporters write it.
local function attention_block(g, x, mask)
  local function project()
    return g.MatMul(x, g.weight { 32, 32 }) + g.normal { 32 }
  end
  local function split(y, order)
    return g.Transpose(g.Reshape(y, { 2, 9, 4, 8 }), { perm = order or { 0, 2, 1, 3 } })
  end
  local scores = g.MatMul(split(project()), split(project(), { 0, 2, 3, 1 })) / 2.8284271 + mask
  local heads = g.MatMul(g.Softmax(scores, { axis = -1 }), split(project()))
  local joined = g.Reshape(g.Transpose(heads, { perm = { 0, 2, 1, 3 } }), { 2, 9, 32 })
  return g.MatMul(joined, g.weight { 32, 32 }) + x
end

local set = {
  name = "cuda",
  doc = "Everything that an NVIDIA GPU fuses and runs.",
  backend = "cuda",
  options = options,
}

for _, name in ipairs {
  "canonical/einsum", "canonical/activations", "canonical/normalization", "canonical/attention",
  "canonical/heads", "parts/casts", "parts/qlinear", "parts/definitions", "pointwise/views",
} do
  set[#set + 1] = include(name .. ".lua")
end

local rules = {
  fuse "convolution" {
    doc = "A convolution with its batch norm, bias, residual and activations.",
    pattern = oneof {
      op { "Conv", as = "product", inputs = { W = constant "w" } } >> constant_norm()
        >> maybe(repeated { step(), max = 12 }),
      op { "Conv", as = "product" } >> repeated { step(), max = 12 },
    },
    enabled = options.epilogues,
  },

  fuse "product" {
    doc = "A product of matrices with bias, residual and activations.",
    pattern = op { { "MatMul", "Gemm" }, as = "product" } >> repeated { step(), max = 12 },
    enabled = options.epilogues,
  },

  fuse "pointwise" {
    doc = "Connected pointwise operators of one shape, with the reductions of their rows.",
    enabled = options.pointwise,
    selector = function(_, own)
      return grow.grower(own, {
        reads_views = own.kernel_reads, join_run = own.join_run > 0 and own.join_run or nil,
        arguments = true, quantizes = true,
      })
    end,
    once = true,
    min_nodes = 2,
    priority = -1,
  },

  region "everything" {
    doc = "All that the backend supports; fusions come along whole.",
    enabled = options.regions,
    supported = function(node)
      return not is_shape(node)
    end,
    review = reviewed,
  },

  -- ---- tests ----

  test "a convolution takes batch norm, sum and activation along" {
    graph = function(g, x)
      return g.Relu(g.BatchNormalization(g.Conv(x)) + x)
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    expect = { convolution = 1, everything = 1, fusions = 1, left = 0 },
    equal = true,
  },
  test "a product takes bias and activation along" {
    graph = function(g, x)
      return g.Relu(g.MatMul(x, g.normal { 32, 64 }) + g.normal { 64 })
    end,
    inputs = { x = { 4, 32 } },
    expect = { product = 1, everything = 1, fusions = 1, left = 0 },
    equal = true,
  },
  test "batches of products take bias, gelu and a residual along" {
    graph = function(g, x)
      local y = g.MatMul(x, g.normal { 32, 32 }) + g.normal { 32 }
      return g.Gelu(y, { approximate = "tanh" }) + x, g.Gelu(g.MatMul(x, g.normal { 32, 8 }))
    end,
    inputs = { x = { 2, 5, 32 } },
    expect = { product = 2, everything = 2, left = 0 },
    equal = true,
  },
  test "a residual and its normalization are one kernel" {
    graph = function(g, x, y)
      local z = x + y
      return g.LayerNormalization(z, g.normal { 96 }, g.normal { 96 }), z
    end,
    inputs = { x = { 4, 50, 96 }, y = { 4, 50, 96 } },
    expect = { pointwise = 1, everything = 1, left = 0 },
    equal = true,
  },
  test "attention is one kernel that splits and joins the heads itself" {
    graph = attention_block,
    inputs = { x = { 2, 9, 32 }, mask = { 2, 1, 1, 9 } },
    expect = { attention = 1, attention_heads = 1, Attention = 1, Softmax = 0, everything = 1,
      left = 0 },
    equal = { rtol = 1e-4, atol = 1e-5 },
  },
  test "attention in 16 bits reads values of 16 bits" {
    graph = attention_block,
    inputs = { x = { 2, 9, 32 }, mask = { 2, 1, 1, 9 } },
    options = { precision = "float16" },
    expect = { attention = 1, narrow = 1, Cast = 3, everything = 1, left = 0 },
    equal = { rtol = 0.01, atol = 0.01 },
  },
  test "attention whose products are rounded to TF32" {
    graph = attention_block,
    inputs = { x = { 2, 9, 32 }, mask = { 2, 1, 1, 9 } },
    options = { precision = "tf32" },
    expect = { attention = 1, everything = 1, left = 0 },
    equal = { rtol = 0.005, atol = 0.005 },
  },
  test "attention in windows is one kernel" {
    graph = function(g, q, k, v)
      local s = g.MatMul(q * 0.5, g.Transpose(k, { perm = { 0, 1, 3, 2 } }))
      local t = g.Reshape(s + g.normal { 1, 2, 4, 4 }, { 2, 3, 2, 4, 4 })
      t = t + g.normal { 1, 3, 1, 4, 4 }
      return g.MatMul(g.Softmax(g.Reshape(t, { -1, 2, 4, 4 }), { axis = -1 }), v)
    end,
    inputs = { q = { 6, 2, 4, 3 }, k = { 6, 2, 4, 3 }, v = { 6, 2, 4, 3 } },
    expect = { attention_windows = 1, Attention = 1, everything = 1, left = 0 },
    equal = { rtol = 1e-4, atol = 1e-5 },
  },
  test "attention can stay products and a softmax" {
    graph = attention_block,
    inputs = { x = { 2, 9, 32 }, mask = { 2, 1, 1, 9 } },
    options = { attention = false },
    expect = { Softmax = 1, everything = 1, left = 0 },
    expect_not = { "attention", "attention_heads", "Attention" },
    equal = true,
  },
  test "views in front of a kernel are loads" {
    graph = function(g, x, y, z)
      local turned = g.Transpose(x, { perm = { 1, 0, 2 } })
      local cut = g.Slice(y, { 0, 2 }, { 8, 34 }, { 0, 2 }, { 2, 1 })
      local wide = g.Expand(g.Abs(z), g.constant { 4, 6, 32 })
      local a, b = g.Split(g.Relu(x), { axis = 1, num_outputs = 2, outputs = 2 })
      return g.Tanh(turned + cut) * 0.5 + wide, g.Softmax(g.Mul(a, b) + 1.0)
    end,
    inputs = { x = { 6, 4, 32 }, y = { 8, 6, 36 }, z = { 6, 1 } },
    expect = { pointwise = 2, everything = 2, left = 0 },
    equal = true,
  },
  test "the place of the largest is in the kernel of its row" {
    graph = function(g, x)
      local y = g.Softmax(x * 0.5)
      return g.ArgMax(y, { axis = -1, keepdims = 0 }), y
    end,
    inputs = { x = { 16, 40 } },
    expect = { pointwise = 1, everything = 1, left = 0 },
    equal = true,
  },
  test "numbers are quantized and dequantized inside" {
    graph = function(g, x)
      local scale, zero = g.constant(0.05, "float32"), g.constant(3, "int8")
      local a = g.QuantizeLinear(g.Relu(x) - 0.5, scale, zero)
      return g.DequantizeLinear(a, scale, zero) * 2.0, a
    end,
    inputs = { x = { 64, 33 } },
    expect = { pointwise = 1, everything = 1, left = 0 },
    equal = true,
  },
  test "operators of 8-bit integers are computed in float32" {
    graph = function(g, x)
      local scale, zero = g.constant(0.03, "float32"), g.constant(120, "uint8")
      local w = g.QuantizeLinear(g.Clip(g.weight { 32, 16, 3, 3 }, -0.6, 0.6),
        g.constant(0.01, "float32"), g.constant(0, "int8"))
      local y = g.QLinearConv(g.QuantizeLinear(x, scale, zero), scale, zero, w,
        g.constant(0.01, "float32"), g.constant(0, "int8"), g.constant(0.05, "float32"), zero)
      return g.DequantizeLinear(y, g.constant(0.05, "float32"), zero)
    end,
    inputs = { x = { 1, 16, 9, 9 } },
    expect = { qlinear_conv = 1, QLinearConv = 0, everything = 1, left = 0 },
    equal = { rtol = 0, atol = 0.06 },
  },
  test "what finds and samples regions of images is in the region" {
    graph = function(g, x, grid, boxes)
      local scores = g.Sigmoid(g.ReduceMax(x, g.constant { 1 }, { keepdims = 0 }))
      local _, places = g.TopK(g.Reshape(scores, { 1, 81 }), g.constant { 5 }, { outputs = 2 })
      local y = g.GridSample(x, grid) + 1.0
      local bins = { output_height = 2, output_width = 2 }
      return g.RoiAlign(x * 2.0, boxes, g.constant { 0, 0, 0 }, bins), y, places
    end,
    inputs = { x = { 1, 16, 9, 9 }, grid = { 1, 4, 5, 2 }, boxes = { 3, 4 } },
    expect = { everything = 3, left = 0 },
    equal = true,
  },
  test "numbers that are none are looked for inside, and places are divided" {
    graph = function(g, x)
      local y = g.Softmax(g.Where(g.Greater(x, 0.5), x, g.constant(-math.huge, "float32")))
      local best, places = g.TopK(g.Flatten(x, { axis = 0 }), g.constant { 4 }, { outputs = 2 })
      return g.Where(g.IsNaN(y), 0.0, y) * 2.0, best * 2.0,
        g.Div(places, g.constant(40, "int64")), g.Mod(places, g.constant(40, "int64"))
    end,
    inputs = { x = { 16, 40 } },
    expect = { pointwise = 1, everything = 2, left = 0 },
    equal = true,
  },
  test "parts of concatenations can be loads" {
    graph = function(g, x, y, z, w)
      local a = g.Concat(x, y, { axis = 1 }) + 0.5
      local b = g.Concat(z, w, z, { axis = 1 })
      local c = g.Concat(x, x, { axis = -1 })
      return g.Relu(a) * g.normal { 8, 1, 1 }, g.Softmax(b * 2.0), c * 2.0
    end,
    inputs = { x = { 2, 5, 4, 8 }, y = { 2, 3, 4, 8 }, z = { 7, 13 }, w = { 7, 5 } },
    options = { join_run = 1 },
    expect = { pointwise = 3, everything = 3, left = 0 },
    equal = true,
  },
  test "a product whose value is needed elsewhere keeps it" {
    graph = function(g, x)
      local y, z = g.Conv(x), g.MatMul(x)
      return y, g.Relu(y), z, g.Relu(z)
    end,
    expect = { everything = 2 },
    expect_not = { "convolution", "product", "pointwise" },
    equal = true,
  },
  test "kernels and epilogues can be switched off" {
    graph = function(g, x)
      return g.Exp(g.Tanh(g.Conv(x)))
    end,
    options = { pointwise = false, epilogues = false },
    expect = { everything = 1, left = 0 },
    expect_not = { "convolution", "pointwise" },
    equal = true,
  },
  test "arithmetic on shapes stays on the host" {
    graph = function(g, x)
      return g.Relu(x), g.Shape(x) + 1
    end,
    inputs = { x = { "N", "T", 8 } },
    expect = { everything = 1, left = true },
  },
  test "what only moves data gets no region" {
    graph = function(g, x)
      return g.Transpose(g.Identity(x), { perm = { 0, 2, 3, 1 } })
    end,
    expect = { left = true },
    expect_not = { "everything" },
    refused = { everything = "moves data" },
  },
  test "values of 16 bits have casts where they enter and leave" {
    graph = function(g, x)
      local y = g.Relu(g.Conv(x, g.weight { 32, 16, 3, 3 }, { pads = { 1, 1, 1, 1 } }))
      local z = g.Softmax(g.MatMul(g.Reshape(y, { 32, 64 }), g.weight { 64, 64 }))
      return z, g.ReduceSum(y, { 1 }), g.Relu(z)
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    options = { precision = "float16" },
    expect = { narrow = 1, Cast = 4, everything = 1, left = 0 },
    equal = { rtol = 0.01, atol = 0.01 },
  },
  test "what is kept stays float32" {
    graph = function(g, x)
      return g.Softmax(g.MatMul(g.Tanh(x), g.weight { 64, 64 }))
    end,
    inputs = { x = { 32, 64 } },
    options = { precision = "bfloat16", keep = { "Softmax", "Tanh" } },
    expect = { narrow = 1, Cast = 2, everything = 1, left = 0 },
    equal = { rtol = 0.02, atol = 0.02 },
  },
  test "of other numbers, and of what is kept, nothing is narrowed" {
    graph = function(g, x)
      return g.Cast(g.Cast(x, { to = 11 }) * 2.0, { to = 1 }), g.Tanh(x)
    end,
    inputs = { x = { 8, 8 } },
    options = { precision = "float16", keep = { "Tanh" } },
    expect = { Cast = 2 },
    expect_not = { "narrow" },
    equal = true,
  },
  test "precision, fast functions and measuring are attributes of the region" {
    graph = function(g, x)
      return g.Relu(g.MatMul(x, g.normal { 32, 8 }))
    end,
    inputs = { x = { 4, 32 } },
    options = { precision = "tf32", fast_math = true, tune = false },
    expect = { everything = 1, left = 0 },
    equal = true,
  },
}

set[#set + 1] = rules
return ruleset(set)

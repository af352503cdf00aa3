-- SPDX-License-Identifier: Apache-2.0
-- Fusions for oneDNN: a convolution, matrix product, pooling or reduction with the pointwise
-- operators after it; channel shuffles; chains of pointwise operators; connected ones that are no
-- chain, with reductions of rows, as kernels that the backend generates. Rewrites of the folder
-- canonical/ run first, so that activations and normalizations are single operators. A region
-- (parts/precision.lua) holds everything that the backend supports, because oneDNN chooses the
-- layouts inside of a region.
--
-- Rules only propose fusions. If the backend refuses one, it gives a reason, and the next shorter
-- match is tried.

local grow = include("pointwise/grow.lua")

-- ---- parts ----

local product = op { { "Conv", "ConvTranspose", "Gemm", "MatMul" }, as = "product" }
local primitive = op {
  {
    "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "Resize",
    "ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
    "ReduceSumSquare",
  },
  as = "primitive",
}

-- Producers that become part of a kernel: a Pad with zeros before a convolution or an average,
-- scalar factors of a matrix product's inputs.
local function scale()
  return oneof {
    op { "Mul", inputs = { constant { scalar = true } } },
    op { "Div", inputs = { B = constant { scalar = true } } },
  }
end
local padded = op { "Pad", as = "pad" } >> op { { "Conv", "AveragePool" }, as = "product" }
local scaled = scale() >> op { { "MatMul", "Gemm" }, as = "product" }
local scaled_twice = op { "MatMul", as = "product", inputs = { A = scale(), B = scale() } }

local steps = include("parts/steps.lua")
local step = steps.step

-- How generated kernels grow: oneDNN's own code is faster for these norms, and for plain chains.
local grown = {
  primitives = { LayerNormalization = true, LogSoftmax = true, Softmax = true }, posts = {},
}
for _, name in ipairs(steps.operators) do
  grown.posts[name] = true
end

-- A channel shuffle, as ShuffleNet has between its units, and the Split of the result into two
-- halves.
local shuffled = maybe "Concat" >> op "Reshape"
  >> op { "Transpose", attrs = { perm = { 0, 2, 1, 3, 4 } } } >> op "Reshape"
local function half()
  return op { "Slice", inputs = { data = shuffled } }
end

-- ---- subgraphs for tests ----

local function erf_gelu(g, x, root)
  return 0.5 * x * (g.Erf(x / (root or 1.41421356)) + 1)
end

local function tanh_gelu(g, x)
  return 0.5 * x * (g.Tanh(0.79788456 * (x + 0.044715 * x ^ 3)) + 1)
end

local function normalized(g, x, axis)
  local centred = x - g.ReduceMean(x, { axis })
  local variance = g.ReduceMean(centred ^ 2, { axis })
  return centred / g.Sqrt(variance + 1e-5)
end

-- A channel shuffle with this number of groups.
local function shuffle(g, x, shape, groups)
  local n, c, h, w = table.unpack(shape)
  local grouped = g.Reshape(x, g.constant { n, groups, c // groups, h, w })
  return g.Reshape(g.Transpose(grouped, { perm = { 0, 2, 1, 3, 4 } }), g.constant(shape))
end

local function channels(g, x, from, to)
  return g.Slice(x, g.constant { from }, g.constant { to }, g.constant { 1 })
end

-- oneDNN has an algorithm per activation and a primitive per normalization. It has no Einsum, but
-- matrix products and sums. Its recurrent layers compute every step.
local included = {}
for _, path in ipairs {
  "parts/widen.lua", "canonical/activations.lua", "canonical/normalization.lua",
  "canonical/einsum.lua", "canonical/recurrent.lua", "canonical/training.lua",
  "parts/qlinear.lua", "parts/int8.lua", "parts/quantized.lua", "parts/weights.lua",
  "parts/precision.lua",
} do
  included[#included + 1] = include(path)
end

local options = {
  chains = option.boolean(true, "fuse chains of pointwise operators that follow no primitive"),
  pointwise = option.boolean(true, "make kernels of connected pointwise operators"),
  reductions = option.boolean(true, "kernels take reductions over the last axes"),
  fast_math = option.boolean(false, "Erf, Tanh, Gelu of kernels with fewer digits, for speed"),
  max_nodes = option.integer(64, "most nodes in one kernel", { min = 2, max = 512 }),
  min_bytes = option.integer(4096, "fewest bytes that a kernel keeps inside", { min = 0 }),
}

return ruleset {
  name = "onednn",
  doc = "Everything that oneDNN fuses and runs.",
  backend = "onednn",
  options = options,

  fuse "product" {
    doc = "A convolution or product with batch norm, bias, sum, activations, binary post-ops.",
    pattern = oneof {
      oneof { scaled_twice, scaled, padded } >> maybe(repeated { step(), max = 12 }),
      product >> repeated { step(), max = 12 },
    },
  },

  fuse "primitive" {
    doc = "A pooling or reduction with what follows it pointwise.",
    pattern = primitive >> repeated { step(), max = 12 },
  },

  fuse "channel_shuffle" {
    doc = "Concat, channel shuffle and what cuts the result, as one copy.",
    pattern = oneof { group { half(), half() }, shuffled >> op "Split", shuffled },
  },

  fuse "pointwise" {
    doc = "Connected pointwise operators and reductions of rows that are no chain of primitives.",
    enabled = options.pointwise,
    selector = function(_, set)
      return grow.grower(set, grown)
    end,
    once = true,
    min_nodes = 2,
    min_bytes_saved = options.min_bytes,
    attributes = { kernel = true, fast_math = options.fast_math },
    priority = -1,
  },

  fuse "chain" {
    doc = "Pointwise operators in a row.",
    pattern = step() >> repeated { step(), max = 12 },
    enabled = options.chains,
    priority = -2,
  },

  -- ---- tests ----

  test "a convolution takes batch norm, sum and activation along" {
    graph = function(g, x)
      return g.Relu(g.BatchNormalization(g.Conv(x)) + x)
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    expect = { product = 1, everything = 1, fusions = 1, left = 0 },
    expect_not = { "chain", "primitive" },
    equal = true,
  },
  test "padding and scales before a product become part of it" {
    graph = function(g, x, y)
      local pads = g.constant { 0, 0, 1, 1, 0, 0, 1, 1 }
      return g.Conv(g.Pad(x, pads), { kernel_shape = { 3, 3 } }), g.MatMul(0.125 * y)
    end,
    inputs = { x = { 1, 16, 8, 8 }, y = { 4, 16 } },
    expect = { product = 2, ["product.pad"] = 1, ["product.product"] = 2 },
    equal = true,
  },
  test "a product whose value is needed elsewhere keeps it" {
    graph = function(g, x)
      local y = g.Conv(x)
      return y, g.Relu(y)
    end,
    expect = { everything = 1 },
    expect_not = { "product", "chain" },
    equal = true,
  },
  test "gelu by erf and by tanh follows its product into the kernel" {
    graph = function(g, x)
      return erf_gelu(g, g.MatMul(x)), tanh_gelu(g, g.MatMul(x) + g.normal { 32 })
    end,
    inputs = { x = { 2, 8, 32 } },
    expect = { gelu = 1, gelu_tanh = 1, product = 2, fusions = 2, left = 0 },
    equal = true,
  },
  test "gelu with another root is not a gelu" {
    graph = function(g, x)
      return erf_gelu(g, g.MatMul(x), 1.5), erf_gelu(g, x, 1.5)
    end,
    inputs = { x = { 2, 8, 32 } },
    expect_not = { "gelu" },
    equal = true,
  },
  test "silu, mish and hard-swish follow their product into the kernel" {
    graph = function(g, x)
      local u, v, w = g.Conv(x), g.Conv(x), g.Conv(x)
      return u * g.Sigmoid(u), v * g.Tanh(g.Softplus(v)), w * g.Clip(w + 3, 0, 6) / 6
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    expect = { silu = 1, mish = 1, hard_swish = 1, product = 3, left = 0 },
    equal = true,
  },
  test "a gate of something else is not a silu" {
    graph = function(g, x)
      return g.Conv(x) * g.Sigmoid(g.Conv(x))
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    expect_not = { "silu" },
    equal = true,
  },
  test "activations alone are one kernel each" {
    graph = function(g, x, y, z)
      return erf_gelu(g, x), tanh_gelu(g, y), z * g.Sigmoid(z)
    end,
    inputs = { x = { 2, 64 }, y = { 2, 64 }, z = { 2, 64 } },
    expect = { Gelu = 2, Swish = 1, everything = true, left = 0 },
    equal = true,
  },
  test "layer normalization spelled out is one kernel" {
    graph = function(g, x)
      return normalized(g, x, -1) * g.uniform { 32, low = 0.5, high = 1.5 } + g.normal { 32 }
    end,
    inputs = { x = { 2, 8, 32 } },
    expect = { layer_norm = 1, LayerNormalization = 1, everything = 1, left = 0 },
    equal = true,
  },
  test "a norm over another dimension is not a layer normalization" {
    graph = function(g, x)
      return normalized(g, x, 1)
    end,
    inputs = { x = { 2, 8, 32 } },
    expect_not = { "layer_norm" },
    equal = true,
  },
  test "spellings stay where they are switched off" {
    graph = function(g, x)
      local y = g.Conv(x)
      return y * g.Sigmoid(y)
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    options = { silu = false },
    expect = { left = 0 },
    expect_not = { "silu", "product" },
    equal = true,
  },
  test "a pooling takes what follows it pointwise" {
    graph = function(g, x)
      return g.Relu(g.MaxPool(x, { kernel_shape = { 2, 2 }, strides = { 2, 2 } }) * 0.5)
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    expect = { primitive = 1, fusions = 1, left = 0 },
    expect_not = { "chain" },
    equal = true,
  },
  test "a pooling with nothing behind it is a kernel anyway" {
    graph = function(g, x)
      return g.MaxPool(g.Relu(x), { kernel_shape = { 2, 2 } })
    end,
    expect = { everything = 1 },
    expect_not = { "primitive", "chain" },
    equal = true,
  },
  test "joined channels, shuffled and cut in two, are one kernel" {
    graph = function(g, x)
      local y = shuffle(g, g.Concat(g.Conv(x), g.Conv(x), { axis = 1 }), { 1, 32, 8, 8 }, 2)
      return g.Conv(channels(g, y, 0, 16)), g.Conv(channels(g, y, 16, 32))
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    expect = { channel_shuffle = 1, fusions = 1, left = 0 },
    equal = true,
  },
  test "shuffled channels are one kernel, with a Split or without" {
    graph = function(g, x)
      local low, high = g.Split(shuffle(g, g.Conv(x), { 2, 24, 8, 8 }, 3),
        g.constant { 8, 16 }, { axis = 1, outputs = 2 })
      return g.Relu(low), g.Relu(high), shuffle(g, x, { 2, 24, 8, 8 }, 4)
    end,
    inputs = { x = { 2, 24, 8, 8 } },
    expect = { channel_shuffle = 2, fusions = 2, left = 0 },
    equal = true,
  },
  test "groups that are not of channels are not a channel shuffle" {
    graph = function(g, x)
      local grouped = g.Reshape(x, g.constant { 2, 2, 12, 8, 4 })
      local turned = g.Transpose(grouped, { perm = { 0, 2, 1, 3, 4 } })
      return g.Reshape(turned, g.constant { 1, 24, 8, 8 })
    end,
    inputs = { x = { 1, 24, 8, 8 } },
    expect_not = { "channel_shuffle" },
    refused = { channel_shuffle = "not a shuffle of the channels" },
  },
  test "channels that are needed before they are shuffled keep their Concat" {
    graph = function(g, x)
      local joined = g.Concat(g.Conv(x), g.Conv(x), { axis = 1 })
      return g.Relu(joined), g.Relu(shuffle(g, joined, { 1, 32, 8, 8 }, 2))
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    expect = { channel_shuffle = 1, left = 0 },
    equal = true,
  },
  test "pointwise operators in a row are one kernel" {
    graph = function(g, x, y)
      return g.Tanh(g.Exp(x * 0.5) + y)
    end,
    inputs = { x = { 2, 64 }, y = { 2, 64 } },
    expect = { chain = 1, fusions = 1 },
    equal = true,
  },
  test "values that are read twice, and rows, are generated kernels" {
    graph = function(g, x, y)
      local z = g.Conv(x) + y
      local t = z * g.Erf(z) + y
      local n = t / g.ReduceMax(t, g.constant { -1 })
      return z, n * 0.5, t
    end,
    inputs = { x = { 1, 8, 16, 16 }, y = { 1, 8, 16, 16 } },
    expect = { product = 1, pointwise = 1, everything = 1, left = 0 },
    equal = true,
  },
  test "functions of generated kernels may have fewer digits" {
    graph = function(g, x, y)
      local z = x + y
      return z * g.Erf(z), g.Tanh(z)
    end,
    inputs = { x = { 8, 64, 64 }, y = { 8, 64, 64 } },
    options = { fast_math = true },
    expect = { pointwise = 1, left = 0 },
    equal = true,
  },
  test "generated kernels can be switched off" {
    graph = function(g, x, y)
      local z = x + y
      return g.Tanh(z * g.Erf(z))
    end,
    inputs = { x = { 8, 64, 64 }, y = { 8, 64, 64 } },
    options = { pointwise = false },
    expect_not = { "pointwise" },
    equal = true,
  },
  test "chains can be switched off" {
    graph = function(g, x, y)
      return g.Tanh(g.Exp(x * 0.5) + y)
    end,
    inputs = { x = { 2, 64 }, y = { 2, 64 } },
    options = { chains = false },
    expect = { everything = 1 },
    expect_not = { "chain" },
    equal = true,
  },
  test "regions can be switched off; fusions stay" {
    graph = function(g, x)
      return g.Softmax(g.Relu(g.Conv(x)))
    end,
    options = { regions = false },
    expect = { product = 1, regions = 1, left = 1 },
    expect_not = { "everything" },
    equal = true,
  },
  test "recurrent layers are in the region with what is around them" {
    graph = function(g, x)
      local w, r = g.normal { 2, 64, 8, std = 0.3 }, g.normal { 2, 64, 16, std = 0.3 }
      local y = g.LSTM(x, w, r, { hidden_size = 16, direction = "bidirectional" })
      local z = g.Reshape(g.Transpose(y, { perm = { 0, 2, 1, 3 } }), g.constant { 3, 2, 32 })
      local last = g.GRU(z, g.normal { 1, 48, 32, std = 0.2 }, g.normal { 1, 48, 16, std = 0.3 })
      return g.Relu(last)
    end,
    inputs = { x = { 3, 2, 8 } },
    expect = { everything = 1, left = 0 },
    equal = true,
  },
  test "a layer of which only the final states are read is in the region, too" {
    graph = function(g, x)
      local w, r = g.normal { 1, 64, 8, std = 0.3 }, g.normal { 1, 64, 16, std = 0.3 }
      local _, y_h, y_c = g.LSTM { X = x, W = w, R = r, hidden_size = 16, outputs = 3 }
      return g.Relu(y_h + y_c)
    end,
    inputs = { x = { 3, 2, 8 } },
    expect = { everything = 1, left = 0 },
    equal = true,
  },
  test "of two directions, one step of which is read, one computes one step" {
    graph = function(g, x)
      local y = g.LSTM(x, g.normal { 2, 64, 8, std = 0.3 }, g.normal { 2, 64, 16, std = 0.3 },
        { hidden_size = 16, direction = "bidirectional" })
      local z = g.Reshape(g.Transpose(y, { perm = { 0, 2, 1, 3 } }), g.constant { 0, 0, -1 })
      return g.Gather(z, g.constant(-1))
    end,
    inputs = { x = { 3, 2, 8 } },
    expect = { last_step = 1, LSTM = 2, everything = 1, left = 0 },
    equal = true,
  },
  test "a layer that is told the lengths of its sequences runs on cpu" {
    graph = function(g, x, lengths)
      return g.RNN(x, g.normal { 1, 16, 8 }, g.normal { 1, 16, 16, std = 0.2 }, nil, lengths)
    end,
    inputs = { x = { 1, 2, 8 }, lengths = { 2, dtype = "int32" } },
    expect = { left = 1 },
    refused = { everything = "float32" },
    equal = true,
  },
  test "what only moves data gets no region" {
    graph = function(g, x)
      return g.Transpose(g.Identity(x), { perm = { 0, 2, 3, 1 } })
    end,
    expect = { left = true },
    expect_not = { "everything" },
    refused = { everything = "moves data" },
  },

  included,
}

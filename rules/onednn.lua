-- SPDX-License-Identifier: Apache-2.0
-- All that oneDNN computes in one kernel: a convolution, matrix product, pooling or reduction with
-- what follows it pointwise; activations and layer normalization as exporters spell them; channel
-- shuffles; chains of pointwise operators. A region holds whatever the backend supports, so that
-- layouts are oneDNN's choice throughout.
--
-- Rules only propose: the backend looks at each fusion and refuses, with a reason, what it cannot
-- express; then the next shorter match is tried.

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

-- What stands before a kernel and becomes a part of it: zeros around the input of a convolution or
-- an average, scalar factors of a matrix product's inputs.
local function scale()
  return oneof {
    op { "Mul", inputs = { constant { scalar = true } } },
    op { "Div", inputs = { B = constant { scalar = true } } },
  }
end
local padded = op { "Pad", as = "pad" } >> op { { "Conv", "AveragePool" }, as = "product" }
local scaled = scale() >> op { { "MatMul", "Gemm" }, as = "product" }
local scaled_twice = op { "MatMul", as = "product", inputs = { A = scale(), B = scale() } }

local function norm()
  return op { "BatchNormalization", attrs = { training_mode = 0 } }
end

-- One operator that becomes a post-op of the kernel before it. Operands from elsewhere are read by
-- the kernel too (binary post-ops).
local POINTWISE = {
  "Abs", "Add", "BatchNormalization", "Celu", "Clip", "Div", "Elu", "Exp", "Gelu", "HardSigmoid",
  "HardSwish", "LeakyRelu", "Max", "Min", "Mish", "Mul", "Neg", "Pow", "Reciprocal", "Relu",
  "Round", "Selu", "Sigmoid", "Softplus", "Sqrt", "Sub", "Sum", "Tanh",
}
local function step()
  return op { POINTWISE }
end

-- ---- activations as exporters spell them: functions of a pattern, which they read twice ----

-- x * sigmoid(x)
local function silu(x)
  return op { "Mul", as = "act", inputs = { x, op { "Sigmoid", inputs = { x } } } }
end

-- x * relu6(x + 3) / 6, or x * hardsigmoid(x)
local function hard_swish(x)
  local ramp = op { "Clip", inputs = { input = op { "Add", inputs = { x, 3 } }, min = 0, max = 6 } }
  return oneof {
    op { "Mul", as = "act", inputs = { x, op { "HardSigmoid", inputs = { x } } } },
    op { "Div", as = "act", inputs = { A = op { "Mul", inputs = { x, ramp } }, B = 6 } },
    op { "Mul", as = "act", inputs = { x, op { "Div", inputs = { A = ramp, B = 6 } } } },
  }
end

-- Factors that make up 0.5 * x * t, in the orders that occur.
local function half_times(x, t)
  return oneof {
    op { "Mul", as = "act", inputs = { op { "Mul", inputs = { x, t } }, 0.5 } },
    op { "Mul", as = "act", inputs = { op { "Mul", inputs = { x, 0.5 } }, t } },
    op { "Mul", as = "act", inputs = { x, op { "Mul", inputs = { t, 0.5 } } } },
  }
end

-- 0.5 * x * (1 + erf(x / sqrt(2)))
local function gelu_erf(x)
  local argument = oneof {
    op { "Div", inputs = { A = x, B = constant { value = 1.41421356, tolerance = 1e-3 } } },
    op { "Mul", inputs = { x, constant { value = 0.70710678, tolerance = 1e-3 } } },
  }
  return half_times(x, op { "Add", inputs = { op { "Erf", inputs = { argument } }, 1 } })
end

-- 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
local function gelu_tanh(x)
  local cubic = constant { value = 0.044715, tolerance = 1e-5 }
  local root = constant { value = 0.79788456, tolerance = 1e-4 }
  local cube = oneof {
    op { "Pow", inputs = { X = x, Y = 3 } },
    op { "Mul", inputs = { op { "Mul", inputs = { x, x } }, x } },
  }
  local inner = op { "Add", inputs = { x, op { "Mul", inputs = { cube, cubic } } } }
  local tanh = op { "Tanh", inputs = { op { "Mul", inputs = { inner, root } } } }
  return half_times(x, op { "Add", inputs = { tanh, 1 } })
end

-- (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * scale + shift, over the last dimension.
local function layer_norm()
  local x = any "x"
  local centred = op { "Sub", as = "centred",
    inputs = { A = x, B = op { "ReduceMean", inputs = { data = x } } } }
  local square = oneof {
    op { "Pow", inputs = { X = centred, Y = 2 } },
    op { "Mul", inputs = { centred, centred } },
  }
  local variance = op { "ReduceMean", as = "variance", inputs = { data = square } }
  local deviation = op { "Sqrt",
    inputs = { op { "Add", inputs = { variance, constant { scalar = true } } } } }
  local quotient = oneof {
    op { "Div", inputs = { A = centred, B = deviation } },
    op { "Mul", inputs = { centred, op { "Reciprocal", inputs = { deviation } } } },
  }
  return quotient
    >> maybe(op { "Mul", as = "scale", inputs = { constant "gamma" } })
    >> maybe(op { "Add", as = "shift", inputs = { constant "beta" } })
end

-- What stands before an activation that reads its input more than once.
local function base()
  return product >> maybe(norm()) >> maybe(op "Add")
end

-- Channels of groups dealt out one by one, as ShuffleNet does between its units, and the result cut
-- in two.
local shuffled = maybe "Concat" >> op "Reshape"
  >> op { "Transpose", attrs = { perm = { 0, 2, 1, 3, 4 } } } >> op "Reshape"
local function half()
  return op { "Slice", inputs = { data = shuffled } }
end

-- What only moves data is not worth a region of its own.
local MOVES = {}
for _, name in ipairs {
  "Concat", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Slice", "Split", "Squeeze",
  "Transpose", "Unsqueeze",
} do
  MOVES[name] = true
end

local function computes(sub)
  for _, node in ipairs(sub.nodes) do
    if not MOVES[node.op] then
      return true
    end
  end
  return false, "moves data, computes nothing"
end

-- Regions that give special values up say so.
local function reviewed(sub, options)
  local keep, reason = computes(sub)
  if options.strict then
    return keep, reason
  end
  return keep, reason, {
    strict = false,
    special_values = "Relu, Clip, Exp, Max, Min, Softmax and max poolings may make numbers of NaN, "
      .. "maxima over -inf are -3.4e38, Softplus and Mish are off by up to 2e-6 below -10",
  }
end

-- ---- activations for tests ----

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

-- Channels of `groups` groups dealt out one by one.
local function shuffle(g, x, shape, groups)
  local n, c, h, w = table.unpack(shape)
  local grouped = g.Reshape(x, g.constant { n, groups, c // groups, h, w })
  return g.Reshape(g.Transpose(grouped, { perm = { 0, 2, 1, 3, 4 } }), g.constant(shape))
end

local function channels(g, x, from, to)
  return g.Slice(x, g.constant { from }, g.constant { to }, g.constant { 1 })
end

-- oneDNN has products of matrices and sums, but no Einsum; its recurrent layers compute every step.
local einsum = include "canonical/einsum.lua"
local recurrent = include "canonical/recurrent.lua"
local rewrites = {}
for _, part in ipairs { einsum, recurrent } do
  table.move(part, 1, #part, #rewrites + 1, rewrites)
end

local regions = option.boolean(true, "put all that the backend supports into regions")
local strict = option.boolean(true,
  "regions compute special values (NaN, infinities) as the operators define them")
local chains = option.boolean(true, "fuse chains of pointwise operators that follow no primitive")

return ruleset {
  name = "onednn",
  doc = "Everything that oneDNN fuses and runs.",
  backend = "onednn",
  options = {
    regions = regions, chains = chains, strict = strict, einsum = einsum.options.einsum,
    last_step = recurrent.options.last_step,
  },

  fuse "layer_norm" {
    doc = "Layer normalization out of means, squares and a root.",
    pattern = layer_norm(),
  },

  fuse "product_gelu" {
    doc = "A product with gelu (by erf or tanh) spelled out, and what follows.",
    pattern = oneof { base() >> gelu_erf, base() >> gelu_tanh } >> maybe(step()),
  },

  fuse "product_swish" {
    doc = "A product with SiLU or hard-swish spelled out, and what follows.",
    pattern = oneof { base() >> silu, base() >> hard_swish } >> maybe(step()),
  },

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

  fuse "activation" {
    doc = "Gelu, SiLU or hard-swish alone, spelled out.",
    pattern = oneof {
      any "x" >> gelu_erf, any "x" >> gelu_tanh, any "x" >> silu, any "x" >> hard_swish,
    },
    priority = -1,
  },

  fuse "chain" {
    doc = "Pointwise operators in a row.",
    pattern = step() >> repeated { step(), max = 12 },
    enabled = chains,
    priority = -2,
  },

  region "everything" {
    doc = "All that the backend supports; fusions come along whole.",
    enabled = regions,
    review = reviewed,
  },

  -- ---- tests ----

  test "a convolution takes batch norm, sum and activation along" {
    graph = function(g, x)
      return g.Relu(g.BatchNormalization(g.Conv(x)) + x)
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    expect = { product = 1, everything = 1, fusions = 1, left = 0 },
    expect_not = { "chain", "primitive", "activation" },
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
    expect = { product_gelu = 2, fusions = 2 },
    expect_not = { "activation", "product" },
    equal = true,
  },
  test "gelu with another root is no gelu" {
    graph = function(g, x)
      return erf_gelu(g, g.MatMul(x), 1.5), erf_gelu(g, x, 1.5)
    end,
    inputs = { x = { 2, 8, 32 } },
    expect_not = { "product_gelu", "activation" },
    equal = true,
  },
  test "silu and hard-swish follow their product into the kernel" {
    graph = function(g, x)
      local y, z = g.Conv(x), g.Conv(x)
      return y * g.Sigmoid(y), z * g.Clip(z + 3, 0, 6) / 6
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    expect = { product_swish = 2, ["product_swish.act"] = 2 },
    expect_not = { "activation" },
    equal = true,
  },
  test "a gate of something else is no silu" {
    graph = function(g, x)
      return g.Conv(x) * g.Sigmoid(g.Conv(x))
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    expect_not = { "product_swish", "activation" },
    equal = true,
  },
  test "activations alone are one kernel each" {
    graph = function(g, x, y, z)
      return erf_gelu(g, x), tanh_gelu(g, y), z * g.Sigmoid(z)
    end,
    inputs = { x = { 2, 64 }, y = { 2, 64 }, z = { 2, 64 } },
    expect = { activation = 3, fusions = 3 },
    equal = true,
  },
  test "layer normalization spelled out is one kernel" {
    graph = function(g, x)
      return normalized(g, x, -1) * g.uniform { 32, low = 0.5, high = 1.5 } + g.normal { 32 }
    end,
    inputs = { x = { 2, 8, 32 } },
    expect = { layer_norm = 1, ["layer_norm.scale"] = 1, ["layer_norm.shift"] = 1, left = 0 },
    equal = true,
  },
  test "a norm over another dimension is no layer normalization" {
    graph = function(g, x)
      return normalized(g, x, 1)
    end,
    inputs = { x = { 2, 8, 32 } },
    expect_not = { "layer_norm" },
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
  test "groups that are not of channels are no channel shuffle" {
    graph = function(g, x)
      local grouped = g.Reshape(x, g.constant { 2, 2, 12, 8, 4 })
      local turned = g.Transpose(grouped, { perm = { 0, 2, 1, 3, 4 } })
      return g.Reshape(turned, g.constant { 1, 24, 8, 8 })
    end,
    inputs = { x = { 1, 24, 8, 8 } },
    expect_not = { "channel_shuffle" },
    refused = { channel_shuffle = "no shuffle of the channels" },
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

  table.unpack(rewrites),
}

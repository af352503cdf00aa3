-- SPDX-License-Identifier: Apache-2.0
-- Fuses connected pointwise operators, and reductions over the same last axes, into one kernel that
-- reads each input once and writes each output once. The backend compiles a kernel to one program
-- (backends/kernels) or refuses it with a reason.
--
-- `min_gain` compares the backend's estimates of a kernel and of its nodes one by one: on tensors
-- that stay in the caches two operators of a kernel take longer than their nodes, and four take
-- less. Tests of what a kernel may hold set it to 0.
--
-- All values of a kernel have the same shape, except that reduced axes have size 1. Therefore no
-- element is computed more often than without the kernel. Views in front of it (Expand, Slice,
-- Split, Transpose) are read by strides, and a Concat part by part.
--
-- `join_run`: a tile that lies in one part of a Concat is read there. Shorter runs are copied one
-- by one, which takes up to 1.2 times as long as with a Concat of its own with 512 elements, and
-- twice as long with 32, against 0.54 to 0.87 of the time from 3136 on (bench_pointwise).

local grow = include("pointwise/grow.lua")

local options = {
  pointwise = option.boolean(true, "make kernels of pointwise operators"),
  reductions = option.boolean(true, "kernels take reductions over the last axes"),
  max_nodes = option.integer(64, "most nodes in one kernel", { min = 2, max = 512 }),
  min_nodes = option.integer(2, "fewest nodes in one kernel", { min = 1, max = 512 }),
  min_bytes = option.integer(4096, "fewest bytes that a kernel keeps inside", { min = 0 }),
  min_gain = option.number(1.0, "fewest times as fast as its nodes, by the backend's estimates", {
    min = 0,
  }),
  join_run = option.integer(2048, "fewest elements of each part of a Concat in a row, on average", {
    min = 1,
  }),
  fast_math = option.boolean(false, "Erf, Tanh and Gelu with fewer digits, for speed"),
}

local set = {
  name = "pointwise",
  doc = "Pointwise operators and reductions of rows as one kernel each.",
  backend = "cpu",
  options = options,
}

-- A gelu in one loop is half the work of the five operators that exporters spell out.
for _, name in ipairs { "activations", "normalization" } do
  set[#set + 1] = include("canonical/" .. name .. ".lua")
end
set[#set + 1] = include "pointwise/views.lua"

local rules = {
  fuse "pointwise" {
    doc = "Connected pointwise operators of one shape, with the reductions of their rows.",
    enabled = options.pointwise,
    selector = function(_, own)
      return grow.grower(own, {
        reads_views = true, join_run = own.join_run, arguments = true, quantizes = true,
      })
    end,
    once = true,
    min_nodes = options.min_nodes,
    min_bytes_saved = options.min_bytes,
    min_gain = options.min_gain,
    attributes = { kernel = true, fast_math = options.fast_math },
  },

  test "connected pointwise operators are one kernel with several outputs" {
    graph = function(g, x, y)
      local sum = g.Tanh(x) + y
      return g.Relu(sum) * 2.5, g.Clip(sum, -1.0, 1.0)
    end,
    inputs = { x = { 8, 64, 64 }, y = { 64, 1 } },
    expect = { pointwise = 1, left = 0 },
    equal = true,
  },
  test "comparisons, choices and casts are pointwise" {
    graph = function(g, x, y)
      local rounded = g.Cast(g.Cast(y, { to = 6 }), { to = 1 })
      return g.Where(g.And(g.Less(x, y), g.Greater(x, -1.0)), x, rounded)
    end,
    inputs = { x = { 8, 64, 64 }, y = { 8, 64, 64 } },
    expect = { pointwise = 1, left = 0 },
    equal = true,
  },
  test "numbers are quantized and dequantized inside" {
    graph = function(g, x, y)
      local scale, zero = g.constant(0.05, "float32"), g.constant(3, "int8")
      local a = g.QuantizeLinear(g.Relu(x) - y, scale, zero)
      local b = g.DequantizeLinear(a, scale, zero)
      local scales = g.constant { 0.01, 0.02, 0.05, 0.1 }
      local zeros = g.constant({ 0, 7, 128, 255 }, "uint8")
      return b * 2.0 + y, g.QuantizeLinear(b, scales, zeros, { axis = -1 }), a
    end,
    inputs = { x = { 256, 4 }, y = { 256, 4 } },
    options = { min_bytes = 0, min_gain = 0 },
    expect = { pointwise = 1, left = 0 },
    equal = true,
  },
  test "scales along other axes, and in blocks, are not for kernels" {
    graph = function(g, x)
      local scales, zeros = g.constant { 0.01, 0.05 }, g.constant({ 3, 4 }, "int8")
      local blocks = g.constant { { 0.1, 0.2 }, { 0.3, 0.4 } }
      local more = g.constant({ { 1, 2 }, { 3, 4 } }, "int8")
      return g.QuantizeLinear(g.Relu(x), scales, zeros, { axis = 0 }),
        g.QuantizeLinear(g.Neg(x), blocks, more, { axis = 1, block_size = 32 })
    end,
    inputs = { x = { 2, 64 } },
    options = { min_bytes = 0, min_gain = 0, min_nodes = 2 },
    expect = { QuantizeLinear = 2, left = true },
    equal = true,
  },
  test "a softmax takes scale and mask before it, and what follows" {
    graph = function(g, x, mask)
      return g.Softmax(x * 0.125 + mask) * 0.9
    end,
    inputs = { x = { 2, 4, 96, 96 }, mask = { 96, 96 } },
    options = { min_gain = 0 },
    expect = { pointwise = 1, left = 0 },
    equal = true,
  },
  test "a residual and its layer normalization, spelled out, are one kernel" {
    graph = function(g, x, y)
      local z = x + y
      local centred = z - g.ReduceMean(z, { -1 })
      local deviation = g.Sqrt(g.ReduceMean(centred ^ 2, { -1 }) + 1e-5)
      return centred / deviation * g.normal { 96 } + g.normal { 96 }, z
    end,
    inputs = { x = { 4, 50, 96 }, y = { 4, 50, 96 } },
    options = { min_bytes = 0, min_gain = 0 },
    expect = { pointwise = 1, left = 0 },
    equal = true,
  },
  test "an instance normalization has a scale per channel" {
    graph = function(g, x)
      return g.Relu(g.InstanceNormalization(x * 2.0, g.normal { 6 }, g.normal { 6 })) + x
    end,
    inputs = { x = { 2, 6, 24, 20 } },
    options = { min_gain = 0 },
    expect = { pointwise = 1, left = 0 },
    equal = true,
  },
  test "a group normalization takes its activation along" {
    graph = function(g, x)
      local y = g.GroupNormalization(x + 0.5, g.normal { 12 }, g.normal { 12 }, { num_groups = 4 })
      return y * g.Sigmoid(y)
    end,
    inputs = { x = { 2, 12, 14, 10 } },
    options = { min_gain = 0 },
    expect = { pointwise = 1, left = 0 },
    equal = true,
  },
  test "views in front of a kernel are loads" {
    graph = function(g, x, y, bias)
      local half = g.Slice(x, g.constant { 8 }, g.constant { 24 }, g.constant { 1 })
      local turned = g.Transpose(y, { perm = { 1, 0, 2 } })
      return g.Tanh(half + turned) * g.Expand(bias, g.constant { 32, 16, 40 })
    end,
    inputs = { x = { 32, 24, 40 }, y = { 16, 32, 40 }, bias = { 16, 1 } },
    expect = { pointwise = 1, left = 0 },
    equal = true,
  },
  test "a gate of two halves is one kernel" {
    graph = function(g, x)
      local a, b = g.Split(x, nil, { axis = -1, num_outputs = 2, outputs = 2 })
      return a * g.Sigmoid(b)
    end,
    inputs = { x = { 4, 40, 96 } },
    expect = { pointwise = 1, left = 0 },
    equal = true,
  },
  test "a concatenation in front of a kernel is a load of its parts" {
    graph = function(g, x, y, z)
      local half = g.Slice(z, g.constant { 4 }, g.constant { 8 }, g.constant { 1 })
      local joined = g.Concat(g.Conv(x), y, half, { axis = -3 })
      return g.Relu(joined * g.normal { 32, 1, 1 } + 0.5), z
    end,
    inputs = { x = { 2, 16, 48, 48 }, y = { 2, 12, 48, 48 }, z = { 2, 8, 48, 48 } },
    expect = { pointwise = 1, Conv = 1, left = true },
    equal = true,
  },
  test "a class token before the others, and their normalization" {
    graph = function(g, token, x)
      local joined = g.Concat(g.Expand(token, g.constant { 2, 1, 96 }), x, { axis = 1 })
      return g.LayerNormalization(joined + g.normal { 49, 96 }, g.normal { 96 }, g.normal { 96 })
    end,
    inputs = { token = { 1, 1, 96 }, x = { 2, 48, 96 } },
    options = { min_gain = 0 },
    expect = { pointwise = 1, left = 0 },
    equal = true,
  },
  test "short parts, and what others read too, stay a concatenation" {
    graph = function(g, x, y)
      local short = g.Concat(x, y, { axis = 1 })
      local shared = g.Concat(x, y, { axis = 0 })
      return g.Exp(g.Tanh(short)), g.Relu(shared) * 0.5, g.MatMul(shared, g.normal { 64, 64 })
    end,
    inputs = { x = { 128, 64 }, y = { 128, 64 } },
    options = { min_gain = 0 },
    expect = { pointwise = 2, Concat = 2, left = true },
    equal = true,
  },
  test "what a part comes from is not computed inside" {
    graph = function(g, x, y)
      local z = g.Tanh(g.Exp(x))
      return g.Relu(g.Concat(z, y, { axis = 0 }) + g.Concat(y, z, { axis = 0 })), z
    end,
    inputs = { x = { 32, 96 }, y = { 32, 96 } },
    options = { min_gain = 0 },
    expect = { pointwise = 2, left = 0 },
    equal = true,
  },
  test "groups of channels are not joined" {
    graph = function(g, x, y)
      local z = g.Concat(x, y, { axis = 1 }) * 2.0
      return g.GroupNormalization(z, g.normal { 8 }, g.normal { 8 }, { num_groups = 4 })
    end,
    inputs = { x = { 2, 4, 48, 48 }, y = { 2, 4, 48, 48 } },
    options = { min_gain = 0 },
    expect = { pointwise = true, left = true },
    equal = true,
  },
  test "what a view reads is computed before the kernel" {
    graph = function(g, x)
      local y = g.Tanh(g.Exp(x))
      return y + g.Transpose(y, { perm = { 1, 0, 2 } })
    end,
    inputs = { x = { 16, 16, 64 } },
    options = { min_gain = 0 },
    expect = { pointwise = true },
    equal = true,
  },
  test "the logarithm of a sum of exponentials, with bounds before it" {
    graph = function(g, x)
      return g.ReduceLogSumExp(g.Clip(g.Tanh(x) * 90.0, -80.0), g.constant { -1 })
    end,
    inputs = { x = { 16, 300 } },
    expect = { pointwise = 1, left = 0 },
    equal = true,
  },
  test "a reduction that drops its axes ends a kernel" {
    graph = function(g, x, y)
      local e = g.Exp(x) * y
      local sum = g.ReduceSum(e, g.constant { 2 }, { keepdims = 0 })
      return e, g.Sqrt(sum) + g.normal { 24 }
    end,
    inputs = { x = { 8, 24, 24 }, y = { 24 } },
    options = { min_bytes = 0, min_gain = 0 },
    expect = { pointwise = 2, left = 0 },
    equal = true,
  },
  test "where the largest element of a row lies ends a kernel" {
    graph = function(g, x, bias)
      local y = x + bias
      return g.ArgMax(g.Softmax(y), { axis = -1 }), g.ArgMin(y, { axis = 1, keepdims = 0 })
    end,
    inputs = { x = { 40, 70 }, bias = { 70 } },
    expect = { pointwise = 1, left = 0 },
    equal = true,
  },
  test "the last of equal elements, and other axes, stay outside" {
    graph = function(g, x)
      local y = g.Exp(x)
      return g.ArgMax(y, { axis = -1, select_last_index = 1 }), g.ArgMax(g.Neg(y), { axis = 0 })
    end,
    inputs = { x = { 64, 64 } },
    options = { min_bytes = 0 },
    expect = { pointwise = 1, left = 2 },
    equal = true,
  },
  test "what has another shape stays outside, so that nothing is computed twice" {
    graph = function(g, x, y)
      return x * g.Exp(g.Sigmoid(y))
    end,
    inputs = { x = { 64, 32, 32 }, y = { 32 } },
    options = { min_bytes = 0 },
    expect = { pointwise = 1, left = 1 },
    equal = true,
  },
  test "reductions of other axes stay outside" {
    graph = function(g, x)
      return g.Relu(g.Softmax(g.Exp(x), { axis = 1 })), g.ReduceSum(g.Tanh(x), g.constant { 0 })
    end,
    inputs = { x = { 8, 64, 64 } },
    expect_not = { "pointwise" },
    equal = true,
  },
  test "a product beside a kernel that it shares an input with stays outside" {
    graph = function(g, x, w)
      local a = g.Relu(x)
      return g.Sigmoid(g.Exp(a)) + g.MatMul(a, w)
    end,
    inputs = { x = { 64, 64 }, w = { 64, 64 } },
    expect = { pointwise = true, MatMul = 1, left = true },
    equal = true,
  },
  test "reductions can be left out" {
    graph = function(g, x)
      return g.Softmax(g.Tanh(x) * 0.5)
    end,
    inputs = { x = { 64, 64 } },
    options = { reductions = false },
    expect = { pointwise = 1, left = 1 },
    equal = true,
  },
  test "the number of nodes is bounded" {
    graph = function(g, x)
      return g.Neg(g.Exp(g.Tanh(g.Relu(x))))
    end,
    inputs = { x = { 64, 64 } },
    options = { max_nodes = 2 },
    expect = { pointwise = 2, left = 0 },
    equal = true,
  },
  test "functions may have fewer digits" {
    graph = function(g, x)
      local y = g.Erf(x) + g.Tanh(x * 2.0)
      return y, g.Gelu(y, { approximate = "tanh" })
    end,
    inputs = { x = { 64, 64 } },
    options = { fast_math = true },
    expect = { pointwise = 1, left = 0 },
    equal = true,
  },
  test "remainders with the sign of the dividend are in kernels, others are not" {
    graph = function(g, x, y, a, b)
      return g.Abs(g.Mod(x * 9.0, y, { fmod = 1 })), g.Neg(g.Mod(x * 9.0, y)), g.Mod(a, b + 1) * a
    end,
    inputs = {
      x = { 64, 64 }, y = { 64, 64, low = 0.5, high = 2.0 },
      a = { 64, 64, dtype = "int64" }, b = { 64, 64, dtype = "int64" },
    },
    expect = { pointwise = 1, Mod = 3, left = 6 },
    equal = true,
  },
  test "kernels can be switched off" {
    graph = function(g, x)
      return g.Exp(g.Tanh(x))
    end,
    inputs = { x = { 64, 64 } },
    options = { pointwise = false },
    expect_not = { "pointwise" },
  },
}

set[#set + 1] = rules
return ruleset(set)

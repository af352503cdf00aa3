-- SPDX-License-Identifier: Apache-2.0
-- Weights of matrix products as integers of 8 or 4 bits or floats of 16, data in float32: where few
-- rows are multiplied, as in generation token by token, the time is that of reading the weights.
-- The model becomes DequantizeLinear (opset 21) of constant integers, or Cast of constant floats,
-- before its product, as other tools write it, and both become one kernel; models that come with
-- such weights need no option. A scale (and with `zero_points` a zero point) of integers belongs to
-- a column and `block` elements of the depth.
--
-- Kernels that read floats of 16 bits are for few rows: without the option, products of more rows
-- read float32, packed once. With it weights stay in 16 bits for any number of rows.
--
-- `keep` (parts/precision.lua) lists what stays float32.

local steps = include("parts/steps.lua")
local keep = include("parts/keep.lua")
local stored = include("parts/stored.lua")

local options = {
  weights = option.enum("float32", "how weights of matrix products are stored", {
    "float32", "float16", "bfloat16", "int8", "int4",
  }),
  block = option.integer(32, "elements of the depth that share a scale", { min = 16, max = 4096 }),
  zero_points = option.boolean(false, "a zero point per block, for weights that are not symmetric"),
}

local CODES = { float16 = 10, bfloat16 = 16 } -- of the attribute `to` of Cast

local function is_narrow(set)
  return set.weights ~= "float32"
end

local function is_short(set)
  return CODES[set.weights] ~= nil
end

-- ---- float32 weights become narrow ----

-- The largest block, at most that of the options, into which the depth can be cut.
local function block_of(depth, set)
  local block = set.block
  while block >= 16 and (depth % block ~= 0 or block % 8 ~= 0) do
    block = block // 2
  end
  return block >= 16 and block or nil
end

-- Constant weights, also if they are stored in 16 bits.
local function constant_weights()
  local cast = output { stored.cast(), 1, as = "weights" }
  return oneof { constant { as = "weights", rank = 2 }, cast }
end

local function may_change(m, set)
  local shape = m.weights.shape
  local depth = m.product.op == "Gemm" and m.product.attrs.transB ~= 0 and shape[2] or shape[1]
  if keep.matcher(set.keep)(m.product) then
    return false, "it is kept in float32"
  elseif is_short(set) then
    return not stored.is_cast(m.weights), "its weights have 16 bits"
  elseif not block_of(depth, set) then
    return false, "its depth is not a multiple of 16"
  end
  return true
end

-- Constant weights as DequantizeLinear of integers, with the depth along `axis`, or as Cast of
-- floats.
local function narrowed(g, weights, axis, set)
  if is_short(set) then
    return g.Cast(g.Cast(weights, { to = CODES[set.weights] }), { to = 1 })
  end
  local shape = weights.shape
  local block = block_of(shape[axis + 1], set)
  local apart = axis == 0 and { shape[1] // block, block, shape[2] }
    or { shape[1], shape[2] // block, block }
  local bits = set.weights == "int4" and 4 or 8
  local blocks = g.Reshape(weights, apart)
  local along = g.constant { axis + 1 }
  local options_of = { axis = axis, block_size = block }
  if not set.zero_points then
    local limit = 2 ^ (bits - 1) - 1
    local largest = g.ReduceMax(g.Abs(blocks), along, { keepdims = 0 })
    local scale = g.Max(largest / limit, g.constant(1e-30))
    local zero = g.Cast(scale * 0, { to = 3 })
    local integers = g.QuantizeLinear(weights, scale, zero, options_of)
    return g.DequantizeLinear(integers, scale, nil, options_of)
  end
  local limit = 2 ^ bits - 1
  local low = g.Min(g.ReduceMin(blocks, along, { keepdims = 0 }), g.constant(0.0))
  local high = g.Max(g.ReduceMax(blocks, along, { keepdims = 0 }), g.constant(0.0))
  local scale = g.Max((high - low) / limit, g.constant(1e-30))
  local zero = g.Round(-low / scale)
  local integers = g.Round(blocks / g.Unsqueeze(scale, along)) + g.Unsqueeze(zero, along)
  local bytes = g.Cast(g.Reshape(g.Clip(integers, 0, limit), shape), { to = 2 })
  return g.DequantizeLinear(bytes, scale, g.Cast(zero, { to = 2 }), options_of)
end

-- ---- subgraphs for tests ----

local function product_of(g, x, shape)
  return g.Gelu(g.MatMul(x, g.weight(shape)) + g.normal { shape[2] })
end

-- Integers of a shape, from `low` to `high`.
local function integers(g, shape, low, high, dtype)
  local numbers = g.Round(g.uniform { low = low - 0.49, high = high + 0.49, table.unpack(shape) })
  return g.Cast(numbers, { to = dtype == "uint8" and 2 or 3 })
end

local function scales(g, ...)
  return g.uniform { low = 0.005, high = 0.02, ... }
end

local matmul = rewrite "narrow_matmul" {
  doc = "MatMul of constant weights reads integers of 8 or 4 bits, or floats of 16.",
  enabled = is_narrow,
  pattern = op { "MatMul", as = "product", dtype = "float32",
    inputs = { A = any "x", B = constant_weights() } },
  where = may_change,
  replace = function(m, g, set)
    return g.MatMul(m.x, narrowed(g, m.weights, 0, set))
  end,
}

-- A product of float32 data with narrow weights, and what follows it.
local function narrow(numbers)
  return op { { "MatMul", "Gemm" }, as = "product", inputs = { any "data", numbers } }
    >> maybe(repeated { steps.step(), max = 12 })
end

local gemm = rewrite "narrow_gemm" {
  doc = "Gemm of constant weights reads integers of 8 or 4 bits, or floats of 16.",
  enabled = is_narrow,
  pattern = op { "Gemm", as = "product", dtype = "float32",
    inputs = { A = any "x", B = constant_weights() } },
  where = may_change,
  replace = function(m, g, set)
    local attrs = m.product.attrs
    return g.Gemm(m.x, narrowed(g, m.weights, attrs.transB ~= 0 and 1 or 0, set),
      m.product.inputs.C,
      { alpha = attrs.alpha, beta = attrs.beta, transA = attrs.transA, transB = attrs.transB })
  end,
}

return {
  options = options,
  matmul = matmul,
  gemm = gemm,

  matmul,
  gemm,

  fuse "narrow" {
    doc = "A product of float32 data with constant integers, and what follows it.",
    priority = 1,
    pattern = narrow(stored.integers()),
    attributes = { integers = true },
  },

  fuse "short" {
    doc = "A product of float32 data with constant floats of 16 bits, and what follows it.",
    priority = 1,
    pattern = narrow(stored.cast()),
    attributes = { weights = options.weights },
  },

  -- ---- tests ----

  test "weights in 8 bits are close to those of float32" {
    graph = function(g, x)
      return product_of(g, product_of(g, x, { 64, 96 }), { 96, 40 })
    end,
    inputs = { x = { 1, 64 } },
    options = { weights = "int8" },
    expect = { narrow_matmul = 2, narrow = 2, DequantizeLinear = 2, fusions = 2, left = 0 },
    expect_not = { "product" },
    equal = { rtol = 0.02, atol = 0.05 },
  },
  test "weights in 4 bits, with zero points, of many rows" {
    graph = function(g, x)
      return g.Gemm(g.Reshape(x, g.constant { 18, 64 }), g.weight { 40, 64 }, g.normal { 40 },
        { transB = 1 })
    end,
    inputs = { x = { 3, 6, 64 } },
    options = { weights = "int4", block = 64, zero_points = true },
    expect = { narrow_gemm = 1, narrow = 1, left = 0 },
    equal = { rtol = 0.1, atol = 0.5 },
  },
  test "weights in 16 bits are exact for a model of 16 bits, few rows and many" {
    graph = function(g, x, y)
      local w = g.Cast(g.Cast(g.weight { 64, 96 }, { to = 10 }), { to = 1 })
      local v = g.Cast(g.Cast(g.weight { 40, 64 }, { to = 16 }), { to = 1 })
      local z = g.Gemm(y, v, g.normal { 40 }, { transB = 1 })
      return product_of(g, g.MatMul(x, w), { 96, 40 }), z
    end,
    inputs = { x = { 2, 64 }, y = { 70, 64 } },
    expect = { short = 2, product = 1, Cast = 2, left = 0 },
    expect_not = { "narrow_matmul", "narrow_gemm" },
    equal = true,
  },
  test "float32 weights in 16 bits are close, for any number of rows" {
    graph = function(g, x)
      return product_of(g, product_of(g, x, { 64, 96 }), { 96, 40 })
    end,
    inputs = { x = { 50, 64 } },
    options = { weights = "bfloat16" },
    expect = { narrow_matmul = 2, short = 2, Cast = 2, fusions = 2, left = 0 },
    equal = { rtol = 0.02, atol = 0.05 },
  },
  test "weights of 16 bits become integers" {
    graph = function(g, x)
      return g.MatMul(x, g.Cast(g.Cast(g.weight { 64, 32 }, { to = 10 }), { to = 1 }))
    end,
    inputs = { x = { 1, 64 } },
    options = { weights = "int8" },
    expect = { narrow_matmul = 1, narrow = 1, left = 0 },
    expect_not = { "Cast" },
    equal = { rtol = 0.02, atol = 0.05 },
  },
  test "constants of 16 bits on the left, and of batches, are cast once" {
    graph = function(g, x, y)
      local function short(...)
        return g.Cast(g.Cast(g.weight { ... }, { to = 10 }), { to = 1 })
      end
      return g.MatMul(short(16, 64), x), g.MatMul(y, short(2, 64, 8))
    end,
    inputs = { x = { 64, 8 }, y = { 2, 3, 64 } },
    expect = { MatMul = 2, left = 0 },
    expect_not = { "short" },
    equal = true,
  },
  test "what is kept, and a depth without blocks, stay float32" {
    graph = function(g, x, y)
      return g.Gemm(x, g.weight { 64, 40 }), g.MatMul(y, g.weight { 30, 40 })
    end,
    inputs = { x = { 1, 64 }, y = { 1, 30 } },
    options = { weights = "int8", keep = { "Gemm" } },
    expect = { MatMul = 1, Gemm = 1, left = 0 },
    expect_not = { "narrow_matmul", "narrow_gemm", "narrow" },
    refused = { narrow_matmul = "not a multiple of 16", narrow_gemm = "kept in float32" },
    equal = true,
  },
  test "a model's own blocks of 4 bits, few rows and many, either way round" {
    graph = function(g, x, y)
      local blocks = { axis = 0, block_size = 16 }
      local a = g.DequantizeLinear(integers(g, { 64, 40 }, -8, 7), scales(g, 4, 40), nil, blocks)
      local b = g.DequantizeLinear(integers(g, { 24, 64 }, 0, 15, "uint8"), scales(g, 24, 2),
        integers(g, { 24, 2 }, 0, 15, "uint8"), { axis = 1, block_size = 32 })
      return g.Relu(g.MatMul(x, a) + g.normal { 40 }), g.Gemm(y, b, nil, { transB = 1 })
    end,
    inputs = { x = { 1, 3, 64 }, y = { 13, 64 } },
    expect = { narrow = 2, fusions = 2, left = 0 },
    expect_not = { "product", "narrow_matmul" },
    equal = true,
  },
  test "a model's own scales of columns, and one for all, in 8 bits" {
    graph = function(g, x)
      local a = g.DequantizeLinear(integers(g, { 60, 40 }, -128, 127), scales(g, 40),
        integers(g, { 40 }, -20, 20), { axis = 1 })
      local b = g.DequantizeLinear(integers(g, { 40, 20 }, 0, 255, "uint8"), g.constant(0.01),
        g.constant(120, "uint8"))
      return g.MatMul(2 * g.MatMul(x, a) * scales(g, 40), b)
    end,
    inputs = { x = { 2, 60 } },
    expect = { narrow = 2, left = 0 },
    equal = true,
  },
  test "a model's packed integers, signed with blocks and unsigned with zero points" {
    graph = function(g, x)
      local function bytes(columns, count)
        return g.Cast(g.Round(g.uniform { low = -0.49, high = 255.49, columns, count }), { to = 2 })
      end
      local function packed(columns, count, bits, signed)
        return g.UnpackBits(bytes(columns, count * bits // 8),
          { bits = bits, count = count, signed = signed, transposed = 1 })
      end
      local blocks = { axis = 0, block_size = 16 }
      local a = g.DequantizeLinear(packed(40, 64, 4, 1), scales(g, 4, 40), nil, blocks)
      local b = g.DequantizeLinear(packed(32, 40, 2, 0), scales(g, 3, 32),
        integers(g, { 3, 32 }, 0, 3, "uint8"), blocks)
      local c = g.DequantizeLinear(packed(24, 32, 8, 1), scales(g, 2, 24), nil, blocks)
      return g.MatMul(g.MatMul(g.MatMul(x, a) + g.normal { 40 }, b), c)
    end,
    inputs = { x = { 3, 64 } },
    expect = { narrow = 3, UnpackBits = 3, fusions = 3, left = 0 },
    equal = true,
  },
  test "packed integers that two products read are unpacked once" {
    graph = function(g, x)
      local bytes = g.Cast(g.Round(g.uniform { low = -0.49, high = 255.49, 16, 8 }), { to = 2 })
      local numbers = g.UnpackBits(bytes, { bits = 4, count = 16, signed = 1, transposed = 1 })
      local function weights()
        return g.DequantizeLinear(numbers, scales(g, 16), nil, { axis = 1 })
      end
      return g.MatMul(g.MatMul(x, weights()), weights())
    end,
    inputs = { x = { 1, 16 } },
    expect = { UnpackBits = 1, DequantizeLinear = 2 },
    expect_not = { "narrow" },
    equal = true,
  },
  test "blocks along the columns are computed in float32" {
    graph = function(g, x)
      return g.MatMul(x, g.DequantizeLinear(integers(g, { 64, 32 }, -8, 7), scales(g, 64, 2), nil,
        { axis = 1, block_size = 16 }))
    end,
    inputs = { x = { 1, 64 } },
    expect = { narrow = 1, left = 0 },
    equal = true,
  },
}

-- SPDX-License-Identifier: Apache-2.0
-- Models of float32 get QuantizeLinear and DequantizeLinear around what 8-bit integers can compute:
-- Conv, Gemm and MatMul with constant weights; sums, poolings and Concat between them. Weights are
-- signed, with one scale per output channel; data are unsigned, by the ranges that `cleave
-- calibrate` found. parts/quantized.lua then makes kernels of integers of it.
--
-- A value that several products read is quantized once. What only moves elements is moved as
-- integers. Of a sum, one side is what a product adds to in its kernel, in float32, and the other
-- is read as integers; with `float_sums = false` both are, for runtimes that add integers.

local keep = include("parts/keep.lua")
local integers = include("parts/integers.lua")
local stored = include("parts/stored.lua")

local reduce_range = option.boolean(true, "weights of 7 bits, which every processor multiplies; "
  .. "false: of 8 bits, for processors with VNNI")

local float_sums = option.boolean(true, "a product adds to a sum in its kernel, in float32; "
  .. "false: both sides of a sum become integers first")

local PRODUCTS = { Conv = true, Gemm = true, MatMul = true }
local AVERAGES = { AveragePool = true, GlobalAveragePool = true }
local ACTIVATIONS = { Clip = true, LeakyRelu = true, Relu = true }

-- Can integers compute this product?
local function is_product(node)
  local w = node.inputs[2]
  return PRODUCTS[node.op] and (w.is_constant or stored.is_cast(w)) and w.dtype == "float32"
    and w.rank ~= nil and (node.op == "Conv" or w.rank == 2)
end

-- ---- weights ----

-- The dimension of the weights that is the product's output.
local function output_axis(node)
  if node.op == "Conv" or node.op == "Gemm" and node.attrs.transB == 1 then
    return 0
  end
  return node.inputs[2].rank - 1
end

-- Symmetric, with a scale per output channel; folded once the rule is done.
local function quantize_weights(g, node, limit)
  local w, axis, others = node.inputs[2], output_axis(node), {}
  for k = 0, w.rank - 1 do
    others[#others + 1] = k ~= axis and k or nil
  end
  local largest = g.ReduceMax(g.Abs(w), g.constant(others), { keepdims = 0 })
  local scales = g.Max(largest / limit, g.constant(1e-20, "float32"))
  local zeros = g.zeros { w.shape[axis + 1], dtype = "int8" }
  return g.DequantizeLinear(g.QuantizeLinear(w, scales, zeros, { axis = axis }), scales, zeros,
    { axis = axis })
end

-- ---- data ----

-- Scale and zero point of 8 bits for a range; nil if there is none, or nothing to tell apart.
local function numbers_of(range)
  local low, high = range and math.min(range.min, 0.0), range and math.max(range.max, 0.0)
  local scale = range and (high - low) / 255
  if not scale or scale < 1e-30 or scale > 1e30 then
    return nil
  end
  return { scale = scale, zero = math.floor(-low / scale + 0.5) }
end

-- What reads values as integers: `read(value)` is the value as readers of integers want it, or nil.
-- `adds(node)`: is the node a product that may add to a sum in its kernel?
local function reader(g, is_kept, adds)
  local known = {} -- by value: what takes its place; false: nothing does
  local read

  local function through(value, numbers)
    local scale = g.constant(numbers.scale, "float32")
    local zero = g.constant(numbers.zero, "uint8")
    return g.DequantizeLinear(g.QuantizeLinear(value, scale, zero), scale, zero)
  end

  -- Does a product that adds, with a norm behind it, make the value for one reader?
  local function is_made_by_product(value)
    local node = value.uses_count == 1 and value.producer or nil
    if node and node.op == "BatchNormalization" then
      node = node.inputs[1].uses_count == 1 and node.inputs[1].producer or nil
    end
    return node ~= nil and adds(node)
  end

  local function read_into(node, port)
    local value = read(node.inputs[port])
    if value then
      g.set_input(node, port, value)
    end
    return value ~= nil
  end

  -- One side of the sum that makes a value, perhaps through an activation, becomes integers; both
  -- if no product makes either.
  local function read_sum(value)
    local node = value.producer
    while node and ACTIVATIONS[node.op] and not is_kept(node) and node.inputs[1].uses_count == 1 do
      node = node.inputs[1].producer
    end
    if not node or node.op ~= "Add" or is_kept(node) then
      return
    end
    local a, b = node.inputs[1], node.inputs[2]
    if a.is_constant or b.is_constant or a.rank ~= b.rank then
      return
    end
    local first, second = is_made_by_product(a), is_made_by_product(b)
    if first and second then
      first = a.producer.index > b.producer.index -- the later one adds the other
      second = not first
    end
    if not first then
      read_into(node, 1)
    end
    if not second then
      read_into(node, 2)
    end
  end

  -- All with the scale of the result, so that integers are put together.
  local function read_concat(node, numbers)
    for k = 1, #node.inputs do
      g.set_input(node, k, through(node.inputs[k], numbers))
    end
  end

  function read(value)
    if known[value.index] ~= nil then
      return known[value.index] or nil
    end
    local node, numbers, result = value.producer, numbers_of(value.range), nil
    if value.is_constant or value.dtype ~= "float32" then
      result = nil
    elseif node and integers.MOVES[node.op] and #node.outputs == 1 and not is_kept(node)
      and read_into(node, 1) then
      result = value
    elseif numbers and node and node.op == "Concat" and not is_kept(node) then
      read_concat(node, numbers)
      result = value
    elseif numbers then
      read_sum(value)
      result = through(value, numbers)
    end
    known[value.index] = result or false
    return result
  end

  return read, known
end

local function quantize(graph, set, g)
  local matches = keep.matcher(set.keep)
  local function is_kept(node)
    return matches(node) ~= nil
  end
  local products, averages, chosen, is_known, is_quantized = {}, {}, {}, false, false
  for node in graph:topological() do
    is_quantized = is_quantized or node.op == "DequantizeLinear"
    if AVERAGES[node.op] and not is_kept(node) then
      averages[#averages + 1] = node
    elseif is_product(node) then
      is_known = is_known or node.inputs[1].range ~= nil
      if not is_kept(node) and numbers_of(node.inputs[1].range) then
        products[#products + 1] = node
        chosen[node.index] = true
      end
    end
  end
  if #products == 0 then
    if not is_known and not is_quantized then
      error("the ranges of values are not known: 'cleave calibrate MODEL --data DIR -o FILE' finds "
        .. "them, and --ranges FILE gives them")
    end
    return false, "no product of float32 numbers is left to quantize"
  end
  local read, known = reader(g, is_kept, function(node)
    return set.float_sums and chosen[node.index]
  end)
  for _, node in ipairs(products) do
    local data = read(node.inputs[1])
    if data then
      g.set_input(node, 1, data)
      g.set_input(node, 2, quantize_weights(g, node, set.reduce_range and 64 or 127))
    end
  end
  for _, node in ipairs(averages) do
    local data = known[node.inputs[1].index]
    if data then
      g.set_input(node, 1, data)
    end
  end
  return true
end

local int8 = pass "int8" {
  doc = "QuantizeLinear and DequantizeLinear around what integers can compute.",
  enabled = function(set)
    return set.precision == "int8"
  end,
  run = quantize,
}

return {
  options = { reduce_range = reduce_range, float_sums = float_sums },
  int8 = int8,

  int8,

  -- ---- tests ----

  test "convolutions and what is between them are integers" {
    graph = function(g, x)
      local window = { kernel_shape = { 3, 3 }, pads = { 1, 1, 1, 1 }, strides = { 2, 2 } }
      local y = g.MaxPool(g.Relu(g.Conv(x, g.weight { 16, 3, 3, 3 })), window)
      local z = g.BatchNormalization(g.Conv(y, g.weight { 16, 16, 1, 1 }))
      z = g.Relu(z + y)
      z = g.Relu(g.Conv(z, g.weight { 32, 16, 1, 1 }) + g.Conv(z, g.weight { 32, 16, 1, 1 }))
      return g.Gemm(g.Flatten(g.GlobalAveragePool(z)), g.weight { 10, 32 }, g.normal { 10 },
        { transB = 1 })
    end,
    inputs = { x = { 1, 3, 16, 16 } },
    options = { precision = "int8" },
    calibrate = true,
    expect = {
      int8 = 1, quantized = 5, low_precision = 1, QuantizeLinear = 4, DequantizeLinear = 9,
      left = 0,
    },
    expect_not = { "product" },
    equal = { rtol = 0, atol = 0.05 },
  },
  test "both sides of a sum can be integers" {
    graph = function(g, x)
      local y = g.Relu(g.Conv(x, g.weight { 16, 16, 1, 1 }))
      local z = g.Relu(g.Conv(y, g.weight { 16, 16, 1, 1 }) + y)
      return g.Conv(z, g.weight { 16, 16, 1, 1 })
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    options = { precision = "int8", float_sums = false },
    calibrate = true,
    expect = { quantized = 3, quantized_chain = 1, QuantizeLinear = 4, left = 0 },
    equal = { rtol = 0, atol = 0.05 },
  },
  test "what is joined has one scale" {
    graph = function(g, x)
      local y = g.Relu(g.Conv(x, g.weight { 16, 8, 1, 1 }))
      local z = g.Concat(g.Relu(g.Conv(y, g.weight { 16, 16, 1, 1 })),
        g.Relu(g.Conv(y, g.weight { 16, 16, 1, 1 })), { axis = 1 })
      return g.Conv(z, g.weight { 8, 32, 1, 1 })
    end,
    inputs = { x = { 1, 8, 8, 8 } },
    options = { precision = "int8" },
    calibrate = true,
    expect = { quantized = 4, QuantizeLinear = 4, left = 0 },
    equal = { rtol = 0, atol = 0.05 },
  },
  test "products of matrices are integers, what is around them is not" {
    graph = function(g, x)
      local y = g.MatMul(x, g.weight { 32, 64 }) + g.normal { 64 }
      local z = g.MatMul(g.Gelu(y), g.weight { 64, 32 }) + x
      return g.Softmax(g.MatMul(z, g.Transpose(x, { perm = { 0, 2, 1 } })))
    end,
    inputs = { x = { 2, 8, 32 } },
    options = { precision = "int8" },
    calibrate = true,
    expect = { quantized = 2, QuantizeLinear = 2, left = 0 },
    equal = { rtol = 0, atol = 0.1 },
  },
  test "what is kept is not quantized, by operator and by name" {
    graph = function(g, x)
      local y = g.Relu(g.Conv(x, g.weight { 16, 16, 1, 1 }, nil, { name = "block/conv" }))
      local z = g.Relu(g.Conv(y, g.weight { 16, 16, 1, 1 }))
      return g.MatMul(z, g.weight { 8, 8 })
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    options = { precision = "int8", keep = { "block/*", "MatMul" } },
    calibrate = true,
    expect = { quantized = 1, product = 1, left = 0 },
    equal = { rtol = 0, atol = 0.05 },
  },
  test "without a precision nothing is quantized" {
    graph = function(g, x)
      return g.Conv(x, g.weight { 16, 16, 1, 1 })
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    calibrate = true,
    expect = { QuantizeLinear = 0, left = 0 },
    expect_not = { "int8", "low_precision" },
    equal = true,
  },
}

-- SPDX-License-Identifier: Apache-2.0
-- Connected pointwise operators, with reductions that are all over the same last axes, as one
-- kernel: each input is read once and each output written once. The backend makes one program of a
-- kernel (backends/kernels), or refuses it and says why.
--
-- All values of a kernel have one shape; behind a reduction, that shape with sizes of 1. So nothing
-- is computed more often than without the kernel.

local pointwise = option.boolean(true, "make kernels of pointwise operators")
local reductions = option.boolean(true, "kernels take reductions over the last axes")
local max_nodes = option.integer(64, "most nodes of a kernel", { min = 2, max = 512 })
local min_nodes = option.integer(2, "least nodes of a kernel", { min = 1, max = 512 })
local min_bytes = option.integer(4096, "bytes that a kernel has to keep inside", { min = 0 })

local POINTWISE = {}
for _, name in ipairs {
  "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitwiseAnd",
  "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "CastLike", "Ceil", "Celu", "Clip", "Cos",
  "Cosh", "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual",
  "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max",
  "Mean", "Min", "Mish", "Mul", "Neg", "Not", "Or", "PRelu", "Pow", "Reciprocal", "Relu",
  "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt",
  "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Where", "Xor",
} do
  POINTWISE[name] = true
end

local ROWS = {}
for _, name in ipairs {
  "InstanceNormalization", "LayerNormalization", "LogSoftmax", "ReduceL1", "ReduceL2",
  "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
  "ReduceSum", "ReduceSumSquare", "RMSNormalization", "Softmax",
} do
  ROWS[name] = true
end

-- Those with an axis: the last one alone, or the first of the last ones.
local AXIS = {
  LayerNormalization = "first", LogSoftmax = "last", RMSNormalization = "first", Softmax = "last",
}

-- Operators whose integers no kernel has: theirs would run node by node.
local FLOATS = {}
for _, name in ipairs {
  "Div", "Mean", "Pow", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean",
} do
  FLOATS[name] = true
end

local function is_float(dtype)
  return dtype == "float32" or dtype == "float64" or dtype == "float16" or dtype == "bfloat16"
end

-- "2x3x4" of a shape whose sizes are all known, or nil. The last `reduced` sizes count as 1.
local function key(shape, reduced)
  if shape == nil then
    return nil
  end
  local sizes = {}
  for k, size in ipairs(shape) do
    if math.type(size) ~= "integer" then
      return nil
    end
    sizes[k] = k > #shape - (reduced or 0) and 1 or size
  end
  return table.concat(sizes, "x")
end

-- How many of the last axes a node reduces: 0 of a pointwise one, nil if that is no row.
local function reduced_axes(node)
  local x = node.inputs[1]
  if not ROWS[node.op] then
    return 0
  end
  if x == nil or x.rank == nil or x.rank == 0 then
    return nil
  end
  if node.op == "InstanceNormalization" then
    return x.rank > 2 and x.rank - 2 or nil
  end
  if AXIS[node.op] then
    local axis = node.attrs.axis
    axis = axis < 0 and axis + x.rank or axis
    if axis ~= x.rank - 1 and AXIS[node.op] == "last" then
      return nil
    end
    return x.rank - axis
  end
  local axes
  local given = node.inputs[2]
  if given ~= nil then
    if not given.is_constant then
      return nil
    end
    axes = given:value()
  end
  if node.attrs.keepdims == 0 then
    return nil
  end
  if axes == nil or (type(axes) == "table" and #axes == 0) then
    return node.attrs.noop_with_empty_axes ~= 1 and x.rank or nil
  end
  axes = type(axes) == "table" and axes or { axes }
  local least, seen, count = x.rank, {}, 0
  for _, number in ipairs(axes) do
    number = number < 0 and number + x.rank or number
    least = math.min(least, number)
    count = count + (seen[number] and 0 or 1)
    seen[number] = true
  end
  return least + count == x.rank and count or nil
end

local function is_wanted(node, options)
  if node.domain ~= "" or not (POINTWISE[node.op] or (options.reductions and ROWS[node.op])) then
    return false
  end
  return not FLOATS[node.op] or is_float(node.dtype)
end

-- The shape of the space that a node computes over, by itself.
local function space_of(node)
  local reduced = reduced_axes(node)
  if reduced == nil then
    return nil
  end
  local x = node.inputs[1]
  return key(reduced > 0 and x.shape or node.shape), reduced, reduced > 0 and x.shape or node.shape
end

-- A kernel that grows: `space` its shape, `reduced` the axes of its rows.
local function grower(options)
  local space, shape, reduced, rows, count
  local function start()
    space, shape, reduced, rows, count = nil, nil, 0, nil, 0
  end
  local function fits(node)
    if count >= options.max_nodes or not is_wanted(node, options) then
      return false
    end
    local own, axes = space_of(node)
    if own == nil or (axes > 0 and reduced > 0 and axes ~= reduced) then
      return false
    end
    local is_row = rows ~= nil and axes == 0 and own == rows and own ~= space
    if own ~= space and not is_row then
      return false
    end
    if axes > 0 and reduced == 0 then
      reduced, rows = axes, key(shape, axes)
    end
    count = count + 1
    return true
  end
  start()
  return {
    select = function(node)
      start()
      if not is_wanted(node, options) then
        return false
      end
      local own, axes, sizes = space_of(node)
      if own == nil then
        return false
      end
      space, shape, reduced, count = own, sizes, axes, 1
      rows = axes > 0 and key(sizes, axes) or nil
      return true
    end,
    select_input = function(_, input)
      return fits(input)
    end,
    select_output = function(_, output)
      return fits(output)
    end,
    reset = start,
  }
end

return ruleset {
  name = "pointwise",
  doc = "Pointwise operators and reductions of rows as one kernel each.",
  backend = "cpu",
  options = {
    pointwise = pointwise, reductions = reductions, max_nodes = max_nodes, min_nodes = min_nodes,
    min_bytes = min_bytes,
  },

  fuse "pointwise" {
    doc = "Connected pointwise operators of one shape, with the reductions of their rows.",
    enabled = pointwise,
    selector = function(_, options)
      return grower(options)
    end,
    min_nodes = min_nodes,
    min_bytes_saved = min_bytes,
    attributes = { kernel = true },
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
  test "a softmax takes scale and mask before it, and what follows" {
    graph = function(g, x, mask)
      return g.Softmax(x * 0.125 + mask) * 0.9
    end,
    inputs = { x = { 2, 4, 96, 96 }, mask = { 96, 96 } },
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
    expect = { pointwise = 1, left = 0 },
    equal = true,
  },
  test "an instance normalization has a scale per channel" {
    graph = function(g, x)
      return g.Relu(g.InstanceNormalization(x * 2.0, g.normal { 6 }, g.normal { 6 })) + x
    end,
    inputs = { x = { 2, 6, 24, 20 } },
    expect = { pointwise = 1, left = 0 },
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
  test "kernels can be switched off" {
    graph = function(g, x)
      return g.Exp(g.Tanh(x))
    end,
    inputs = { x = { 64, 64 } },
    options = { pointwise = false },
    expect_not = { "pointwise" },
  },
}

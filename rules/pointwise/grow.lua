-- SPDX-License-Identifier: Apache-2.0
-- How a kernel of pointwise operators grows, for the rules of every backend that makes such
-- kernels: `grower(options)` is a selector of fuse rules, by the options max_nodes and reductions.

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

-- Operators with an axis, which has to be the last one or the first of the last ones.
local AXIS = {
  LayerNormalization = "first", LogSoftmax = "last", RMSNormalization = "first", Softmax = "last",
}

-- Operators on integers that no kernel supports; they would run node by node.
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

-- How many of the last axes a node reduces: 0 if it is pointwise, nil if it reduces other axes.
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

-- The iteration space of a node.
local function space_of(node)
  local reduced = reduced_axes(node)
  if reduced == nil then
    return nil
  end
  local x = node.inputs[1]
  return key(reduced > 0 and x.shape or node.shape), reduced, reduced > 0 and x.shape or node.shape
end

-- A growing kernel: `space` is its iteration space, `reduced` the number of axes of its rows.
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

return { grower = grower, pointwise = POINTWISE }

-- SPDX-License-Identifier: Apache-2.0
-- How a kernel of pointwise operators grows, for the rules of every backend that makes such
-- kernels: `grower(options, how)` is a selector of fuse rules, by the options max_nodes and
-- reductions. With `how.reads_views` a kernel takes views in front of it along, which it reads by
-- strides; without, views stay with the backend. `how.join_run`: it reads the parts of a Concat in
-- front of it where they lie, if they have as many elements in a row on average.
-- `how.primitives` are operators that the backend computes faster by itself, and that no kernel
-- takes. `how.posts` are those that it has in chains: a kernel of such operators alone, none of
-- which is read twice, is left to it. `how.arguments`: a kernel may say where in its rows the
-- largest or smallest element lies. `how.quantizes`: it may quantize and dequantize.

local POINTWISE = {}
for _, name in ipairs {
  "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitwiseAnd",
  "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "CastLike", "Ceil", "Celu", "Clip", "Cos",
  "Cosh", "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual",
  "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Less", "LessOrEqual",
  "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or", "PRelu", "Pow",
  "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus",
  "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Where", "Xor",
} do
  POINTWISE[name] = true
end

local ROWS = {}
for _, name in ipairs {
  "GroupNormalization", "InstanceNormalization", "LayerNormalization", "LogSoftmax", "ReduceL1",
  "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
  "ReduceProd", "ReduceSum", "ReduceSumSquare", "RMSNormalization", "Softmax",
} do
  ROWS[name] = true
end

local ARGUMENTS = { ArgMax = true, ArgMin = true }

local QUANTIZING = { QuantizeLinear = true, DequantizeLinear = true }
local SHORT = { int8 = true, uint8 = true, int16 = true, uint16 = true }

-- Views that would be copies of their own: of one operand, the rest of what they read is constant.
local VIEWS = { Expand = true, Slice = true, Split = true, Transpose = true }

-- A kernel has 64 inputs at most.
local MAX_PARTS = 32

-- Operators with an axis, which has to be the last one or the first of the last ones.
local AXIS = {
  ArgMax = "last", ArgMin = "last",
  LayerNormalization = "first", LogSoftmax = "last", RMSNormalization = "first", Softmax = "last",
}

-- Operators on integers that no kernel supports; they would run node by node.
local FLOATS = {}
for _, name in ipairs {
  "Div", "Mean", "Mod", "Pow", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean",
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

-- How many of the last axes a node reduces: 0 if it is pointwise, nil if it reduces other axes. And
-- in how many groups the first of these is.
local function reduced_axes(node)
  local x = node.inputs[1]
  if not ROWS[node.op] and not ARGUMENTS[node.op] then
    return 0
  end
  if x == nil or x.rank == nil or x.rank == 0 then
    return nil
  end
  if node.op == "GroupNormalization" then
    local groups, channels = node.attrs.num_groups, x.shape[2]
    local fits = x.rank > 2 and math.type(channels) == "integer" and channels % groups == 0
    return fits and x.rank - 1 or nil, groups
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

-- Between float32 and short integers, with one scale, or one per element of the last axis.
local function quantizes(node)
  local x, scale = node.inputs[1], node.inputs[2]
  local from, to = x.dtype, node.dtype
  if node.op == "DequantizeLinear" then
    from, to = to, from
  end
  if from ~= "float32" or not SHORT[to] or scale.dtype ~= "float32" or scale.rank == nil
    or x.rank == nil or (node.attrs.block_size or 0) ~= 0 then
    return false
  end
  local axis = node.attrs.axis or 1
  axis = axis < 0 and axis + x.rank or axis
  return scale.rank == 0 or (scale.rank == 1 and (scale.shape[1] == 1 or axis == x.rank - 1))
end

local function is_wanted(node, options, how)
  if node.domain == "" and QUANTIZING[node.op] then
    return how.quantizes == true and quantizes(node)
  end
  local reduces = ROWS[node.op] or (how.arguments and ARGUMENTS[node.op])
  if node.domain ~= "" or not (POINTWISE[node.op] or (options.reductions and reduces)) then
    return false
  end
  if ARGUMENTS[node.op] and node.attrs.select_last_index == 1
    or node.op == "Mod" and node.attrs.fmod ~= 1 then
    return false
  end
  return not FLOATS[node.op] or is_float(node.dtype)
end

-- The iteration space of a node.
local function space_of(node)
  local reduced, groups = reduced_axes(node)
  if reduced == nil then
    return nil
  end
  local x = node.inputs[1]
  local shape = reduced > 0 and x.shape or node.shape
  return key(shape), reduced, shape, groups
end

-- Is it a view that nobody but `reader` needs, and that keeps neighbours along the last axis?
local function is_view(node, reader, space)
  if node.domain ~= "" or not VIEWS[node.op] then
    return false
  end
  for k = 2, #node.inputs do
    if node.inputs[k] ~= nil and not node.inputs[k].is_constant then
      return false
    end
  end
  if node.op == "Split" then -- all parts are the kernel's, or it copies those that others read
    for k = 1, #node.outputs do
      if node.outputs[k] == nil or key(node.outputs[k].shape) ~= space then
        return false
      end
    end
    return true
  end
  local perm = node.op == "Transpose" and node.attrs.perm or nil
  local keeps = node.op ~= "Transpose" or (perm ~= nil and perm[#perm] == #perm - 1)
  local users = node.users
  return keeps and #users == 1 and users[1] == reader and not node.outputs[1].is_output
    and key(node.shape) ~= nil
end

-- The axis of a Concat that nobody but `reader` needs and whose parts a kernel of its shape may
-- read where they lie, with `run` elements of each in a row on average; nil otherwise.
local function joined_axis(node, reader, space, run)
  local users, shape = node.users, node.shape
  if node.domain ~= "" or node.op ~= "Concat" or VIEWS[reader.op] or reader.op == "Concat"
    or #users ~= 1 or users[1] ~= reader or node.outputs[1].is_output or key(shape) ~= space
    or #node.inputs < 2 or #node.inputs > MAX_PARTS then
    return nil
  end
  local axis = node.attrs.axis
  axis = axis < 0 and axis + #shape or axis
  local inside = 1
  for k = axis + 1, #shape do
    inside = inside * shape[k]
  end
  return inside >= run * #node.inputs and axis or nil
end

-- Are all of these among `posts`, with one reader each as far as they are read inside?
local function is_chain(nodes, posts)
  local inside = {}
  for _, node in ipairs(nodes) do
    inside[node] = true
  end
  for _, node in ipairs(nodes) do
    local users = node.users
    local leaks = #users > 1 or node.outputs[1].is_output
    if not posts[node.op] then
      return false
    end
    for _, user in ipairs(users) do
      if leaks and inside[user] then
        return false
      end
    end
  end
  return true
end

-- A growing kernel: `space` is its iteration space, `reduced` the number of axes of its rows,
-- `groups` what the first of these is cut into, `taken` its nodes. What views read, `barred`, stays
-- outside.
local function grower(options, how)
  how = how or {}
  local space, shape, reduced, groups, rows, count, taken, barred, joins_channels
  local function start()
    space, shape, reduced, groups, rows, count, taken, barred = nil, nil, 0, nil, nil, 0, {}, {}
    joins_channels = false
  end
  local function wants(node)
    return is_wanted(node, options, how) and not (how.primitives and how.primitives[node.op])
  end
  local function add(node)
    count, taken[node] = count + 1, true
    return true
  end
  local function fits(node)
    if count >= options.max_nodes or barred[node] or not wants(node) then
      return false
    end
    local own, axes, _, parts = space_of(node)
    if own == nil or (axes > 0 and reduced > 0 and (axes ~= reduced or parts ~= groups))
      or (parts ~= nil and joins_channels) then
      return false
    end
    local is_row = rows ~= nil and axes == 0 and own == rows and own ~= space
    if own ~= space and not is_row then
      return false
    end
    if axes > 0 and reduced == 0 then
      reduced, groups, rows = axes, parts, parts == nil and key(shape, axes) or nil
    end
    return add(node)
  end
  local function fits_view(node, input)
    local x = input.inputs[1]
    if not how.reads_views or count >= options.max_nodes or barred[input]
      or not is_view(input, node, space) or (x.producer ~= nil and taken[x.producer]) then
      return false
    end
    if x.producer ~= nil then
      barred[x.producer] = true
    end
    return add(input)
  end
  -- Parts that are views come along with those; all else that makes a part stays outside.
  local function fits_join(node, input)
    local axis = how.join_run ~= nil and joined_axis(input, node, space, how.join_run)
    if not axis or count >= options.max_nodes or barred[input]
      or (axis == 1 and groups ~= nil) then
      return false
    end
    for _, part in ipairs(input.inputs) do
      if part.producer ~= nil and taken[part.producer] then
        return false
      end
    end
    for _, part in ipairs(input.inputs) do
      if part.producer ~= nil and not VIEWS[part.producer.op] then
        barred[part.producer] = true
      end
    end
    joins_channels = joins_channels or axis == 1
    return add(input)
  end
  start()
  return {
    select = function(node)
      start()
      if not wants(node) then
        return false
      end
      local own, axes, sizes, parts = space_of(node)
      if own == nil then
        return false
      end
      space, shape, reduced, groups = own, sizes, axes, parts
      rows = axes > 0 and parts == nil and key(sizes, axes) or nil
      return add(node)
    end,
    select_input = function(node, input)
      return fits_view(node, input) or fits_join(node, input)
        or (not VIEWS[node.op] and node.op ~= "Concat" and fits(input))
    end,
    select_output = function(_, output)
      return fits(output)
    end,
    filter = how.posts and function(nodes)
      return is_chain(nodes, how.posts) and {} or nodes
    end,
    reset = start,
  }
end

return { grower = grower, pointwise = POINTWISE }

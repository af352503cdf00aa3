-- SPDX-License-Identifier: Apache-2.0
-- The graph of a rule test: built by its function with the words of model scripts. Weights that an
-- operator needs and the test does not give are drawn with the shape that fits the first input, so
-- that g.Relu(g.Conv(x)) is a complete graph.
local host, import = ...
local builder = import "builder"
local check = import "check"

local M = {}

-- ---- weights that are left out ----

local function channels(name, x)
  local size = x.shape and x.shape[2]
  if math.type(size) ~= "integer" then
    check.fail(0, "%s: the channels of its input are not known: give the weights", name)
  end
  return size
end

local function last_size(name, x)
  local size = x.shape and x.shape[#x.shape]
  if math.type(size) ~= "integer" then
    check.fail(0, "%s: the last size of its input is not known: give the weights", name)
  end
  return size
end

local function dtype_of(x)
  return x.dtype ~= "unknown" and x.dtype or "float32"
end

local function vector(x, count, low, high)
  return builder.g.uniform { count, dtype = dtype_of(x), low = low, high = high }
end

-- A kernel that keeps the channels; without kernel_shape, 3 in each direction, and then padded so
-- that a stride of 1 keeps the size too.
local function kernel(name, x, attributes)
  local count = channels(name, x)
  local group = attributes.group or 1
  if math.type(group) ~= "integer" or group < 1 or count % group ~= 0 then
    check.fail(0, "%s: %d channel%s in groups of %s: give the weights", name, count,
      check.plural(count), check.show(group))
  end
  local shape, padded = { count, count // group, dtype = dtype_of(x) }, false
  local sizes = attributes.kernel_shape
  if sizes == nil then
    sizes, padded = {}, attributes.pads == nil and attributes.auto_pad == nil
    for k = 1, #x.shape - 2 do
      sizes[k] = 3
    end
  end
  for _, size in ipairs(check.type(0, name .. ": kernel_shape", sizes, "table")) do
    shape[#shape + 1] = size
  end
  if padded then
    local pads, dilations = {}, attributes.dilations or {}
    for k = 1, #sizes do
      pads[k], pads[#sizes + k] = dilations[k] or 1, dilations[k] or 1
    end
    attributes.pads = pads
  end
  return builder.g.weight(shape)
end

local function square(name, x)
  local size = last_size(name, x)
  return builder.g.weight { size, size, dtype = dtype_of(x), gain = 1 }
end

local function scale_of_channels(name, x)
  return vector(x, channels(name, x), 0.8, 1.2)
end

local function shift_of_channels(name, x)
  return vector(x, channels(name, x), -0.1, 0.1)
end

local function scale_of_last(name, x)
  return vector(x, last_size(name, x), 0.8, 1.2)
end

-- Operator -> how each of its inputs from the second on is drawn.
local DRAWN = {
  Conv = { kernel },
  ConvTranspose = { kernel },
  MatMul = { square },
  Gemm = { square },
  BatchNormalization = {
    scale_of_channels, shift_of_channels, shift_of_channels, scale_of_channels,
  },
  InstanceNormalization = { scale_of_channels, shift_of_channels },
  GroupNormalization = { scale_of_channels, shift_of_channels },
  LayerNormalization = { scale_of_last },
  RMSNormalization = { scale_of_last },
  PRelu = { scale_of_last },
}

-- Inputs that are given by name are not drawn.
local function is_named(op, attributes, place)
  for key in host.pairs(attributes) do
    if type(key) == "string" and host.input(op, key) == place - 1 then
      return true
    end
  end
  return false
end

local function completed(name, draw)
  local op = host.op(name)
  local build = builder.g[name]
  return function(...)
    local inputs = { ... }
    local count, attributes = select("#", ...), {}
    if count > 0 and type(inputs[count]) == "table" and #inputs[count] == 0 then
      for key, value in host.pairs(inputs[count]) do
        attributes[key] = value
      end
      inputs[count], count = nil, count - 1
    end
    if not host.is_handle(inputs[1]) then
      return build(...)
    end
    for k, make in ipairs(draw) do
      if inputs[k + 1] == nil and not is_named(op, attributes, k + 1) then
        inputs[k + 1] = make(name, inputs[1], attributes)
        count = math.max(count, k + 1)
      end
    end
    inputs[count + 1] = attributes
    return build(table.unpack(inputs, 1, count + 1))
  end
end

local functions = {}

-- The g of tests: that of model scripts, except for operators whose weights are drawn.
local g = setmetatable({}, {
  __index = function(_, name)
    if functions[name] == nil and DRAWN[name] and host.op(name) then
      functions[name] = completed(name, DRAWN[name])
    end
    return functions[name] or builder.g[name]
  end,
  __newindex = function()
    host.fail(0, "g cannot be changed")
  end,
  __metatable = false,
})

-- ---- the graph ----

local function add_output(name, value)
  if not host.is_handle(value) then
    host.fail(0, "graph: expected values to be returned, found " .. check.show(value))
  end
  host.output_value(name, value)
end

---Builds the graph of a test in the builder at work: values that its function returns are the
---outputs, in order, or by the names of a table.
---@param test table what kinds/test.lua made
function M.build(test)
  local inputs = {}
  for k, input in ipairs(test.inputs) do
    inputs[k] = builder.g.input(input.name, input.dtype, input.shape)
  end
  local returned = table.pack(test.graph(g, table.unpack(inputs)))
  if returned.n == 1 and type(returned[1]) == "table" then
    for name, value in host.pairs(returned[1]) do
      add_output(host.tostring(name), value)
    end
  else
    for k = 1, returned.n do
      add_output(returned.n == 1 and "output" or "output_" .. k, returned[k])
    end
  end
  if host.graph_output_count() == 0 then
    host.fail(0, "graph: expected values to be returned, found nothing")
  end
end

return M

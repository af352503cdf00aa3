-- SPDX-License-Identifier: Apache-2.0
-- The builder `g`: every operator as a function (g.Conv, g.Relu ...), inputs and outputs, constants
-- drawn from a seed, helpers for common layers, and the words of passes. Model scripts build a new
-- graph; rewrites and passes get `g` for the graph that they change.
local host, import = ...
local check = import "check"
local sandbox = import "sandbox"
local schema = import "schema"

local M = {}

local functions_of -- operator name -> function, made when it is first asked for

-- ---- constants ----

local DRAW_KEYS = schema.keys "drawn"

-- A shape with keys beside it: g.weight { 64, 3, 7, 7, name = "stem" }.
local function read_draw(what, spec)
  check.type(0, what, spec, "table")
  check.keys(0, what, spec, DRAW_KEYS, true)
  local shape = {}
  for k, size in ipairs(spec) do
    shape[k] = size
  end
  return shape, spec
end

local function constant_word(kind, what, first, second)
  return function(spec)
    local shape
    shape, spec = read_draw(what, spec)
    return host.draw(kind, shape, spec.dtype, spec.name, spec[first[1]] or first[2],
      spec[second[1]] or second[2])
  end
end

-- He et al., "Delving Deep into Rectifiers" (2015): deviation sqrt(gain / fan_in), so that values
-- keep their size through layers with a Relu. The layout is [out, in, ...], as Conv and Gemm with
-- transB have it.
local function weight(spec)
  local shape
  shape, spec = read_draw("g.weight", spec)
  local fan_in = spec.fan_in
  if not fan_in then
    fan_in = 1
    for k = #shape > 1 and 2 or 1, #shape do
      fan_in = fan_in * check.type(0, "g.weight: size", shape[k], "integer")
    end
  end
  local deviation = spec.std or math.sqrt((spec.gain or 2) / math.max(fan_in, 1))
  return host.draw("normal", shape, spec.dtype, spec.name, spec.mean or 0, deviation)
end

-- ---- the functions of g that are not operators ----

local g = {}

function g.input(name, dtype, shape)
  return host.input_value(name, dtype, shape)
end

function g.output(name, value)
  host.output_value(name, value)
end

function g.constant(value, dtype, name)
  return host.constant_value(value, dtype, name)
end

function g.seed(seed)
  host.seed(seed)
end

function g.name(name)
  host.graph_name(name)
end

g.weight = weight
g.normal = constant_word("normal", "g.normal", { "mean", 0 }, { "std", 1 })
g.uniform = constant_word("uniform", "g.uniform", { "low", 0 }, { "high", 1 })
g.fill = constant_word("fill", "g.fill", { "value", 0 }, { "value", 0 })
g.zeros = constant_word("fill", "g.zeros", { "value", 0 }, { "value", 0 })
g.ones = constant_word("fill", "g.ones", { "value", 1 }, { "value", 1 })

-- ---- sums over what broadcasting repeated ----

-- The axes of `from` over which its sum has the sizes of `to`, and how many of them `to` has not;
-- nil where open sizes leave that to the run.
local function repeated_axes(from, to)
  local axes, more = {}, #from - #to
  for k, size in ipairs(from) do
    local wanted = to[k - more]
    if k <= more or wanted == 1 and size ~= 1 then
      axes[#axes + 1] = k - 1
    elseif wanted ~= size and math.type(wanted) ~= "integer" or wanted == "?" then
      return nil
    end
  end
  return axes, more
end

---The sum of `value` over the dimensions in which `like` was repeated to have its shape: what is of
---the shape of `like`.
function g.sum_to(value, like)
  local reduce, axes, more = functions_of.ReduceSum, nil, nil
  if value.shape and like.shape then
    axes, more = repeated_axes(value.shape, like.shape)
  end
  if axes and #axes == 0 then
    return value
  elseif axes and #axes == more then
    return reduce(value, axes, { keepdims = 0 })
  elseif axes then
    local sum = reduce(value, axes, { keepdims = 1 })
    return more > 0 and functions_of.Squeeze(sum, table.move(axes, 1, more, 1, {})) or sum
  end
  local all = functions_of
  local sizes, wanted = all.Shape(value), all.Shape(like)
  local missing = all.Unsqueeze(all.Sub(all.Size(sizes), all.Size(wanted)), { 0 })
  local padded = all.Concat(all.Expand({ 1 }, missing), wanted, { axis = 0 })
  local differing = all.Squeeze(all.NonZero(all.Not(all.Equal(sizes, padded))), { 0 })
  local sum = reduce(value, differing, { keepdims = 1, noop_with_empty_axes = 1 })
  return all.Reshape(sum, wanted, { allowzero = 1 })
end

-- ---- words of passes ----

---All readers of the value `from` read `to` instead, except for those that `to` is computed from.
function g.replace(from, to)
  host.replace_uses(from, to)
end

---Removes a node that nothing reads.
function g.remove(node)
  host.remove_node(node)
end

---@param port string|integer name in the operator's schema, or place from 1
---@param value any nil: left out
function g.set_input(node, port, value)
  host.set_input(node, port, value)
end

function g.set_attribute(node, name, value)
  host.set_attribute(node, name, value)
end

---@param output string|integer name, or place from 1
function g.set_output(output, value)
  host.set_output(output, value)
end

-- ---- helpers ----

local NORM_KEYS = schema.keys "batch_norm"

---Batch norm with statistics as training leaves them: neither scale, bias, mean nor variance is
---trivial.
---@param x table value of shape [N, C, ...]
---@param spec { name: string?, epsilon: number?, gain: number?, var: number? }?
---gain: about what the scale is; var: about what the variance of x is
function g.batch_norm(x, spec)
  spec = spec or {}
  check.type(0, "g.batch_norm", spec, "table")
  check.keys(0, "g.batch_norm", spec, NORM_KEYS, false)
  local channels = x.shape and x.shape[2]
  if math.type(channels) ~= "integer" then
    check.fail(0, "g.batch_norm: the number of channels is not known")
  end
  local gain, var = spec.gain or 1, spec.var or 1
  local function part(suffix)
    return spec.name and spec.name .. "." .. suffix or nil
  end
  return host.add_node(host.op "BatchNormalization", x,
    g.uniform { channels, low = 0.8 * gain, high = 1.2 * gain, name = part "scale" },
    g.normal { channels, std = 0.1 * gain, name = part "bias" },
    g.normal { channels, std = 0.1 * math.sqrt(var), name = part "mean" },
    g.uniform { channels, low = 0.7 * var, high = 1.3 * var, name = part "var" },
    { epsilon = spec.epsilon or 1e-5, name = spec.name })
end

-- ---- g itself ----

local functions = {} -- operator name -> function

local function operator(name)
  if type(name) ~= "string" then
    check.fail(0, "g: expected the name of an operator, found %s", check.show(name))
  end
  local op, hint = host.op(name)
  if not op then
    local names = {}
    for word in host.pairs(g) do
      names[#names + 1] = word
    end
    check.fail(0, "operator '%s' is unknown%s", name, hint ~= "" and hint or host.hint(name, names))
  end
  local function build(...)
    return (host.add_node(op, ...))
  end
  local function build_many(...)
    return host.add_node(op, ...)
  end
  functions[name] = host.output_count(op) == 1 and not select(2, host.output_count(op)) and build
    or build_many
  return functions[name]
end

functions_of = setmetatable({}, {
  __index = function(_, name)
    return functions[name] or operator(name)
  end,
})

local builder = setmetatable({}, {
  __index = function(_, name)
    return g[name] or functions[name] or operator(name)
  end,
  __newindex = function()
    host.fail(0, "g cannot be changed")
  end,
  __metatable = false,
})

---Names of the functions of g that are not operators.
M.names = {}
for name in host.pairs(g) do
  M.names[#M.names + 1] = name
end

---`g` itself, for functions that get it as an argument.
M.g = builder

-- Settings are strings; those that look like a number or a boolean are converted.
local function read_setting(text)
  if text == "true" or text == "false" then
    return text == "true"
  end
  return tonumber(text) or text
end

-- Options that the script has read.
local read = {}

local option_prefix = "" -- "FILE." of --set FILE.NAME=VALUE, for this script alone

---The globals of a model script.
---@param settings table<string, string>
---@param file string name of the script without its extension
function M.environment(settings, file)
  local values, own = {}, {}
  option_prefix = file .. "."
  for name, text in host.pairs(settings) do
    values[name] = read_setting(text)
    if name:sub(1, #option_prefix) == option_prefix then
      own[name:sub(#option_prefix + 1)] = values[name]
    end
  end
  for name, value in host.pairs(own) do
    values[name] = value
  end
  local options = setmetatable({}, {
    __index = function(_, name)
      read[name] = true
      return values[name]
    end,
    __newindex = function()
      host.fail(0, "options cannot be changed")
    end,
    __metatable = false,
  })
  return sandbox.environment({ g = builder, options = options }, "a model script")
end

---Did the script look at the option that the setting `name` is of?
function M.was_read(name)
  return read[name] == true
    or name:sub(1, #option_prefix) == option_prefix and read[name:sub(#option_prefix + 1)] == true
end

-- x + y, x - y, x * y, x / y, x ^ y and -x, for values and numbers.
local function binary(name)
  local op = host.op(name)
  return function(a, b)
    for _, operand in ipairs { a, b } do
      if type(operand) ~= "number" and not host.is_handle(operand) then
        check.fail(0, "%s of values: expected a value or a number, found %s", name,
          check.show(operand))
      end
    end
    local y = host.add_node(op, a, b)
    return y
  end
end

-- Lua makes a boolean of what a comparison returns, so that it cannot be a node.
local function no_order(advice)
  return function()
    host.fail(0, "values have no order while a graph is built: " .. advice
      .. " makes the node that compares them")
  end
end

host.extend_values {
  __add = binary "Add",
  __sub = binary "Sub",
  __mul = binary "Mul",
  __div = binary "Div",
  __pow = binary "Pow",
  __unm = function(x)
    local y = host.add_node(host.op "Neg", x)
    return y
  end,
  __lt = no_order "g.Less(a, b) or g.Greater(a, b)",
  __le = no_order "g.LessOrEqual(a, b) or g.GreaterOrEqual(a, b)",
}

local function add_output(name, value)
  if not host.is_handle(value) then
    host.fail_file("expected the script to return values, found " .. check.show(value))
  end
  host.output_value(name, value)
end

---What the script returned becomes the outputs that it did not name itself: values in order, or
---one table of names and values.
function M.finish(...)
  local values = { ... }
  if #values == 1 and type(values[1]) == "table" then
    for name, value in host.pairs(values[1]) do
      add_output(host.tostring(name), value)
    end
  else
    for k, value in ipairs(values) do
      add_output(#values == 1 and "output" or "output_" .. k, value)
    end
  end
  if host.graph_output_count() == 0 then
    host.fail_file("expected outputs (g.output(name, value), or return values), found none")
  end
end

return M

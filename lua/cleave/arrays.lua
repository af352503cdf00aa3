-- SPDX-License-Identifier: Apache-2.0
-- `nd`: every operator as a function of arrays (nd.Conv, nd.Relu ...), arrays from numbers and
-- files, and functions that are compiled. What is called computes beside the script, until somebody
-- looks at the result.
local host, import = ...
local check = import "check"
local record = import "record"

import "builder" -- values of graphs have their operators from there

local nd = {}
local metatable = host.array_metatable

-- ---- calls ----

-- A function is being traced: arrays that it uses become constants of the graph, once each.
local constants

local function traced_argument(argument)
  if not host.is_array(argument) then
    return argument
  end
  if not constants[argument] then
    constants[argument] = host.trace_constant(argument)
  end
  return constants[argument]
end

local function add_node(op, ...)
  local arguments = table.pack(...)
  for k = 1, arguments.n do
    arguments[k] = traced_argument(arguments[k])
  end
  local named = arguments[arguments.n]
  if type(named) == "table" and #named == 0 then
    local copy = {}
    for key, value in pairs(named) do
      copy[key] = traced_argument(value)
    end
    arguments[arguments.n] = copy
  end
  return host.add_node(op, table.unpack(arguments, 1, arguments.n))
end

local function call(op, ...)
  if constants then
    return add_node(op, ...)
  end
  return host.call_arrays(op, ...)
end

local function operator(name)
  local op, hint = host.op(name)
  if not op then
    error(("nd has no function or operator '%s'%s"):format(name, hint or ""), 3)
  end
  return function(...)
    return call(op, ...)
  end
end

-- ---- arrays ----

---An array with the numbers of a (nested) table, or with one number.
---@param value number|boolean|table
---@param dtype string? int64 if all numbers are integers, else float32
function nd.array(value, dtype)
  return host.array(value, dtype)
end

---@param shape integer[]
---@param dtype string? float32
function nd.zeros(shape, dtype)
  return host.array_zeros(shape, dtype or "float32")
end

---An array of one number everywhere.
function nd.full(shape, value, dtype)
  local one = host.array(value, dtype or "float32")
  return #shape == 0 and one or call(host.op "Expand", one, host.array(shape, "int64"))
end

function nd.ones(shape, dtype)
  return nd.full(shape, 1, dtype)
end

---An array from a file of NumPy (.npy).
function nd.load(path)
  return host.array_load(path)
end

---Waits until all calls have run; an error of one of them that nobody saw is raised.
function nd.wait()
  host.arrays_wait()
end

---Is this an array?
function nd.is_array(value)
  return host.is_array(value)
end

---How many calls there were, how many operators were compiled for them, and the bytes of arrays
---that live.
---@return { calls: integer, compiled: integer, bytes: integer }
function nd.count()
  local calls, compiled, bytes = host.arrays_count()
  return { calls = calls, compiled = compiled, bytes = bytes }
end

local methods = {}

---Sizes, as a list.
function methods:shape()
  return host.array_shape(self)
end

function methods:dtype()
  return host.array_dtype(self)
end

---The number of elements.
function methods:count()
  return host.array_count(self)
end

---All elements in one list, row-major. Waits, as all that follow do.
function methods:elements()
  return host.array_elements(self)
end

---The elements as tables in tables; of a scalar, its number.
function methods:table()
  local shape, elements, at = host.array_shape(self), host.array_elements(self), 0
  local function level(depth)
    if depth > #shape then
      at = at + 1
      return elements[at]
    end
    local list = {}
    for k = 1, shape[depth] do
      list[k] = level(depth + 1)
    end
    return list
  end
  return level(1)
end

---The number of an array with one element.
function methods:item()
  if host.array_count(self) ~= 1 then
    error(("item: expected an array of one element, found %d"):format(host.array_count(self)), 2)
  end
  return host.array_elements(self)[1]
end

---Writes a file of NumPy (.npy).
function methods:save(path)
  host.array_save(self, path)
end

function methods:wait()
  host.array_wait(self)
  return self
end

metatable.__index = function(_, name)
  local method = methods[name]
  if not method then
    error(("an array has no method '%s'"):format(tostring(name)), 2)
  end
  return method
end
metatable.__name = "array"
metatable.methods = methods

local MAX_SHOWN = 8

function metatable.__tostring(array)
  local count = host.array_count(array)
  local shown = host.array_elements(array, 1, math.min(count, MAX_SHOWN))
  for k, element in ipairs(shown) do
    shown[k] = math.type(element) == "float" and ("%.6g"):format(element) or tostring(element)
  end
  return ("%s[%s] { %s%s }"):format(host.array_dtype(array),
    table.concat(host.array_shape(array), ","), table.concat(shown, ", "),
    count > MAX_SHOWN and ", ..." or "")
end

-- x + y, x - y, x * y, x / y, x ^ y and -x, for arrays, and numbers beside them. In a traced
-- function one of the two may be a value of its graph.
local function binary(name)
  local op = host.op(name)
  return function(a, b)
    return (call(op, a, b))
  end
end

metatable.__add = binary "Add"
metatable.__sub = binary "Sub"
metatable.__mul = binary "Mul"
metatable.__div = binary "Div"
metatable.__pow = binary "Pow"
metatable.__unm = function(x)
  return (call(host.op "Neg", x))
end
host.extend_values {
  __add = metatable.__add, __sub = metatable.__sub, __mul = metatable.__mul,
  __div = metatable.__div, __pow = metatable.__pow, __unm = metatable.__unm,
}

-- ---- compiled functions ----

local function signature(arrays)
  local parts = {}
  for k = 1, arrays.n do
    if not host.is_array(arrays[k]) then
      error(("argument %d of a compiled function: expected an array, found %s")
        :format(k, check.show(arrays[k])), 3)
    end
    parts[k] = host.array_dtype(arrays[k]) .. table.concat(host.array_shape(arrays[k]), ",")
  end
  return table.concat(parts, ";")
end

local function trace(body, arrays, has_gradients)
  host.trace_begin()
  local inputs = {}
  for k = 1, arrays.n do
    inputs[k] = host.trace_input(arrays[k])
  end
  constants = {}
  local results = table.pack(pcall(body, table.unpack(inputs, 1, arrays.n)))
  if not results[1] then
    constants = nil
    error(results[2], 0)
  end
  for k = 2, results.n do
    results[k] = traced_argument(results[k])
  end
  constants = nil
  return host.trace_end(has_gradients, table.unpack(results, 2, results.n))
end

-- A function that is traced for each signature of its arguments; `inside` is what it is to a
-- function that is being traced itself, and `recorded` to one that is being recorded.
local function compile(body, has_gradients, inside, recorded)
  local compiled = {}
  return function(...)
    if constants then
      return inside(...)
    elseif recorded and record.is_on() then
      return recorded(...)
    end
    local arrays = table.pack(...)
    local key = signature(arrays)
    if not compiled[key] then
      compiled[key] = trace(body, arrays, has_gradients)
    end
    return host.run_traced(compiled[key], ...)
  end
end

---The function as a model: at the first call with arrays of these types it is run with values of a
---graph in their place, the rule files of `--rules` partition that graph, and from then on the
---model runs. Lua's own conditions and loops are those of the first call; arrays that the function
---uses besides its arguments are constants.
---@generic T: function
---@param body T takes arrays, and returns some
---@return T
function nd.hybrid(body)
  check.type(0, "nd.hybrid", body, "function")
  return compile(body, false, body, body)
end

---A function that returns what `body` returns, and after it the gradients of the first of these (of
---the sum of its elements) with respect to each argument of floating-point numbers. Compiled as by
---nd.hybrid, forward and backward as one model.
---@param body function takes arrays, and returns some
---@return function
function nd.gradient(body)
  check.type(0, "nd.gradient", body, "function")
  return compile(body, true, function()
    error("nd.gradient: not inside of a compiled function", 3)
  end)
end

---Gradients of what a function computes, call by call; see record.lua. Conditions and loops may
---depend on values: each run has the gradients of the calls that it made.
function nd.record(body, parameters, heads)
  if constants then
    error("nd.record: not inside of a compiled function", 2)
  end
  return record.record(body, parameters, heads)
end

nd.pause = record.pause

-- ---- nd itself ----

return setmetatable(nd, {
  __index = function(_, name)
    check.type(0, "nd", name, "string")
    local call_operator = operator(name)
    rawset(nd, name, call_operator)
    return call_operator
  end,
})

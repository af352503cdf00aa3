-- SPDX-License-Identifier: Apache-2.0
-- nd.record: the calls that a function makes are noted while they run. Those through which the
-- result depends on some arrays become a graph with gradients, which is compiled once for each form
-- that it takes.
local host, import = ...
local check = import "check"

local M = {}

-- Graphs that are kept; at the next one all are dropped, so that a program whose calls differ each
-- time does not fill the memory.
local MAX_KEPT = 64

local calls -- that were noted, in order; nil if nothing is recorded
local kept, kept_count = {}, 0

---Are calls noted now?
function M.is_on()
  return calls ~= nil
end

-- Tables are copied: the script may change them later.
local function copy(argument)
  if type(argument) ~= "table" then
    return argument
  end
  local result = {}
  for key, value in pairs(argument) do
    result[key] = copy(value)
  end
  return result
end

---Calls an operator and notes it.
function M.call(op, ...)
  local results = table.pack(host.call_arrays(op, ...))
  local arguments = table.pack(...)
  for k = 1, arguments.n do
    arguments[k] = copy(arguments[k])
  end
  calls[#calls + 1] = { op = op, arguments = arguments, results = results }
  return table.unpack(results, 1, results.n)
end

-- All arrays among the arguments of a call: inputs by position, and by name in its last table.
local function each_array(arguments, visit)
  for k = 1, arguments.n do
    if host.is_array(arguments[k]) then
      visit(arguments[k])
    elseif type(arguments[k]) == "table" then
      for _, value in pairs(arguments[k]) do
        if host.is_array(value) then
          visit(value)
        end
      end
    end
  end
end

-- The calls on the ways from `parameters` to `loss`, in order, and the set of arrays that the loss
-- depends on.
local function find_ways(noted, parameters, loss)
  local depends, leads = {}, { [loss] = true }
  for _, parameter in ipairs(parameters) do
    depends[parameter] = true
  end
  local forward, ways = {}, {}
  for _, call in ipairs(noted) do
    local is_reached = false
    each_array(call.arguments, function(array)
      is_reached = is_reached or depends[array]
    end)
    -- What is drawn is like an array from elsewhere: the graph must not draw again.
    if is_reached and not host.op_draws(call.op) then
      forward[#forward + 1] = call
      for k = 1, call.results.n do
        depends[call.results[k]] = true
      end
    end
  end
  for at = #forward, 1, -1 do
    local call, is_needed = forward[at], false
    for k = 1, call.results.n do
      is_needed = is_needed or leads[call.results[k]]
    end
    if is_needed then
      table.insert(ways, call)
      each_array(call.arguments, function(array)
        leads[array] = true
      end)
    end
  end
  local ordered = {}
  for at = #ways, 1, -1 do
    table.insert(ordered, ways[at])
  end
  return ordered, leads
end

-- ---- the form of a graph: equal texts, equal graphs ----

local function print_argument(text, argument, number_of)
  if host.is_array(argument) then
    text[#text + 1] = "#" .. number_of(argument)
  elseif type(argument) == "table" then
    local keys, values = {}, {}
    for key, value in pairs(argument) do
      local printed = ("%q"):format(key)
      keys[#keys + 1] = printed
      values[printed] = value
    end
    table.sort(keys)
    text[#text + 1] = "{"
    for _, key in ipairs(keys) do
      text[#text + 1] = key .. "="
      print_argument(text, values[key], number_of)
    end
    text[#text + 1] = "}"
  else
    text[#text + 1] = ("%q"):format(argument)
  end
end

-- The text of the graph, and its inputs: parameters first, then arrays from elsewhere.
local function describe(ways, parameters, loss)
  local numbers, count, inputs, text = {}, 0, {}, { #parameters .. ":" }
  local function number(array)
    count = count + 1
    numbers[array] = count
    return count
  end
  local function number_of(array)
    if not numbers[array] then
      number(array)
      inputs[#inputs + 1] = array
      text[#text + 1] = ("%s[%s]"):format(host.array_dtype(array),
        table.concat(host.array_shape(array), ","))
    end
    return numbers[array]
  end
  for _, parameter in ipairs(parameters) do
    number_of(parameter)
  end
  for _, call in ipairs(ways) do
    text[#text + 1] = tostring(call.op)
    for k = 1, call.arguments.n do
      print_argument(text, call.arguments[k], number_of)
    end
    for k = 1, call.results.n do
      number(call.results[k])
    end
  end
  text[#text + 1] = "->" .. number_of(loss)
  return table.concat(text, " "), inputs
end

-- ---- the graph ----

local function values_for(argument, values)
  if host.is_array(argument) then
    return values[argument]
  elseif type(argument) ~= "table" then
    return argument
  end
  local result = {}
  for key, value in pairs(argument) do
    result[key] = values_for(value, values)
  end
  return result
end

local function compile(ways, inputs, parameter_count, loss)
  host.trace_begin()
  local values = {}
  for _, input in ipairs(inputs) do
    values[input] = host.trace_input(input)
  end
  for _, call in ipairs(ways) do
    local arguments = { n = call.arguments.n }
    for k = 1, arguments.n do
      arguments[k] = values_for(call.arguments[k], values)
    end
    local results = table.pack(host.add_node(call.op, table.unpack(arguments, 1, arguments.n)))
    for k = 1, call.results.n do
      values[call.results[k]] = results[k]
    end
  end
  return host.trace_end(parameter_count, values[loss])
end

-- Gradients of `loss` by distinct arrays that it depends on.
local function differentiate(ways, parameters, loss)
  local text, inputs = describe(ways, parameters, loss)
  if not kept[text] then
    local compiled = compile(ways, inputs, #parameters, loss)
    if kept_count >= MAX_KEPT then
      kept, kept_count = {}, 0
    end
    kept[text], kept_count = compiled, kept_count + 1
  end
  return { select(2, host.run_traced(kept[text], table.unpack(inputs))) }
end

-- ---- what scripts call ----

local function check_parameters(parameters)
  check.type(0, "nd.record: the second argument", parameters, "table")
  for k, parameter in ipairs(parameters) do
    if not host.is_array(parameter) or not host.array_dtype(parameter):find "float" then
      local found = host.is_array(parameter) and "one of " .. host.array_dtype(parameter)
        or check.show(parameter)
      error(("nd.record: parameter %d: expected an array of floating-point numbers, found %s")
        :format(k, found), 3)
    end
  end
end

-- Runs with calls noted or not; the state before comes back, also after an error.
local function run_with(noted, body)
  local before = calls
  calls = noted
  local results = table.pack(pcall(body))
  calls = before
  if not results[1] then
    error(results[2], 0)
  end
  return results
end

---Runs a function, and returns what it returns, and after it a list with the gradient of the first
---result (of the sum of its elements) with respect to each array of `parameters`. What the result
---does not depend on has a gradient of zeros.
---@param body function without arguments
---@param parameters table arrays of floating-point numbers
function M.record(body, parameters)
  check.type(0, "nd.record", body, "function")
  check_parameters(parameters)
  if calls then
    error("nd.record: not inside of another nd.record", 2)
  end
  local noted = {}
  local results = run_with(noted, body)
  local loss = results[2]
  if not host.is_array(loss) then
    error(("nd.record: the function has to return an array first, found %s")
      :format(check.show(loss)), 2)
  end
  local ways, leads = find_ways(noted, parameters, loss)
  local distinct, place = {}, {}
  for _, parameter in ipairs(parameters) do
    if leads[parameter] and not place[parameter] then
      distinct[#distinct + 1] = parameter
      place[parameter] = #distinct
    end
  end
  local found = #distinct > 0 and differentiate(ways, distinct, loss) or {}
  local gradients = {}
  for k, parameter in ipairs(parameters) do
    gradients[k] = found[place[parameter]]
      or host.array_zeros(host.array_shape(parameter), host.array_dtype(parameter))
  end
  results[results.n + 1] = gradients
  return table.unpack(results, 2, results.n + 1)
end

---Inside of nd.record: runs a function whose calls are not noted. Gradients do not pass them: their
---results are like arrays from elsewhere.
function M.pause(body)
  check.type(0, "nd.pause", body, "function")
  local results = run_with(nil, body)
  return table.unpack(results, 2, results.n)
end

return M

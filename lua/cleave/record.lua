-- SPDX-License-Identifier: Apache-2.0
-- nd.record: gradients of the calls that a function makes (cleave/array.h notes them).
local host, import = ...
local check = import "check"

local M = {}

local function check_arrays(what, list, is_whole)
  check.type(0, "nd.record: " .. what .. "s", list, "table")
  for k, array in ipairs(list) do
    local known = host.is_array(array) or not is_whole and array == false
    if not known or host.is_array(array) and not host.array_dtype(array):find "float" then
      local found = host.is_array(array) and "one of " .. host.array_dtype(array)
        or check.show(array)
      error(("nd.record: %s %d: expected an array of floating-point numbers, found %s")
        :format(what, k, found), 4)
    end
  end
end

-- What is differentiated: the first result, or as many as there are heads.
local function check_results(results, count)
  local list = {}
  for k = 1, count do
    if not host.is_array(results[k]) then
      error(count == 1
        and ("nd.record: the function has to return an array first, found %s")
          :format(check.show(results[k]))
        or ("nd.record: result %d: expected an array for head %d, found %s")
          :format(k, k, check.show(results[k])), 3)
    end
    list[k] = results[k]
  end
  return list
end

---Runs a function, and returns what it returns, and after it a list with the gradient of the first
---result (of the sum of its elements) with respect to each array of `parameters`. What the result
---does not depend on has a gradient of zeros. Inside of another nd.record the gradients are calls
---of that one, which can be differentiated.
---@param body function without arguments
---@param parameters table arrays of floating-point numbers
---@param heads table? arrays like the first results, as many as are differentiated: the gradient is
---that of the sum of each times its head; false: ones
function M.record(body, parameters, heads)
  check.type(0, "nd.record", body, "function")
  check_arrays("parameter", parameters, true)
  if heads ~= nil then
    check_arrays("head", heads, false)
  end
  local record = host.record_begin()
  local results = table.pack(pcall(body))
  host.record_end(record)
  if not results[1] then
    error(results[2], 0)
  end
  results = table.pack(table.unpack(results, 2, results.n))
  local ends = check_results(results, heads and #heads or 1)
  results[results.n + 1] = host.record_gradient(record, parameters, ends, heads or {})
  return table.unpack(results, 1, results.n + 1)
end

---Inside of nd.record: runs a function whose calls are not noted. Gradients do not pass them: their
---results are like arrays from elsewhere.
function M.pause(body)
  check.type(0, "nd.pause", body, "function")
  host.record_pause(true)
  local results = table.pack(pcall(body))
  host.record_pause(false)
  if not results[1] then
    error(results[2], 0)
  end
  return table.unpack(results, 2, results.n)
end

M.is_on = host.record_is_on

return M

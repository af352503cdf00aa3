-- SPDX-License-Identifier: Apache-2.0
-- The prompt of arrays: how values are shown, and completion of globals, fields of tables, methods
-- of arrays and operators.
local host, import = ...
local complete = import "prompt/complete"
local show = import "prompt/show"

local M = {}

local function names_of(list)
  local names = {}
  for name in pairs(list) do
    if type(name) == "string" then
      names[#names + 1] = name
    end
  end
  return names
end

local source = {}

function source.names()
  return names_of(_G)
end

-- The value of a.b.c is looked up without running code.
function source.fields(path, word)
  local value = _G
  for name in path:gmatch "[%w_]+" do
    value = type(value) == "table" and rawget(value, name) or nil
  end
  if host.is_array(value) then
    return names_of(host.array_metatable.methods)
  end
  local names = type(value) == "table" and names_of(value) or {}
  if value ~= nil and value == _G.nd then
    local operators = host.operators(word)
    table.move(operators, 1, #operators, #names + 1, names)
  end
  return names
end

function source.quoted()
  return {}
end

---Completions of the word that a line ends with: where it begins (from 0), and the words.
function M.complete(line)
  return complete.complete(line, source)
end

---Prints values, a line or more for each.
function M.show(...)
  print(show.lines(function() end, ...))
end

return M

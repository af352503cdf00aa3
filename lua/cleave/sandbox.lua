-- SPDX-License-Identifier: Apache-2.0
-- The closed environment of a script: whitelisted functions, tables that nobody can change, an
-- error for every unknown name. What is not here (io, os, package, debug, load, require,
-- collectgarbage ...) a script cannot reach.
local host = ...

local M = {}

local LONGEST_TEXT = 1024 * 1024
local LONGEST_LIST = 1000000

---A view of a table that cannot be changed; reading an unknown name is an error.
---@param name string for messages
---@param content table<string, any>
function M.freeze(name, content)
  local names = {}
  for key in host.pairs(content) do
    names[#names + 1] = key
  end
  return setmetatable({}, {
    __index = function(_, key)
      local value = content[key]
      if value == nil then
        host.fail(0, string.format("%s has no '%s'%s", name, host.tostring(key),
          type(key) == "string" and host.hint(key, names) or ""))
      end
      return value
    end,
    __newindex = function()
      host.fail(0, name .. " cannot be changed")
    end,
    __metatable = false,
  })
end

---A view of a list that cannot be changed.
function M.list(content)
  return setmetatable({}, {
    __index = content,
    __len = function()
      return #content
    end,
    __newindex = function()
      host.fail(0, "this list cannot be changed")
    end,
    __metatable = false,
  })
end

-- Lists that C walks through without counting steps: no metamethods, and few enough entries.
local function plain_list(list, what)
  if type(list) ~= "table" or getmetatable(list) ~= nil then
    host.fail(0, what .. ": expected a plain list")
  end
  if host.list_size(list) > LONGEST_LIST then
    host.fail(0, string.format("%s: a list of more than %d entries", what, LONGEST_LIST))
  end
end

-- Lua's own insert, remove and move loop in C, unbounded; these loop in Lua, where the budget
-- counts.
local function insert(list, ...)
  local size = host.list_size(list)
  local count = select("#", ...)
  if count == 1 then
    list[size + 1] = (...)
  elseif count == 2 then
    local position, value = ...
    if math.type(position) ~= "integer" or position < 1 or position > size + 1 then
      host.fail(0, "table.insert: position out of bounds")
    end
    for k = size, position, -1 do
      list[k + 1] = list[k]
    end
    list[position] = value
  else
    host.fail(0, "table.insert: expected 2 or 3 arguments")
  end
end

local function remove(list, position)
  local size = host.list_size(list)
  if size == 0 and position == nil then
    return nil
  end
  position = position or size
  if math.type(position) ~= "integer" or position < 1 or position > size + 1 then
    host.fail(0, "table.remove: position out of bounds")
  end
  local value = list[position]
  for k = position, size do
    list[k] = list[k + 1]
  end
  return value
end

local function move(from, first, last, target, to)
  to = to or from
  if target > first and from == to then
    for k = last - first, 0, -1 do
      to[target + k] = from[first + k]
    end
  else
    for k = 0, last - first do
      to[target + k] = from[first + k]
    end
  end
  return to
end

-- Methods of strings (("x"):rep(9)) are looked up in the interpreter's table of string functions.
local native_rep = string.rep
string.find, string.match, string.gmatch, string.gsub =
  host.find, host.match, host.gmatch, host.gsub
string.rep = function(text, count, separator)
  text, count, separator = host.tostring(text), math.tointeger(count) or 0, separator or ""
  local piece = #text + #separator
  if piece == 0 then
    return "" -- Lua's own function would loop `count` times
  end
  if count > 0 and piece * (count + 0.0) > LONGEST_TEXT then
    host.fail(0, string.format("string.rep: a string of more than %d bytes", LONGEST_TEXT))
  end
  return native_rep(text, count, separator)
end
-- No addresses: they differ from run to run.
local native_format = string.format
string.format = function(format, ...)
  local arguments = table.pack(...)
  if string.find(string.gsub(format, "%%%%", ""), "%%[-+ #%d.]*p") then
    host.fail(0, "string.format: '%p' is not available")
  end
  for k = 1, arguments.n do
    local kind = type(arguments[k])
    if kind ~= "string" and kind ~= "number" then
      arguments[k] = kind == "boolean" and arguments[k] or host.tostring(arguments[k])
    end
  end
  return native_format(format, table.unpack(arguments, 1, arguments.n))
end
string.byte = host.byte
string.dump, string.pack, string.unpack, string.packsize = nil, nil, nil, nil

local TEXT = { "byte", "char", "find", "format", "gmatch", "gsub", "len", "lower", "match", "rep",
  "reverse", "sub", "upper" }
local NUMBERS = { "abs", "ceil", "cos", "exp", "floor", "fmod", "huge", "log", "max", "maxinteger",
  "min", "mininteger", "modf", "pi", "sin", "sqrt", "tan", "tointeger", "type", "ult" }
local COROUTINES = {
  close = host.coroutine_close,
  create = host.coroutine_create,
  isyieldable = coroutine.isyieldable,
  resume = host.coroutine_resume,
  running = coroutine.running,
  status = coroutine.status,
  wrap = host.coroutine_wrap,
  yield = host.coroutine_yield,
}

local function pick(source, names)
  local picked = {}
  for _, name in ipairs(names) do
    picked[name] = source[name]
  end
  return picked
end

local LISTS = {
  insert = insert,
  remove = remove,
  move = move,
  pack = table.pack,
  concat = function(list, separator, first, last)
    plain_list(list, "table.concat")
    first, last = first or 1, last or host.list_size(list)
    -- Entries may be after the list's own end.
    host.step((math.tointeger(last) or 0) - (math.tointeger(first) or 0) + 1)
    return table.concat(list, separator, first, last)
  end,
  sort = function(list, less)
    plain_list(list, "table.sort")
    return host.sort(list, less)
  end,
  unpack = function(list, first, last)
    if not host.is_handle(list) then
      plain_list(list, "table.unpack")
    end
    return host.unpack(list, first, last)
  end,
}

-- To the log, with the rule and the node at work.
local function print_line(...)
  local texts = table.pack(...)
  for k = 1, texts.n do
    texts[k] = host.tostring(texts[k])
  end
  host.print(table.concat(texts, " "))
end

local BASE = {
  assert = assert,
  error = error,
  getmetatable = host.getmetatable,
  ipairs = ipairs,
  next = host.next,
  pairs = host.pairs,
  pcall = host.pcall,
  print = print_line,
  rawequal = rawequal,
  rawget = rawget,
  rawlen = rawlen,
  select = select,
  setmetatable = host.setmetatable,
  tonumber = tonumber,
  tostring = host.tostring,
  type = type,
  xpcall = host.xpcall,
  _VERSION = _VERSION,
  coroutine = M.freeze("coroutine", COROUTINES),
  math = M.freeze("math", pick(math, NUMBERS)),
  string = M.freeze("string", pick(string, TEXT)),
  table = M.freeze("table", LISTS),
}

---What every script has: names of functions, and of the fields of libraries.
---@return { functions: string[], libraries: table<string, string[]> }
function M.contents()
  local functions, coroutines, lists = {}, {}, {}
  for name, value in host.pairs(BASE) do
    if type(value) == "function" then
      functions[#functions + 1] = name
    end
  end
  for name in host.pairs(COROUTINES) do
    coroutines[#coroutines + 1] = name
  end
  for name in host.pairs(LISTS) do
    lists[#lists + 1] = name
  end
  return { functions = functions,
    libraries = { coroutine = coroutines, math = NUMBERS, string = TEXT, table = lists } }
end

-- Names that users may try, and the hints for them.
local REFUSED = { "io", "os", "package", "debug", "load", "loadstring", "loadfile", "dofile",
  "require", "collectgarbage", "rawset", "utf8", "warn" }

---The environment of a script: the base functions and `words`.
---@param words table<string, any>
---@param place string what the script is, for messages: "a rule file"
function M.environment(words, place)
  local content, names, refused = {}, {}, {}
  for name, value in host.pairs(BASE) do
    content[name] = value
  end
  for name, value in host.pairs(words) do
    content[name] = value
  end
  for name in host.pairs(content) do
    names[#names + 1] = name
  end
  for _, name in ipairs(REFUSED) do
    refused[name] = true
  end
  return setmetatable({}, {
    __index = function(_, name)
      local value = content[name]
      if value == nil then
        if refused[name] then
          host.fail(0, string.format("'%s' is not available in %s", name, place))
        end
        host.fail(0, string.format("unknown word '%s'%s", name, host.hint(name, names)))
      end
      return value
    end,
    __newindex = function(_, name)
      host.fail(0, string.format("global '%s' is assigned (write 'local %s')", name, name))
    end,
    __metatable = false,
  })
end

return M

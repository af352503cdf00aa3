-- SPDX-License-Identifier: Apache-2.0
-- Checks with messages: every error names the line of the word that it is about, and suggests the
-- nearest valid name.
local host = ...

local M = {}

---Raises an error at a line of the script (0: the line that is running).
---@param line integer
---@param format string
function M.fail(line, format, ...)
  host.fail(line, string.format(format, ...))
end

---The ending of most nouns behind a count: ("%d input%s"):format(count, check.plural(count)).
---@param count integer
---@return string
function M.plural(count)
  return count == 1 and "" or "s"
end

---Keys of a table in a fixed order.
local function sorted_keys(map)
  local keys = {}
  for key in host.pairs(map) do
    keys[#keys + 1] = key
  end
  return keys
end

local sets = setmetatable({}, { __mode = "k" }) -- list of names -> set of them

local function set_of(names)
  local set = sets[names]
  if not set then
    set = {}
    for _, name in ipairs(names) do
      set[name] = true
    end
    sets[names] = set
  end
  return set
end

---Are all keys of `spec` in `allowed`, a list of names that stays as it is? List entries pass when
---`list` is true.
function M.has_only(spec, allowed, list)
  local known = set_of(allowed)
  for key in next, spec do
    if not known[key] and not (list and math.type(key) == "integer") then
      return false
    end
  end
  return true
end

---Refuses keys of `spec` that are not in `allowed`, as has_only finds them.
---@param line integer
---@param what string what the table describes, for the message: "op"
function M.keys(line, what, spec, allowed, list)
  if M.has_only(spec, allowed, list) then
    return
  end
  local known = set_of(allowed)
  for _, key in ipairs(sorted_keys(spec)) do
    if math.type(key) == "integer" then
      if not list then
        M.fail(line, "%s takes named keys, found list entry %d", what, key)
      end
    elseif type(key) ~= "string" then
      M.fail(line, "%s has a key of type %s", what, type(key))
    elseif not known[key] then
      M.fail(line, "%s has no key '%s'%s", what, key, host.hint(key, allowed))
    end
  end
end

---Text of a value for messages.
function M.show(value)
  if type(value) == "string" then
    return "'" .. value .. "'"
  end
  if type(value) == "table" or type(value) == "function" then
    return "a " .. host.tostring(value)
  end
  if value == nil then
    return "nothing"
  elseif value ~= value then
    return "not a number" -- the sign that Lua shows depends on the machine
  end
  return host.tostring(value)
end

---Refuses a value of another type.
function M.type(line, what, value, wanted)
  local found = type(value)
  if wanted == "integer" then
    if math.type(value) ~= "integer" then
      M.fail(line, "%s: expected an integer, found %s", what, M.show(value))
    end
  elseif found ~= wanted then
    M.fail(line, "%s: expected a %s, found %s", what, wanted, M.show(value))
  end
  return value
end

---A name of a rule, ruleset, option or label: letters, digits, '_', '-', '.'.
function M.name(line, what, value)
  M.type(line, what, value, "string")
  if #value > 63 or not host.match(value, "^[%w_][%w_.%-]*$") then
    M.fail(line, "%s: '%s' is not a name "
      .. "(letters, digits, '_', '-' and '.', at most 63)", what, value)
  end
  return value
end

---A copy of data that a script may still change; opaque words stay what they are. Bounded in depth.
function M.copy(line, value, depth)
  depth = depth or 0
  if type(value) ~= "table" or getmetatable(value) ~= nil then
    return value
  end
  if depth > 8 then
    M.fail(line, "tables are nested more than 8 deep")
  end
  local copy = {}
  for key, item in next, value do
    copy[key] = M.copy(line, item, depth + 1)
  end
  return copy
end

---Number of list entries when the keys are 1 .. n, and nothing else; nil otherwise.
function M.list_length(value)
  local count = 0
  for _ in next, value do
    count = count + 1
  end
  return #value == count and count or nil
end

return M

-- SPDX-License-Identifier: Apache-2.0
-- Options of a rule file: declared with a default, a description and a range, and set from outside
-- by name. An option may stand for its value wherever a rule expects plain data; callbacks get all
-- values as a table.
local host, import = ...
local check = import "check"
local sandbox = import "sandbox"
local schema = import "schema"

local M = {}

-- option word -> { kind, default, doc, range, line, value }; the words themselves are empty and
-- frozen.
local declared = {}
local all = {} -- the same descriptions, in the order of the file

local OPTION = {
  __newindex = function()
    host.fail(0, "an option cannot be changed")
  end,
  __tostring = function()
    return "option"
  end,
  __metatable = false,
}

local function in_list(value, list)
  for _, item in ipairs(list) do
    if item == value then
      return true
    end
  end
  return false
end

local function is_number(value)
  return type(value) == "number" and value == value -- no NaN
end

-- What is wrong with a value, or nil.
local function complaint(option, value)
  local kind, range = option.kind, option.range
  if kind == "boolean" then
    return type(value) ~= "boolean" and "expected true or false"
  elseif kind == "integer" or kind == "number" then
    if not is_number(value) or kind == "integer" and math.type(value) ~= "integer" then
      return "expected " .. (kind == "integer" and "an integer" or "a number")
    end
    if range and (range.min and value < range.min or range.max and value > range.max) then
      return string.format("expected %s to %s", range.min or "-infinity", range.max or "infinity")
    end
  elseif kind == "string" then
    return type(value) ~= "string" and "expected a string"
  elseif kind == "enum" then
    if not in_list(value, range) then
      return "expected one of " .. table.concat(range, ", ")
    end
  elseif kind == "list" then
    if type(value) ~= "table" or not check.list_length(value) then
      return "expected a list of strings"
    end
    for _, item in ipairs(value) do
      if type(item) ~= "string" then
        return "expected a list of strings"
      end
    end
  end
  return nil
end

local function read_choices(line, choices)
  local count = check.list_length(choices)
  if not count or count == 0 then
    check.fail(line, "option.enum: expected a list of the choices as third argument")
  end
  for k, choice in ipairs(choices) do
    if type(choice) ~= "string" then
      check.fail(line, "option.enum: choice %d is %s, expected a string", k, check.show(choice))
    end
  end
  return check.copy(line, choices)
end

local function read_range(line, kind, range)
  if range == nil then
    if kind == "enum" then
      check.fail(line, "option.enum: expected a list of the choices as third argument")
    end
    return nil
  end
  check.type(line, "option." .. kind .. ": range", range, "table")
  if kind == "enum" then
    return read_choices(line, range)
  end
  if kind ~= "integer" and kind ~= "number" then
    check.fail(line, "option.%s takes no range", kind)
  end
  check.keys(line, "option." .. kind .. ": range", range, { "min", "max" }, true)
  local result = { min = range.min or range[1], max = range.max or range[2] }
  for _, bound in ipairs { "min", "max" } do
    if result[bound] ~= nil and not is_number(result[bound]) then
      check.fail(line, "option.%s: %s is %s, expected a number", kind, bound,
        check.show(result[bound]))
    end
  end
  if result.min and result.max and result.min > result.max then
    check.fail(line, "option.%s: min is %s, more than max, which is %s", kind, result.min,
      result.max)
  end
  return result
end

local function declare(kind, default, doc, range)
  local line = host.line()
  local option = {
    kind = kind,
    default = check.copy(line, default),
    doc = check.type(line, "option." .. kind .. ": doc", doc == nil and "" or doc, "string"),
    range = read_range(line, kind, range),
    line = line,
  }
  local wrong = complaint(option, option.default)
  if wrong then
    check.fail(line, "option.%s: default is %s, %s", kind, check.show(default), wrong)
  end
  option.value = option.default
  local word = setmetatable({}, OPTION)
  declared[word] = option
  all[#all + 1] = option
  return word
end

local function parse(option, text)
  if option.kind == "boolean" then
    local words = { ["true"] = true, ["1"] = true, yes = true, on = true,
      ["false"] = false, ["0"] = false, no = false, off = false }
    return words[text]
  elseif option.kind == "integer" then
    return math.tointeger(tonumber(text))
  elseif option.kind == "number" then
    return tonumber(text)
  elseif option.kind == "list" then
    local list = {}
    for item in host.gmatch(text, "[^,%s]+") do
      list[#list + 1] = item
    end
    return list
  end
  return text
end

---The word `option` of rule files.
function M.words()
  local words = {}
  for _, entry in ipairs(schema.options) do
    local kind = entry[1]
    words[kind] = function(default, doc, range)
      return declare(kind, default, doc, range)
    end
  end
  return sandbox.freeze("option", words)
end

---The present value of an option, or the value itself if it is plain.
function M.resolve(value)
  local option = type(value) == "table" and declared[value]
  if option then
    option.read = true
    return option.value
  end
  return value
end

---Rules of libraries get all options.
function M.read_all()
  for _, option in ipairs(all) do
    option.read = true
  end
end

-- A value of an option as --set takes it.
local function show(value)
  if type(value) == "table" then
    local texts = {}
    for k, item in ipairs(value) do
      texts[k] = host.tostring(item)
    end
    return table.concat(texts, ",")
  end
  return host.tostring(value)
end

---The string for --set that stands for a value of the option named `name`; fails at `line` if it
---does not fit.
function M.setting(line, name, value, list)
  local names, option = {}, nil
  for _, entry in ipairs(list) do
    names[#names + 1] = entry.name
    option = entry.name and entry.name == name and entry.option or option
  end
  if not option then
    check.fail(line, "options: '%s' is not an option of this file%s", host.tostring(name),
      #names == 0 and " (it has none)" or type(name) == "string" and host.hint(name, names) or "")
  end
  local wrong = complaint(option, value)
  if wrong then
    check.fail(line, "options: '%s' is %s, %s", name, check.show(value), wrong)
  end
  return show(value)
end

local function show_range(option)
  local range = option.range
  if option.kind == "enum" then
    return table.concat(range, ", ")
  elseif range and range.min and range.max then
    return string.format("%s to %s", range.min, range.max)
  elseif range and range.min then
    return string.format("at least %s", range.min)
  elseif range and range.max then
    return string.format("at most %s", range.max)
  end
  return ""
end

---All options, in the order of the file; without a name: declared, but not in `options` of the
---ruleset.
---@return { name: string?, kind: string, doc: string, line: integer, value: string,
---  default: string, range: string, option: table }[]
function M.list()
  local list = {}
  for k, option in ipairs(all) do
    list[k] = { name = option.name, kind = option.kind, doc = option.doc, line = option.line,
      value = show(option.value), default = show(option.default), range = show_range(option),
      option = option }
  end
  return list
end

-- The setting for an option: the last one of FILE.NAME or else of NAME; nil if there is none. All
-- settings with either name count as used.
local function setting_of(name, file, settings)
  local general, own
  for _, setting in ipairs(settings) do
    if setting.name == file .. "." .. name then
      own, setting.used = setting, true
    elseif setting.name == name then
      general, setting.used = setting, true
    end
  end
  return own or general
end

---Gives the options of a ruleset their values from settings; marks the settings used. Returns the
---table that callbacks get.
---If several files have an option of that name, FILE.NAME sets it in this one alone.
---@param line integer
---@param options table<string, table>
---@param file string name of the rule file without its extension
---@param settings { name: string, value: string, used: boolean }[]
function M.apply(line, options, file, settings)
  local values = {}
  for name, word in host.pairs(options) do
    check.name(line, "options", name)
    local option = declared[word]
    if not option then
      check.fail(line, "options: '%s' is %s, expected option.boolean(...) or its like", name,
        check.show(word))
    end
    option.name = option.name or name
    local setting = setting_of(name, file, settings)
    if setting then
      local value = parse(option, setting.value)
      local wrong = value == nil and "expected " .. option.kind or complaint(option, value)
      if wrong then
        check.fail(option.line, "option '%s': set to '%s', %s%s", name, setting.value, wrong,
          setting.name == name and string.format(" (--set %s.%s=VALUE is for this file alone)",
            file, name) or "")
      end
      option.value = value
    end
    values[name] = option.value
  end
  for name, value in host.pairs(values) do
    if type(value) == "table" then
      values[name] = sandbox.list(value)
    end
  end
  return sandbox.freeze("options", values)
end

return M

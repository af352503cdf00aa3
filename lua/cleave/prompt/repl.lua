-- SPDX-License-Identifier: Apache-2.0
-- The Lua side of the prompt: its words, how values are shown, completions. `api` are the functions
-- that src/script/repl.c gives.
local host, import = ...
local compile = import "compile"
local complete = import "prompt/complete"
local dsl = import "dsl"
local pattern = import "pattern"
local sandbox = import "sandbox"
local show = import "prompt/show"

local M = {}

local MAX_ROWS = 40

local texts = setmetatable({}, { __mode = "k" }) -- answers in words, shown as they are
local matches = setmetatable({}, { __mode = "k" }) -- lists of matches -> names of labels

local HELP = [[
g                     the graph: g.nodes, g.inputs, g.outputs, g.name, g.node_count
g:find(pattern)       matches of a pattern: g:find(op "Conv" >> op "Relu")
n = g.nodes[1]        a name without 'local' stays for the next line
n.op  n.name  n.dtype  n.rank  n.shape  n.attrs.x  n.inputs.W.shape  n.users
why(n)                what every rule did with a node
why "name"            a rule's matches and near misses, or a node by its name
why(n, "rule")        one rule at one node
plan()  rules()       what the rules made of the model; the rules
print(...)            shows values; an expression alone is shown, too
op any constant maybe repeated oneof ...    the words of patterns, as in rule files]]

local function say(text)
  local answer = setmetatable({}, {
    __tostring = function()
      return text
    end,
    __metatable = false,
  })
  texts[answer] = text
  return answer
end

-- ---- showing values ----

-- A list of matches as a table: a row each, a column for every label; without labels, where it
-- begins.
local function show_matches(list)
  local labels = matches[list]
  local rows, widths = { { "", table.unpack(labels) } }, {}
  local last = math.max(#labels, 1) + 2
  rows[1][2] = labels[1] or "begins at"
  rows[1][last] = "nodes"
  for k, match in ipairs(list) do
    if k > MAX_ROWS then
      break
    end
    local row = { host.tostring(k) }
    for i, label in ipairs(labels) do
      row[i + 1] = match[label] ~= nil and host.tostring(match[label]) or "-"
    end
    row[2] = row[2] or host.tostring(match.nodes[1])
    row[last] = host.tostring(#match.nodes)
    rows[#rows + 1] = row
  end
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do
      widths[i] = math.max(widths[i] or 0, #cell)
    end
  end
  local lines = {}
  for _, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do
      cells[i] = cell .. string.rep(" ", widths[i] - #cell)
    end
    lines[#lines + 1] = (table.concat(cells, "  "):gsub(" +$", ""))
  end
  if #list > MAX_ROWS then
    lines[#lines + 1] = string.format("... %d in all", #list)
  end
  return #list == 0 and "no match" or table.concat(lines, "\n")
end

-- What values of the session look like; nil: like any other.
local function describe(value)
  if type(value) == "userdata" then
    return M.api.describe(value)
  elseif type(value) ~= "table" then
    return nil
  elseif matches[value] then
    return show_matches(value)
  elseif pattern.describe(value) then
    return "a pattern (" .. pattern.describe(value).kind .. ")"
  end
  return texts[value]
end

---Values as text, a line or more for each.
function M.show(...)
  return show.lines(describe, ...)
end

-- ---- the graph ----

local function find(_, wanted)
  if wanted == nil then
    host.fail(0, "g:find: expected a pattern, as in g:find(op \"Relu\")")
  end
  local root = pattern.pattern_of(host.line(), wanted, "g:find")
  local list, labels = M.api.find { pattern = compile.pattern(root) }
  matches[list] = labels
  return list
end

-- The graph with `find`: methods of the handle get the handle.
local function graph_with_find(api)
  return setmetatable({}, {
    __index = function(_, key)
      if key == "find" then
        return find
      end
      local handle = api.graph()
      local value = handle[key]
      if type(value) == "function" then
        return function(_, ...)
          return value(handle, ...)
        end
      end
      return value
    end,
    __newindex = function()
      host.fail(0, "a graph cannot be changed")
    end,
    __tostring = function()
      return api.describe(api.graph())
    end,
    __metatable = false,
  })
end

-- ---- the session ----

---The globals of a session: the words of rule files and of the prompt; assignments stay.
function M.environment(api)
  M.api = api
  local words = dsl.words()
  words.include, words.require = nil, nil
  words.g = graph_with_find(api)
  words.print = function(...)
    api.print(M.show(...))
  end
  words.help = function() return say(HELP) end
  words.plan = function() return say(api.plan()) end
  words.rules = function() return say(api.rules()) end
  words.why = function(what, rule) return say(api.why(what, rule)) end
  local base = sandbox.environment(words, "the prompt")
  M.names = {}
  for name in host.pairs(words) do
    M.names[#M.names + 1] = name
  end
  for _, name in ipairs { "assert", "ipairs", "math", "pairs", "string", "table", "tostring",
    "tonumber", "type", "select", "pcall", "error", "next" } do
    M.names[#M.names + 1] = name
  end
  M.globals = setmetatable({}, { __index = base, __metatable = false })
  return M.globals
end

-- ---- completion ----

-- The value of a.b.c, if it can be found without running code.
local function value_of(path)
  local value
  for name in path:gmatch "[%w_]+" do
    if value == nil then
      value = rawget(M.globals, name)
      if value == nil and name == "g" then
        value = M.api.graph()
      end
    elseif type(value) == "userdata" then
      local found, field = pcall(function() return value[name] end)
      value = found and field or nil
    elseif type(value) == "table" then
      value = rawget(value, name)
    end
    if value == nil then
      return nil
    end
  end
  return value
end

local function names_in(value)
  local names = {}
  if type(value) == "userdata" then
    names = M.api.fields(value)
  elseif type(value) == "table" then
    for key in host.pairs(value) do
      if type(key) == "string" then
        names[#names + 1] = key
      end
    end
  end
  return names
end

local source = {}

function source.names()
  local names = table.move(M.names, 1, #M.names, 1, {})
  for name in host.pairs(M.globals) do
    names[#names + 1] = name
  end
  return names
end

function source.fields(path)
  local names = names_in(value_of(path))
  if path == "g" then
    names[#names + 1] = "find"
  end
  return names
end

source.quoted = host.operators

---Completions of the word that a line ends with: where it begins (from 0), and the words.
function M.complete(line)
  return complete.complete(line, source)
end

return M

-- SPDX-License-Identifier: Apache-2.0
-- The words that make patterns. A pattern is an empty, frozen table; what it says is kept here, out
-- of reach, and is checked when a rule uses it, so that messages name the rule.
local host, import = ...
local check = import "check"

local M = {}

local LONGEST = 1000 -- parts of a sequence

local descriptions = {} -- pattern or word -> description
local made = {} -- all patterns, in order: for those that no rule uses

local PATTERN = {
  __newindex = function()
    host.fail(0, "a pattern cannot be changed")
  end,
  __tostring = function(word)
    return M.describe(word).word or "pattern"
  end,
  __metatable = false,
}

local function make(description)
  local word = setmetatable({}, PATTERN)
  descriptions[word] = description
  made[#made + 1] = word
  return word
end

---Description of a pattern, or nil where the value is none.
function M.describe(value)
  return type(value) == "table" and descriptions[value] or nil
end

---All patterns, in the order of making.
function M.all()
  return made
end

local function op(arg)
  local line = host.line()
  if type(arg) == "string" then
    arg = { arg }
  end
  check.type(line, "op", arg, "table")
  return make { kind = "op", line = line, spec = check.copy(line, arg) }
end

-- Texts stand for operators of that name.
local function pattern_of(line, value, what)
  if type(value) == "string" then
    return make { kind = "op", line = line, spec = { value } }
  end
  local description = M.describe(value)
  if not description or description.word then
    check.fail(line, "%s: expected a pattern or the name of an operator, found %s", what,
      check.show(value))
  end
  return value
end

local function value_word(kind)
  return function(arg)
    local line = host.line()
    if type(arg) == "string" then
      arg = { as = arg }
    elseif type(arg) == "number" and kind == "constant" then
      arg = { value = arg }
    elseif arg == nil then
      arg = {}
    end
    check.type(line, kind, arg, "table")
    return make { kind = kind, line = line, spec = check.copy(line, arg) }
  end
end

-- `item` reading `previous`, as a pattern with an input instead of a sequence.
local function reading(previous, item)
  local description = M.describe(item)
  local kind = description.kind
  if kind == "op" then
    return make { kind = "op", line = description.line, spec = description.spec, free = previous }
  elseif kind == "maybe" then
    return make { kind = "oneof", line = description.line, when = description.when,
      children = { reading(previous, description.children[1]), previous } }
  elseif kind == "oneof" then
    local children = {}
    for k, child in ipairs(description.children) do
      children[k] = reading(previous, pattern_of(description.line, child, "oneof"))
    end
    return make { kind = "oneof", line = description.line, children = children }
  end
  return check.fail(description.line, "'>>' with a function: cannot read a %s more than once", kind)
end

-- A sequence as a tree of inputs: what reads it twice then means the same nodes both times.
local function as_inputs(item)
  local description = M.describe(item)
  if description.kind ~= "sequence" then
    return item
  end
  local result = description.children[1]
  for k = 2, #description.children do
    result = reading(result, description.children[k])
  end
  return result
end

-- a >> f with a function f is f(a): a pattern that reads `a` more than once, like x * sigmoid(x).
local function sequence(a, b)
  local line = host.line()
  local children = {}
  a = pattern_of(line, a, "'>>'")
  if type(b) == "function" then
    return pattern_of(line, b(as_inputs(a)), "'>>': what the function returned")
  end
  b = pattern_of(line, b, "'>>'")
  for _, side in ipairs { a, b } do
    local description = M.describe(side)
    if description.kind == "sequence" then
      table.move(description.children, 1, #description.children, #children + 1, children)
    else
      children[#children + 1] = side
    end
  end
  if #children > LONGEST then
    check.fail(line, "'>>': more than %d parts in a row", LONGEST)
  end
  return make { kind = "sequence", line = line, children = children }
end

local function either(a, b)
  local line = host.line()
  local children = {}
  a, b = pattern_of(line, a, "'|'"), pattern_of(line, b, "'|'")
  for _, side in ipairs { a, b } do
    local description = M.describe(side)
    if description.kind == "oneof" and description.joined then
      table.move(description.children, 1, #description.children, #children + 1, children)
    else
      children[#children + 1] = side
    end
  end
  return make { kind = "oneof", line = line, children = children, joined = true }
end

PATTERN.__shr = sequence
PATTERN.__bor = either

local function maybe(arg)
  local line = host.line()
  local when
  if type(arg) == "table" and not M.describe(arg) then
    check.keys(line, "maybe", arg, { "when" }, true)
    when = arg.when
    if #arg ~= 1 then
      check.fail(line, "maybe: expected one pattern, found %d", #arg)
    end
    arg = arg[1]
  end
  return make { kind = "maybe", line = line, when = when,
    children = { pattern_of(line, arg, "maybe") } }
end

-- oneof(a, b), oneof { a, b }; in attributes, oneof { 1, 2 } is one of several values.
local function oneof(...)
  local line = host.line()
  local items = { ... }
  if #items == 1 and type(items[1]) == "table" and not M.describe(items[1]) then
    check.keys(line, "oneof", items[1], {}, true)
    items = check.copy(line, items[1])
  end
  if #items == 0 then
    check.fail(line, "oneof: expected at least one alternative")
  end
  for _, item in ipairs(items) do
    if not (type(item) == "string" or M.describe(item)) then
      return make { kind = "literals", word = "list of values", line = line, values = items }
    end
  end
  local children = {}
  for k, item in ipairs(items) do
    children[k] = type(item) == "string" and item or pattern_of(line, item, "oneof")
  end
  return make { kind = "oneof", line = line, children = children }
end

local function one_of(values)
  local line = host.line()
  check.type(line, "one_of", values, "table")
  return make { kind = "literals", word = "list of values", line = line,
    values = check.copy(line, values) }
end

local function range(spec)
  local line = host.line()
  check.type(line, "range", spec, "table")
  check.keys(line, "range", spec, { "min", "max" }, false)
  return make { kind = "range", word = "range", line = line, min = spec.min, max = spec.max }
end

-- repeated(p), repeated { p, min = 1, max = 4 }
local function repeated(arg)
  local line = host.line()
  local spec = {}
  if type(arg) == "table" and not M.describe(arg) then
    check.keys(line, "repeated", arg, { "min", "max" }, true)
    spec = arg
    arg = arg[1]
  end
  return make { kind = "repeated", line = line, min = spec.min, max = spec.max,
    children = { pattern_of(line, arg, "repeated") } }
end

---The attribute is neither on the node nor has it a default.
M.absent = setmetatable({}, PATTERN)
descriptions[M.absent] = { kind = "absent", word = "test for absence", line = 0 }

function M.words()
  return {
    op = op,
    any = value_word "any",
    constant = value_word "constant",
    maybe = maybe,
    oneof = oneof,
    one_of = one_of,
    range = range,
    repeated = repeated,
    absent = M.absent,
  }
end

---Makes the pattern of an operator's name; used where rules take either.
M.pattern_of = pattern_of

return M

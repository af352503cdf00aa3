-- SPDX-License-Identifier: Apache-2.0
-- The words that make patterns. A pattern is an empty, frozen table; its content is kept here, out
-- of reach of scripts, and is checked when a rule uses it, so that messages name the rule.
local host, import = ...
local check = import "check"
local schema = import "schema"

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

---Description of a pattern, or nil if the value is not a pattern.
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

-- Strings stand for operators of that name.
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
  elseif kind == "output" then
    return make { kind = "output", line = description.line, spec = description.spec,
      which = description.which, children = { reading(previous, description.children[1]) } }
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

-- A sequence as a tree of inputs, if possible: then the function may read the operator at its end
-- at any output. Repeated parts stay a sequence.
local function as_inputs(item)
  local description = M.describe(item)
  if description.kind ~= "sequence" then
    return item
  end
  for k = 2, #description.children do
    if M.describe(description.children[k]).kind == "repeated" then
      return item
    end
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

-- "Conv" >> op "Relu" is a pattern; two strings are not.
local function with_text(sign, combine)
  return function(a, b)
    if M.describe(a) or M.describe(b) or sign == ">>" and type(b) == "function" then
      return combine(a, b)
    end
    return check.fail(host.line(), "%s %s %s: neither side is a pattern (write op %s %s %s)",
      check.show(a), sign, check.show(b), check.show(a), sign, check.show(b))
  end
end

host.extend_texts { __shr = with_text(">>", sequence), __bor = with_text("|", either) }

local function check_one(line, word, list)
  if #list ~= 1 then
    check.fail(line, "%s: expected one pattern, found %d (write %s(a >> b) for one after the "
      .. "other, %s(a | b) for one of them)", word, #list, word, word)
  end
end

local function maybe(arg)
  local line = host.line()
  local when
  if type(arg) == "table" and not M.describe(arg) then
    check.keys(line, "maybe", arg, schema.keys "maybe", true)
    when = arg.when
    check_one(line, "maybe", arg)
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
    local is_test = item == M.absent or item == M.present
    children[k] = (type(item) == "string" or is_test) and item or pattern_of(line, item, "oneof")
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
  check.keys(line, "range", spec, schema.keys "range", false)
  return make { kind = "range", word = "range", line = line, min = spec.min, max = spec.max }
end

-- repeated(p, 1, 4), repeated { p, min = 1, max = 4 }
local function repeating(word)
  return function(arg, min, max)
    local line = host.line()
    local spec = { min = min, max = max }
    if type(arg) == "table" and not M.describe(arg) then
      check.keys(line, word, arg, schema.keys(word), true)
      check_one(line, word, arg)
      spec = arg
      arg = arg[1]
    end
    return make { kind = word, line = line, min = spec.min, max = spec.max,
      children = { pattern_of(line, arg, word) } }
  end
end

-- output(p, "Indices"), output { p, "Indices", as = "indices" }: a certain output of an operator.
local function output(arg, which)
  local line = host.line()
  local spec = {}
  if type(arg) == "table" and not M.describe(arg) then
    spec = check.copy(line, arg)
    arg, which = spec[1], spec[2]
    spec[1], spec[2] = nil, nil
  end
  if type(which) ~= "string" and math.type(which) ~= "integer" then
    check.fail(line, "output: expected the name or number of an output, found %s",
      check.show(which))
  end
  local description = M.describe(pattern_of(line, arg, "output"))
  if description.kind == "sequence" then
    -- of its last operator
    local children = table.move(description.children, 1, #description.children, 1, {})
    children[#children] = make { kind = "output", line = line, spec = spec, which = which,
      children = { children[#children] } }
    return make { kind = "sequence", line = line, children = children }
  end
  return make { kind = "output", line = line, spec = spec, which = which,
    children = { pattern_of(line, arg, "output") } }
end

-- group(a, b, c), group { a, b, c }: side by side, with a value or node in common.
local function group(...)
  local line = host.line()
  local items = { ... }
  if #items == 1 and type(items[1]) == "table" and not M.describe(items[1]) then
    check.keys(line, "group", items[1], {}, true)
    items = check.copy(line, items[1])
  end
  if #items < 2 then
    check.fail(line, "group: expected two patterns or more, found %d", #items)
  end
  local children = {}
  for k, item in ipairs(items) do
    children[k] = pattern_of(line, item, "group")
  end
  return make { kind = "group", line = line, children = children }
end

-- A word without arguments.
local function single(kind, word)
  local result = setmetatable({}, PATTERN)
  descriptions[result] = { kind = kind, word = word, line = 0 }
  return result
end

---As an attribute: not written, whatever its default. As an input: left out.
M.absent = single("absent", "test for absence")
---As an input: given.
M.present = single("present", "test for presence")

function M.words()
  return {
    op = op,
    any = value_word "any",
    constant = value_word "constant",
    maybe = maybe,
    oneof = oneof,
    one_of = one_of,
    range = range,
    repeated = repeating "repeated",
    variadic = repeating "variadic",
    output = output,
    group = group,
    absent = M.absent,
    present = M.present,
  }
end

---Makes a pattern from an operator's name; for places where rules take either.
M.pattern_of = pattern_of

return M

-- SPDX-License-Identifier: Apache-2.0
-- Compiles patterns into the flat list that C turns into a compiled pattern. All checks against the
-- operator list happen here. Indices are those of C: from 0.
local host, import = ...
local attributes = import "compile_attributes"
local check = import "check"
local options = import "options"
local pattern = import "pattern"
local schema = import "schema"
local values = import "compile_value"

local M = {}

local OP_KEYS = schema.keys "op"

-- ---- operators ----

local function op_entries(line, spec)
  local names, ops = {}, {}
  for _, item in ipairs(spec) do
    if type(item) == "table" and not getmetatable(item) then
      table.move(item, 1, #item, #names + 1, names)
    else
      names[#names + 1] = item
    end
  end
  for _, name in ipairs(names) do
    local resolved = options.resolve(name)
    for _, text in ipairs(type(resolved) == "table" and resolved or { resolved }) do
      check.type(line, "op", text, "string")
      local op, hint = host.op(text)
      if not op then
        check.fail(line, "operator '%s' is unknown%s", text, hint)
      end
      ops[#ops + 1] = { op = op, name = text }
    end
  end
  return ops
end

---Operators of a list of names, for `ops` of a region.
function M.operators(line, names)
  return op_entries(line, { names })
end

local function all_commutative(ops)
  for _, entry in ipairs(ops) do
    if not host.is_commutative(entry.op) then
      return false
    end
  end
  return #ops > 0
end

local function port_index(line, ops, name)
  if #ops == 0 then
    check.fail(line, "op: input '%s' is named, but no operator", name)
  end
  local index
  for _, entry in ipairs(ops) do
    local found, hint = host.input(entry.op, name)
    if not found then
      check.fail(line, "operator '%s' has no input '%s'%s", entry.name, name, hint)
    end
    if index and index ~= found then
      check.fail(line, "input '%s' is input %d of '%s' but %d of '%s'", name, index + 1,
        ops[1].name, found + 1, entry.name)
    end
    index = found
  end
  return index
end

local function position_index(line, ops, position)
  for _, entry in ipairs(ops) do
    local count, variadic = host.input_count(entry.op)
    if position > count and not variadic then
      check.fail(line, "operator '%s' has %d input%s, the pattern gives %d", entry.name, count,
        check.plural(count), position)
    end
  end
  return position - 1
end

-- The pattern that an input is given as.
local function input_pattern(line, key, item)
  item = options.resolve(item)
  if type(item) == "number" then
    return { constant = item, line = line }
  elseif type(item) == "string" then
    check.fail(line, "op: input %s is the string '%s' (write any '%s', constant '%s' or op '%s')",
      check.show(key), item, item, item, item)
  end
  local description = pattern.describe(item)
  if description and (description.kind == "absent" or description.kind == "present") then
    return { [description.kind] = true, line = line }
  end
  return pattern.pattern_of(line, item, "op: input " .. check.show(key))
end

local function is_variadic(item)
  local description = pattern.describe(item)
  return description ~= nil and description.kind == "variadic"
end

-- All inputs that are not given: { variadic = true, pattern }, the last of the list.
local function add_variadic(line, result, item, add)
  if #result > 0 and result[#result].variadic then
    check.fail(line, "op: two inputs are variadic, expected one")
  end
  result[#result + 1] = { variadic = true, pattern = add(item) }
end

local function inputs(line, spec, ops, add)
  if spec == nil then
    return {}
  elseif is_variadic(spec) then
    spec = { spec }
  end
  check.type(line, "op: inputs", spec, "table")
  local commutative = all_commutative(ops)
  local result, taken, variadic = {}, {}, {}
  for key, item in host.pairs(spec) do
    local port
    if is_variadic(item) then
      variadic[#variadic + 1] = item
      if type(key) == "string" then
        port_index(line, ops, key)
      end
    else
      if math.type(key) == "integer" then
        port = #ops > 0 and position_index(line, ops, key) or -1
      else
        check.type(line, "op: inputs", key, "string")
        port = port_index(line, ops, key)
      end
      item = input_pattern(line, key, item)
      if commutative and not item.absent then
        port = -1 -- either order
      elseif port >= 0 then
        if taken[port] then
          check.fail(line, "op: input %d is given twice", port + 1)
        end
        taken[port] = true
      end
      result[#result + 1] = { port = port, pattern = add(item) }
    end
  end
  for _, item in ipairs(variadic) do
    add_variadic(line, result, item, add)
  end
  return result
end

local function output_index(line, spec, ops)
  if spec == nil then
    return 0
  end
  if type(spec) == "string" then
    local index
    for _, entry in ipairs(ops) do
      local found, hint = host.output(entry.op, spec)
      if not found then
        check.fail(line, "operator '%s' has no output '%s'%s", entry.name, spec, hint)
      end
      index = found
    end
    return index or check.fail(line, "op: output '%s' is named, but no operator", spec)
  end
  check.type(line, "op: output", spec, "integer")
  if spec < 1 or spec > 64 then
    check.fail(line, "op: output is %d, expected 1 for the first, 2 for the second ...", spec)
  end
  for _, entry in ipairs(ops) do
    local count, variadic = host.output_count(entry.op)
    if spec > count and not variadic then
      check.fail(line, "operator '%s' has %d output%s, the pattern asks for output %d", entry.name,
        count, check.plural(count), spec)
    end
  end
  return spec - 1
end

-- An unknown key of op { } may be an attribute that belongs into attrs.
local function check_op_keys(line, spec, ops)
  if check.has_only(spec, OP_KEYS, true) then
    return
  end
  for key in host.pairs(spec) do
    if type(key) == "string" and ops[1] and host.attribute(ops[1].op, key) then
      local known = false
      for _, name in ipairs(OP_KEYS) do
        known = known or name == key
      end
      if not known then
        check.fail(line, "op has no key '%s' (attributes go into attrs = { %s = ... })", key, key)
      end
    end
  end
  check.keys(line, "op", spec, OP_KEYS, true)
end

local function compile_op(description, add)
  local line, spec = description.line, description.spec
  local ops = op_entries(line, spec)
  check_op_keys(line, spec, ops)
  local node = { kind = "op", line = line, ops = {} }
  for k, entry in ipairs(ops) do
    node.ops[k] = entry.op
  end
  values.add_type(line, "op", spec, node)
  if spec.shared ~= nil then
    node.shared = check.type(line, "op: shared", options.resolve(spec.shared), "boolean")
  end
  node.output = output_index(line, spec.output, ops)
  node.inputs = inputs(line, spec.inputs, ops, add)
  if description.free then
    node.inputs[#node.inputs + 1] = { port = -1, pattern = add(description.free) }
  end
  node.attributes = attributes.tests(line, spec.attrs, ops)
  return node
end

-- ---- what holds others ----

local function bounds(description)
  local low = options.resolve(description.min) or 1
  local high = options.resolve(description.max) or (description.word and 4096 or 64)
  local word = description.word or "repeated"
  check.type(description.line, word .. ": min", low, "integer")
  check.type(description.line, word .. ": max", high, "integer")
  if low < 0 or high < 1 or high < low or high > 4096 then
    check.fail(description.line, "%s: %d to %d times, expected 0 <= min <= max, 1 <= max <= 4096",
      word, low, high)
  end
  return low, high
end

local function is_switched_off(description)
  if description.when == nil then
    return false
  end
  local when = options.resolve(description.when)
  check.type(description.line, "maybe: when", when, "boolean")
  return not when
end

local compile_into

-- A child that is a word without arguments or an operator's name, as a pattern to add.
local function child_of(description, child)
  local inner = pattern.describe(child)
  if inner and (inner.kind == "absent" or inner.kind == "present") then
    return { [inner.kind] = true, line = description.line }
  end
  return pattern.pattern_of(description.line, child, description.kind)
end

local function compile_children(description, add)
  local children, seen = {}, {}
  local off = is_switched_off(description) and description.kind == "oneof"
  for k = off and 2 or 1, #description.children do
    local child = child_of(description, description.children[k])
    local inner = pattern.describe(child)
    local is_off = inner and inner.kind == "maybe" and is_switched_off(inner)
    -- A repeated alternative is left out.
    local is_known = description.kind == "oneof" and seen[child]
    seen[child] = true
    if not is_off and not is_known then
      children[#children + 1] = add(child)
    end
  end
  return children
end

local function compile_output(description, add)
  local line, spec = description.line, description.spec
  check.keys(line, "output", spec, values.KEYS, false)
  local node = { kind = "output", line = line }
  values.add_type(line, "output", spec, node)
  local child = pattern.describe(description.children[1])
  if child.kind ~= "op" then
    check.fail(line, "output: expected an operator, found a %s", child.kind)
  end
  node.output = output_index(line, description.which, op_entries(child.line, child.spec))
  node.children = { add(description.children[1]) }
  return node
end

function compile_into(description, add)
  local kind = description.kind
  if kind == "op" then
    return compile_op(description, add)
  elseif kind == "any" then
    return values.any(description)
  elseif kind == "constant" then
    return values.constant(description)
  elseif kind == "output" then
    return compile_output(description, add)
  elseif kind == "absent" then
    return { kind = kind, line = description.line }
  elseif kind == "sequence" or kind == "maybe" or kind == "oneof" or kind == "group" then
    return { kind = kind, line = description.line, children = compile_children(description, add) }
  elseif kind == "repeated" or kind == "variadic" then
    local low, high = bounds(description)
    return { kind = kind, line = description.line, children = compile_children(description, add),
      min = low, max = high }
  end
  return check.fail(description.line, "expected a pattern")
end

-- Inputs that are not patterns in the file: numbers and tests.
local function describe_item(item)
  if item.constant then
    return { kind = "constant", line = item.line, spec = { value = item.constant, scalar = true } }
  elseif item.absent then
    return { kind = "absent", line = item.line }
  elseif item.present then
    return { kind = "any", line = item.line, spec = {} }
  end
  return nil
end

---Compiles a pattern: { nodes = list, root = index }.
---@param root table the pattern
function M.pattern(root)
  local nodes, indices, depth = {}, {}, 0
  local function add(item)
    local description = pattern.describe(item) or describe_item(item)
    if indices[item] then
      return indices[item]
    end
    depth = depth + 1
    if depth > 64 then
      check.fail(description.line, "the pattern is nested more than 64 deep")
    end
    local node = compile_into(description, add)
    depth = depth - 1
    nodes[#nodes + 1] = node
    indices[item] = #nodes - 1
    description.used = true
    return indices[item]
  end
  return { root = add(root), nodes = nodes }
end

---The fields `pattern` and `where` of a rule. A string as `where` is a condition over the sizes of
---the pattern, which C tests; a function is left to be called.
---@param rule table the rule as written
---@param result table where both go
function M.rule_pattern(rule, result)
  local line, where = rule.line, options.resolve(rule.spec.where)
  if rule.spec.pattern == nil then
    check.fail(line, "no pattern")
  end
  result.pattern = M.pattern(pattern.pattern_of(line, rule.spec.pattern, "pattern"))
  if type(where) == "string" then
    result.pattern.where = values.expression(line, "where", where, true)
    result.pattern.line = line
  elseif where ~= nil and type(where) ~= "function" then
    check.fail(line, "where: expected a function or a condition as a string, found %s",
      check.show(where))
  else
    result.where = where
  end
end

---Checks patterns that no rule used, so that a mistake in them is found too.
function M.unused()
  for _, item in ipairs(pattern.all()) do
    local description = pattern.describe(item)
    if not description.used and description.kind == "op" then
      M.pattern(item)
    end
  end
end

return M

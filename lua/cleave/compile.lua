-- SPDX-License-Identifier: Apache-2.0
-- Patterns as written -> the flat list that C turns into a compiled pattern. All checks against the
-- operator list happen here. Indices are those of C: from 0.
local host, import = ...
local check = import "check"
local options = import "options"
local pattern = import "pattern"

local M = {}

local LITTLE = 1e-5 -- how far a constant may be from a number, relative to it

local OP_KEYS = { "as", "inputs", "attrs", "dtype", "rank", "shape", "shared", "output" }
local VALUE_KEYS = { "as", "dtype", "rank", "shape" }
local CONSTANT_KEYS = {
  "as", "dtype", "rank", "shape", "value", "tolerance", "scalar", "all_equal",
}

-- ---- types ----

local function dtypes(line, what, spec)
  local names = options.resolve(spec)
  if names == nil then
    return nil
  end
  if type(names) == "string" then
    names = { names }
  end
  check.type(line, what .. ": dtype", names, "table")
  local numbers = {}
  for k, name in ipairs(names) do
    check.type(line, what .. ": dtype", name, "string")
    local number, hint = host.dtype(name)
    if not number then
      check.fail(line, "%s: dtype '%s' is unknown%s", what, name, hint)
    end
    numbers[k] = number
  end
  return numbers
end

local function rank(line, what, spec)
  spec = options.resolve(spec)
  if spec == nil then
    return nil
  end
  check.type(line, what .. ": rank", spec, "integer")
  if spec < 0 or spec > 8 then
    check.fail(line, "%s: rank is %d, expected 0 to 8", what, spec)
  end
  return spec
end

local function shape(line, what, spec)
  if spec == nil then
    return nil
  end
  check.type(line, what .. ": shape", spec, "table")
  local length = check.list_length(spec)
  if not length or length > 8 then
    check.fail(line, "%s: shape: expected a list of at most 8 sizes and names", what)
  end
  local dims = {}
  for k, dim in ipairs(spec) do
    dim = options.resolve(dim)
    if type(dim) == "string" then
      dims[k] = (dim == "?" or dim == "_") and {} or { symbol = dim }
    elseif math.type(dim) == "integer" and dim >= 0 then
      dims[k] = { size = dim }
    else
      check.fail(line, "%s: shape: expected a size, a name or '?', found %s", what, check.show(dim))
    end
  end
  return dims
end

local function add_type(line, what, spec, node)
  node.dtypes = dtypes(line, what, spec.dtype)
  node.rank = rank(line, what, spec.rank)
  node.dims = shape(line, what, spec.shape)
  if node.dims then
    if node.rank and node.rank ~= #node.dims then
      check.fail(line, "%s: rank is %d, but shape has %d dimensions", what, node.rank, #node.dims)
    end
    node.rank = #node.dims
  end
  if spec.as ~= nil then
    node.label = check.name(line, what .. ": as", spec.as)
  end
end

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
      check.fail(line, "operator '%s' has %d inputs, the pattern gives %d", entry.name, count,
        position)
    end
  end
  return position - 1
end

local function inputs(line, spec, ops, add)
  if spec == nil then
    return {}
  end
  check.type(line, "op: inputs", spec, "table")
  local commutative = all_commutative(ops)
  local result, taken = {}, {}
  for key, item in host.pairs(spec) do
    local port
    if math.type(key) == "integer" then
      port = #ops > 0 and position_index(line, ops, key) or -1
    else
      check.type(line, "op: inputs", key, "string")
      port = port_index(line, ops, key)
    end
    if commutative then
      port = -1 -- either order
    elseif port >= 0 then
      if taken[port] then
        check.fail(line, "op: input %d is given twice", port + 1)
      end
      taken[port] = true
    end
    item = options.resolve(item)
    if type(item) == "number" then
      item = { number = item, line = line }
    elseif type(item) == "string" then
      check.fail(line, "op: input %s is the text '%s' (write any '%s', constant '%s' or op '%s')",
        check.show(key), item, item, item, item)
    else
      item = pattern.pattern_of(line, item, "op: input " .. check.show(key))
    end
    result[#result + 1] = { port = port, pattern = add(item) }
  end
  return result
end

-- ---- attributes ----

local INTEGER, NUMBER, TEXT, INTEGERS, NUMBERS = 1, 2, 3, 4, 5

local function literal(line, what, kind, kind_name, value)
  value = options.resolve(value)
  if type(value) == "boolean" and kind == INTEGER then
    value = value and 1 or 0
  end
  local fits = (kind == INTEGER or kind == NUMBER) and type(value) == "number"
    or kind == TEXT and type(value) == "string"
    or (kind == INTEGERS or kind == NUMBERS) and type(value) == "table"
  if kind == INTEGER and fits and not math.tointeger(value) then
    fits = false
  end
  if fits and type(value) == "table" then
    fits = check.list_length(value) ~= nil
    for _, item in ipairs(value) do
      fits = fits and type(item) == "number" and (kind == NUMBERS or math.tointeger(item) ~= nil)
    end
  end
  if not fits then
    check.fail(line, "%s: expected a value of kind %s, found %s", what, kind_name,
      check.show(value))
  end
  return value
end

local function attribute_test(line, what, kind, kind_name, value)
  local description = pattern.describe(value)
  if description and description.kind == "absent" then
    return { kind = "absent" }
  end
  if description and description.kind == "range" then
    if kind ~= INTEGER and kind ~= NUMBER then
      check.fail(line, "%s: a range fits numbers, this is a %s", what, kind_name)
    end
    local low, high = options.resolve(description.min), options.resolve(description.max)
    for _, bound in ipairs { low or 0, high or 0 } do
      check.type(line, what .. ": range", bound, "number")
    end
    return { kind = "range", low = low, high = high }
  end
  local values
  if description and (description.kind == "literals" or description.kind == "oneof") then
    values = description.values or description.children
  elseif description then
    check.fail(line, "%s: expected a value, found a pattern", what)
  else
    values = { value }
  end
  local texts = {}
  for k, item in ipairs(values) do
    texts[k] = literal(line, what, kind, kind_name, item)
  end
  return { kind = "equal", values = texts }
end

local function attributes(line, spec, ops)
  if spec == nil then
    return {}
  end
  check.type(line, "op: attrs", spec, "table")
  local tests = {}
  for name, value in host.pairs(spec) do
    check.type(line, "op: attrs: name", name, "string")
    if #ops == 0 then
      check.fail(line, "op: attribute '%s' is named, but no operator", name)
    end
    local kind, kind_name
    for _, entry in ipairs(ops) do
      local found, detail = host.attribute(entry.op, name)
      if not found then
        check.fail(line, "operator '%s' has no attribute '%s'%s", entry.name, name, detail)
      end
      kind, kind_name = found, detail
    end
    local test = attribute_test(line, "attribute '" .. name .. "'", kind, kind_name, value)
    test.name = name
    tests[#tests + 1] = test
  end
  return tests
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
      check.fail(line, "operator '%s' has %d outputs, the pattern asks for output %d", entry.name,
        count, spec)
    end
  end
  return spec - 1
end

-- An unknown key of op { } may be an attribute that belongs into attrs.
local function check_op_keys(line, spec, ops)
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
  add_type(line, "op", spec, node)
  if spec.shared ~= nil then
    node.shared = check.type(line, "op: shared", options.resolve(spec.shared), "boolean")
  end
  node.output = output_index(line, spec.output, ops)
  node.inputs = inputs(line, spec.inputs, ops, add)
  if description.free then
    node.inputs[#node.inputs + 1] = { port = -1, pattern = add(description.free) }
  end
  node.attributes = attributes(line, spec.attrs, ops)
  return node
end

-- ---- values and constants ----

local function compile_value(description)
  local line, spec = description.line, description.spec
  check.keys(line, "any", spec, VALUE_KEYS, false)
  local node = { kind = "value", line = line }
  add_type(line, "any", spec, node)
  return node
end

local function flag(line, what, value)
  value = options.resolve(value)
  if value ~= nil then
    check.type(line, what, value, "boolean")
  end
  return value
end

local function compile_constant(description)
  local line, spec = description.line, description.spec
  check.keys(line, "constant", spec, CONSTANT_KEYS, false)
  local node = { kind = "constant", line = line }
  add_type(line, "constant", spec, node)
  node.scalar = flag(line, "constant: scalar", spec.scalar)
  node.all_equal = flag(line, "constant: all_equal", spec.all_equal)
  local value, tolerance = options.resolve(spec.value), options.resolve(spec.tolerance)
  if value ~= nil then
    node.value = check.type(line, "constant: value", value, "number")
    node.tolerance = math.abs(value) * LITTLE
  end
  if tolerance ~= nil then
    node.tolerance = check.type(line, "constant: tolerance", tolerance, "number")
    if value == nil then
      check.fail(line, "constant: tolerance is given, but no value")
    end
  end
  return node
end

-- ---- what holds others ----

local function bounds(description)
  local low = options.resolve(description.min) or 1
  local high = options.resolve(description.max) or 64
  check.type(description.line, "repeated: min", low, "integer")
  check.type(description.line, "repeated: max", high, "integer")
  if low < 1 or high < low or high > 4096 then
    check.fail(description.line, "repeated: %d to %d times, expected 1 <= min <= max <= 4096", low,
      high)
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

local function compile_children(description, add)
  local children = {}
  local off = is_switched_off(description) and description.kind == "oneof"
  for k = off and 2 or 1, #description.children do
    local child = description.children[k]
    child = pattern.pattern_of(description.line, child, description.kind)
    local inner = pattern.describe(child)
    if not (inner.kind == "maybe" and is_switched_off(inner)) then
      children[#children + 1] = add(child)
    end
  end
  return children
end

function compile_into(description, add)
  local kind = description.kind
  if kind == "op" then
    return compile_op(description, add)
  elseif kind == "any" then
    return compile_value(description)
  elseif kind == "constant" then
    return compile_constant(description)
  elseif kind == "sequence" or kind == "maybe" or kind == "oneof" then
    return { kind = kind, line = description.line, children = compile_children(description, add) }
  elseif kind == "repeated" then
    local low, high = bounds(description)
    return { kind = kind, line = description.line, children = compile_children(description, add),
      min = low, max = high }
  end
  return check.fail(description.line, "expected a pattern")
end

---Compiles a pattern: { nodes = list, root = index }.
---@param root table the pattern
function M.pattern(root)
  local nodes, indices, depth = {}, {}, 0
  local function add(item)
    local description = item.number
        and { kind = "constant", line = item.line, spec = { value = item.number, scalar = true } }
      or pattern.describe(item)
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

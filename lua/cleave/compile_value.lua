-- SPDX-License-Identifier: Apache-2.0
-- Tests of values: dtype, rank, shape with names and arithmetic, conditions over sizes, and the
-- content of constants. Arithmetic is checked here and compiled in C.
local host, import = ...
local check = import "check"
local options = import "options"
local pattern = import "pattern"
local schema = import "schema"

local M = {}

local LITTLE = 1e-5 -- how far a constant may be from a number, relative to it

---Keys of what is a value.
M.KEYS = schema.keys "any"
local CONSTANT_KEYS = schema.keys "constant"

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

---Arithmetic over the names of sizes; `is_condition`: it is true or false.
function M.expression(line, what, text, is_condition)
  check.type(line, what, text, "string")
  local mistake = host.expression(text, is_condition)
  if mistake then
    check.fail(line, "%s: %s", what, mistake)
  end
  return text
end

local function dimension(line, what, dim)
  if dim == "?" or dim == "_" then
    return {}
  elseif type(dim) == "string" then
    if host.match(dim, "^[%a_][%w_]*$") then
      return { symbol = dim }
    end
    return { expression = M.expression(line, what .. ": shape", dim, false) }
  elseif math.type(dim) == "integer" and dim >= 0 then
    return { size = dim }
  end
  return check.fail(line, "%s: shape: expected a size, a name or '?', found %s", what,
    check.show(dim))
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
    dims[k] = dimension(line, what, options.resolve(dim))
  end
  return dims
end

---Tests that any node or value can have.
function M.add_type(line, what, spec, node)
  node.dtypes = dtypes(line, what, spec.dtype)
  node.rank = rank(line, what, spec.rank)
  node.dims = shape(line, what, spec.shape)
  if node.dims then
    if node.rank and node.rank ~= #node.dims then
      check.fail(line, "%s: rank is %d, but shape has %d dimension%s", what, node.rank, #node.dims,
        check.plural(#node.dims))
    end
    node.rank = #node.dims
  end
  if spec.where ~= nil then
    node.where = M.expression(line, what .. ": where", options.resolve(spec.where), true)
  end
  if spec.as ~= nil then
    node.label = check.name(line, what .. ": as", spec.as)
  end
end

-- ---- values and constants ----

function M.any(description)
  local line, spec = description.line, description.spec
  check.keys(line, "any", spec, M.KEYS, false)
  local node = { kind = "value", line = line }
  M.add_type(line, "any", spec, node)
  return node
end

local function flag(line, what, value)
  value = options.resolve(value)
  if value ~= nil then
    check.type(line, what, value, "boolean")
  end
  return value
end

-- Numbers of a list, and the tolerance for a constant, relative to the largest of them.
local function numbers(line, list, node)
  check.type(line, "constant: value", list, "table")
  if not check.list_length(list) or #list == 0 then
    check.fail(line, "constant: value: expected a number, a list of numbers, a range or one_of")
  end
  node.values, node.tolerance = {}, 0
  for k, item in ipairs(list) do
    item = check.type(line, "constant: value", options.resolve(item), "number")
    node.values[k] = item
    node.tolerance = math.max(node.tolerance, math.abs(item) * LITTLE)
  end
end

-- A number, a list of all elements, range { min, max }, or one_of { ... }.
local function constant_value(line, value, node)
  local description = pattern.describe(value)
  if value == nil then
    return
  elseif type(value) == "number" then
    node.value = value
    node.tolerance = math.abs(value) * LITTLE
  elseif description and description.kind == "range" then
    node.low, node.high = options.resolve(description.min), options.resolve(description.max)
    for _, bound in ipairs { node.low or 0, node.high or 0 } do
      check.type(line, "constant: range", bound, "number")
    end
    node.has_range = true
  elseif description and description.kind == "literals" then
    numbers(line, description.values, node)
  elseif description then
    check.fail(line, "constant: value: expected a number, a list of numbers, a range or one_of")
  else
    numbers(line, value, node)
    node.is_list = true
  end
end

function M.constant(description)
  local line, spec = description.line, description.spec
  check.keys(line, "constant", spec, CONSTANT_KEYS, false)
  local node = { kind = "constant", line = line }
  M.add_type(line, "constant", spec, node)
  node.scalar = flag(line, "constant: scalar", spec.scalar)
  node.all_equal = flag(line, "constant: all_equal", spec.all_equal)
  constant_value(line, options.resolve(spec.value), node)
  local tolerance = options.resolve(spec.tolerance)
  if tolerance ~= nil then
    node.tolerance = check.type(line, "constant: tolerance", tolerance, "number")
    if node.value == nil and node.values == nil then
      check.fail(line, "constant: tolerance is given, but no value")
    end
  end
  return node
end

return M

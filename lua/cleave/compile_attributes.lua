-- SPDX-License-Identifier: Apache-2.0
-- Tests of attributes: `attrs = { name = value | range | one_of | absent }` (one_of may have absent
-- among its values), checked against the
-- operators' schemas.
local host, import = ...
local check = import "check"
local options = import "options"
local pattern = import "pattern"

local M = {}

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
  if not fits or pattern.describe(value) then
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
  local texts, or_absent = {}, false
  for _, item in ipairs(values) do
    if item == pattern.absent then
      or_absent = true
    else
      texts[#texts + 1] = literal(line, what, kind, kind_name, item)
    end
  end
  if #texts == 0 and or_absent then
    return { kind = "absent" }
  end
  return { kind = "equal", values = texts, or_absent = or_absent }
end

---Tests of the attributes that `spec` names, for all of `ops`: { op, name } each.
function M.tests(line, spec, ops)
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

return M

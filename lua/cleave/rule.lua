-- SPDX-License-Identifier: Apache-2.0
-- What the kinds of rules (kinds/<word>.lua) share when they compile: typed fields, and the head of
-- a rule. A kind is a module that returns { word, compile }: `compile(rule)` takes { kind, name,
-- line, spec } and returns the plain table that src/script/rules/compile.c reads, or nil for a
-- test.
local _, import = ...
local check = import "check"
local options = import "options"

local M = {}

---A field of a rule, options resolved; nil if it is not given.
function M.optional(rule, key, wanted)
  local value = options.resolve(rule.spec[key])
  if value ~= nil then
    check.type(rule.line, key, value, wanted)
  end
  return value
end

---An integer field between bounds.
function M.integer(rule, key, fallback, low, high)
  local value = M.optional(rule, key, "integer") or fallback
  if value < low or value > high then
    check.fail(rule.line, "%s is %d, expected %d to %d", key, value, low, high)
  end
  return value
end

---A number field, not negative; 0 if it is not given.
function M.amount(rule, key)
  local value = M.optional(rule, key, "number") or 0
  if not (value >= 0 and value < math.huge) then
    check.fail(rule.line, "%s is %s, expected a number from 0", key, check.show(value))
  end
  return value
end

---Attributes that the backend gets, options resolved: names with numbers, texts, booleans, lists.
function M.attributes(rule)
  local given = M.optional(rule, "attributes", "table") or {}
  local result = {}
  for key, value in next, given do
    result[key] = options.resolve(value)
  end
  return result
end

---The name of a library's rule, or nil if the field is not given.
function M.of_library(rule, key)
  local name = M.optional(rule, key, "string")
  if name then
    options.read_all()
  end
  return name
end

---Compiles the fields that every rule has.
function M.head(rule)
  return {
    kind = rule.kind,
    name = rule.name,
    line = rule.line,
    doc = M.optional(rule, "doc", "string") or "",
    priority = M.integer(rule, "priority", 0, -0x7fffffff, 0x7fffffff),
  }
end

return M

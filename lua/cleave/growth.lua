-- SPDX-License-Identifier: Apache-2.0
-- How regions and fusions grow: the fields that `region` and `fuse` have in common.
local _, import = ...
local check = import "check"
local compile = import "compile"
local options = import "options"
local rules = import "rule"

local M = {}

local WAYS = { "ops", "supported", "selector", "partitioner" }
local MEASURES = { "once", "review", "min_nodes", "min_flops", "min_bytes_saved", "min_gain" }

-- The one of the ways to grow that the rule uses, or nil.
local function way_of(rule)
  local ways = {}
  for _, way in ipairs(WAYS) do
    if rule.spec[way] ~= nil then
      ways[#ways + 1] = way
    end
  end
  if #ways > 1 then
    check.fail(rule.line,
      "has both %s and %s, expected one of ops, supported, selector and partitioner", ways[1],
      ways[2])
  end
  return ways[1]
end

---Does the rule say how to grow?
function M.is_given(rule)
  return way_of(rule) ~= nil
end

---Fails if the rule has a field of growth, which does not go with `other`.
function M.refuse(rule, other)
  for _, list in ipairs { WAYS, MEASURES } do
    for _, key in ipairs(list) do
      if rule.spec[key] ~= nil then
        check.fail(rule.line, "has both %s and %s", other, key)
      end
    end
  end
end

---Compiles the fields of growth into `result`.
function M.compile(rule, result)
  result.mode = way_of(rule) or "backend"
  if result.mode == "partitioner" and rule.spec.review ~= nil then
    check.fail(rule.line,
      "has both partitioner and review: a partitioner reviews its regions itself")
  end
  if result.mode == "ops" then
    local names = options.resolve(rule.spec.ops)
    check.type(rule.line, "ops", names, "table")
    result.ops = {}
    for k, entry in ipairs(compile.operators(rule.line, names)) do
      result.ops[k] = entry.op
    end
  end
  result.supported = rules.optional(rule, "supported", "function")
  result.selector = rules.optional(rule, "selector", "function")
  result.once = rules.optional(rule, "once", "boolean")
  if result.once and result.mode ~= "selector" then
    check.fail(rule.line, "has once without selector: only a selector grows from seeds")
  end
  result.review = rules.optional(rule, "review", "function")
  result.min_nodes = rules.integer(rule, "min_nodes", 0, 0, 0x7fffffff)
  result.min_flops = rules.amount(rule, "min_flops")
  result.min_bytes_saved = rules.amount(rule, "min_bytes_saved")
  result.min_gain = rules.amount(rule, "min_gain")
end

return M

-- SPDX-License-Identifier: Apache-2.0
-- region "name" { ops | supported | selector | partitioner, review, ... }: what one backend runs in
-- one piece.
local _, import = ...
local check = import "check"
local compile = import "compile"
local options = import "options"
local rules = import "rule"
local schema = import "schema"

local KEYS = schema.keys "region"

-- The one of the five ways to grow that the rule uses.
local function mode_of(rule)
  local modes = {}
  for _, mode in ipairs { "ops", "supported", "selector", "partitioner" } do
    if rule.spec[mode] ~= nil then
      modes[#modes + 1] = mode
    end
  end
  if #modes > 1 then
    check.fail(rule.line,
      "has both %s and %s, expected one of ops, supported, selector and partitioner",
      modes[1], modes[2])
  end
  if modes[1] == "partitioner" and rule.spec.review ~= nil then
    check.fail(rule.line,
      "has both partitioner and review: a partitioner reviews its regions itself")
  end
  return modes[1] or "backend"
end

return {
  word = "region",
  compile = function(rule)
    check.keys(rule.line, "region", rule.spec, KEYS, false)
    local result = rules.head(rule)
    result.mode = mode_of(rule)
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
    result.partitioner = rules.of_library(rule, "partitioner")
    result.review = rules.optional(rule, "review", "function")
    result.min_nodes = rules.integer(rule, "min_nodes", 0, 0, 0x7fffffff)
    result.min_flops = rules.amount(rule, "min_flops")
    result.min_bytes_saved = rules.amount(rule, "min_bytes_saved")
    result.min_gain = rules.amount(rule, "min_gain")
    return result
  end,
}

-- SPDX-License-Identifier: Apache-2.0
-- pass "name" { run }: a function over the whole graph.
local _, import = ...
local check = import "check"
local rules = import "rule"
local schema = import "schema"

local KEYS = schema.keys "pass"

return {
  word = "pass",
  compile = function(rule)
    check.keys(rule.line, "pass", rule.spec, KEYS, false)
    local result = rules.head(rule)
    if rule.spec.run == nil then
      check.fail(rule.line, "no function run")
    end
    result.run = rules.optional(rule, "run", "function")
    return result
  end,
}

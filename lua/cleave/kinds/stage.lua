-- SPDX-License-Identifier: Apache-2.0
-- stage "name" { of | assign }: which nodes run on which machine, by numbers from 0.
local _, import = ...
local check = import "check"
local rules = import "rule"
local schema = import "schema"

local KEYS = schema.keys "stage"

return {
  word = "stage",
  compile = function(rule)
    check.keys(rule.line, "stage", rule.spec, KEYS, false)
    local result = rules.head(rule)
    if (rule.spec.of == nil) == (rule.spec.assign == nil) then
      check.fail(rule.line, rule.spec.of == nil and "no function of or assign"
        or "has both of and assign, expected one of them")
    end
    result.of = rules.optional(rule, "of", "function")
    result.assign = rules.optional(rule, "assign", "function")
    return result
  end,
}

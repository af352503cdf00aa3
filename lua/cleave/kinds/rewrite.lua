-- SPDX-License-Identifier: Apache-2.0
-- rewrite "name" { pattern, where, replace }: what takes the place of each match.
local _, import = ...
local check = import "check"
local compile = import "compile"
local rules = import "rule"
local schema = import "schema"

local KEYS = schema.keys "rewrite"

return {
  word = "rewrite",
  compile = function(rule)
    check.keys(rule.line, "rewrite", rule.spec, KEYS, false)
    local result = rules.head(rule)
    if rule.spec.replace == nil then
      check.fail(rule.line, "no function replace")
    end
    compile.rule_pattern(rule, result)
    result.replace = rules.optional(rule, "replace", "function")
    return result
  end,
}

-- SPDX-License-Identifier: Apache-2.0
-- fuse "name" { pattern, where }: a pattern whose matches become one kernel each; or
-- fuse "name" { ops | supported | selector, review, ... }: sets that grow as regions do.
local _, import = ...
local check = import "check"
local compile = import "compile"
local growth = import "growth"
local rules = import "rule"
local schema = import "schema"

local KEYS = schema.keys "fuse"

return {
  word = "fuse",
  compile = function(rule)
    check.keys(rule.line, "fuse", rule.spec, KEYS, false)
    local result = rules.head(rule)
    if rule.spec.pattern ~= nil then
      growth.refuse(rule, "pattern")
      compile.rule_pattern(rule, result)
    elseif not growth.is_given(rule) then
      check.fail(rule.line, "no pattern, and none of ops, supported and selector")
    elseif rule.spec.where ~= nil then
      check.fail(rule.line, "has where and no pattern: a set that grew is what review sees")
    else
      growth.compile(rule, result)
    end
    result.attributes = rules.attributes(rule)
    return result
  end,
}

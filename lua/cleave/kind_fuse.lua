-- SPDX-License-Identifier: Apache-2.0
-- fuse "name" { pattern, where }: a pattern whose matches become one kernel each.
local _, import = ...
local check = import "check"
local compile = import "compile"
local rules = import "rule"
local schema = import "schema"

local KEYS = schema.keys "fuse"

return {
  word = "fuse",
  compile = function(rule)
    check.keys(rule.line, "fuse", rule.spec, KEYS, false)
    local result = rules.head(rule)
    compile.rule_pattern(rule, result)
    result.attributes = rules.attributes(rule)
    return result
  end,
}

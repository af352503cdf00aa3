-- SPDX-License-Identifier: Apache-2.0
-- pass "name" { run | library }: a function over the whole graph, in Lua or of a loaded library.
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
    if (rule.spec.run == nil) == (rule.spec.library == nil) then
      check.fail(rule.line, rule.spec.run == nil and "no function run"
        or "has both run and library, expected one of them")
    end
    result.run = rules.optional(rule, "run", "function")
    result.library = rules.of_library(rule, "library")
    return result
  end,
}

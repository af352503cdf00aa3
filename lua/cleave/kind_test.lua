-- SPDX-License-Identifier: Apache-2.0
-- test "sentence" { graph, expect, ... }: what a rule file promises about itself.
local _, import = ...
local check = import "check"

local KEYS = { "doc", "graph", "expect", "options", "inputs" }

return {
  word = "test",
  is_test = true, -- its name is a sentence; it makes no rule
  compile = function(rule)
    check.keys(rule.line, "test", rule.spec, KEYS, false)
    check.type(rule.line, "graph", rule.spec.graph, "function")
    if rule.spec.expect ~= nil then
      check.type(rule.line, "expect", rule.spec.expect, "table")
    end
  end,
}

-- SPDX-License-Identifier: Apache-2.0
-- region "name" { ops | supported | selector | partitioner, review, ... }: what one backend runs in
-- one piece.
local _, import = ...
local check = import "check"
local growth = import "growth"
local rules = import "rule"
local schema = import "schema"

local KEYS = schema.keys "region"

return {
  word = "region",
  compile = function(rule)
    check.keys(rule.line, "region", rule.spec, KEYS, false)
    local result = rules.head(rule)
    growth.compile(rule, result)
    result.partitioner = rules.of_library(rule, "partitioner")
    return result
  end,
}

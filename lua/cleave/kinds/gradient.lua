-- SPDX-License-Identifier: Apache-2.0
-- gradient "Operator" { function(g, node, dy) ... end }: builds the gradients of the inputs of a
-- node from those of its outputs; `false` in the place of the function: it carries no gradient.
local host, import = ...
local check = import "check"
local rules = import "rule"
local schema = import "schema"

local KEYS = schema.keys "gradient"
local BESIDES_OUTPUTS = 2 -- parameters: g, node

return {
  word = "gradient",
  list = "gradients",
  compile = function(rule)
    check.keys(rule.line, "gradient", rule.spec, KEYS, true)
    local result = rules.head(rule)
    local op, hint = host.op(rule.name)
    if not op then
      check.fail(rule.line, "operator '%s' is unknown%s", rule.name, hint)
    end
    local apply = rule.spec[1]
    if #rule.spec ~= 1 or apply ~= false and type(apply) ~= "function" then
      check.fail(rule.line,
        "expected one function(g, node, dy), or false for an operator without a gradient, found %s",
        #rule.spec == 1 and check.show(apply) or #rule.spec .. " entries")
    end
    result.ops = { op }
    if apply then
      local info = host.function_info(apply)
      if not info.vararg and #info.parameters <= BESIDES_OUTPUTS then
        check.fail(rule.line, "the function has %d parameter%s, expected (g, node, dy), and "
          .. "one more for each further output", #info.parameters, check.plural(#info.parameters))
      end
      result.apply = apply
      result.outputs = info.vararg and -1 or #info.parameters - BESIDES_OUTPUTS
    end
    return result
  end,
}

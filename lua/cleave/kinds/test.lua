-- SPDX-License-Identifier: Apache-2.0
-- test "sentence" { graph, expect, ... }: what a rule file promises about itself. `compile` checks
-- the test alone; `resolve` checks the names of rules and options once the whole file is known, and
-- leaves plain tables: inputs, settings, expectations. The graph is built when the test runs
-- (test_graph.lua).
local host, import = ...
local check = import "check"
local options = import "options"
local pattern = import "pattern"
local schema = import "schema"

local M = { word = "test", is_test = true } -- its name is a sentence; it makes no rule

local KEYS = schema.keys "test"
local INPUT_KEYS = schema.keys "test_input"
local EQUAL_KEYS = schema.keys "test_equal"
local TOTALS = { "regions", "fusions", "left" } -- counts of the whole plan
local DEFAULT_INPUT = { 1, 3, 8, 8 }
local DEFAULT_GRADIENT_INPUT = { 2, 3 }
local MAX_ORDER = 2 -- of gradients
local MOST = 0x7fffffff
local MAX_INPUTS = 64

-- ---- inputs ----

local function read_input(line, what, spec, dtype)
  check.type(line, what, spec, "table")
  check.keys(line, what, spec, INPUT_KEYS, true)
  local input = { dtype = spec.dtype or dtype, shape = {}, low = spec.low, high = spec.high }
  for k, size in ipairs(spec) do
    input.shape[k] = size
  end
  check.type(line, what .. ": dtype", input.dtype, "string")
  for _, key in ipairs { "low", "high" } do
    if input[key] ~= nil then
      check.type(line, what .. ": " .. key, input[key], "number")
    end
  end
  if (input.low == nil) ~= (input.high == nil) then
    check.fail(line, "%s: low and high go together", what)
  end
  return input
end

-- Inputs are the parameters of `graph` after g, by name or by place; what is not declared is
-- float32 of the default shape; for finite differences, float64 and small.
local function read_inputs(line, graph, spec, is_gradient)
  local dtype = is_gradient and "float64" or "float32"
  local shape = is_gradient and DEFAULT_GRADIENT_INPUT or DEFAULT_INPUT
  local info = host.function_info(graph)
  local parameters, inputs, places = info.parameters, {}, {}
  spec = spec == nil and {} or check.type(line, "inputs", spec, "table")
  for k = 2, #parameters do
    places[parameters[k]] = k - 1
    inputs[k - 1] = { name = parameters[k], dtype = dtype, shape = shape }
  end
  for key, item in host.pairs(spec) do
    local place = key
    if type(key) == "string" then
      place = places[key]
      if not place then
        table.remove(parameters, 1)
        check.fail(line, "inputs: graph has no parameter '%s'%s", key, host.hint(key, parameters))
      end
    end
    local most = info.vararg and MAX_INPUTS or #inputs
    if math.type(place) ~= "integer" or place < 1 or place > most then
      check.fail(line, "inputs: entry %s, but graph takes %d after g", check.show(key), #inputs)
    end
    local input = read_input(line, "inputs: " .. check.show(key), item, dtype)
    input.name = inputs[place] and inputs[place].name or "input_" .. place
    inputs[place] = input
  end
  if not check.list_length(inputs) then
    check.fail(line, "inputs: the numbers are not consecutive")
  end
  return inputs
end

-- ---- one test alone ----

local function read_equal(line, spec, result)
  if type(spec) == "table" then
    check.keys(line, "equal", spec, EQUAL_KEYS, false)
    for _, key in ipairs(EQUAL_KEYS) do
      if spec[key] ~= nil and check.type(line, "equal: " .. key, spec[key], "number") < 0 then
        check.fail(line, "equal: %s is negative", key)
      end
      result[key] = spec[key]
    end
    result.equal = true
  elseif spec ~= nil then
    result.equal = check.type(line, "equal", spec, "boolean")
  end
end

-- true: of the first order; or the highest order.
local function read_gradient(line, spec)
  if spec == nil or spec == false then
    return 0
  end
  local order = spec == true and 1 or check.type(line, "gradient", spec, "integer")
  if order < 1 or order > MAX_ORDER then
    check.fail(line, "gradient is %d, expected true, or an order from 1 to %d", order, MAX_ORDER)
  end
  return order
end

function M.compile(rule)
  local line, spec = rule.line, rule.spec
  check.keys(line, "test", spec, KEYS, false)
  local result = { kind = "test", name = rule.name, line = line, spec = spec, doc = "" }
  if spec.doc ~= nil then
    result.doc = check.type(line, "doc", spec.doc, "string")
  end
  result.graph = check.type(line, "graph", spec.graph, "function")
  result.gradient = read_gradient(line, spec.gradient)
  result.inputs = read_inputs(line, spec.graph, spec.inputs, result.gradient > 0)
  for _, key in ipairs { "expect", "expect_not", "refused", "options" } do
    if spec[key] ~= nil then
      check.type(line, key, spec[key], "table")
    end
  end
  if spec.calibrate ~= nil then
    result.calibrate = check.type(line, "calibrate", spec.calibrate, "boolean")
  end
  read_equal(line, spec.equal, result)
  local runs = result.equal or result.gradient > 0
  if not (spec.expect or spec.expect_not or spec.refused or runs) then
    check.fail(line,
      "nothing is expected: give expect, expect_not, refused, equal = true or gradient = true")
  end
  return result
end

-- ---- with the whole file ----

-- 3, true (at least one), or range { min =, max = }.
local function read_count(line, what, value)
  local description = pattern.describe(value)
  local low, high = value, value
  if value == true then
    low, high = 1, MOST
  elseif value == false then
    low, high = 0, 0
  elseif description and description.kind == "range" then
    low, high = description.min or 0, description.max or MOST
  end
  if math.type(low) ~= "integer" or math.type(high) ~= "integer" or low < 0 or high < low
    or high > MOST then
    check.fail(line, "%s: expected a count, true (at least one) or range { min, max }, found %s",
      what, check.show(value))
  end
  return low, high
end

local function labels_of(rule)
  local labels, compiled = {}, rule.compiled.pattern
  for _, node in ipairs(compiled and compiled.nodes or {}) do
    if node.kind == "op" and node.label then
      labels[#labels + 1] = node.label
    end
  end
  return labels
end

local function contains(list, wanted)
  for _, item in ipairs(list) do
    if item == wanted then
      return true
    end
  end
  return false
end

-- Does any pattern of the file have a node with that label? A part that an option disables is not
-- in the compiled pattern.
local function is_label(name)
  for _, item in ipairs(pattern.all()) do
    local spec = pattern.describe(item).spec
    if spec and spec.as == name then
      return true
    end
  end
  return false
end

-- What a key of `expect` counts: matches of a rule, nodes under a label of a fuse rule, a total of
-- the plan, or an operator in the graph that the rules made.
local function read_subject(line, what, key, rules, names)
  check.type(line, what, key, "string")
  if rules[key] then
    return { what = "rule", rule = key }
  end
  local owner, label = host.match(key, "^(.+)%.([^.]+)$")
  if owner and rules[owner] then
    local labels = labels_of(rules[owner])
    if not contains(labels, label) and not is_label(label) then
      check.fail(line, "%s: rule '%s' labels no node '%s'%s", what, owner, label,
        host.hint(label, labels))
    end
    return { what = "label", rule = owner, label = label }
  end
  if contains(TOTALS, key) then
    return { what = key }
  end
  if host.op(key) then
    return { what = "op", label = key }
  end
  return check.fail(line, "%s: no rule is called '%s'%s", what, key, host.hint(key, names))
end

local function add_expectations(test, rules, names)
  local line, spec, list = test.line, test.spec, {}
  for key, value in host.pairs(spec.expect or {}) do
    local subject = read_subject(line, "expect", key, rules, names)
    subject.low, subject.high = read_count(line, "expect: '" .. key .. "'", value)
    list[#list + 1] = subject
  end
  for k, name in ipairs(spec.expect_not or {}) do
    local subject = read_subject(line, "expect_not: entry " .. k, name, rules, names)
    subject.low, subject.high = 0, 0
    list[#list + 1] = subject
  end
  if spec.expect_not and not check.list_length(spec.expect_not) then
    check.fail(line, "expect_not: expected a list of names, like { 'conv_act' }")
  end
  for name, text in host.pairs(spec.refused or {}) do
    check.type(line, "refused: a key", name, "string")
    if not rules[name] then
      check.fail(line, "refused: no rule is called '%s'%s", name, host.hint(name, names))
    end
    list[#list + 1] = { what = "refused", rule = name, low = 1, high = MOST,
      label = check.type(line, "refused: '" .. name .. "'", text, "string") }
  end
  test.expectations = list
end

---Checks names against the file, and makes the plain lists that C reads: expectations, settings.
---@param test table what `compile` returned
---@param file { declared: table[], option_list: table[] }
function M.resolve(test, file)
  local rules, names = {}, {}
  for _, rule in ipairs(file.declared) do
    rules[rule.name] = rule
    names[#names + 1] = rule.name
  end
  add_expectations(test, rules, names)
  test.settings = {}
  for name, value in host.pairs(test.spec.options or {}) do
    test.settings[#test.settings + 1] = {
      name = name, value = options.setting(test.line, name, value, file.option_list),
    }
  end
end

return M

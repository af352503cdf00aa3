-- SPDX-License-Identifier: Apache-2.0
-- The words of a rule file that name rules: ruleset, fuse, region, test. A rule file returns a
-- ruleset; when it has run, `compile` turns the ruleset into plain tables for C.
local host, import = ...
local check = import "check"
local compile = import "compile"
local options = import "options"
local pattern = import "pattern"
local sandbox = import "sandbox"

local M = {}

local FUSE_KEYS = { "doc", "pattern", "where", "priority", "enabled" }
local REGION_KEYS = {
  "doc", "ops", "supported", "selector", "review", "min_nodes", "priority", "enabled",
}
local TEST_KEYS = { "doc", "graph", "expect", "options", "inputs" }
local RULESET_KEYS = { "name", "backend", "doc", "options" }

local rules = setmetatable({}, { __mode = "k" }) -- rule, test or ruleset word -> description

local WORD = {
  __newindex = function()
    host.fail(0, "a rule cannot be changed")
  end,
  __tostring = function(word)
    return rules[word].kind
  end,
  __metatable = false,
}

local function make(description)
  local word = setmetatable({}, WORD)
  rules[word] = description
  return word
end

-- fuse "name" { ... }: the second call brings the content.
local function named(kind)
  return function(name)
    local line = host.line()
    if kind == "test" then
      check.type(line, kind, name, "string") -- a sentence
    else
      check.name(line, kind, name)
    end
    return function(spec)
      check.type(line, kind .. " '" .. name .. "'", spec, "table")
      return make { kind = kind, name = name, line = line, spec = check.copy(line, spec) }
    end
  end
end

local function ruleset(spec)
  local line = host.line()
  check.type(line, "ruleset", spec, "table")
  return make { kind = "ruleset", line = line, spec = check.copy(line, spec) }
end

---All words of a rule file.
function M.words()
  local words = pattern.words()
  words.option = options.words()
  words.ruleset = ruleset
  words.fuse = named "fuse"
  words.region = named "region"
  words.test = named "test"
  return words
end

-- ---- compiling ----

local function optional(rule, key, wanted)
  local value = options.resolve(rule.spec[key])
  if value ~= nil then
    check.type(rule.line, key, value, wanted)
  end
  return value
end

local function base(rule)
  return {
    kind = rule.kind,
    name = rule.name,
    line = rule.line,
    doc = optional(rule, "doc", "string") or "",
    priority = optional(rule, "priority", "integer") or 0,
  }
end

local function compile_fuse(rule)
  check.keys(rule.line, "fuse", rule.spec, FUSE_KEYS, false)
  local result = base(rule)
  if rule.spec.pattern == nil then
    check.fail(rule.line, "no pattern")
  end
  result.pattern = compile.pattern(pattern.pattern_of(rule.line, rule.spec.pattern, "pattern"))
  result.where = optional(rule, "where", "function")
  return result
end

local function compile_region(rule)
  check.keys(rule.line, "region", rule.spec, REGION_KEYS, false)
  local result = base(rule)
  local modes = {}
  for _, mode in ipairs { "ops", "supported", "selector" } do
    if rule.spec[mode] ~= nil then
      modes[#modes + 1] = mode
    end
  end
  if #modes > 1 then
    check.fail(rule.line, "has both %s and %s, expected one of ops, supported and selector",
      modes[1], modes[2])
  end
  result.mode = modes[1] or "backend"
  if result.mode == "ops" then
    local names = options.resolve(rule.spec.ops)
    check.type(rule.line, "ops", names, "table")
    result.ops = {}
    for k, entry in ipairs(compile.operators(rule.line, names)) do
      result.ops[k] = entry.op
    end
  end
  result.supported = optional(rule, "supported", "function")
  result.selector = optional(rule, "selector", "function")
  result.review = optional(rule, "review", "function")
  result.min_nodes = optional(rule, "min_nodes", "integer") or 0
  if result.min_nodes < 0 or result.min_nodes > 0x7fffffff then
    check.fail(rule.line, "min_nodes is %d", result.min_nodes)
  end
  return result
end

-- Tests are kept by name and checked for their keys.
local function check_test(rule)
  check.keys(rule.line, "test", rule.spec, TEST_KEYS, false)
  check.type(rule.line, "graph", rule.spec.graph, "function")
  if rule.spec.expect ~= nil then
    check.type(rule.line, "expect", rule.spec.expect, "table")
  end
end

local COMPILE = { fuse = compile_fuse, region = compile_region, test = check_test }

-- A boolean, an option, or a function of the options' values.
local function is_enabled(rule, values)
  local enabled = rule.spec.enabled
  if rule.kind == "test" or enabled == nil then
    return true
  end
  if type(enabled) == "function" then
    enabled = enabled(values)
  end
  return check.type(rule.line, "enabled", options.resolve(enabled), "boolean")
end

local function compile_rule(rule, values)
  host.rule(rule.kind, rule.name, rule.line)
  local enabled = is_enabled(rule, values)
  local priority = options.resolve(rule.spec.priority)
  if type(priority) == "number" and math.abs(priority) > 0x7fffffff then
    check.fail(rule.line, "priority is beyond 32 bits")
  end
  local result = COMPILE[rule.kind](rule)
  host.rule()
  return enabled and result or nil
end

---Turns what the rule file returned into plain tables.
---@param returned any
---@param settings { name: string, value: string, used: boolean }[]
function M.compile(returned, settings)
  local set = type(returned) == "table" and rules[returned] or nil
  if not set or set.kind ~= "ruleset" then
    host.fail_file("expected the file to return ruleset { ... }, found " .. check.show(returned))
  end
  local line, spec = set.line, set.spec
  check.keys(line, "ruleset", spec, RULESET_KEYS, true)
  local result = {
    name = check.name(line, "ruleset: name", spec.name),
    backend = check.name(line, "ruleset: backend", spec.backend or "cpu"),
    line = line,
    rules = {},
  }
  if spec.doc ~= nil then
    check.type(line, "ruleset: doc", spec.doc, "string")
  end
  if spec.options ~= nil then
    check.type(line, "ruleset: options", spec.options, "table")
  end
  result.options = options.apply(line, spec.options or {}, settings)
  local seen = {}
  for k, word in ipairs(spec) do
    local rule = type(word) == "table" and rules[word] or nil
    if not rule or rule.kind == "ruleset" then
      check.fail(line, "ruleset: entry %d is %s, expected fuse, region or test%s", k,
        check.show(word),
        type(word) == "function" and " (fuse 'name' without { ... }?)" or "")
    end
    local key = (rule.kind == "test" and "test " or "rule ") .. rule.name
    if seen[key] then
      check.fail(rule.line, "%s '%s' is there twice, first in line %d", rule.kind, rule.name,
        seen[key])
    end
    seen[key] = rule.line
    if rule.kind == "test" then
      compile_rule(rule, result.options)
    else
      result.rules[#result.rules + 1] = compile_rule(rule, result.options)
    end
  end
  compile.unused()
  return result
end

---The globals of a rule file.
function M.environment()
  return sandbox.environment(M.words(), "a rule file")
end

return M

-- SPDX-License-Identifier: Apache-2.0
-- The words of a rule file that name rules: ruleset, and one word for every kind of rule (the
-- modules kinds/<word>.lua). A rule file returns a ruleset; when it has run, `compile`
-- turns the ruleset into plain tables for C.
local host, import = ...
local check = import "check"
local compile = import "compile"
local options = import "options"
local pattern = import "pattern"
local sandbox = import "sandbox"
local schema = import "schema"

local M = {}

local RULESET_KEYS = schema.keys "ruleset"
local NAMED_RULESET_KEYS = schema.keys "named_ruleset"

local kinds, kind_names = {}, {} -- word -> module; words in order
for _, name in ipairs(host.modules "kinds/") do
  local kind = import(name)
  kinds[kind.word] = kind
  kind_names[#kind_names + 1] = kind.word
end

-- Not weak: words refer to words, and collecting long chains of them would take too long.
local descriptions = {} -- word -> its kind, name, line and content
local all = {} -- the descriptions in the order in which they were made

local WORD = {
  -- A gradient can be asked by another that is built of its operator: its `op`, and `apply`.
  __index = function(word, key)
    local found = descriptions[word]
    if found.kind == "gradient" then
      return key == "op" and found.name or key == "apply" and found.spec[1] or nil
    end
  end,
  __newindex = function()
    host.fail(0, "a rule cannot be changed")
  end,
  -- What unpacks a ruleset that another file returned would find nothing.
  __len = function(word)
    host.fail(0, ("a %s has no length, and cannot be unpacked: write it as an entry itself")
      :format(descriptions[word].kind))
  end,
  __tostring = function(word)
    return descriptions[word].kind
  end,
  __metatable = false,
}

local function make(description)
  local word = setmetatable({}, WORD)
  descriptions[word] = description
  all[#all + 1] = description
  return word
end

local leaves_tests_out = false
local LEFT_OUT = make { kind = "test", is_left_out = true }

local function leave_out()
  return LEFT_OUT
end

---Tests are passed over, and patterns that no rule uses: for a file that comes with cleave, which
---its own tests have checked, where nobody asks for them.
function M.leave_tests_out()
  leaves_tests_out = true
end

-- fuse "name" { ... }: the second call brings the content.
local function named(kind)
  return function(name)
    if leaves_tests_out and kind == "test" then
      return leave_out
    end
    local line = host.line()
    if kinds[kind] and kinds[kind].is_test then
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

local last_ruleset -- line of the last one
local named_ruleset = named "ruleset"

-- ruleset { ... } is what the file returns; ruleset "name" { ... } is an entry of it.
local function ruleset(spec)
  local line = host.line()
  if type(spec) == "string" then
    return named_ruleset(spec)
  end
  last_ruleset = line
  check.type(line, "ruleset", spec, "table")
  return make { kind = "ruleset", line = line, spec = check.copy(line, spec) }
end

---All words of a rule file.
function M.words()
  local words = pattern.words()
  words.option = options.words()
  words.ruleset = ruleset
  words.strategy = named_ruleset -- another word for it
  words.include, words.require = host.include, host.require
  for _, kind in ipairs(kind_names) do
    words[kind] = named(kind)
  end
  return words
end

-- ---- compiling ----

-- A boolean, an option, or a function of the options' values.
local function is_enabled(rule, values)
  local enabled = rule.spec.enabled
  if enabled == nil then
    return true
  end
  if type(enabled) == "function" then
    enabled = enabled(values)
  end
  return check.type(rule.line, "enabled", options.resolve(enabled), "boolean")
end

-- Disabled rules are compiled too, so that mistakes in them are found.
local function compile_rule(rule, values)
  host.rule(rule.kind, rule.name, rule.line)
  local enabled = kinds[rule.kind].is_test or is_enabled(rule, values)
  local result = kinds[rule.kind].compile(rule)
  host.rule()
  return result, enabled
end

-- The entries of a ruleset are rules, lists of rules (what an included file returned), other
-- rulesets, and rulesets with a name. They are taken apart into rules, each with its place:
-- { name, backend, line, has_backend }, of which C makes a ruleset for each run of equal ones.

local function fail_entry(line, what, word, found)
  check.fail(line, "%s is %s, expected %s or ruleset, or a list of them%s", what,
    found and "a " .. found.kind .. (found.kind == "ruleset" and " with a name" or "")
      or check.show(word), table.concat(kind_names, ", "),
    type(word) == "function" and " (fuse 'name' without { ... }?)" or "")
end

-- Options of a list or a ruleset that was taken over are options of the whole.
local function take_options(owner, more)
  check.type(owner.line, owner.what .. ": options", more, "table")
  for name, word in host.pairs(more) do
    local known = owner.options[name]
    if known ~= nil and known ~= word then
      check.fail(owner.line, "%s: two options are called '%s' in what it contains, expected one",
        owner.what, host.tostring(name))
    end
    owner.options[name] = word
  end
end

-- The place of the rules of a ruleset inside of another one, which says the backend if it can.
local function inner_place(place, rule, name, backend)
  local what = "ruleset '" .. name .. "'"
  return { name = place.name .. "/" .. name, line = rule.line,
    has_backend = place.has_backend or backend ~= nil,
    backend = check.name(rule.line, what .. ": backend", backend or place.backend) }
end

-- Takes a list apart, `what` for messages: owner is { what, line, is_named, options, rules }.
local take

-- Its rules are at `place`, or on its own backend if nothing around it says one.
local function take_ruleset(owner, rule, place)
  local spec = rule.spec
  check.keys(rule.line, "ruleset", spec, RULESET_KEYS, true)
  local name = check.name(rule.line, "ruleset: name", spec.name)
  if spec.backend ~= nil and not place.has_backend then
    place = inner_place(place, rule, name, spec.backend)
  end
  if spec.options ~= nil then
    take_options(owner, spec.options)
  end
  take(owner, owner.what, spec, place)
end

local function take_named(owner, rule, place)
  local what = "ruleset '" .. rule.name .. "'"
  check.keys(rule.line, what, rule.spec, NAMED_RULESET_KEYS, true)
  local inside = inner_place(place, rule, rule.name, rule.spec.backend)
  owner.rules[#owner.rules + 1] = { rule = rule, place = inside }
  take({ what = what, line = rule.line, is_named = true, options = owner.options,
    rules = owner.rules }, what, rule.spec, inside)
end

local function is_list(word)
  return type(word) == "table" and getmetatable(word) == nil and (#word > 0 or next(word) == nil)
end

take = function(owner, what, list, place)
  for k, word in ipairs(list) do
    local found = type(word) == "table" and descriptions[word] or nil
    local entry = what .. ": entry " .. k
    if is_list(word) then
      if word.options ~= nil then
        take_options(owner, word.options)
      end
      take(owner, entry, word, place)
    elseif not found or found.kind == "ruleset" and found.name and owner.is_named then
      fail_entry(owner.line, entry, word, found)
    elseif found.kind ~= "ruleset" then
      owner.rules[#owner.rules + 1] = { rule = found, place = place }
    elseif found.name then
      take_named(owner, found, place)
    else
      take_ruleset(owner, found, place)
    end
  end
end

-- Names of rules are unique over all rulesets of the file; so are those of tests, of rulesets, and
-- of gradients, which are those of operators.
local function check_unique(seen, rule)
  local own = rule.kind == "test" or rule.kind == "ruleset" or rule.kind == "gradient"
  local key = (own and rule.kind or "rule") .. " " .. rule.name
  if seen[key] then
    check.fail(rule.line, "%s '%s' is defined twice, first in %s", rule.kind, rule.name,
      host.place_text(seen[key]))
  end
  seen[key] = rule.line
end

-- Rulesets run one after the other, each over what the ones before left.
local function compile_rulesets(rules, place, result)
  local seen, current, current_place = {}, nil, nil
  local function enter(new_place)
    if new_place ~= current_place then
      current_place = new_place
      current = { name = new_place.name, backend = new_place.backend, line = new_place.line,
        rules = {}, gradients = {} }
      result.rulesets[#result.rulesets + 1] = current
    end
  end
  local function add(rule)
    local compiled, enabled = compile_rule(rule, result.options)
    if kinds[rule.kind].is_test then
      result.tests[#result.tests + 1] = compiled
      return
    end
    if enabled then
      table.insert(current[kinds[rule.kind].list or "rules"], compiled)
    end
    result.declared[#result.declared + 1] = { kind = rule.kind, name = rule.name, line = rule.line,
      doc = compiled.doc, priority = compiled.priority, enabled = enabled, ruleset = current.name,
      backend = current.backend, compiled = compiled, spec = rule.spec }
  end
  for _, entry in ipairs(rules) do
    enter(entry.place)
    if not entry.rule.is_left_out then
      check_unique(seen, entry.rule)
      entry.rule.is_taken = true
      if entry.rule.kind ~= "ruleset" then
        add(entry.rule)
      end
    end
  end
  if not current then
    enter(place)
  end
end

-- Rules that the file made, or included, and did not return.
local function lost_rules()
  local lost = {}
  for _, rule in ipairs(all) do
    if kinds[rule.kind] and not kinds[rule.kind].is_test and not rule.is_taken then
      lost[#lost + 1] = { kind = rule.kind, name = rule.name, line = rule.line }
    end
  end
  return lost
end

-- The file returned something else, or nothing.
local function fail_returned(returned, last)
  if returned == nil and last_ruleset then
    check.fail(last_ruleset,
      "the ruleset is made, but not returned: write 'return ruleset { ... }'")
  end
  check.fail(last, "the file returns %s: end it with 'return ruleset { name = ..., ... }'",
    check.show(returned))
end

---Turns what the rule file returned into plain tables: { name, backend, line, options, rulesets }
---and what the file says about itself: declared (all rules, also those switched off), option_list,
---tests.
---@param returned any
---@param last integer the last line of the file that has text
---@param file string name of the file without its extension, for --set FILE.NAME
---@param settings { name: string, value: string, used: boolean }[]
function M.compile(returned, last, file, settings)
  local set = type(returned) == "table" and descriptions[returned] or nil
  if not set or set.kind ~= "ruleset" or set.name then
    fail_returned(returned, last)
  end
  local line, spec = set.line, set.spec
  check.keys(line, "ruleset", spec, RULESET_KEYS, true)
  local result = {
    name = check.name(line, "ruleset: name", spec.name),
    backend = check.name(line, "ruleset: backend", spec.backend or "cpu"),
    line = line,
    rulesets = {},
    declared = {},
    tests = {},
  }
  if spec.doc ~= nil then
    check.type(line, "ruleset: doc", spec.doc, "string")
  end
  local place = { name = result.name, backend = result.backend, line = line,
    has_backend = spec.backend ~= nil }
  local owner = { what = "ruleset", line = line, options = {}, rules = {} }
  take_options(owner, spec.options or {})
  take(owner, "ruleset", spec, place)
  result.options = options.apply(line, owner.options, file, settings)
  compile_rulesets(owner.rules, place, result)
  result.lost = lost_rules()
  if not leaves_tests_out then
    compile.unused()
  end
  result.option_list = options.list()
  for _, test in ipairs(result.tests) do
    host.rule("test", test.name, test.line)
    kinds.test.resolve(test, result)
    host.rule()
  end
  return result
end

---The globals of a rule file.
function M.environment()
  return sandbox.environment(M.words(), "a rule file")
end

return M

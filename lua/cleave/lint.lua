-- SPDX-License-Identifier: Apache-2.0
-- Likely mistakes in a rule file, found in the compiled rules and the source alone. Only findings
-- that are almost certain are reported. Levels: "error" (would fail when it runs), "warning" (does
-- nothing, or could be simpler), "note".
local host = ...

local M = {}

-- ---- the text ----

-- Lines without comments; a line with a quote before "--" is kept whole.
local function code_lines(text)
  local lines, in_comment = {}, nil
  for line in host.gmatch(text .. "\n", "([^\n]*)\n") do
    if in_comment then
      local _, stop = string.find(line, in_comment, 1, true)
      line = stop and string.sub(line, stop + 1) or ""
      in_comment = not stop and in_comment or nil
    end
    local start = string.find(line, "--", 1, true)
    if start and not host.find(string.sub(line, 1, start - 1), "[\"']") then
      local level = host.match(line, "^%[(=*)%[", start + 2)
      if level and not string.find(line, "]" .. level .. "]", start, true) then
        in_comment = "]" .. level .. "]"
      end
      line = string.sub(line, 1, start - 1)
    end
    lines[#lines + 1] = line
  end
  return lines
end

-- Is there `.name` or `["name"]`?
local function is_mentioned(text, name)
  local word = host.gsub(name, "%W", "%%%0")
  return host.find(text, "%." .. word .. "%f[^%w_]") ~= nil
    or host.find(text, "%[%s*[\"']" .. word .. "[\"']%s*%]") ~= nil
end

-- The text of a function: from its first line to its last.
local function body_of(source, action)
  local info = host.function_info(action)
  local lines = info.file and source.files[info.file]
  if not lines or info.first <= 0 or info.last > #lines then
    return nil
  end
  return table.concat(lines, "\n", info.first, info.last), info
end

-- ---- options ----

local function lint_options(file, source, add)
  for _, option in ipairs(file.option_list) do
    if not option.name then
      add("warning", option.line, "undeclared-option",
        "this option is not in `options = { ... }` of the ruleset: nothing can set it")
    elseif not option.option.read and not is_mentioned(source.text, option.name) then
      add("warning", option.line, "unused-option", "option '%s' is never read", option.name)
    end
  end
end

-- ---- captures ----

-- label -> { value = only values and constants, count = how often it is referred to inside of the
-- pattern, line }.
local function captures_of(pattern)
  local captures, references = {}, {}
  for _, node in ipairs(pattern.nodes) do
    for _, input in ipairs(node.inputs or {}) do
      if math.type(input.pattern) == "integer" then
        references[input.pattern] = (references[input.pattern] or 0) + 1
      end
    end
  end
  for k, node in ipairs(pattern.nodes) do
    if node.label then
      local capture = captures[node.label] or { is_value = true, count = 0, line = node.line }
      capture.is_value = capture.is_value and node.kind ~= "op"
      capture.count = capture.count + math.max(references[k - 1] or 0, 1)
      captures[node.label] = capture
    end
  end
  return captures
end

-- A label that is on one value only and is not read serves as documentation. Labels of nodes are
-- shown in plans, and passed to the backend.
local function lint_captures(rule, source, add)
  for label, capture in host.pairs(captures_of(rule.compiled.pattern)) do
    local is_name = rule.kind == "fuse" and not capture.is_value
    if not is_name and capture.count == 1 and not is_mentioned(source.text, label) then
      add("note", capture.line, "unused-capture", "%s '%s': nothing reads the capture '%s'",
        rule.kind, rule.name, label)
    end
  end
end

-- Does something inside of a function get the name of its parameter?
local function is_bound_again(body, name)
  local bound = "[%w_%s,]*%f[%w_]" .. name .. "%f[^%w_]"
  return host.find(body, "local" .. bound) or host.find(body, "for" .. bound)
    or select(2, host.gsub(body, "%f[%w_]function%f[^%w_]", "")) > 1
end

-- m.convv in a function of the match.
local function lint_capture_names(rule, source, add)
  local labels = {}
  for label in host.pairs(captures_of(rule.compiled.pattern)) do
    labels[#labels + 1] = label
  end
  for _, key in ipairs { "where", "replace" } do
    local action = rule.spec[key]
    local body, info
    if type(action) == "function" then
      body, info = body_of(source, action)
    end
    local match = info and info.parameters[1]
    if match and not is_bound_again(body, match) then
      local reads = "(.?)%f[%w_]" .. match .. "%.([%a_][%w_]*)"
      for before, name in host.gmatch(body, reads) do
        local hint = host.hint(name, labels)
        local known = false
        for _, label in ipairs(labels) do
          known = known or label == name
        end
        if before ~= "." and not known and name ~= "nodes" and hint ~= "" then
          add("error", info.place, "unknown-capture", "%s '%s': %s reads '%s.%s', which the "
            .. "pattern does not bind%s", rule.kind, rule.name, key, match, name, hint)
        end
      end
    end
  end
end

-- ---- where that could be data ----

local DATA_FIELDS = { dtype = true, rank = true }

-- "conv", "dtype = 'float32'" for "m.conv.dtype == 'float32'"; nil if a pattern cannot express it.
local function as_data(match, term)
  local label, field, operator, value =
    host.match(term, "^" .. match .. "%.([%w_]+)%.([%w_.]+)%s*([=<>]=)%s*(.-)$")
  if not label then
    return nil
  end
  local attribute = host.match(field, "^attrs%.([%w_]+)$")
  local is_text = host.match(value, "^\"[^\"\\]*\"$") or host.match(value, "^'[^'\\]*'$")
  local is_number = tonumber(value) ~= nil
  if operator == "==" and DATA_FIELDS[field] and (is_text or is_number) then
    return label, string.format("%s = %s", field, value)
  elseif operator == "==" and attribute and (is_text or is_number) then
    return label, string.format("attrs = { %s = %s }", attribute, value)
  elseif attribute and is_number then
    return label, string.format("attrs = { %s = range { %s = %s } }", attribute,
      operator == ">=" and "min" or "max", value)
  end
  return nil
end

-- A function that is one `return` of comparisons with literals, and gives no reason.
local function lint_where(rule, source, add)
  if type(rule.spec.where) ~= "function" then
    return
  end
  local body, info = body_of(source, rule.spec.where)
  local match = info and info.parameters[1]
  if not match then
    return
  end
  local flat = host.gsub(body, "%s+", " ")
  local expression = host.match(flat, "function ?%([^)]*%) ?return (.-);? ?end%f[^%w_]")
  if not expression or host.find(flat, "%f[%w_]function%f[^%w_].*%f[%w_]function%f[^%w_]")
    or host.find(expression, ",", 1, true) or host.find(expression, "[(){}]") then
    return
  end
  local captures = captures_of(rule.compiled.pattern)
  local parts = {}
  for term in host.gmatch(expression .. " and ", "(.-) and ") do
    local label, data = as_data(match, term)
    if not label or not captures[label] then
      return
    end
    parts[#parts + 1] = string.format("%s on '%s'", data, label)
  end
  add("warning", info.place, "where-as-data",
    "%s '%s': where only compares: write %s, which is checked without calling Lua", rule.kind,
    rule.name, table.concat(parts, ", and "))
end

-- ---- the same pattern twice ----

local numbers, number_count = {}, 0 -- operator -> number

-- A string that is equal for two patterns if and only if they are equivalent.
local function show_tree(value, depth)
  if type(value) == "userdata" then
    if not numbers[value] then
      number_count = number_count + 1
      numbers[value] = number_count
    end
    return "op" .. numbers[value]
  elseif type(value) ~= "table" or depth > 16 then
    return type(value) .. ":" .. host.tostring(value)
  end
  local parts = {}
  for key, item in host.pairs(value) do
    if key ~= "line" then
      parts[#parts + 1] = host.tostring(key) .. "=" .. show_tree(item, depth + 1)
    end
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

local function goes_before(a, b)
  return a.priority > b.priority or (a.priority == b.priority and a.place < b.place)
end

local function lint_unreachable(file, add)
  local seen = {}
  for place, rule in ipairs(file.declared) do
    if rule.kind == "fuse" and rule.enabled and rule.compiled.pattern then
      local key = rule.ruleset .. " " .. show_tree(rule.compiled.pattern, 0)
      rule.place = place
      seen[key] = seen[key] or {}
      table.insert(seen[key], rule)
    end
  end
  for _, rules in host.pairs(seen) do
    for _, rule in ipairs(rules) do
      for _, other in ipairs(rules) do
        if other ~= rule and goes_before(other, rule) and other.spec.where == nil then
          add("warning", rule.line, "unreachable", "fuse '%s' never gets a match: "
            .. "fuse '%s' in %s has the same pattern and is tried first",
            rule.name, other.name, host.place_text(other.line))
          break
        end
      end
    end
  end
end

-- ---- tests ----

-- Which tests ask for a gradient is known when they have run.
local function lint_tests(file, add)
  for _, rule in ipairs(file.declared) do
    if rule.kind == "gradient" then
      goto continue
    end
    local count, negative = 0, false
    for _, test in ipairs(file.tests) do
      local about = false
      for _, expectation in ipairs(test.expectations) do
        if expectation.rule == rule.name then
          about = true
          negative = negative or expectation.what == "refused"
            or (expectation.what == "rule" and expectation.high == 0)
        end
      end
      count = count + (about and 1 or 0)
    end
    if count < 2 then
      add("note", rule.line, "untested", "%s '%s' has %s, expected two or more", rule.kind,
        rule.name, count == 0 and "no test" or "one test")
    end
    if not negative and rule.kind ~= "stage" then -- each node of any graph has a stage
      add("note", rule.line, "no-negative-test",
        "%s '%s' has no test of a graph that it must not match (expect_not)", rule.kind, rule.name)
    end
    ::continue::
  end
end

---All lints: { level, line, code, message }, in the order of lines.
---@param file table what dsl.compile returned
---@param texts table<integer, string|false> of the file, 0, and of what it includes
function M.run(file, texts)
  local lints = {}
  local source = { files = {}, text = "" }
  for k, text in host.pairs(texts) do
    source.files[k] = text and code_lines(text) or nil
    source.text = source.text .. table.concat(source.files[k] or {}, "\n") .. "\n"
  end
  local function add(level, line, code, format, ...)
    lints[#lints + 1] = { level = level, line = line, code = code, place = #lints + 1,
      message = string.format(format, ...) }
  end
  if #file.declared == 0 then
    add("warning", file.line, "no-rules", "ruleset '%s' has no rules: it changes nothing",
      file.name)
  end
  for _, rule in ipairs(file.lost) do
    add("note", rule.line, "lost-rule", "%s '%s' never runs: it is not in what the file returns",
      rule.kind, rule.name)
  end
  lint_options(file, source, add)
  for _, rule in ipairs(file.declared) do
    if rule.compiled.pattern then
      lint_captures(rule, source, add)
      lint_capture_names(rule, source, add)
      lint_where(rule, source, add)
    end
  end
  lint_unreachable(file, add)
  lint_tests(file, add)
  table.sort(lints, function(a, b)
    return a.line < b.line or (a.line == b.line and a.place < b.place)
  end)
  return lints
end

return M

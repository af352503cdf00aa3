-- SPDX-License-Identifier: Apache-2.0
-- Editor definitions (LuaCATS), configuration of editors and luacheck, and the reference tables of
-- rules/, all generated from the schema of the words, the fields of handles and the list of
-- operators, which have all descriptions.
local host, import = ...
local builder = import "builder"
local dsl = import "dsl"
local sandbox = import "sandbox"
local schema = import "schema"

local M = {}

local NOTE = "Generated from the words, fields and operators of cleave."

-- ---- text ----

local function writer()
  local lines = {}
  return {
    add = function(format, ...)
      lines[#lines + 1] = select("#", ...) > 0 and string.format(format, ...) or format
    end,
    text = function()
      return table.concat(lines, "\n") .. "\n"
    end,
  }
end

local function sorted(list)
  table.sort(list)
  return list
end

local function class_of(entry)
  return "cleave." .. (entry.class or entry.name)
end

-- Lua's keywords cannot be names of fields.
local RESERVED = { ["and"] = true, ["end"] = true, ["function"] = true, ["in"] = true,
  ["not"] = true, ["or"] = true, ["repeat"] = true, ["if"] = true }

-- ---- are all words described? ----

local function compare(what, described, found)
  local known, seen = {}, {}
  for _, entry in ipairs(described) do
    known[entry[1]] = true
  end
  for _, name in ipairs(found) do
    seen[name] = true
    if not known[name] then
      error(string.format("%s '%s' is not in schema.lua", what, name), 0)
    end
  end
  for _, entry in ipairs(described) do
    if not seen[entry[1]] then
      error(string.format("%s '%s' of schema.lua does not exist", what, entry[1]), 0)
    end
  end
end

local function keys_of(map)
  local names = {}
  for name in host.pairs(map) do
    names[#names + 1] = name
  end
  return names
end

local function check_complete()
  compare("word", schema.words, keys_of(dsl.words()))
  compare("function of g", schema.builder, builder.names)
end

-- ---- words ----

local function add_head(out, about)
  out.add("---@meta")
  out.add("-- SPDX-License-Identifier: Apache-2.0")
  out.add("-- " .. NOTE .. " " .. about)
  out.add("")
end

local function add_table(out, entry)
  out.add("---%s", entry.doc)
  out.add("---@class %s", class_of(entry))
  if entry.list then
    out.add("---@field [integer] %s", entry.list)
  end
  for _, key in ipairs(entry.keys) do
    local name, kind, doc = key[1], key[2], key[3]
    local optional = kind:sub(-1) == "?" or kind:find("|nil", 1, true)
    if kind:sub(-1) == "?" then
      kind = kind:sub(1, -2)
    end
    -- Of an optional function, the result is optional, not the type.
    local required = name == "graph" or name == "run" or name == "replace"
    optional = optional or kind:find("^fun") and not required
    out.add("---@field %s%s %s # %s", name, optional and "?" or "", kind, doc)
  end
  out.add("")
end

local OPAQUE = {
  { "pattern", "part of a pattern", {
    "shr(cleave.pattern|string|fun(x: cleave.pattern): cleave.pattern): cleave.pattern",
    "bor(cleave.pattern|string): cleave.pattern",
  } },
  { "variadic_word", "all inputs that are not given", {} },
  { "test", "what an attribute or constant may be", {} },
  { "option", "stands for its value wherever a rule expects plain data", {} },
  { "rule", "a rule or test of a ruleset", {} },
  { "named_ruleset_word", "a ruleset inside of another one", {} },
  { "ruleset_word", "what a rule file returns", {} },
}

local function words_file()
  local out = writer()
  add_head(out, "The words of rule files.")
  out.add("---@alias cleave.input cleave.pattern|cleave.test|cleave.variadic_word|number"
    .. "|cleave.option")
  out.add("---@alias cleave.attribute_test cleave.test|cleave.option|number|boolean|string|any[]")
  out.add("")
  for _, opaque in ipairs(OPAQUE) do
    out.add("---%s", opaque[2])
    out.add("---@class cleave.%s", opaque[1])
    for _, operator in ipairs(opaque[3]) do
      out.add("---@operator %s", operator)
    end
    out.add("")
  end
  for _, entry in ipairs(schema.tables) do
    add_table(out, entry)
  end
  out.add("---What selector(graph, options) of a region returns.")
  out.add("---@class cleave.selector")
  for _, method in ipairs(schema.selector) do
    out.add("---@field %s%s %s # %s", method[1], method[1] == "select" and "" or "?", method[2],
      method[3])
  end
  out.add("")
  out.add("---@class cleave.option_words")
  for _, kind in ipairs(schema.options) do
    local range = kind[3] == "" and "" or string.format(", range: %s",
      kind[1] == "enum" and "string[]" or "{ min: number?, max: number? }?")
    out.add("---@field %s fun(default: %s, doc: string?%s): cleave.option", kind[1], kind[2], range)
  end
  out.add("")
  for _, word in ipairs(schema.words) do
    if word[1] ~= "require" then -- LuaLS knows it
      out.add("---%s", word[3])
      out.add("---@type %s", word[2])
      out.add("%s = nil", word[1])
      out.add("")
    end
  end
  return (out.text():gsub("\n+$", "\n"))
end

-- ---- the graph ----

local KINDS = {
  { "node", "An operator of the graph. It only reads, while the function that got it runs." },
  { "value", "What an operator makes or the model brings along." },
  { "graph", "The graph that rules run over." },
  { "match", "A match of a pattern: `nodes`, and each label as a field." },
  { "sub", "A region that a rule proposes, for `review`." },
}

local function graph_file()
  local out = writer()
  local fields = host.handle_fields()
  add_head(out, "What the functions of rules see.")
  out.add("---@alias cleave.dtype %s", '"' .. table.concat(host.dtype_names(), '"|"') .. '"')
  out.add("---@alias cleave.operand cleave.value|number|table")
  out.add("")
  out.add("---Attributes of a node by name; what is not written has its default. `pairs` goes over")
  out.add("---what is written; as the last argument of an operator, a new node gets this.")
  out.add("---@class cleave.attributes")
  out.add("---@field [string] any")
  out.add("")
  out.add("---Inputs or outputs of a node: by name or place, nil where left out; # is how")
  out.add("---many. `pairs` goes over those that are there, `table.unpack` gives all by place.")
  out.add("---@class cleave.ports")
  out.add("---@field [integer] cleave.value?")
  out.add("---@field [string] cleave.value?")
  out.add("---@operator len: integer")
  out.add("")
  for _, kind in ipairs(KINDS) do
    out.add("---%s", kind[2])
    out.add("---@class cleave.%s", kind[1])
    for _, field in ipairs(fields[kind[1]]) do
      local optional = field.type:sub(-1) == "?" and not field.type:find("^fun")
      out.add("---@field %s%s %s # %s", field.name, optional and "?" or "",
        optional and field.type:sub(1, -2) or field.type, field.doc)
    end
    if kind[1] == "match" then
      out.add("---@field [string] cleave.node|cleave.value|any # a label; nil: it took no part")
    elseif kind[1] == "value" then
      for _, name in ipairs { "add", "sub", "mul", "div", "pow" } do
        out.add("---@operator %s(cleave.operand): cleave.value", name)
      end
      out.add("---@operator unm: cleave.value")
    end
    out.add("")
  end
  return (out.text():gsub("\n+$", "\n"))
end

-- ---- operators ----

local KIND_TYPES = {
  integer = "integer|boolean", number = "number", string = "string",
  ["list of integers"] = "integer[]", ["list of numbers"] = "number[]",
  ["list of strings"] = "string[]", tensor = "number|table",
}

local function show_value(value)
  if type(value) == "table" then
    return "{ " .. table.concat(value, ", ") .. " }"
  end
  return type(value) == "string" and '"' .. value .. '"' or string.format("%.9g", value)
end

-- "" if the attribute has no default; `mark` goes in front.
local function show_default(attribute, mark)
  local value = attribute.default
  if attribute.shaped then
    return mark .. attribute.shaped
  elseif value == nil then
    return ""
  end
  return mark .. show_value(value)
end

local function parameter(name)
  name = name:gsub("[^%w_]", "_")
  return RESERVED[name] and name .. "_" or name
end

local function title(op)
  return string.format("%s%s, opset %d", op.domain ~= "" and op.domain .. "." or "", op.name,
    op.version)
end

local function operator_lines(out, op)
  local class = "cleave.attributes." .. op.name
  out.add("---%s", title(op))
  out.add("---@class %s", class)
  for _, attribute in ipairs(op.attributes) do
    out.add("---@field %s%s %s%s", attribute.name, attribute.required and "" or "?",
      KIND_TYPES[attribute.kind], show_default(attribute, " # default: "))
  end
  for _, port in ipairs(op.inputs) do
    if port.kind ~= "variadic" then
      out.add("---@field %s? cleave.operand # input", port.name)
    end
  end
  out.add("---@field name? string # of the node")
  out.add("---@field outputs? integer # how many")
end

local function signature(op)
  local class = "cleave.attributes." .. op.name .. "|cleave.attributes"
  local parts, many = {}, nil
  for k, port in ipairs(op.inputs) do
    if port.kind == "variadic" then
      many = "...: cleave.operand|" .. class
    else
      parts[#parts + 1] = string.format("%s%s: cleave.operand%s", parameter(port.name),
        (port.kind == "optional" or k > 1) and "?" or "", k > 1 and "|" .. class or "")
    end
  end
  parts[#parts + 1] = many or "attributes?: " .. class
  local returned = {}
  for k, port in ipairs(op.outputs) do
    returned[k] = port.kind == "variadic" and "..." or
      port.kind == "optional" and "cleave.value?" or "cleave.value"
  end
  return string.format("fun(%s): %s", table.concat(parts, ", "), table.concat(returned, ", "))
end

local function operators_file()
  local out = writer()
  local operators = host.operators()
  add_head(out, "The operators, and `g` that builds with them.")
  out.add("---@alias cleave.operator")
  for _, op in ipairs(operators) do
    out.add('---| "%s"', op.name)
  end
  out.add("")
  for _, op in ipairs(operators) do
    operator_lines(out, op)
    out.add("")
  end
  out.add("---Builds graphs: in model scripts, tests, rewrites and passes.")
  out.add("---@class cleave.builder")
  for _, word in ipairs(schema.builder) do
    out.add("---@field %s %s # %s", word[1], word[2], word[3])
  end
  for _, op in ipairs(operators) do
    out.add("---@field %s %s # %s", op.name, signature(op), title(op))
  end
  return out.text()
end

-- ---- tables for people ----

local function escape(text)
  return (text:gsub("|", "\\|"))
end

local function plain_type(kind)
  return escape((kind:gsub("cleave%.", ""):gsub("fun%(", "function("):gsub("%?$", "")))
end

local function words_table()
  local out = writer()
  out.add("| word | key | type | meaning |")
  out.add("|---|---|---|---|")
  for _, entry in ipairs(schema.tables) do
    out.add("| **`%s`** | | %s | %s |", entry.name,
      entry.list and "list of " .. plain_type(entry.list) or "", escape(entry.doc))
    for _, key in ipairs(entry.keys) do
      out.add("| | `%s` | %s | %s |", key[1], plain_type(key[2]), escape(key[3]))
    end
  end
  return out.text()
end

local function functions_table()
  local out = writer()
  out.add("| word | is | meaning |")
  out.add("|---|---|---|")
  for _, word in ipairs(schema.words) do
    out.add("| `%s` | %s | %s |", word[1], plain_type(word[2]), escape(word[3]))
  end
  for _, kind in ipairs(schema.options) do
    out.add("| `option.%s` | (default, doc%s) | a %s |", kind[1],
      kind[3] ~= "" and ", " .. kind[3] or "", kind[2])
  end
  for _, word in ipairs(schema.builder) do
    out.add("| `g.%s` | %s | %s |", word[1], plain_type(word[2]), escape(word[3]))
  end
  return out.text()
end

local function fields_table()
  local out = writer()
  local fields = host.handle_fields()
  out.add("| of a | field | type | meaning |")
  out.add("|---|---|---|---|")
  for _, kind in ipairs(KINDS) do
    for k, field in ipairs(fields[kind[1]]) do
      local is_method = field.type:find("^fun%(self")
      out.add("| %s | `%s%s%s` | %s | %s |", k == 1 and "**" .. kind[1] .. "**" or "",
        is_method and ":" or "", field.name, is_method and "()" or "", plain_type(field.type),
        escape(field.doc))
    end
  end
  return out.text()
end

local function port_names(ports)
  local names = {}
  for k, port in ipairs(ports) do
    names[k] = port.name .. (port.kind == "optional" and "?" or port.kind == "variadic" and " ..."
      or "")
  end
  return table.concat(names, ", ")
end

local function operators_table()
  local out = writer()
  out.add("# Operators")
  out.add("")
  out.add("<!-- %s -->", NOTE)
  out.add("")
  out.add("Names are those of ONNX. A graph holds the newest form of each operator (opset: since")
  out.add("when); older files are converted when they are read. `?`: may be left out; `...`: one")
  out.add("or more; `!`: has to be given. Attributes have their defaults beside them.")
  out.add("")
  out.add("| operator | opset | inputs | outputs | attributes |")
  out.add("|---|---|---|---|---|")
  for _, op in ipairs(host.operators()) do
    local attributes = {}
    for k, attribute in ipairs(op.attributes) do
      attributes[k] = "`" .. attribute.name .. "`" .. (attribute.required and "!"
        or show_default(attribute, " = "))
    end
    out.add("| %s%s | %d | %s | %s | %s |", op.domain ~= "" and op.domain .. "." or "", op.name,
      op.version, port_names(op.inputs), port_names(op.outputs), table.concat(attributes, ", "))
  end
  return out.text()
end

-- ---- configuration of tools ----

local function word_names()
  local names = {}
  for k, word in ipairs(schema.words) do
    names[k] = word[1]
  end
  return sorted(names)
end

local function add_names(out, indent, names)
  local line = indent
  for _, name in ipairs(names) do
    if #line + #name > 90 then
      out.add(line)
      line = indent
    end
    line = line .. string.format(' "%s",', name)
  end
  out.add(line)
end

-- Only names that a rule file can use are listed.
local function luacheckrc()
  local out = writer()
  local contents = sandbox.contents()
  out.add('std = "none"')
  out.add("max_line_length = 100")
  out.add("read_globals = {")
  out.add("  -- the words of rule files")
  add_names(out, " ", word_names())
  out.add("  -- of Lua")
  add_names(out, " ", contents.functions)
  for name, fields in host.pairs(contents.libraries) do
    out.add("  %s = {", name)
    out.add("    fields = {")
    add_names(out, "     ", fields)
    out.add("    },")
    out.add("  },")
  end
  out.add("}")
  out.add('exclude_files = { ".cleave" }')
  return out.text()
end

local function luarc()
  return [[
{
  "runtime.version": "Lua 5.4",
  "runtime.builtin": {
    "io": "disable", "os": "disable", "package": "enable", "debug": "disable", "utf8": "disable"
  },
  "workspace.library": [ ".cleave/meta" ],
  "workspace.ignoreDir": [ ".cleave" ]
}
]]
end

---All generated files by the name of their file or table.
function M.generate()
  check_complete()
  return {
    ["meta/words.lua"] = words_file(),
    ["meta/graph.lua"] = graph_file(),
    ["meta/operators.lua"] = operators_file(),
    ["OPERATORS.md"] = operators_table(),
    ["table: words"] = functions_table(),
    ["table: keys"] = words_table(),
    ["table: fields"] = fields_table(),
    [".luacheckrc"] = luacheckrc(),
    [".luarc.json"] = luarc(),
  }
end

return M

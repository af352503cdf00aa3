-- SPDX-License-Identifier: Apache-2.0
-- Every word of rule files with its keys: what may be written, its type (as LuaCATS has it) and one
-- line about it. The modules take the keys that they accept from here; editor definitions and the
-- tables of rules/README.md are made of the same (meta.lua).
local M = {}

---@class schema_table
---@field name string the word, or what the table is an argument of
---@field class string? of the definitions; the name if it is not given
---@field doc string
---@field list string? type of its list entries; nil: it has none
---@field keys { [1]: string, [2]: string, [3]: string }[] name, type, doc

local LABEL = { "as", "string?", "label: names it in `where`, `replace` and messages" }
local TYPE = {
  { "dtype", "cleave.dtype|cleave.dtype[]|cleave.option?", "one of these types" },
  { "rank", "integer|cleave.option?", "number of dimensions" },
  { "shape", "(integer|string|cleave.option)[]?",
    'sizes, names ("C": the same name is the same size), arithmetic ("4*C"), "?" for any' },
  { "where", "string|cleave.option?", 'a condition over named sizes: "C % 16 == 0 and H >= 8"' },
}
local ENABLED = { "enabled", "boolean|cleave.option|fun(options: table): boolean|nil",
  "false switches the rule off; it is still checked for mistakes" }
local DOC = { "doc", "string?", "one line for people" }
local PRIORITY = { "priority", "integer|cleave.option?",
  "larger ones first; equal ones in the order of the file" }
local PATTERN = { "pattern", "cleave.pattern|cleave.operator", "what to match" }
local BACKEND = "who runs it: cpu, onednn, or a library of --load"
local BOUNDS = {
  { "min", "integer|cleave.option?", "at least that many times; 1 if it is not given" },
  { "max", "integer|cleave.option?", "at most that many times" },
}
local WHERE = { "where",
  "fun(m: cleave.match, options: table): boolean, string?",
  "asked when the structure fits: true, or false and why not" }
local GROWTH = {
  { "ops", "cleave.operator[]|cleave.option?", "nodes of these operators" },
  { "supported", "fun(node: cleave.node, options: table): boolean|integer",
    "false, true (-1: any group), or a group from 0: groups stay apart" },
  { "selector", "fun(graph: cleave.graph, options: table): cleave.selector",
    "MXNet's protocol; called for every seed, so that state is a local variable" },
  { "once", "boolean|cleave.option?",
    "true: nodes of a refused set are no seeds, because the selector would take it again" },
}
local MEASURES = {
  { "review", "fun(sub: cleave.sub, options: table): boolean|cleave.node[], string|table|nil",
    "true, false and why not, or the nodes to keep; a table: attributes for the backend" },
  { "min_nodes", "integer|cleave.option?", "smaller ones are refused" },
  { "min_flops", "number|cleave.option?", "less to compute is refused" },
  { "min_bytes_saved", "number|cleave.option?", "fewer bytes kept inside are refused" },
  { "min_gain", "number|cleave.option?",
    "times as fast as node by node, by the backends' estimates; less is refused" },
}

local function join(...)
  local result = {}
  for _, part in ipairs { ... } do
    if type(part[1]) == "string" then
      part = { part }
    end
    table.move(part, 1, #part, #result + 1, result)
  end
  return result
end

---@type schema_table[]
M.tables = {
  { name = "op", doc = "a node: one of these operators", list = "cleave.operator|cleave.operator[]",
    keys = join(LABEL, {
      { "inputs", "table<string|integer, cleave.input>|cleave.variadic_word?",
        "by schema name in any case of letters, or by place; commutative ones in either order" },
      { "attrs", "table<string, cleave.attribute_test>?",
        "by name: a value, one_of, range, absent; what is not written has its default" },
    }, TYPE, {
      { "shared", "boolean|cleave.option?", "its value may be used outside of the match too" },
      { "output", "string|integer?", "which output its readers in the pattern mean, from 1" },
    }) },
  { name = "any", doc = "any value", keys = join(LABEL, TYPE) },
  { name = "constant", doc = "a constant",
    keys = join(LABEL, TYPE, {
      { "value", "number|number[]|cleave.test|cleave.option?",
        "the number that each element is, all elements, a range, or one_of" },
      { "tolerance", "number|cleave.option?", "tolerance; by default 1e-5 of the number" },
      { "scalar", "boolean|cleave.option?", "it has one element" },
      { "all_equal", "boolean|cleave.option?", "all elements are the same" },
    }) },
  { name = "maybe", doc = "a pattern, or nothing", list = "cleave.pattern|cleave.operator",
    keys = { { "when", "boolean|cleave.option?", "false: never there" } } },
  { name = "repeated", doc = "a pattern several times in a row",
    list = "cleave.pattern|cleave.operator", keys = BOUNDS },
  { name = "variadic", doc = "all inputs that are not given",
    list = "cleave.pattern|cleave.operator", keys = BOUNDS },
  { name = "output", doc = "a certain output: pattern, then name or number",
    list = "cleave.pattern|cleave.operator|string|integer", keys = join(LABEL, TYPE) },
  { name = "range", doc = "numbers from min to max, both included",
    keys = {
      { "min", "number|cleave.option?", "no bound if it is not given" },
      { "max", "number|cleave.option?", "no bound if it is not given" },
    } },
  { name = "rules", doc = "what a file returns that others include: an entry of their rulesets",
    list = "cleave.rule|cleave.rules",
    keys = { { "options", "table<string, cleave.option>?", "options of the rulesets, too" } } },
  { name = "ruleset", doc = "what a rule file returns: rules, tests and rulesets in order",
    list = "cleave.rule|cleave.rules|cleave.named_ruleset_word|cleave.ruleset_word",
    keys = {
      { "name", "string", "for messages and plans" },
      { "backend", "string?", BACKEND .. "; cpu if it is not given" },
      DOC,
      { "options", "table<string, cleave.option>?", "what --set may change" },
    } },
  { name = "named_ruleset",
    doc = "inside a ruleset: rules that run after those before them, on a backend of their own",
    list = "cleave.rule|cleave.rules|cleave.ruleset_word",
    keys = { { "backend", "string?", BACKEND .. "; the ruleset's if it is not given" }, DOC } },
  { name = "fuse", doc = "each match, or set that grew, becomes one kernel, if the backend agrees",
    keys = join(DOC, PATTERN, WHERE, GROWTH, MEASURES, {
      { "attributes", "table<string, any>?", "attributes of the fusion for the backend" },
    }, PRIORITY, ENABLED) },
  { name = "region", doc = "what a backend compiles and runs in one piece",
    keys = join(DOC, GROWTH, {
      { "partitioner", "string|cleave.option",
        'one of a loaded library, "PART" or "LIBRARY/PART"; it gets the options as strings' },
    }, MEASURES, PRIORITY, ENABLED) },
  { name = "rewrite", doc = "each match gives way to what `replace` builds",
    keys = join(DOC, PATTERN, WHERE, {
      { "replace", "fun(m: cleave.match, g: cleave.builder, options: table): "
        .. "cleave.value|table<string, cleave.value>|nil|false, string?",
        "the substitute: for the last node, or by label; nil (and why) leaves the match" },
    }, PRIORITY, ENABLED) },
  { name = "pass", doc = "a function over the whole graph, before fuse and region rules",
    keys = join(DOC, {
      { "run", "fun(graph: cleave.graph, options: table, g: cleave.builder): boolean?, string?",
        "changes it with g; or false, and why it does not" },
      { "library", "string|cleave.option",
        'instead of run: a pass of a loaded library, "PASS" or "LIBRARY/PASS"' },
    }, PRIORITY, ENABLED) },
  { name = "stage", doc = "which nodes run on which machine, where `mpirun` starts several",
    keys = join(DOC, {
      { "of", "fun(node: cleave.node, options: table): integer|false|nil",
        "the stage of a node, from 0; nil or false: the last of those whose values it reads" },
      { "assign", "fun(graph: cleave.graph, options: table): table<cleave.node, integer>",
        "instead of `of`: stages by node; a node that is not in the table is as with nil" },
    }, ENABLED) },
  { name = "gradient", doc = "how gradients pass a node of one operator",
    list = "false|fun(g: cleave.builder, node: cleave.node, ...: cleave.value?): "
      .. "...: cleave.operand|false|nil",
    keys = join(DOC, ENABLED) },
  { name = "test", class = "test_rule", doc = "what the rules of the file do to a small graph",
    keys = {
      DOC,
      { "graph", "fun(g: cleave.builder, ...: cleave.value): ...", "parameters after g: inputs" },
      { "inputs", "table<string|integer, cleave.test_input>?",
        "by parameter name or place; float32 { 1, 3, 8, 8 } by default" },
      { "options", "table<string, any>?", "for this test alone" },
      { "expect", "table<string, integer|boolean|cleave.test>?",
        'counts: rules, "rule.label", operators, regions, fusions, left' },
      { "expect_not", "string[]?", "none of these" },
      { "refused", "table<string, string>?", "a refusal of that rule with this in its reason" },
      { "calibrate", "boolean?", "values have the ranges of a run on the inputs" },
      { "equal", "boolean|cleave.test_equal?", "run it, and compare with the graph without rules" },
      { "gradient", "boolean|integer?", "compare gradients with finite differences, up to this "
        .. "order; inputs are float64 { 2, 3 } where not given" },
    } },
  { name = "test_input", doc = "an input of a test: its sizes, or names of open ones",
    list = "integer|string",
    keys = {
      { "dtype", "cleave.dtype?", "float32 if it is not given" },
      { "low", "number?", "lower bound of random values" },
      { "high", "number?", "upper bound; without bounds: normal, integers 0 or 1" },
    } },
  { name = "test_equal", doc = "tolerance of a comparison",
    keys = {
      { "rtol", "number?", "relative; without both: what rounding does to the values" },
      { "atol", "number?", "as a share of an output's largest value" },
    } },
  { name = "drawn", doc = "a constant of this shape, drawn from the seed and its name",
    list = "integer",
    keys = {
      { "name", "string?", "of the value" },
      { "dtype", "cleave.dtype?", "float32 if it is not given" },
      { "mean", "number?", "of normal and weight; 0" },
      { "std", "number?", "deviation of normal and weight; 1, or by gain and fan_in" },
      { "low", "number?", "of uniform; 0" },
      { "high", "number?", "of uniform; 1" },
      { "value", "number?", "of fill" },
      { "gain", "number?", "of weight: deviation sqrt(gain / fan_in); 2" },
      { "fan_in", "integer?", "of weight: the product of all sizes but the first" },
    } },
  { name = "batch_norm", doc = "statistics of g.batch_norm",
    keys = {
      { "name", "string?", "of the node" },
      { "epsilon", "number?", "1e-5" },
      { "gain", "number?", "about what the scale is; 1" },
      { "var", "number?", "about what the variance of the input is; 1" },
    } },
}

---@type { [1]: string, [2]: string, [3]: string }[] name, LuaCATS type, doc
M.words = {
  { "op", "fun(spec: cleave.operator|cleave.op): cleave.pattern", "a node" },
  { "any", "fun(spec: string|cleave.any|nil): cleave.pattern",
    "any value; a string is its label" },
  { "constant", "fun(spec: string|number|cleave.constant|nil): cleave.pattern",
    "a weight or number; a string is its label, a number its value" },
  { "maybe", "fun(spec: cleave.pattern|cleave.operator|cleave.maybe): cleave.pattern",
    "it, or nothing; the longest match first" },
  { "oneof", "fun(...: cleave.pattern|cleave.operator|cleave.pattern[]): cleave.pattern",
    "the first that lets the whole pattern match; also a | b" },
  { "repeated", "fun(spec: cleave.pattern|cleave.operator|cleave.repeated, min: integer?, "
    .. "max: integer?): cleave.pattern", "p >> p >> ..." },
  { "variadic", "fun(spec: cleave.pattern|cleave.operator|cleave.variadic, min: integer?, "
    .. "max: integer?): cleave.variadic_word", "in `inputs`: all that are not given" },
  { "output", "fun(spec: cleave.pattern|cleave.operator|cleave.output, which: string|integer|nil)"
    .. ": cleave.pattern", "a certain output of an operator, from 1 or by name" },
  { "group", "fun(...: cleave.pattern|cleave.pattern[]): cleave.pattern",
    "side by side, with a value or node in common" },
  { "one_of", "fun(values: any[]): cleave.test", "an attribute or constant is one of these" },
  { "range", "fun(spec: cleave.range): cleave.test", "an attribute or constant lies in here" },
  { "absent", "cleave.test",
    "an attribute: not written, whatever its default; an input: left out" },
  { "present", "cleave.test", "as an input: given" },
  { "option", "cleave.option_words", "declares what --set may change" },
  { "ruleset", "(fun(spec: cleave.ruleset): cleave.ruleset_word)"
    .. "|(fun(name: string): fun(spec: cleave.named_ruleset): cleave.named_ruleset_word)",
    "what the file returns; inside of it, with a name: rules of one backend, after those before" },
  { "strategy", "fun(name: string): fun(spec: cleave.named_ruleset): cleave.named_ruleset_word",
    "another word for a ruleset with a name" },
  { "fuse", "fun(name: string): fun(spec: cleave.fuse): cleave.rule", "matches become kernels" },
  { "region", "fun(name: string): fun(spec: cleave.region): cleave.rule",
    "what a backend compiles and runs in one piece" },
  { "rewrite", "fun(name: string): fun(spec: cleave.rewrite): cleave.rule",
    "matches are replaced" },
  { "pass", "fun(name: string): fun(spec: cleave.pass): cleave.rule", "changes the graph" },
  { "stage", "fun(name: string): fun(spec: cleave.stage): cleave.rule",
    "nodes for machines; fusions and regions stay inside of a stage" },
  { "gradient", "fun(operator: cleave.operator): fun(spec: cleave.gradient): cleave.rule",
    "gradients of the inputs of a node, from those of its outputs" },
  { "test", "fun(sentence: string): fun(spec: cleave.test_rule): cleave.rule",
    "what the rules of the file have to do" },
  { "include", "fun(path: string): any",
    "runs a file below the rule file's folder, once, and gives what it returned" },
  { "require", "fun(name: string): any", 'the same: require "parts.conv" is parts/conv.lua' },
}

---@type { [1]: string, [2]: string, [3]: string }[] kind, type of the value, range
M.options = {
  { "boolean", "boolean", "" },
  { "integer", "integer", "{ min, max }" },
  { "number", "number", "{ min, max }" },
  { "string", "string", "" },
  { "enum", "string", "the list of choices" },
  { "list", "string[]", "" },
}

---@type { [1]: string, [2]: string, [3]: string }[] functions of a selector
M.selector = {
  { "select", "fun(node: cleave.node): boolean", "does a region start here?" },
  { "select_input", "fun(node: cleave.node, input: cleave.node): boolean",
    "grow from `node` to the producer of an input?" },
  { "select_output", "fun(node: cleave.node, output: cleave.node): boolean",
    "grow from `node` to a reader of an output?" },
  { "filter", "fun(nodes: cleave.node[]): cleave.node[]", "those to keep" },
  { "reset", "fun()", "the same selector starts over on another seed" },
}

---@type { [1]: string, [2]: string, [3]: string }[] functions of g that are not operators
M.builder = {
  { "input", "fun(name: string, dtype: cleave.dtype, shape: (integer|string)[]): cleave.value",
    'an input of the graph; sizes, names of open ones, "?"' },
  { "output", "fun(name: string, value: cleave.value)", "an output of the graph" },
  { "constant", "fun(value: number|boolean|table, dtype: cleave.dtype?, name: string?)"
    .. ": cleave.value", "int64 if all numbers are integers, else float32" },
  { "weight", "fun(spec: cleave.drawn): cleave.value", "normal, so that values keep their size" },
  { "normal", "fun(spec: cleave.drawn): cleave.value", "normal with mean and std" },
  { "uniform", "fun(spec: cleave.drawn): cleave.value", "uniform from low to high" },
  { "fill", "fun(spec: cleave.drawn): cleave.value", "all elements are value" },
  { "zeros", "fun(spec: cleave.drawn): cleave.value", "all elements are 0" },
  { "ones", "fun(spec: cleave.drawn): cleave.value", "all elements are 1" },
  { "batch_norm", "fun(x: cleave.value, spec: cleave.batch_norm?): cleave.value",
    "BatchNormalization with statistics as training leaves them" },
  { "sum_to", "fun(value: cleave.value, like: cleave.value): cleave.value",
    "the sum over the dimensions in which `like` was repeated to have the shape of `value`" },
  { "seed", "fun(seed: integer)", "of all random values, if the caller gave none" },
  { "name", "fun(name: string)", "of the graph" },
  { "replace", "fun(from: cleave.value, to: cleave.operand)",
    "in a pass: readers of `from` read `to`" },
  { "remove", "fun(node: cleave.node)", "in a pass: a node that nothing reads" },
  { "set_input", "fun(node: cleave.node, port: string|integer, value: cleave.value?)",
    "in a pass: another input, or none" },
  { "set_attribute", "fun(node: cleave.node, name: string, value: any)",
    "in a pass: an attribute; nil removes it" },
  { "set_output", "fun(output: string|integer, value: cleave.value)",
    "in a pass: what an output of the graph is" },
}

local names = {}
for _, entry in ipairs(M.tables) do
  local list = {}
  for k, key in ipairs(entry.keys) do
    list[k] = key[1]
  end
  names[entry.name] = list
end

---The keys of a table, for check.keys.
---@param name string
---@return string[]
function M.keys(name)
  return names[name] or error("no schema of '" .. name .. "'")
end

return M

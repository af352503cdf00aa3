---@meta
-- SPDX-License-Identifier: Apache-2.0
-- Generated from the words, fields and operators of cleave. The words of rule files.

---@alias cleave.input cleave.pattern|cleave.test|cleave.every|number|cleave.option
---@alias cleave.attribute_test cleave.test|cleave.option|number|boolean|string|any[]

---part of a pattern
---@class cleave.pattern
---@operator shr(cleave.pattern|string|fun(x: cleave.pattern): cleave.pattern): cleave.pattern
---@operator bor(cleave.pattern|string): cleave.pattern

---all inputs that are not given
---@class cleave.every

---what an attribute or constant may be
---@class cleave.test

---stands for its value wherever a rule expects plain data
---@class cleave.option

---a rule or test of a ruleset
---@class cleave.rule

---a strategy of a ruleset
---@class cleave.strategy_word

---what a rule file returns
---@class cleave.ruleset_word

---a node: one of these operators
---@class cleave.op
---@field [integer] cleave.operator|cleave.operator[]
---@field as? string # label: names it in `where`, `replace` and messages
---@field inputs? table<string|integer, cleave.input>|cleave.every # by schema name in any case of letters, or by place; commutative ones in either order
---@field attrs? table<string, cleave.attribute_test> # by name: a value, one_of, range, absent; what is not written has its default
---@field dtype? cleave.dtype|cleave.dtype[]|cleave.option # one of these types
---@field rank? integer|cleave.option # number of dimensions
---@field shape? (integer|string|cleave.option)[] # sizes, names ("C": the same name is the same size), arithmetic ("4*C"), "?" for any
---@field where? string|cleave.option # a condition over named sizes: "C % 16 == 0 and H >= 8"
---@field shared? boolean|cleave.option # its value may be used outside of the match too
---@field output? string|integer # which output its readers in the pattern mean, from 1

---any value
---@class cleave.any
---@field as? string # label: names it in `where`, `replace` and messages
---@field dtype? cleave.dtype|cleave.dtype[]|cleave.option # one of these types
---@field rank? integer|cleave.option # number of dimensions
---@field shape? (integer|string|cleave.option)[] # sizes, names ("C": the same name is the same size), arithmetic ("4*C"), "?" for any
---@field where? string|cleave.option # a condition over named sizes: "C % 16 == 0 and H >= 8"

---a constant
---@class cleave.constant
---@field as? string # label: names it in `where`, `replace` and messages
---@field dtype? cleave.dtype|cleave.dtype[]|cleave.option # one of these types
---@field rank? integer|cleave.option # number of dimensions
---@field shape? (integer|string|cleave.option)[] # sizes, names ("C": the same name is the same size), arithmetic ("4*C"), "?" for any
---@field where? string|cleave.option # a condition over named sizes: "C % 16 == 0 and H >= 8"
---@field value? number|number[]|cleave.test|cleave.option # the number that each element is, all elements, a range, or one_of
---@field tolerance? number|cleave.option # how far it may be off; a hundred-thousandth of it
---@field scalar? boolean|cleave.option # it has one element
---@field all_equal? boolean|cleave.option # all elements are the same

---a pattern, or nothing
---@class cleave.maybe
---@field [integer] cleave.pattern|cleave.operator
---@field when? boolean|cleave.option # false: never there

---a pattern several times in a row
---@class cleave.repeated
---@field [integer] cleave.pattern|cleave.operator
---@field min? integer|cleave.option # at least so often; 1 where it is not given
---@field max? integer|cleave.option # at most so often

---all inputs that are not given
---@class cleave.variadic
---@field [integer] cleave.pattern|cleave.operator
---@field min? integer|cleave.option # at least so often; 1 where it is not given
---@field max? integer|cleave.option # at most so often

---a certain output: pattern, then name or number
---@class cleave.output
---@field [integer] cleave.pattern|cleave.operator|string|integer
---@field as? string # label: names it in `where`, `replace` and messages
---@field dtype? cleave.dtype|cleave.dtype[]|cleave.option # one of these types
---@field rank? integer|cleave.option # number of dimensions
---@field shape? (integer|string|cleave.option)[] # sizes, names ("C": the same name is the same size), arithmetic ("4*C"), "?" for any
---@field where? string|cleave.option # a condition over named sizes: "C % 16 == 0 and H >= 8"

---numbers from min to max, both included
---@class cleave.range
---@field min? number|cleave.option # no bound where it is not given
---@field max? number|cleave.option # no bound where it is not given

---what a rule file returns: rules, tests and strategies in order
---@class cleave.ruleset
---@field [integer] cleave.rule|cleave.strategy_word
---@field name string # for messages and plans
---@field backend? string # who runs it: cpu, onednn, or a library of --load; cpu where it is not given
---@field doc? string # one line for people
---@field options? table<string, cleave.option> # what --set may change

---rules that run after those before them, on a backend of their own
---@class cleave.strategy
---@field [integer] cleave.rule
---@field backend? string # who runs it: cpu, onednn, or a library of --load; the ruleset's where it is not given
---@field doc? string # one line for people

---each match becomes one kernel, if the backend agrees
---@class cleave.fuse
---@field doc? string # one line for people
---@field pattern cleave.pattern|cleave.operator # what to match
---@field where? fun(m: cleave.match, options: table): boolean, string # asked when the structure fits: true, or false and why not
---@field attributes? table<string, any> # what the backend sees of the fusion
---@field priority? integer|cleave.option # larger ones first; equal ones in the order of the file
---@field enabled? boolean|cleave.option|fun(options: table): boolean|nil # off where it is false; what is off is checked all the same

---what one backend compiles and runs in one piece
---@class cleave.region
---@field doc? string # one line for people
---@field ops? cleave.operator[]|cleave.option # nodes of these operators
---@field supported? fun(node: cleave.node, options: table): boolean|integer # false, true (-1: any group), or a group from 0: groups stay apart
---@field selector? fun(graph: cleave.graph, options: table): cleave.selector # MXNet's protocol; called for every seed, so that state is a local variable
---@field partitioner string|cleave.option # one of a loaded library, "PART" or "LIBRARY/PART"; it gets the options as texts
---@field review? fun(sub: cleave.sub, options: table): boolean|cleave.node[], string|table|nil # true, false and why not, or the nodes to keep; a table: attributes for the backend
---@field min_nodes? integer|cleave.option # smaller ones are refused
---@field min_flops? number|cleave.option # less to compute is refused
---@field min_bytes_saved? number|cleave.option # fewer bytes kept inside are refused
---@field min_gain? number|cleave.option # times as fast as cpu, by the backends' estimates; less is refused
---@field priority? integer|cleave.option # larger ones first; equal ones in the order of the file
---@field enabled? boolean|cleave.option|fun(options: table): boolean|nil # off where it is false; what is off is checked all the same

---each match gives way to what `replace` builds
---@class cleave.rewrite
---@field doc? string # one line for people
---@field pattern cleave.pattern|cleave.operator # what to match
---@field where? fun(m: cleave.match, options: table): boolean, string # asked when the structure fits: true, or false and why not
---@field replace? fun(m: cleave.match, g: cleave.builder, options: table): cleave.value|table<string, cleave.value>|nil|false, string # the substitute: for the last node, or by label; nil (and why) leaves the match
---@field priority? integer|cleave.option # larger ones first; equal ones in the order of the file
---@field enabled? boolean|cleave.option|fun(options: table): boolean|nil # off where it is false; what is off is checked all the same

---a function over the whole graph, before fuse and region rules
---@class cleave.pass
---@field doc? string # one line for people
---@field run fun(graph: cleave.graph, options: table, g: cleave.builder) # changes it with g
---@field library string|cleave.option # instead of run: a pass of a loaded library, "PASS" or "LIBRARY/PASS"
---@field priority? integer|cleave.option # larger ones first; equal ones in the order of the file
---@field enabled? boolean|cleave.option|fun(options: table): boolean|nil # off where it is false; what is off is checked all the same

---what the rules of the file make of a small graph
---@class cleave.test_rule
---@field doc? string # one line for people
---@field graph fun(g: cleave.builder, ...: cleave.value): ... # parameters after g: inputs
---@field inputs? table<string|integer, cleave.test_input> # by parameter name or place; float32 { 1, 3, 8, 8 } where not given
---@field options? table<string, any> # for this test alone
---@field expect? table<string, integer|boolean|cleave.test> # counts: rules, "rule.label", operators, regions, fusions, left
---@field expect_not? string[] # none of these
---@field refused? table<string, string> # a refusal of that rule with this in its reason
---@field equal? boolean|cleave.test_equal # run it, and compare with the graph as it stands

---an input of a test: its sizes, or names of open ones
---@class cleave.test_input
---@field [integer] integer|string
---@field dtype? cleave.dtype # float32 where it is not given
---@field low? number # drawn from here
---@field high? number # to here; otherwise normal, integers 0 or 1

---tolerance of a comparison
---@class cleave.test_equal
---@field rtol? number # relative; without both: what rounding does to the values
---@field atol? number # as a share of an output's largest value

---a constant of this shape, drawn from the seed and its name
---@class cleave.drawn
---@field [integer] integer
---@field name? string # of the value
---@field dtype? cleave.dtype # float32 where it is not given
---@field mean? number # of normal and weight; 0
---@field std? number # deviation of normal and weight; 1, or by gain and fan_in
---@field low? number # of uniform; 0
---@field high? number # of uniform; 1
---@field value? number # of fill
---@field gain? number # of weight: deviation sqrt(gain / fan_in); 2
---@field fan_in? integer # of weight: the product of all sizes but the first

---statistics of g.batch_norm
---@class cleave.batch_norm
---@field name? string # of the node
---@field epsilon? number # 1e-5
---@field gain? number # about what the scale is; 1
---@field var? number # about what the variance of the input is; 1

---What selector(graph, options) of a region returns.
---@class cleave.selector
---@field select fun(node: cleave.node): boolean # does a region start here?
---@field select_input? fun(node: cleave.node, input: cleave.node): boolean # grow from `node` to the producer of an input?
---@field select_output? fun(node: cleave.node, output: cleave.node): boolean # grow from `node` to a reader of an output?
---@field filter? fun(nodes: cleave.node[]): cleave.node[] # those to keep
---@field reset? fun() # the same selector starts over on another seed

---@class cleave.option_words
---@field boolean fun(default: boolean, doc: string?): cleave.option
---@field integer fun(default: integer, doc: string?, range: { min: number?, max: number? }?): cleave.option
---@field number fun(default: number, doc: string?, range: { min: number?, max: number? }?): cleave.option
---@field string fun(default: string, doc: string?): cleave.option
---@field enum fun(default: string, doc: string?, range: string[]): cleave.option
---@field list fun(default: string[], doc: string?): cleave.option

---a node
---@type fun(spec: cleave.operator|cleave.op): cleave.pattern
op = nil

---any value; a text is its label
---@type fun(spec: string|cleave.any|nil): cleave.pattern
any = nil

---a weight or number; a text is its label, a number its value
---@type fun(spec: string|number|cleave.constant|nil): cleave.pattern
constant = nil

---it, or nothing; the longest match first
---@type fun(spec: cleave.pattern|cleave.operator|cleave.maybe): cleave.pattern
maybe = nil

---the first that lets the whole pattern match; also a | b
---@type fun(...: cleave.pattern|cleave.operator|cleave.pattern[]): cleave.pattern
oneof = nil

---p >> p >> ...
---@type fun(spec: cleave.pattern|cleave.operator|cleave.repeated, min: integer?, max: integer?): cleave.pattern
repeated = nil

---in `inputs`: all that are not given
---@type fun(spec: cleave.pattern|cleave.operator|cleave.variadic, min: integer?, max: integer?): cleave.every
variadic = nil

---a certain output of an operator, from 1 or by name
---@type fun(spec: cleave.pattern|cleave.operator|cleave.output, which: string|integer|nil): cleave.pattern
output = nil

---side by side, with a value or node in common
---@type fun(...: cleave.pattern|cleave.pattern[]): cleave.pattern
group = nil

---an attribute or constant is one of these
---@type fun(values: any[]): cleave.test
one_of = nil

---an attribute or constant lies in here
---@type fun(spec: cleave.range): cleave.test
range = nil

---an attribute: not written, whatever its default; an input: left out
---@type cleave.test
absent = nil

---as an input: given
---@type cleave.test
present = nil

---declares what --set may change
---@type cleave.option_words
option = nil

---what the file returns
---@type fun(spec: cleave.ruleset): cleave.ruleset_word
ruleset = nil

---rules of one backend, after those before
---@type fun(name: string): fun(spec: cleave.strategy): cleave.strategy_word
strategy = nil

---matches become kernels
---@type fun(name: string): fun(spec: cleave.fuse): cleave.rule
fuse = nil

---what a backend runs in one piece
---@type fun(name: string): fun(spec: cleave.region): cleave.rule
region = nil

---matches are replaced
---@type fun(name: string): fun(spec: cleave.rewrite): cleave.rule
rewrite = nil

---changes the graph
---@type fun(name: string): fun(spec: cleave.pass): cleave.rule
pass = nil

---what the file promises
---@type fun(sentence: string): fun(spec: cleave.test_rule): cleave.rule
test = nil

---runs a file below the rule file's folder, once, and gives what it returned
---@type fun(path: string): any
include = nil

-- SPDX-License-Identifier: Apache-2.0
std = "lua54"
max_line_length = 100
-- The words of a rule file (lua/cleave/schema.lua describes them).
files["rules/"] = {
  read_globals = {
    "ruleset", "strategy", "fuse", "region", "rewrite", "pass", "stage", "gradient", "test", "option",
    "include", "require",
    "op", "any", "constant", "maybe", "oneof", "one_of", "repeated", "variadic", "output", "group",
    "range", "absent", "present",
  },
}
files["tests/**/rules*.lua"] = files["rules/"]
files["lua/cleave/gradients/"] = files["rules/"]
files["tests/lua/*.lua"] = files["rules/"]
-- A program of `cleave script`.
files["tests/lua/arrays.lua"] = { read_globals = { "nd" } }
files["tests/golden/**/*.lua"] = files["rules/"]
files["examples/accelerators/"] = files["rules/"]
-- A model script sees the graph `g` that it builds, and the size of it in `options`.
files["examples/models/"] = { read_globals = { "g", "options" } }
files["examples/train/"] = files["examples/models/"]
files["examples/train/imperative.lua"] = { read_globals = { "nd" } }
files["tests/**/model*.lua"] = { read_globals = { "g", "options" } }
files["examples/**/model_*.lua"] = { read_globals = { "g", "options" } }
-- The sandbox replaces functions of the interpreter's string table.
files["lua/cleave/sandbox.lua"] = { globals = { "string" } }

-- SPDX-License-Identifier: Apache-2.0
std = "lua54"
max_line_length = 100
-- The words of a rule file (lua/cleave/ defines them).
files["rules/"] = {
  read_globals = {
    "ruleset", "fuse", "region", "op", "any", "constant", "maybe", "oneof", "option", "absent",
  },
}
files["tests/**/rules*.lua"] = files["rules/"]
-- A model script sees the graph `g` that it builds, and the size of it in `options`.
files["examples/models/"] = { read_globals = { "g", "options" } }
files["tests/**/model*.lua"] = { read_globals = { "g", "options" } }

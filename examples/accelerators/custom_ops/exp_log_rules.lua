-- SPDX-License-Identifier: Apache-2.0
-- Rules of the exp_log library in a rule file: its pass and its partitioner beside tests, with
-- options that have types and ranges. `--rules exp_log/my_part` needs no file.
return ruleset {
  name = "exp_log_rules",
  backend = "exp_log",
  doc = "Exp and Log on the exp_log library, by rules in C.",
  options = {
    reject = option.boolean(false, "refuse all regions"),
    least_nodes = option.integer(1, "smaller regions are refused", { 1, 100 }),
    groups = option.enum("any", "Exp and Log in one region, or apart", { "any", "apart" }),
    my_key = option.string("my_value", "what the library sees when it compiles a region"),
    add_input = option.boolean(false, "one more input for every Exp"),
  },

  pass "add_input" { doc = "Exp(x) becomes Exp(x + input)", library = "exp_log/add_input" },

  region "exp_log" { doc = "as many as there are together", partitioner = "my_part" },

  test "Exp and Log that are neighbours make one region" {
    graph = function(g, x) return g.Log(g.Exp(g.Log(g.Abs(x)))) end,
    expect = { exp_log = 1, regions = 1, left = 1 },
  },
  test "Exp and Log apart" {
    graph = function(g, x) return g.Log(g.Exp(x)) end,
    options = { groups = "apart" },
    expect = { exp_log = 2 },
    equal = true,
  },
  test "the user refuses" {
    graph = function(g, x) return g.Log(g.Exp(x)) end,
    options = { reject = true },
    expect = { exp_log = 0, left = 2 },
    refused = { exp_log = "the user asked for it" },
  },
  test "small regions are refused" {
    graph = function(g, x) return g.Log(g.Abs(g.Exp(g.Exp(x)))) end,
    options = { least_nodes = 2 },
    expect = { exp_log = 1, left = 2 },
    refused = { exp_log = "least_nodes is 2" },
  },
  test "a pass adds an input for every Exp" {
    graph = function(g, x) return g.Exp(g.Abs(g.Exp(x))) end,
    options = { add_input = true },
    expect = { add_input = 1, Add = 2, exp_log = 2 },
  },
}

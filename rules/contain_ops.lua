-- SPDX-License-Identifier: Apache-2.0
-- Regions of listed operators, as MXNet's ContainOpSelector makes them (its partitioner "default"
-- with SetSubgraphPropertyOpNames). An option gives the list:
--
--   cleave run model.onnx --rules rules/contain_ops.lua --set ops=Exp,Sin,Add
--
-- The first rule uses `ops` of the built-in partitioner. The second does the same with a selector,
-- as an example for rules that need more than a list; --set by=selector chooses it.

local ops = option.list({ "Conv", "Relu", "Add" }, "operators that go into a region")
local by = option.enum("list", "which of the two rules", { "list", "selector" })

return ruleset {
  name = "contain_ops",
  backend = "cpu",
  options = { ops = ops, by = by },

  region "listed" {
    doc = "Connected nodes of the listed operators.",
    ops = ops,
    enabled = function(options)
      return options.by == "list"
    end,
  },

  region "selected" {
    doc = "The same, decided node by node.",
    enabled = function(options)
      return options.by == "selector"
    end,
    selector = function(_, options)
      local wanted = {}
      for _, name in ipairs(options.ops) do
        wanted[name] = true
      end
      local function is_wanted(node)
        return wanted[node.op] == true
      end
      return {
        -- Does a region start here?
        select = is_wanted,
        -- Does it grow from `node` to the producer of one of its inputs, or to a reader of one of
        -- its outputs?
        select_input = function(_, input)
          return is_wanted(input)
        end,
        select_output = function(_, output)
          return is_wanted(output)
        end,
        -- Which of the candidates stay?
        filter = function(nodes)
          return nodes
        end,
      }
    end,
  },

  test "connected nodes of the list are one region" {
    graph = function(g, x)
      return g.Relu(g.Conv(x)) + x
    end,
    expect = { listed = 1, left = 0 },
    expect_not = { "selected" },
    equal = true,
  },
  test "what is not in the list stays outside, and parts what it stands between" {
    graph = function(g, x)
      return g.Relu(g.Exp(g.Relu(x)))
    end,
    expect = { listed = 2, left = 1 },
    equal = true,
  },
  test "the list comes from outside" {
    graph = function(g, x)
      return g.Relu(g.Exp(g.Relu(x)))
    end,
    options = { ops = { "Sin" } },
    expect = { left = 3 },
    expect_not = { "listed" },
  },
  test "no region closes a cycle" {
    graph = function(g, x)
      local y = g.Relu(x)
      return y + g.Exp(y)
    end,
    expect = { listed = 2, left = 1 },
    equal = true,
  },
  test "the selector finds the same" {
    graph = function(g, x)
      local y = g.Relu(g.Conv(x)) + x
      return g.Relu(g.Exp(y))
    end,
    options = { by = "selector" },
    expect = { selected = 2, left = 1 },
    expect_not = { "listed" },
    equal = true,
  },
  test "the selector takes nothing that is not in the list" {
    graph = function(g, x)
      return g.Exp(g.Sin(x))
    end,
    options = { by = "selector" },
    expect_not = { "selected", "listed" },
  },
}

-- SPDX-License-Identifier: Apache-2.0
-- Regions of listed operators: what MXNet calls ContainOpSelector (its partitioner "default" with
-- SetSubgraphPropertyOpNames). The list comes from outside:
--
--   cleave run model.onnx --rules rules/contain_ops.lua --set ops=Exp,Sin,Add
--
-- The first rule says it with `ops`, in the partitioner's own words. The second says the same with
-- a selector, to copy from for whoever needs more than a list; --set by=selector takes it instead.

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
        -- What of the candidates stays?
        filter = function(nodes)
          return nodes
        end,
      }
    end,
  },
}

-- SPDX-License-Identifier: Apache-2.0
-- A selector with state, as MXNet's oneDNN convolution property has it: from a convolution through
-- one batch norm, one sum and one activation, in this order, stopping where a value has two
-- readers.

local NEXT = {
  start = { BatchNormalization = "bn", Add = "sum", Relu = "done", Sigmoid = "done" },
  bn = { Add = "sum", Relu = "done", Sigmoid = "done" },
  sum = { Relu = "done", Sigmoid = "done" },
  done = {},
}

return ruleset {
  name = "stateful",
  backend = "cpu",

  region "conv" {
    doc = "Convolution, batch norm, sum, activation: each at most once, in this order.",
    selector = function()
      local status, last
      return {
        select = function(node)
          status, last = "start", node
          return node.op == "Conv"
        end,
        select_output = function(node, output)
          local follows = NEXT[status][output.op]
          if node ~= last or not follows or node.outputs[1].uses_count ~= 1 then
            return false
          end
          status, last = follows, output
          return true
        end,
        filter = function(nodes)
          return #nodes > 1 and nodes or {}
        end,
      }
    end,
  },
}

-- SPDX-License-Identifier: Apache-2.0
-- Sequences of numbers.

local common = include "common.lua"

return {
  gradient "Range" { function(g, _, dy)
    local places = g.Range(0, g.Squeeze(common.size(g, dy, 0), { 0 }), 1)
    return g.ReduceSum(dy, { keepdims = 0 }), false,
      g.ReduceSum(dy * g.Cast(places, { to = dy.dtype }), { keepdims = 0 })
  end },

  test "numbers from a start by a step" {
    graph = function(g, start, step)
      return g.Range(start, g.constant(4.2, "float64"), step) * start
    end,
    inputs = { start = { low = 0.1, high = 0.2 }, step = { low = 1.0, high = 1.2 } },
    gradient = 2,
  },
}

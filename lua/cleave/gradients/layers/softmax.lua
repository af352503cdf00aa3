-- SPDX-License-Identifier: Apache-2.0
-- Softmax and what divides by a norm along one axis.

local function sum_along(g, node, value)
  return g.ReduceSum(value, { node.attrs.axis }, { keepdims = 1 })
end

return {
  gradient "LogSoftmax" { function(g, node, dy)
    return dy - g.Exp(node.outputs[1]) * sum_along(g, node, dy)
  end },
  gradient "LpNormalization" { function(g, node, dy)
    local x, y = node.inputs[1], node.outputs[1]
    local inner = sum_along(g, node, dy * y)
    if node.attrs.p == 1 then
      return (dy - g.Sign(x) * inner) / g.ReduceL1(x, { node.attrs.axis }, { keepdims = 1 })
    end
    return (dy - y * inner) / g.ReduceL2(x, { node.attrs.axis }, { keepdims = 1 })
  end },
  gradient "Softmax" { function(g, node, dy)
    local y = node.outputs[1]
    return (dy - sum_along(g, node, dy * y)) * y
  end },

  test "along an axis" {
    graph = function(g, x)
      return g.Softmax(x), g.Softmax(x, { axis = 1 }), g.LogSoftmax(x, { axis = 0 }),
        g.LogSoftmax(x), g.LpNormalization(x), g.LpNormalization(x, { axis = 1, p = 1 }),
        g.Hardmax(x) * x
    end,
    inputs = { x = { 2, 3, "T" } },
    gradient = 2,
  },
}

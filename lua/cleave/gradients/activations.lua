-- SPDX-License-Identifier: Apache-2.0
-- Activations. Where one has a kink, the derivative is the smaller of both sides (0 for Relu).
-- Exponentials see no positive numbers, so that none overflows.
local common = include "common.lua"

local function exp_below_0(g, x, alpha)
  return g.Exp(g.Min(x, g.constant(0, x.dtype)) / alpha)
end

return {
  gradient "Celu" { function(g, node, dy)
    return dy * exp_below_0(g, node.inputs[1], node.attrs.alpha)
  end },
  gradient "Clip" {
    doc = "To the input inside of the bounds, both included; to a bound where it was taken: the "
      .. "higher one if they are in the wrong order. A bound of NaN is none.",
    function(g, node, dy)
      local x, low, high = node.inputs[1], node.inputs.min, node.inputs.max
      local dx, dlow, dhigh = dy, nil, nil
      local zero = g.constant(0, dy.dtype)
      if low then
        local below = g.Less(x, low)
        local taken = high and g.And(below, g.Not(g.Greater(low, high))) or below
        dlow = g.sum_to(common.only(g, taken, dy), low)
        dx = g.Where(below, zero, dx)
      end
      if high then
        local risen = low and g.Where(g.Less(x, low), low, x) or x
        dhigh = g.sum_to(common.only(g, g.Greater(risen, high), dy), high)
        dx = g.Where(g.Greater(x, high), zero, dx)
      end
      return table.unpack({ dx, dlow, dhigh }, 1, #node.inputs)
    end,
  },
  gradient "Elu" { function(g, node, dy)
    local x = node.inputs[1]
    return g.Where(g.Greater(x, 0), dy, dy * exp_below_0(g, x, 1) * node.attrs.alpha)
  end },
  gradient "Gelu" { function(g, node, dy)
    local x = node.inputs[1]
    if node.attrs.approximate == "tanh" then
      local k, c = math.sqrt(2 / math.pi), 0.044715
      local t = g.Tanh((x + x * x * x * c) * k)
      return dy * ((t + 1) * 0.5 + x * (1 - t * t) * (x * x * (3 * c) + 1) * (0.5 * k))
    end
    local normal = g.Exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
    return dy * ((g.Erf(x * math.sqrt(0.5)) + 1) * 0.5 + x * normal)
  end },
  gradient "HardSigmoid" { function(g, node, dy)
    local y, alpha = node.outputs[1], node.attrs.alpha
    return common.only(g, g.And(g.Greater(y, 0), g.Less(y, 1)), dy * alpha)
  end },
  gradient "HardSwish" { function(g, node, dy)
    local x = node.inputs[1]
    local inside = dy * (x / 3 + 0.5)
    return common.only(g, g.Greater(x, -3), g.Where(g.Less(x, 3), inside, dy))
  end },
  gradient "LeakyRelu" { function(g, node, dy)
    return g.Where(g.Greater(node.inputs[1], 0), dy, dy * node.attrs.alpha)
  end },
  gradient "Mish" { function(g, node, dy)
    local x = node.inputs[1]
    local t = g.Tanh(g.Softplus(x))
    return dy * (t + x * (1 - t * t) * g.Sigmoid(x))
  end },
  gradient "PRelu" { function(g, node, dy)
    local x, slope = node.inputs[1], node.inputs[2]
    local is_positive = g.Greater(x, 0)
    return g.Where(is_positive, dy, dy * slope),
      g.sum_to(g.Where(is_positive, g.constant(0, dy.dtype), dy * x), slope)
  end },
  gradient "Relu" { function(g, node, dy)
    return common.only(g, g.Greater(node.outputs[1], 0), dy)
  end },
  gradient "ReluGrad" { function(g, node, ddx)
    return g.ReluGrad(ddx, node.inputs[2]), false
  end },
  gradient "Selu" { function(g, node, dy)
    local x, gamma = node.inputs[1], node.attrs.gamma
    return g.Where(g.Greater(x, 0), dy * gamma,
      dy * exp_below_0(g, x, 1) * (gamma * node.attrs.alpha))
  end },
  gradient "Shrink" { function(g, node, dy)
    return common.only(g, g.Greater(g.Abs(node.inputs[1]), node.attrs.lambd), dy)
  end },
  gradient "Sigmoid" { function(_, node, dy)
    local y = node.outputs[1]
    return dy * y * (1 - y)
  end },
  gradient "Softplus" { function(g, node, dy) return dy * g.Sigmoid(node.inputs[1]) end },
  gradient "Softsign" { function(g, node, dy)
    local below = g.Abs(node.inputs[1]) + 1
    return dy / (below * below)
  end },
  gradient "Swish" { function(g, node, dy)
    local x, alpha = node.inputs[1], node.attrs.alpha
    local s = g.Sigmoid(x * alpha)
    return dy * (s + x * s * (1 - s) * alpha)
  end },
  gradient "ThresholdedRelu" { function(g, node, dy)
    return common.only(g, g.Greater(node.inputs[1], node.attrs.alpha), dy)
  end },

  test "activations" {
    graph = function(g, x)
      return g.Celu(x, { alpha = 0.7 }), g.Elu(x, { alpha = 0.7 }), g.Gelu(x),
        g.Gelu(x, { approximate = "tanh" }), g.HardSigmoid(x), g.HardSwish(x * 3), g.LeakyRelu(x),
        g.Mish(x), g.Relu(x), g.Selu(x), g.Shrink(x, { bias = 0.2 }), g.Sigmoid(x), g.Softplus(x),
        g.Softsign(x), g.Swish(x, { alpha = 1.5 }), g.ThresholdedRelu(x, { alpha = 0.5 })
    end,
    inputs = { x = { 5, 6 } },
    gradient = 2,
  },
  test "what passes a Relu on the way back" {
    graph = function(g, dy, y) return g.ReluGrad(dy, y) * y end,
    inputs = { dy = { 5, 6 }, y = { 5, 6, low = -1, high = 1 } },
    gradient = 2,
  },
  test "Clip, and its bounds" {
    graph = function(g, x, low, high)
      return g.Clip(x, low, high), g.Clip(x, { max = high }), g.Clip(x, low) * x
    end,
    inputs = { x = { 5, 6 }, low = { low = -0.6, high = -0.5 }, high = { low = 0.5, high = 0.6 } },
    gradient = 2,
  },
  test "PRelu with a slope per channel" {
    graph = function(g, x, slope) return g.PRelu(x, slope) end,
    inputs = { x = { 2, 3, 4 }, slope = { 3, 1 } },
    gradient = 2,
  },
}

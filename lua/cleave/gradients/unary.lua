-- SPDX-License-Identifier: Apache-2.0
-- Functions of one value: the derivative is made of x (node.inputs[1]) or, if that is simpler,
-- of y (node.outputs[1]).
local common = include "common.lua"

return {
  gradient "Abs" { function(g, node, dy) return dy * g.Sign(node.inputs[1]) end },
  gradient "Acos" { function(g, node, dy)
    local x = node.inputs[1]
    return -dy / g.Sqrt(1 - x * x)
  end },
  gradient "Acosh" { function(g, node, dy)
    local x = node.inputs[1]
    return dy / g.Sqrt(x * x - 1)
  end },
  gradient "Asin" { function(g, node, dy)
    local x = node.inputs[1]
    return dy / g.Sqrt(1 - x * x)
  end },
  gradient "Asinh" { function(g, node, dy)
    local x = node.inputs[1]
    return dy / g.Sqrt(x * x + 1)
  end },
  gradient "Atan" { function(_, node, dy)
    local x = node.inputs[1]
    return dy / (x * x + 1)
  end },
  gradient "Atanh" { function(_, node, dy)
    local x = node.inputs[1]
    return dy / (1 - x * x)
  end },
  gradient "Cos" { function(g, node, dy) return -dy * g.Sin(node.inputs[1]) end },
  gradient "Cosh" { function(g, node, dy) return dy * g.Sinh(node.inputs[1]) end },
  gradient "Erf" { function(g, node, dy)
    local x = node.inputs[1]
    return dy * g.Exp(-(x * x)) * (2 / math.sqrt(math.pi))
  end },
  gradient "Exp" { function(_, node, dy) return dy * node.outputs[1] end },
  gradient "Identity" { function(_, _, dy) return dy end },
  gradient "After" { function(_, _, dy) return dy, false end },
  gradient "Log" { function(_, node, dy) return dy / node.inputs[1] end },
  gradient "Neg" { function(_, _, dy) return -dy end },
  gradient "Reciprocal" { function(_, node, dy)
    local y = node.outputs[1]
    return -dy * y * y
  end },
  gradient "Sin" { function(g, node, dy) return dy * g.Cos(node.inputs[1]) end },
  gradient "Sinh" { function(g, node, dy) return dy * g.Cosh(node.inputs[1]) end },
  gradient "Sqrt" { function(_, node, dy) return dy / (node.outputs[1] * 2) end },
  gradient "Tan" { function(_, node, dy)
    local y = node.outputs[1]
    return dy * (y * y + 1)
  end },
  gradient "Tanh" { function(_, node, dy)
    local y = node.outputs[1]
    return dy * (1 - y * y)
  end },

  -- Other types.
  gradient "Cast" { function(g, node, dy) return g.Cast(dy, { to = node.inputs[1].dtype }) end },
  gradient "CastLike" { function(g, node, dy)
    return g.Cast(dy, { to = node.inputs[1].dtype }), false
  end },

  gradient "Dropout" {
    doc = "By the mask, scaled as the values were.",
    function(g, node, dy)
      local training, mask = node.inputs.training_mode, node.outputs[2]
      local known = common.known(training)
      if not training or known and not known[1] then
        return dy, false
      elseif not mask then
        error("Dropout in training: the gradient needs its output 'mask'")
      end
      local kept = 1 - (node.inputs.ratio and g.Cast(node.inputs.ratio, { to = dy.dtype })
        or g.constant(0.5, dy.dtype))
      local scale = known and 1 / kept or g.Where(training, 1 / kept, g.constant(1, dy.dtype))
      return common.only(g, mask, dy * scale), false
    end,
  },

  test "functions of any number" {
    graph = function(g, x)
      return g.Abs(x), g.Asinh(x), g.Atan(x), g.Cos(x), g.Cosh(x), g.Erf(x), g.Exp(x),
        g.Identity(x), g.Neg(x), g.Sin(x), g.Sinh(x), g.Tanh(x)
    end,
    gradient = 2,
  },
  test "functions of numbers between -1 and 1" {
    graph = function(g, x) return g.Acos(x), g.Asin(x), g.Atanh(x), g.Tan(x) end,
    inputs = { x = { 3, 4, low = -0.9, high = 0.9 } },
    gradient = 2,
  },
  test "functions of positive numbers" {
    graph = function(g, x) return g.Acosh(x), g.Log(x), g.Reciprocal(x), g.Sqrt(x) end,
    inputs = { x = { "N", 4, low = 1.2, high = 3 } },
    gradient = 2,
  },
  test "steps have none" {
    graph = function(g, x)
      return x * g.Ceil(x) + g.Floor(x) * 2 + g.Round(x) * x + g.Sign(x) * x * x
    end,
    inputs = { x = { 3, 4, low = 0.1, high = 0.4 } },
    gradient = 2,
  },
  test "other types" {
    graph = function(g, x)
      local narrow = g.Cast(x, { to = "float64" })
      return g.CastLike(narrow, x) * x, g.Cast(g.Cast(x, { to = "int32" }), { to = "float64" }) * x
    end,
    inputs = { x = { 3, 4, low = 1.1, high = 1.9 } },
    gradient = 2,
  },
  test "a value that waits for another" {
    graph = function(g, x) return g.Sin(g.After(x, g.Exp(x))) end, gradient = true,
  },
  test "dropout that does nothing" {
    graph = function(g, x)
      return (g.Dropout(x)) * x, (g.Dropout(x, g.constant(0.3, "float64"), g.constant(false)))
    end,
    gradient = 2,
  },
}

-- SPDX-License-Identifier: Apache-2.0
-- Rewrites the subgraphs that exporters write for activations to the operators Gelu, HardSwish,
-- HardSigmoid, LeakyRelu, Mish and Swish.
-- Each subgraph reads its input several times, so its pattern is a function of that input.

local gelu = option.boolean(true, "find gelu, by erf and by tanh")
local hard_swish = option.boolean(true, "find hard-swish and hard-sigmoid")
local leaky_relu = option.boolean(true, "find max(x, a * x) as LeakyRelu")
local mish = option.boolean(true, "find x * tanh(softplus(x)) as Mish")
local silu = option.boolean(true, "find x * sigmoid(a * x) as Swish")

-- A number as exporters write it: in float32, or rounded to a few digits.
local function near(value, tolerance)
  return constant { value = value, scalar = true, tolerance = tolerance or 1e-6 }
end

-- x * c, or x / (1 / c)
local function times(x, c)
  return oneof {
    op { "Mul", inputs = { x, near(c) } },
    op { "Div", inputs = { A = x, B = near(1 / c) } },
  }
end

-- 0.5 * x * t, multiplied in any order.
local function half_times(x, t)
  return oneof {
    times(op { "Mul", inputs = { x, t } }, 0.5),
    op { "Mul", inputs = { times(x, 0.5), t } },
    op { "Mul", inputs = { x, times(t, 0.5) } },
  }
end

-- ---- gelu ----

-- 0.5 * x * (1 + erf(x / sqrt(2)))
local function gelu_erf()
  local x = any "x"
  local erf = op { "Erf", inputs = { times(x, math.sqrt(0.5)) } }
  return half_times(x, op { "Add", inputs = { erf, near(1) } })
end

-- 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))); the argument of tanh also as
-- sqrt(2 / pi) * x * (1 + 0.044715 * x^2).
local function gelu_tanh()
  local x = any "x"
  local c, root = 0.044715, math.sqrt(2 / math.pi)
  local square = oneof {
    op { "Mul", inputs = { x, x } },
    op { "Pow", inputs = { X = x, Y = near(2) } },
  }
  local cube = oneof {
    op { "Pow", inputs = { X = x, Y = near(3) } },
    op { "Mul", inputs = { square, x } },
  }
  local cubic = oneof {
    times(cube, c),
    op { "Mul", inputs = { times(x, c), square } },
    op { "Mul", inputs = { op { "Mul", inputs = { times(x, c), x } }, x } },
  }
  local sum = op { "Add", inputs = { x, cubic } }
  local factor = op { "Add", inputs = { times(square, c), near(1) } }
  local argument = oneof {
    times(sum, root),
    times(op { "Mul", inputs = { x, factor } }, root),
    op { "Mul", inputs = { times(x, root), factor } },
  }
  local tanh = op { "Tanh", inputs = { argument } }
  return half_times(x, op { "Add", inputs = { tanh, near(1) } })
end

-- ---- hard-swish and hard-sigmoid ----

-- clip(x + 3, 0, 6)
local function ramp(x)
  local sum = op { "Add", inputs = { x, near(3) } }
  return op { "Clip", inputs = { input = sum, min = near(0), max = near(6) } }
end

local function hard_sigmoid(x)
  return op {
    "HardSigmoid",
    inputs = { x },
    attrs = { alpha = range { min = 0.1666666, max = 0.1666667 }, beta = 0.5 },
  }
end

local function find_hard_swish()
  local x = any "x"
  return oneof {
    op { "Mul", inputs = { x, hard_sigmoid(x) } },
    op { "Mul", inputs = { x, times(ramp(x), 1 / 6) } },
    times(op { "Mul", inputs = { x, ramp(x) } }, 1 / 6),
    op { "Mul", inputs = { times(x, 1 / 6), ramp(x) } },
  }
end

-- ---- silu, mish and leaky relu ----

-- x * sigmoid(x), x * sigmoid(slope * x), or x / (1 + exp(-x))
local function find_silu()
  local x = any "x"
  local steeper = op { "Mul", inputs = { x, constant { as = "slope", scalar = true } } }
  local exp = op { "Exp", inputs = { op { "Neg", inputs = { x } } } }
  return oneof {
    op { "Mul", inputs = { x, op { "Sigmoid", inputs = { steeper } } } },
    op { "Mul", inputs = { x, op { "Sigmoid", inputs = { x } } } },
    op { "Div", inputs = { A = x, B = op { "Add", inputs = { exp, near(1) } } } },
  }
end

-- x * tanh(softplus(x))
local function find_mish()
  local x = any "x"
  local softplus = op { "Softplus", inputs = { x } }
  return op { "Mul", inputs = { x, op { "Tanh", inputs = { softplus } } } }
end

-- max(x, slope * x)
local function find_leaky_relu()
  local x = any "x"
  local flat = op { "Mul", inputs = { x, constant { as = "slope", scalar = true } } }
  return op { "Max", as = "max", inputs = { x, flat } }
end

local function slope_of(m)
  local slope = m.slope and m.slope:value() or 1.0
  return type(slope) == "table" and slope[1] or slope
end

-- ---- tests ----

-- 0.5 * x * (1 + erf(x / root)), in the order that `order` names.
local function build_gelu(g, value, half, root, order)
  local t = g.Erf(value / root) + 1.0
  if order == 1 then
    return value * t * half
  elseif order == 2 then
    return value * half * t
  end
  return value * (half * t)
end

local function build_tanh(g, value, c)
  local inner = (value + g.Pow(value, 3.0) * c) * 0.7978845608
  return value * 0.5 * (g.Tanh(inner) + 1.0)
end

return {
  options = {
    gelu = gelu, hard_swish = hard_swish, leaky_relu = leaky_relu, mish = mish, silu = silu,
  },

  rewrite "gelu" {
    doc = "0.5 x (1 + erf(x / sqrt(2))) is Gelu(x).",
    enabled = gelu,
    pattern = gelu_erf(),
    replace = function(m, g)
      return g.Gelu(m.x, { approximate = "none" })
    end,
  },

  rewrite "gelu_tanh" {
    doc = "0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) is Gelu(x) by tanh.",
    enabled = gelu,
    pattern = gelu_tanh(),
    replace = function(m, g)
      return g.Gelu(m.x, { approximate = "tanh" })
    end,
  },

  rewrite "hard_swish" {
    doc = "x clip(x + 3, 0, 6) / 6, or x times its hard-sigmoid, is HardSwish(x).",
    enabled = hard_swish,
    pattern = find_hard_swish(),
    replace = function(m, g)
      return g.HardSwish(m.x)
    end,
  },

  rewrite "hard_sigmoid" {
    doc = "clip(x + 3, 0, 6) / 6 is HardSigmoid(x) with alpha = 1/6.",
    enabled = hard_swish,
    pattern = times(ramp(any "x"), 1 / 6),
    replace = function(m, g)
      return g.HardSigmoid(m.x, { alpha = 1 / 6, beta = 0.5 })
    end,
  },

  rewrite "silu" {
    doc = "x sigmoid(a x), or x / (1 + exp(-x)), is Swish(x).",
    enabled = silu,
    pattern = find_silu(),
    replace = function(m, g)
      return g.Swish(m.x, { alpha = slope_of(m) })
    end,
  },

  rewrite "mish" {
    doc = "x tanh(softplus(x)) is Mish(x).",
    enabled = mish,
    pattern = find_mish(),
    replace = function(m, g)
      return g.Mish(m.x)
    end,
  },

  rewrite "leaky_relu" {
    doc = "max(x, a x) with a between 0 and 1 is LeakyRelu(x).",
    enabled = leaky_relu,
    pattern = find_leaky_relu(),
    where = function(m)
      local slope = slope_of(m)
      return #m.max.inputs == 2 and slope > 0 and slope < 1,
        "its slope is not between 0 and 1, or Max has another operand"
    end,
    replace = function(m, g)
      return g.LeakyRelu(m.x, { alpha = slope_of(m) })
    end,
  },

  test "gelu is found in every order" {
    inputs = { x = { 2, 5 } },
    graph = function(g, x)
      return build_gelu(g, x, 0.5, 1.4142135, 1), build_gelu(g, x, 0.5, 1.4142135, 2),
        build_gelu(g, x, 0.5, 1.4142135, 3)
    end,
    expect = { gelu = 3 },
    equal = true,
  },

  test "a factor of 0.6 is not a gelu" {
    inputs = { x = { 2, 5 } },
    graph = function(g, x)
      return build_gelu(g, x, 0.6, 1.4142135, 1)
    end,
    expect_not = { "gelu" },
    equal = true,
  },

  test "a root of 1.5 is not a gelu" {
    inputs = { x = { 2, 5 } },
    graph = function(g, x)
      return build_gelu(g, x, 0.5, 1.5, 3)
    end,
    expect_not = { "gelu" },
    equal = true,
  },

  test "an erf that is used elsewhere stays" {
    inputs = { x = { 2, 5 } },
    graph = function(g, x)
      local erf = g.Erf(x / 1.4142135)
      return x * (erf + 1.0) * 0.5, g.Abs(erf)
    end,
    expect_not = { "gelu" },
    equal = true,
  },

  test "gelu by tanh is found with any cube" {
    inputs = { x = { 2, 5 } },
    graph = function(g, x)
      local product = x * x * x
      local inner = (x + product * 0.044715) * 0.7978845608
      local outer = x * 0.7978845608 * (1.0 + x * x * 0.044715)
      return build_tanh(g, x, 0.044715), x * (g.Tanh(inner) + 1.0) * 0.5,
        x * ((g.Tanh(outer) + 1.0) * 0.5)
    end,
    expect = { gelu_tanh = 3 },
    equal = true,
  },

  test "a cubic term of 0.05 is not a gelu" {
    inputs = { x = { 2, 5 } },
    graph = function(g, x)
      return build_tanh(g, x, 0.05)
    end,
    expect_not = { "gelu_tanh" },
    equal = true,
  },

  test "hard-swish is found by clip and by hard-sigmoid" {
    inputs = { x = { 2, 5 } },
    graph = function(g, x)
      local up = g.Clip(x + 3.0, 0.0, 6.0)
      return x * (up / 6.0), x * g.Clip(x + 3.0, 0.0, 6.0) / 6.0,
        x * g.HardSigmoid(x, { alpha = 1 / 6, beta = 0.5 })
    end,
    expect = { hard_swish = 3 },
    equal = true,
  },

  test "hard-sigmoid with the default slope, or of another value, is not a hard-swish" {
    inputs = { x = { 2, 5 }, y = { 2, 5 } },
    graph = function(g, x, y)
      return x * g.HardSigmoid(x), x * g.HardSigmoid(y, { alpha = 1 / 6, beta = 0.5 })
    end,
    expect_not = { "hard_swish" },
    equal = true,
  },

  test "hard-sigmoid is found by clip" {
    inputs = { x = { 2, 5 } },
    graph = function(g, x)
      return g.Clip(x + 3.0, 0.0, 6.0) / 6.0
    end,
    expect = { hard_sigmoid = 1 },
    equal = true,
  },

  test "a ramp up to 5 is not a hard-sigmoid" {
    inputs = { x = { 2, 5 } },
    graph = function(g, x)
      return g.Clip(x + 3.0, 0.0, 5.0) / 6.0
    end,
    expect_not = { "hard_sigmoid" },
    equal = true,
  },

  test "silu is found, with a slope too" {
    inputs = { x = { 2, 5 } },
    graph = function(g, x)
      return g.Sigmoid(x) * x, x * g.Sigmoid(x * 1.702), x / (g.Exp(-x) + 1.0)
    end,
    expect = { silu = 3 },
    equal = true,
  },

  test "a gate of another value is not a silu" {
    inputs = { x = { 2, 5 }, y = { 2, 5 } },
    graph = function(g, x, y)
      return x * g.Sigmoid(y), x / (g.Exp(-y) + 1.0), x / (g.Exp(-x) + 2.0)
    end,
    expect_not = { "silu" },
    equal = true,
  },

  test "mish is found in both orders" {
    inputs = { x = { 2, 5 } },
    graph = function(g, x)
      return x * g.Tanh(g.Softplus(x)), g.Tanh(g.Softplus(x)) * x
    end,
    expect = { mish = 2 },
    equal = true,
  },

  test "a gate of another value is not a mish" {
    inputs = { x = { 2, 5 }, y = { 2, 5 } },
    graph = function(g, x, y)
      return x * g.Tanh(g.Softplus(y)), x * g.Tanh(g.Softplus(x * 2.0))
    end,
    expect_not = { "mish" },
    equal = true,
  },

  test "leaky relu is found in both orders" {
    inputs = { x = { 2, 5 } },
    graph = function(g, x)
      return g.Max(x, x * 0.1), g.Max(x * 0.3, x)
    end,
    expect = { leaky_relu = 2 },
    equal = true,
  },

  test "a slope of 1 or above, or below 0, and a third operand are not a leaky relu" {
    inputs = { x = { 2, 5 } },
    graph = function(g, x)
      return g.Max(x, x * 2.0), g.Max(x, x * -0.1), g.Max(x, x * 0.1, 0.5)
    end,
    expect_not = { "leaky_relu" },
    equal = true,
  },

  test "silu stays where it is switched off" {
    inputs = { x = { 2, 5 } },
    options = { silu = false },
    graph = function(g, x)
      return x * g.Sigmoid(x)
    end,
    expect_not = { "silu" },
    equal = true,
  },
}

-- SPDX-License-Identifier: Apache-2.0
-- Rewrites means, squares and roots to LayerNormalization, RMSNormalization and Softmax. `where`
-- checks the axes and the shapes of the parameters: the operators normalize the last dimensions,
-- and their parameters have exactly those dimensions.

local layer_norm = option.boolean(true, "find layer normalization")
local rms_norm = option.boolean(true, "find RMS normalization")
local softmax = option.boolean(true, "find softmax out of exponentials and their sum")

local function reduce(name, x, as)
  return op { name, as = as, inputs = { data = x }, attrs = { keepdims = 1 } }
end

local function square(x)
  return oneof {
    op { "Pow", inputs = { X = x, Y = 2 } },
    op { "Mul", inputs = { x, x } },
  }
end

-- mean(x^2) + epsilon
local function power(x)
  local mean = reduce("ReduceMean", square(x), "power")
  return op { "Add", inputs = { mean, constant { as = "epsilon", scalar = true } } }
end

-- x / sqrt(variance), in the forms that exporters write.
local function over_root(x, variance)
  local root = oneof {
    op { "Sqrt", inputs = { variance } },
    op { "Pow", inputs = { X = variance, Y = 0.5 } },
  }
  local inverse = oneof {
    op { "Reciprocal", inputs = { root } },
    op { "Div", inputs = { A = 1, B = root } },
    op { "Pow", inputs = { X = variance, Y = -0.5 } },
  }
  return oneof {
    op { "Div", inputs = { A = x, B = root } },
    op { "Mul", inputs = { x, inverse } },
  }
end

local function with_scale(x)
  return x >> maybe(op { "Mul", inputs = { any "gamma" } })
end

-- Some exporters subtract the mean twice: once for the variance, once for the result.
local function layer_norm_pattern()
  local x = any "x"
  local function centre()
    return op { "Sub", inputs = { A = x, B = reduce("ReduceMean", x, "mean") } }
  end
  local centred = centre()
  return with_scale(oneof {
    over_root(centred, power(centred)),
    over_root(centre(), power(op { "Sub",
      inputs = { A = x, B = reduce("ReduceMean", x, "other_mean") } })),
  }) >> maybe(op { "Add", inputs = { any "beta" } })
end

local function softmax_pattern()
  local x = any "x"
  local distance = op { "Sub", inputs = { A = x, B = reduce("ReduceMax", x, "largest") } }
  local function quotient(argument)
    local e = op { "Exp", inputs = { argument } }
    local sum = reduce("ReduceSum", e, "sum")
    return oneof {
      op { "Div", inputs = { A = e, B = sum } },
      op { "Mul", inputs = { e, op { "Reciprocal", inputs = { sum } } } },
    }
  end
  return oneof { quotient(distance), quotient(x) }
end

-- ---- conditions beyond the patterns ----

-- Axes of a reduction counted from 0 and in order; nil if they are not constant, or left out.
local function axes_of(node, rank)
  local axes = node.inputs.axes and node.inputs.axes.is_constant and node.inputs.axes:value()
  if not axes then
    return nil
  end
  axes = type(axes) == "table" and axes or { axes }
  local result = {}
  for k, axis in ipairs(axes) do
    result[k] = axis < 0 and axis + rank or axis
  end
  table.sort(result)
  return result
end

local function equal_lists(a, b)
  if not a or not b or #a ~= #b then
    return false
  end
  for k, item in ipairs(a) do
    if b[k] ~= item then
      return false
    end
  end
  return true
end

-- The first of the trailing dimensions (from 0) that all these reductions reduce; nil if the
-- reductions differ or reduce others than the last dimensions.
local function trailing_axis(x, nodes)
  local axes = x.rank and axes_of(nodes[1], x.rank)
  if not axes or #axes == 0 then
    return nil, "its axes are not known"
  end
  for k, axis in ipairs(axes) do
    if axis ~= x.rank - #axes + k - 1 then
      return nil, "it is not over the last dimensions"
    end
  end
  for k = 2, #nodes do
    if not equal_lists(axes, axes_of(nodes[k], x.rank)) then
      return nil, "its means are over different dimensions"
    end
  end
  return axes[1]
end

-- The sizes of the normalized dimensions; nil if one is unknown.
local function sizes_from(x, axis)
  local sizes = {}
  for d = axis + 1, x.rank do
    if math.type(x.shape[d]) ~= "integer" then
      return nil
    end
    sizes[#sizes + 1] = x.shape[d]
  end
  return sizes
end

-- Does each parameter that is present have the shape of the normalized dimensions?
local function check_parameters(x, axis, gamma, beta)
  local sizes = sizes_from(x, axis)
  if not sizes then
    return false, "the normalized sizes are unknown"
  end
  return (not gamma or equal_lists(gamma.shape, sizes))
      and (not beta or equal_lists(beta.shape, sizes)),
    "a parameter does not have the normalized shape"
end

local function number_of(value)
  local number = value:value()
  return type(number) == "table" and number[1] or number
end

-- The scale, or ones.
local function scale_of(m, g, axis)
  if m.gamma then
    return m.gamma
  end
  local sizes = sizes_from(m.x, axis)
  sizes.dtype = m.x.dtype
  return g.ones(sizes)
end

-- ---- tests ----

local function build_layer_norm(g, x, axes, other)
  local d = x - g.ReduceMean(x, axes)
  local variance = g.ReduceMean(g.Pow(d, 2.0), other or axes)
  return d / g.Sqrt(variance + 1e-5)
end

local function build_rms_norm(g, x, axes)
  return x * (1.0 / g.Sqrt(g.ReduceMean(x * x, axes) + 1e-6))
end

local function parameter(g, size)
  return g.uniform { size, low = 0.5, high = 1.5 }
end

return {
  options = { layer_norm = layer_norm, rms_norm = rms_norm, softmax = softmax },

  rewrite "layer_norm" {
    doc = "(x - mean) / sqrt(mean of squares + epsilon) * gamma + beta is LayerNormalization.",
    enabled = layer_norm,
    pattern = layer_norm_pattern(),
    where = function(m)
      local axis, why = trailing_axis(m.x, { m.mean, m.power, m.other_mean })
      if not axis then
        return false, why
      end
      return check_parameters(m.x, axis, m.gamma, m.beta)
    end,
    replace = function(m, g)
      local axis = trailing_axis(m.x, { m.mean })
      local attributes = { axis = axis - m.x.rank, epsilon = number_of(m.epsilon) }
      if m.beta then
        return g.LayerNormalization(m.x, scale_of(m, g, axis), m.beta, attributes)
      end
      return g.LayerNormalization(m.x, scale_of(m, g, axis), attributes)
    end,
  },

  rewrite "rms_norm" {
    doc = "x / sqrt(mean of squares + epsilon) * gamma is RMSNormalization.",
    enabled = rms_norm,
    pattern = with_scale(over_root(any "x", power(any "x"))),
    where = function(m)
      local axis, why = trailing_axis(m.x, { m.power })
      if not axis then
        return false, why
      end
      return check_parameters(m.x, axis, m.gamma)
    end,
    replace = function(m, g)
      local axis = trailing_axis(m.x, { m.power })
      return g.RMSNormalization(m.x, scale_of(m, g, axis),
        { axis = axis - m.x.rank, epsilon = number_of(m.epsilon) })
    end,
  },

  rewrite "softmax" {
    doc = "Exponentials over their sum become Softmax, with or without subtracting the maximum.",
    enabled = softmax,
    pattern = softmax_pattern(),
    where = function(m)
      local axes = m.x.rank and axes_of(m.sum, m.x.rank)
      if not axes or #axes ~= 1 then
        return false, "the sum is not over one dimension"
      end
      return not m.largest or equal_lists(axes, axes_of(m.largest, m.x.rank)),
        "sum and largest are over different dimensions"
    end,
    replace = function(m, g)
      return g.Softmax(m.x, { axis = axes_of(m.sum, m.x.rank)[1] })
    end,
  },

  test "layer normalization is found with its scale and shift" {
    inputs = { x = { 2, 3, 8 } },
    graph = function(g, x)
      return build_layer_norm(g, x, { -1 }) * parameter(g, 8) + parameter(g, 8)
    end,
    expect = { layer_norm = 1 },
    equal = true,
  },

  test "layer normalization is found in every spelling" {
    inputs = { x = { 2, 3, 8 } },
    graph = function(g, x)
      local results = {}
      local squares = {
        function(e) return g.Pow(e, 2.0) end,
        function(e) return e * e end,
        function() return g.Pow(x - g.ReduceMean(x, { -1 }), 2.0) end,
      }
      local quotients = {
        function(e, root) return e / root end,
        function(e, root) return g.Reciprocal(root) * e end,
        function(e, root) return e * (1.0 / root) end,
      }
      for _, squared in ipairs(squares) do
        for _, quotient in ipairs(quotients) do
          local e = x - g.ReduceMean(x, { -1 })
          local y = quotient(e, g.Sqrt(g.ReduceMean(squared(e), { -1 }) + 1e-5))
          results[#results + 1] = parameter(g, 8) + parameter(g, 8) * y
        end
      end
      return table.unpack(results)
    end,
    expect = { layer_norm = 9 },
    equal = true,
  },

  test "layer normalization is found without scale and shift, over two dimensions" {
    inputs = { x = { 2, 3, 8 } },
    graph = function(g, x)
      return build_layer_norm(g, x, { -1 }), build_layer_norm(g, x, { 1, 2 })
    end,
    expect = { layer_norm = 2 },
    equal = true,
  },

  test "a mean that is subtracted twice makes one layer normalization" {
    inputs = { x = { 2, 8 } },
    graph = function(g, x)
      local variance = g.ReduceMean(g.Pow(x - g.ReduceMean(x, { -1 }), 2.0), { -1 })
      return (x - g.ReduceMean(x, { 1 })) / g.Sqrt(variance + 1e-5)
    end,
    expect = { layer_norm = 1 },
    equal = true,
  },

  test "a scale of one number stays beside the layer normalization" {
    inputs = { x = { 2, 8 } },
    graph = function(g, x)
      return build_layer_norm(g, x, { -1 }) * 3.0
    end,
    expect = { layer_norm = 1 },
    equal = true,
  },

  test "means over channels are not a layer normalization" {
    inputs = { x = { 2, 3, 8 } },
    graph = function(g, x)
      return build_layer_norm(g, x, { 1 }), build_layer_norm(g, x, { 2 }, { 1, 2 })
    end,
    expect_not = { "layer_norm" },
    equal = true,
  },

  test "a variance that is used elsewhere blocks the layer normalization" {
    inputs = { x = { 2, 8 } },
    graph = function(g, x)
      local d = x - g.ReduceMean(x, { -1 })
      local variance = g.ReduceMean(d * d, { -1 })
      return d / g.Sqrt(variance + 1e-5), g.Abs(variance)
    end,
    expect_not = { "layer_norm" },
    equal = true,
  },

  test "RMS normalization is found with and without its scale" {
    inputs = { x = { 2, 3, 8 } },
    graph = function(g, x)
      return parameter(g, 8) * build_rms_norm(g, x, { -1 }),
        x / g.Sqrt(g.ReduceMean(g.Pow(x, 2.0), { 2 }) + 1e-6)
    end,
    expect = { rms_norm = 2 },
    equal = true,
  },

  test "a mean square of another value is not an RMS normalization" {
    inputs = { x = { 2, 8 }, y = { 2, 8 } },
    graph = function(g, x, y)
      return x / g.Sqrt(g.ReduceMean(y * y, { -1 }) + 1e-6), build_rms_norm(g, x, { 0 })
    end,
    expect_not = { "rms_norm" },
    equal = true,
  },

  test "softmax is found with and without its largest" {
    inputs = { x = { 2, 3, 8 } },
    graph = function(g, x)
      local e = g.Exp(x - g.ReduceMax(x, { -1 }))
      local f = g.Exp(x)
      return e / g.ReduceSum(e, { 2 }), f * g.Reciprocal(g.ReduceSum(f, { 1 }))
    end,
    expect = { softmax = 2 },
    equal = true,
  },

  test "a sum over two dimensions, or of other exponentials, is not a softmax" {
    inputs = { x = { 2, 3, 8 }, y = { 2, 3, 8 } },
    graph = function(g, x, y)
      local e = g.Exp(x)
      return e / g.ReduceSum(e, { 1, 2 }), g.Exp(x) / g.ReduceSum(g.Exp(y), { 2 })
    end,
    expect_not = { "softmax" },
    equal = true,
  },
}

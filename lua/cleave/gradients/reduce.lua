-- SPDX-License-Identifier: Apache-2.0
-- Reductions: what has the shape of the result goes back to all that it was made of.
local common = include "common.lua"

-- A value of the shape of the node's result, with as many dimensions as its input: those that were
-- reduced have size 1.
local function with_axes(g, node, value)
  local axes = node.inputs[2]
  if node.attrs.keepdims ~= 0 or not axes then
    return value
  end
  local known = common.known(axes)
  if known and #known == 0 then
    return value
  end
  return g.Unsqueeze(value, axes)
end

-- The same with the shape of the input.
local function spread(g, node, value)
  return g.Expand(with_axes(g, node, value), g.Shape(node.inputs[1]))
end

-- A reduction of the same axes that keeps them.
local function reduce(g, node, op, value)
  local attributes = { keepdims = 1, noop_with_empty_axes = node.attrs.noop_with_empty_axes }
  if node.inputs[2] then
    return g[op](value, node.inputs[2], attributes)
  end
  return g[op](value, attributes)
end

-- Reduces nothing: the result is the input as it is, whatever the operator.
local function is_noop(node)
  local axes = node.inputs[2]
  local known = common.known(axes)
  return node.attrs.noop_with_empty_axes ~= 0 and (not axes or known and #known == 0)
end

-- The rule of a reduction, from one for what is reduced.
local function reduction(rule)
  return function(g, node, dy)
    return is_noop(node) and dy or rule(g, node, dy)
  end
end

-- Of equal extremes, each gets the same share.
local function extreme(g, node, dy)
  local x = node.inputs[1]
  local mask = common.mask(g, g.Equal(x, with_axes(g, node, node.outputs[1])), dy)
  return mask * (with_axes(g, node, dy) / reduce(g, node, "ReduceSum", mask))
end

return {
  gradient "ReduceL1" { reduction(function(g, node, dy)
    return with_axes(g, node, dy) * g.Sign(node.inputs[1])
  end) },
  gradient "ReduceL2" { reduction(function(g, node, dy)
    local y = node.outputs[1]
    local share = g.Where(g.Equal(y, 0), g.constant(0, dy.dtype), dy / y)
    return with_axes(g, node, share) * node.inputs[1]
  end) },
  gradient "ReduceLogSum" { reduction(function(g, node, dy)
    return spread(g, node, dy * g.Exp(-node.outputs[1]))
  end) },
  gradient "ReduceLogSumExp" { reduction(function(g, node, dy)
    local y = with_axes(g, node, node.outputs[1])
    return with_axes(g, node, dy) * g.Exp(node.inputs[1] - y)
  end) },
  gradient "ReduceMax" { reduction(extreme) },
  gradient "ReduceMean" { reduction(function(g, node, dy)
    return spread(g, node, dy / common.ratio(g, node.inputs[1], node.outputs[1]))
  end) },
  gradient "ReduceMin" { reduction(extreme) },
  gradient "ReduceProd" {
    doc = "The product of the others, also where there are zeros.",
    reduction(function(g, node, dy)
      local x = node.inputs[1]
      local is_zero, one = g.Equal(x, 0), g.constant(1, x.dtype)
      local zeros = reduce(g, node, "ReduceSum", common.mask(g, is_zero, x))
      local others = reduce(g, node, "ReduceProd", g.Where(is_zero, one, x))
      local share = g.Where(is_zero, common.only(g, g.Equal(zeros, 1), others),
        common.only(g, g.Equal(zeros, 0), others / g.Where(is_zero, one, x)))
      return with_axes(g, node, dy) * share
    end),
  },
  gradient "ReduceSum" { reduction(spread) },
  gradient "ReduceSumSquare" { reduction(function(g, node, dy)
    return with_axes(g, node, dy) * node.inputs[1] * 2
  end) },

  gradient "CumSum" { function(g, node, dy)
    return g.CumSum(dy, node.inputs[2],
      { exclusive = node.attrs.exclusive, reverse = 1 - node.attrs.reverse })
  end },

  test "over some axes" {
    graph = function(g, x)
      local axes = { 0, -1 }
      return g.ReduceL1(x, axes), g.ReduceL2(x, axes, { keepdims = 0 }), g.ReduceLogSum(x, axes),
        g.ReduceLogSumExp(x, axes, { keepdims = 0 }), g.ReduceMax(x, axes), g.ReduceMean(x, axes),
        g.ReduceMin(x, axes, { keepdims = 0 }), g.ReduceProd(x, axes, { keepdims = 0 }),
        g.ReduceSum(x, axes, { keepdims = 0 }), g.ReduceSumSquare(x, axes)
    end,
    inputs = { x = { 2, 3, 4, low = 0.2, high = 1.5 } },
    gradient = 2,
  },
  test "over all axes, none, and of open sizes" {
    graph = function(g, x)
      return g.ReduceMean(x), g.ReduceMax(x, { keepdims = 0 }), g.ReduceLogSumExp(x),
        g.ReduceSum(x * x, { noop_with_empty_axes = 1 }), g.ReduceSum(x, { 1 }, { keepdims = 0 }),
        g.ReduceL2(x, { keepdims = 0 }), g.ReduceMean(x, { 0 }, { keepdims = 0 })
    end,
    inputs = { x = { "N", 3, "T" } },
    gradient = 2,
  },
  test "products with zeros" {
    graph = function(g, x)
      return g.ReduceProd(x * g.constant({ { 1, 0, 1 }, { 1, 0, 0 } }, "float64"), { 1 })
    end,
    gradient = 2,
  },
  test "running sums" {
    graph = function(g, x)
      return g.CumSum(x, 1), g.CumSum(x * x, 0, { exclusive = 1 }), g.CumSum(x, -1, { reverse = 1 })
    end,
    inputs = { x = { 3, 4 } },
    gradient = 2,
  },
}

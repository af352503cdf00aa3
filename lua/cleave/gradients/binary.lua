-- SPDX-License-Identifier: Apache-2.0
-- Functions of two and more values with broadcasting: what an input was repeated for adds up.
local common = include "common.lua"

-- Of equal extremes, each gets the same share.
local function extreme(g, node, dy)
  local y, masks, count = node.outputs[1], {}, nil
  for k = 1, #node.inputs do
    masks[k] = common.mask(g, g.Equal(node.inputs[k], y), dy)
    count = count and count + masks[k] or masks[k]
  end
  local results, share = {}, dy / count
  for k = 1, #node.inputs do
    results[k] = g.sum_to(share * masks[k], node.inputs[k])
  end
  return table.unpack(results)
end

local function to_all(g, node, dy)
  local results = {}
  for k = 1, #node.inputs do
    results[k] = g.sum_to(dy, node.inputs[k])
  end
  return table.unpack(results)
end

return {
  gradient "Add" { to_all },
  gradient "Div" { function(g, node, dy)
    local a, b = node.inputs[1], node.inputs[2]
    local da = dy / b
    return g.sum_to(da, a), g.sum_to(-da * node.outputs[1], b)
  end },
  gradient "DequantizeLinear" {
    doc = "By the scale, of the whole tensor or along an axis; what is scaled are integers.",
    function(g, node, dy)
      local x, scale, zero = node.inputs[1], node.inputs[2], node.inputs[3]
      local rank = common.rank(x, "DequantizeLinear")
      if node.attrs.block_size ~= 0 or not scale.rank then
        return nil
      end
      local whole = g.Cast(x, { to = dy.dtype })
      local axis, axes = common.axis(node.attrs.axis, rank), {}
      local wide = { [axis + 1] = -1 }
      for d = 0, rank - 1 do
        wide[d + 1] = wide[d + 1] or 1
        if scale.rank == 0 or d ~= axis then
          axes[#axes + 1] = d
        end
      end
      if zero then
        local offset = g.Cast(zero, { to = dy.dtype })
        whole = whole - (scale.rank == 1 and g.Reshape(offset, wide) or offset)
      end
      return false, g.ReduceSum(dy * whole, axes, { keepdims = 0, noop_with_empty_axes = 1 }), false
    end,
  },
  gradient "Max" { extreme },
  gradient "Mean" { function(g, node, dy) return to_all(g, node, dy / #node.inputs) end },
  gradient "Min" { extreme },
  gradient "Mod" { function(g, node, dy)
    local a, b = node.inputs[1], node.inputs[2]
    local whole = g.Round((a - node.outputs[1]) / b)
    return g.sum_to(dy, a), g.sum_to(-dy * whole, b)
  end },
  gradient "Mul" { function(g, node, dy)
    local a, b = node.inputs[1], node.inputs[2]
    return g.sum_to(dy * b, a), g.sum_to(dy * a, b)
  end },
  gradient "Pow" {
    doc = "By the exponent only where the base is positive.",
    function(g, node, dy)
      local x, exponent = node.inputs[1], node.inputs[2]
      local number = common.known(exponent)
      local dx
      if number and #number == 1 and number[1] == 2 then
        dx = dy * x * 2
      else
        local e = exponent.dtype == x.dtype and exponent or g.Cast(exponent, { to = x.dtype })
        dx = g.Where(g.Equal(e, 0), g.constant(0, dy.dtype), dy * e * g.Pow(x, e - 1))
      end
      local positive = g.Greater(x, 0)
      local logarithm = g.Log(g.Where(positive, x, g.constant(1, x.dtype)))
      local by_exponent = common.only(g, positive, dy * node.outputs[1] * logarithm)
      return g.sum_to(dx, x), g.Cast(g.sum_to(by_exponent, exponent), { to = exponent.dtype })
    end,
  },
  gradient "Sub" { function(g, node, dy)
    return g.sum_to(dy, node.inputs[1]), g.sum_to(-dy, node.inputs[2])
  end },
  gradient "Sum" { to_all },
  gradient "Where" { function(g, node, dy)
    local condition, zero = node.inputs[1], g.constant(0, dy.dtype)
    return nil, g.sum_to(g.Where(condition, dy, zero), node.inputs[2]),
      g.sum_to(g.Where(condition, zero, dy), node.inputs[3])
  end },

  test "scales of integers" {
    graph = function(g, one, each)
      local x = g.constant({ { 3, -7, 1 }, { -2, 5, 4 } }, "int8")
      return g.DequantizeLinear(x, one),
        g.DequantizeLinear(x, each, g.constant({ 1, -2, 3 }, "int8"))
    end,
    inputs = { one = {}, each = { 3 } },
    gradient = 2,
  },
  test "arithmetic of equal shapes" {
    graph = function(_, x, y) return x + y, x - y, x * y, x / (y * y + 1) end,
    gradient = 2,
  },
  test "arithmetic with broadcasting" {
    graph = function(_, x, y, z) return (x + y) * z, x - z * y, x * y / (z * z + 1), z - x end,
    inputs = { x = { 2, 3, 4 }, y = { 3, 1 }, z = { 1, 1, 4 } },
    gradient = 2,
  },
  test "broadcasting that is known at run time" {
    graph = function(g, x, y, z)
      local one = g.Compress(y, g.Greater(z, g.constant({ 0, 9, 9 }, "float64")), { axis = 0 })
      return (x + one) * z, y * y, one * y
    end,
    inputs = { x = { "N", "T", 3 }, y = { 3, 1 }, z = { 3, low = 0.5, high = 1.5 } },
    gradient = 2,
  },
  test "extremes and means of several" {
    graph = function(g, x, y, z)
      return g.Max(x, y, z), g.Min(x, y), g.Mean(x, y, z), g.Sum(x, y, z)
    end,
    inputs = { x = { 2, 3, 4 }, y = { 3, 1 }, z = { 4 } },
    gradient = 2,
  },
  test "powers" {
    graph = function(g, x, y)
      return x ^ y, x ^ 2, x ^ 3.5, g.Pow(x, g.constant({ 0, 1, 3 }, "int64")), x ^ 0
    end,
    inputs = { x = { 2, 3, low = 0.8, high = 1.3 }, y = { 2, 3, low = -1, high = 1 } },
    gradient = 2,
  },
  test "powers of negative numbers" {
    graph = function(_, x) return x ^ 2, x ^ 3 end,
    inputs = { x = { 2, 3, low = -1.2, high = -0.5 } },
    gradient = 2,
  },
  test "remainders" {
    graph = function(g, x, y) return g.Mod(x, y, { fmod = 1 }) end,
    inputs = { x = { 3, 4, low = 2, high = 5 }, y = { 3, 4, low = 0.8, high = 1.2 } },
    gradient = 2,
  },
  test "Where" {
    graph = function(g, x, y) return g.Where(g.Greater(x, 0), x * y, y) end,
    inputs = { x = { 2, 3, 4 }, y = { 4 } },
    gradient = 2,
  },
}

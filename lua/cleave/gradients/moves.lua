-- SPDX-License-Identifier: Apache-2.0
-- What cuts, joins, pads and repeats.
local common = include "common.lua"

-- Vectors of integers of a slice: where it begins, of the size `dims` of each axis.
local function begins(g, starts, dims)
  local zero = g.constant { 0 }
  local counted = g.Where(g.Less(starts, 0), g.Add(starts, dims), starts)
  return g.Min(g.Max(counted, zero), dims)
end

local function all_equal(list, number)
  for _, item in ipairs(list) do
    if item ~= number then
      return false
    end
  end
  return true
end

-- Steps of 1: zeros around the gradient.
local function slice_by_pads(g, node, dy, axes)
  local x, starts = node.inputs[1], g.Cast(node.inputs[2], { to = "int64" })
  local axis_list = g.constant(axes)
  local dims = g.Gather(g.Shape(x), axis_list)
  local first = begins(g, starts, dims)
  local last = g.Sub(g.Sub(dims, first), g.Gather(g.Shape(dy), axis_list))
  return g.Pad(dy, g.Concat(first, last, { axis = 0 }), g.constant(0, dy.dtype), axis_list)
end

-- Any steps, one axis after the other: where each place came from says where it goes.
local function slice_by_places(g, node, dy, axes)
  local x, inputs = node.inputs[1], node.inputs
  for k, axis in ipairs(axes) do
    local size = common.size(g, x, axis)
    local function bound(value)
      return g.Cast(g.Slice(value, { k - 1 }, { k }), { to = "int64" })
    end
    local all = g.Range(0, g.Squeeze(size, { 0 }), 1)
    local places = g.Slice(all, bound(inputs[2]), bound(inputs[3]), { 0 }, bound(inputs[5]))
    dy = common.scatter_axis(g, dy, places, axis, size)
  end
  return dy
end

-- Pads other than zeros: the same padding of the places says what each element is a copy of.
local function pad_by_places(g, node, dy, axes)
  local pads = node.inputs[2]
  local count = #axes
  for k, axis in ipairs(axes) do
    local size = common.size(g, node.inputs[1], axis)
    local all = g.Range(0, g.Squeeze(size, { 0 }), 1)
    local own = g.Concat(g.Slice(pads, { k - 1 }, { k }),
      g.Slice(pads, { count + k - 1 }, { count + k }), { axis = 0 })
    local places = g.Pad(all, own, { mode = node.attrs.mode })
    dy = common.scatter_axis(g, dy, places, axis, size)
  end
  return dy
end

-- The axes of an optional input, as numbers from 0; all if it is left out.
local function axes_of(value, rank, what)
  local known = common.known(value)
  if value and not known then
    error(what .. ": the gradient needs axes that are a constant")
  end
  local axes = {}
  for k, axis in ipairs(known or common.axes_from(0, rank)) do
    axes[k] = common.axis(axis, rank)
  end
  return axes
end

return {
  gradient "CenterCropPad" { function(g, node, dy)
    local x, axes = node.inputs[1], node.attrs.axes
    local shape = g.Shape(x)
    if axes then
      return g.CenterCropPad(dy, g.Gather(shape, axes), { axes = axes })
    end
    return g.CenterCropPad(dy, shape)
  end },

  gradient "Concat" { function(g, node, dy)
    local axis = common.axis(node.attrs.axis, common.rank(node.outputs[1], "Concat"))
    local count, sizes, attributes = #node.inputs, {}, { axis = 0 }
    for k = 1, count do
      sizes[k] = common.size(g, node.inputs[k], axis)
    end
    if count == 1 then
      return dy
    end
    sizes[count + 1] = attributes
    return g.Split(dy, g.Concat(table.unpack(sizes)), { axis = axis, outputs = count })
  end },

  gradient "Pad" { function(g, node, dy)
    local x, pads, value = node.inputs[1], node.inputs[2], node.inputs.constant_value
    local axes = axes_of(node.inputs.axes, common.rank(x, "Pad"), "Pad")
    if node.attrs.mode ~= "constant" then
      return pad_by_places(g, node, dy, axes)
    end
    local dx = g.Pad(dy, g.Neg(pads), g.constant(0, dy.dtype), g.constant(axes))
    if not value then
      return dx
    end
    local whole = g.ReduceSum(dy, { keepdims = 0 }) - g.ReduceSum(dx, { keepdims = 0 })
    return dx, false, g.Reshape(whole, g.Shape(value))
  end },

  gradient "ReverseSequence" { function(g, node, dy)
    local attrs = node.attrs
    return g.ReverseSequence(dy, node.inputs[2],
      { batch_axis = attrs.batch_axis, time_axis = attrs.time_axis })
  end },

  gradient "Slice" { function(g, node, dy)
    local x, steps = node.inputs[1], node.inputs.steps
    local rank, starts = common.rank(x, "Slice"), node.inputs[2]
    local axes = axes_of(node.inputs.axes, rank, "Slice")
    if not node.inputs.axes then
      local count = starts.shape and starts.shape[1]
      axes = table.move(axes, 1, math.type(count) == "integer" and count or rank, 1, {})
    end
    local known = common.known(steps)
    if steps and not (known and all_equal(known, 1)) then
      return slice_by_places(g, node, dy, axes)
    end
    return slice_by_pads(g, node, dy, axes)
  end },

  gradient "Split" { function(g, node, ...)
    local parts, count = { ... }, #node.outputs
    for k = 1, count do
      parts[k] = parts[k] or common.full(g, node.outputs[k], 0)
    end
    parts[count + 1] = { axis = node.attrs.axis }
    return g.Concat(table.unpack(parts, 1, count + 1))
  end },

  gradient "Tile" { function(g, node, dy)
    local x = node.inputs[1]
    local rank = common.rank(x, "Tile")
    local repeats, axes = g.Unsqueeze(node.inputs[2], { 1 }), {}
    local sizes = g.Concat(repeats, g.Unsqueeze(g.Shape(x), { 1 }), { axis = 1 })
    for k = 1, rank do
      axes[k] = 2 * (k - 1)
    end
    local apart = g.Reshape(dy, g.Reshape(sizes, { -1 }), { allowzero = 1 })
    return g.ReduceSum(apart, axes, { keepdims = 0 })
  end },

  gradient "Trilu" { function(g, node, dy)
    if node.inputs.k then
      return g.Trilu(dy, node.inputs.k, { upper = node.attrs.upper })
    end
    return g.Trilu(dy, { upper = node.attrs.upper })
  end },

  test "Concat and Split" {
    graph = function(g, x, y)
      local joined = g.Concat(x, y, x, { axis = -1 })
      local a, b = g.Split(joined * joined, { 3, 7 }, { axis = 1 })
      local c = g.Split(x, { axis = 1, num_outputs = 2 })
      return joined, a, b * 2, c
    end,
    inputs = { x = { 2, 4 }, y = { 2, 2 } },
    gradient = 2,
  },
  test "Concat of open sizes" {
    graph = function(g, x, y) return g.Concat(x, y, { axis = 1 }) end,
    inputs = { x = { "N", "T", 3 }, y = { "N", "S", 3 } },
    gradient = 2,
  },
  test "Slice in steps of one" {
    graph = function(g, x)
      return g.Slice(x, { 1, -3 }, { 3, 100 }, { 0, 2 }), g.Slice(x, { -2 }, { -1 }, { 1 }),
        g.Slice(x, { 0, 1 }, { 2, 3 })
    end,
    inputs = { x = { 3, 4, 5 } },
    gradient = 2,
  },
  test "Slice in other steps, and backwards" {
    graph = function(g, x)
      return g.Slice(x, { 3, 0 }, { -100, 5 }, { 1, 2 }, { -1, 2 }),
        g.Slice(x, { -1 }, { 0 }, { 0 }, { -2 })
    end,
    inputs = { x = { 3, 4, 5 } },
    gradient = 2,
  },
  test "Slice of open sizes" {
    graph = function(g, x)
      return g.Slice(x, { 1 }, { 1000 }, { 1 }), g.Slice(x, { -1 }, { 1000 }, { 0 })
    end,
    inputs = { x = { "N", "T", 3 } },
    gradient = 2,
  },
  test "Pad" {
    graph = function(g, x, v)
      return g.Pad(x, { 1, 0, 2, 3 }, v), g.Pad(x, { 1, 2, 2, 1 }, { mode = "reflect" }),
        g.Pad(x, { 1, 2, 0, 1 }, { mode = "edge" }), g.Pad(x, { 1, -1 }, { axes = { 1 } }),
        g.Pad(x, { 2, 1, 1, 2 }, { mode = "wrap" })
    end,
    inputs = { x = { 3, 4 }, v = {} },
    gradient = 2,
  },
  test "Tile of nothing" {
    graph = function(g, x) return g.Tile(x, { 2, 2 }) end,
    inputs = { x = { 0, 3 } },
    gradient = 2,
  },
  test "Tile, Trilu, ReverseSequence, CenterCropPad" {
    graph = function(g, x)
      return g.Tile(x, { 2, 1, 3 }), g.Trilu(x), g.Trilu(x, -1, { upper = 0 }),
        g.ReverseSequence(x, { 2, 1, 3, 3 }), g.CenterCropPad(x, { 2, 7 }, { axes = { 0, 2 } })
    end,
    inputs = { x = { 3, 4, 4 } },
    gradient = 2,
  },
}

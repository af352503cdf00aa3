-- SPDX-License-Identifier: Apache-2.0
-- What picks and places by indices: what was picked several times adds up.
local common = include "common.lua"

local function zeros(g, like)
  return common.full(g, like, 0)
end

-- Scatters of both kinds: `put` and `pick` are ScatterElements and GatherElements of the node's
-- indices, or the same of ND. What is extreme several times shares; products leave one factor out.
local function scattered(g, node, dy, put, pick)
  local data, updates, reduction = node.inputs[1], node.inputs[3], node.attrs.reduction
  if reduction == "none" then
    return put(dy, zeros(g, updates), "none"), nil, pick(dy)
  elseif reduction == "add" then
    return dy, nil, pick(dy)
  elseif reduction == "mul" then
    local is_zero, one = g.Equal(updates, 0), g.constant(1, dy.dtype)
    local factors = g.Where(is_zero, one, updates)
    local others = pick(put(data, factors, "mul"))
    local count = pick(put(zeros(g, data), common.mask(g, is_zero, dy), "add"))
    local share = g.Where(is_zero, common.only(g, g.Equal(count, 1), others),
      common.only(g, g.Equal(count, 0), others / factors))
    return put(dy, updates, "mul"), nil, pick(dy) * share
  end
  local y = node.outputs[1]
  local own = common.mask(g, g.Equal(data, y), dy)
  local new = common.mask(g, g.Equal(updates, pick(y)), dy)
  local share = dy / put(own, new, "add")
  return share * own, nil, pick(share) * new
end

return {
  gradient "Compress" { function(g, node, dy)
    local x, axis = node.inputs[1], node.attrs.axis
    local places = g.Squeeze(g.NonZero(node.inputs[2]), { 0 })
    if axis then
      axis = common.axis(axis, common.rank(x, "Compress"))
      return common.scatter_axis(g, dy, places, axis, common.size(g, x, axis))
    end
    local flat = common.scatter_axis(g, dy, places, 0, common.vector(g, g.Size(x)))
    return common.shaped(g, flat, x)
  end },

  gradient "Gather" {
    doc = "Sums of rows; for another axis than the first, between transpositions.",
    function(g, node, dy)
      local data, indices = node.inputs[1], node.inputs[2]
      local rank = common.rank(data, "Gather")
      local count = common.rank(indices, "Gather: indices")
      local axis = common.axis(node.attrs.axis, rank)
      local rows = g.Unsqueeze(indices, { -1 })
      if axis == 0 then
        return g.ScatterND(zeros(g, data), rows, dy, { reduction = "add" })
      end
      local front, back = {}, {} -- indices first; and the axis of data first, turned back
      for k = 0, count - 1 do
        front[#front + 1] = axis + k
      end
      for k = 0, rank + count - 2 do
        if k < axis or k >= axis + count then
          front[#front + 1] = k
        end
      end
      for k = 0, rank - 1 do
        back[#back + 1] = k < axis and k + 1 or k == axis and 0 or k
      end
      local shape = { common.size(g, data, axis) }
      for k = 0, rank - 1 do
        if k ~= axis then
          shape[#shape + 1] = common.size(g, data, k)
        end
      end
      shape[#shape + 1] = { axis = 0 }
      local empty = g.Expand(g.constant(0, dy.dtype), g.Concat(table.unpack(shape)))
      local turned = g.ScatterND(empty, rows, g.Transpose(dy, { perm = front }),
        { reduction = "add" })
      return g.Transpose(turned, { perm = back })
    end,
  },

  gradient "GatherElements" { function(g, node, dy)
    return g.ScatterElements(zeros(g, node.inputs[1]), node.inputs[2], dy,
      { axis = node.attrs.axis, reduction = "add" })
  end },

  gradient "GatherND" {
    doc = "Dimensions of a batch become one, whose number goes before the other indices.",
    function(g, node, dy)
      local data, indices, count = node.inputs[1], node.inputs[2], node.attrs.batch_dims
      if count == 0 then
        return g.ScatterND(zeros(g, data), indices, dy, { reduction = "add" })
      end
      local function joined(value)
        local sizes = g.Concat(common.count(g, value, 0, count), g.Shape(value, { start = count }),
          { axis = 0 })
        return g.Reshape(value, sizes, { allowzero = 1 })
      end
      local places = joined(indices)
      local rank = common.rank(places, "GatherND")
      local batch = g.Range(0, g.Squeeze(common.size(g, places, 0), { 0 }), 1)
      local around = { -1 }
      for k = 2, rank do
        around[k] = 1
      end
      local leading = g.Shape(places, { start = 0, ["end"] = rank - 1 })
      local shape = g.Concat(leading, { 1 }, { axis = 0 })
      local numbers = g.Expand(g.Reshape(batch, around), shape)
      local all = g.Concat(numbers, places, { axis = -1 })
      local dx = g.ScatterND(zeros(g, joined(data)), all, joined(dy), { reduction = "add" })
      return common.shaped(g, dx, data)
    end,
  },

  gradient "OneHot" { function(g, node, dy)
    local on = g.OneHot(node.inputs[1], node.inputs[2], g.constant({ 0, 1 }, dy.dtype),
      { axis = node.attrs.axis })
    local all, those_on = g.ReduceSum(dy, { keepdims = 0 }), g.ReduceSum(dy * on, { keepdims = 0 })
    return false, false, g.Concat(common.vector(g, all - those_on), common.vector(g, those_on),
      { axis = 0 })
  end },

  gradient "ScatterElements" { function(g, node, dy)
    local indices, axis = node.inputs[2], node.attrs.axis
    return scattered(g, node, dy, function(data, updates, reduction)
      return g.ScatterElements(data, indices, updates, { axis = axis, reduction = reduction })
    end, function(value)
      return g.GatherElements(value, indices, { axis = axis })
    end)
  end },

  gradient "ScatterND" { function(g, node, dy)
    local indices = node.inputs[2]
    return scattered(g, node, dy, function(data, updates, reduction)
      return g.ScatterND(data, indices, updates, { reduction = reduction })
    end, function(value)
      return g.GatherND(value, indices)
    end)
  end },

  gradient "TensorScatter" {
    doc = "From the places where the update went; the cache had those no more.",
    function(g, node, dy)
      local update, first = node.inputs[2], node.inputs[3]
      local rank = common.rank(update, "TensorScatter")
      local axis = common.axis(node.attrs.axis, rank)
      local places, around = g.Range(0, g.Squeeze(common.size(g, update, axis), { 0 }), 1), {}
      for k = 1, rank do
        around[k] = k == axis + 1 and -1 or 1
      end
      places = g.Reshape(places, around)
      if first then
        around[1], around[axis + 1] = -1, 1
        places = g.Add(places, g.Reshape(first, around))
      end
      if node.attrs.mode == "circular" then
        places = g.Mod(places, common.size(g, dy, axis))
      end
      local indices = g.Expand(places, g.Shape(update))
      return g.ScatterElements(dy, indices, zeros(g, update), { axis = axis }),
        g.GatherElements(dy, indices, { axis = axis }), false
    end,
  },

  gradient "TopK" { function(g, node, dy)
    return g.ScatterElements(zeros(g, node.inputs[1]), node.outputs[2], dy,
      { axis = node.attrs.axis, reduction = "add" })
  end },

  gradient "Unique" {
    doc = "To the place that each result was taken from.",
    function(g, node, dy)
      local x, axis = node.inputs[1], node.attrs.axis
      local own = { axis = axis, sorted = node.attrs.sorted, outputs = 2 }
      local places = select(2, g.Unique(x, own))
      if axis then
        axis = common.axis(axis, common.rank(x, "Unique"))
        return common.scatter_axis(g, dy, places, axis, common.size(g, x, axis))
      end
      local flat = common.scatter_axis(g, dy, places, 0, common.vector(g, g.Size(x)))
      return common.shaped(g, flat, x)
    end,
  },

  test "Gather along each axis" {
    graph = function(g, x)
      local some = g.constant { { 0, 2 }, { 2, -1 } }
      return g.Gather(x, some), g.Gather(x, some, { axis = 1 }), g.Gather(x, some, { axis = -1 }),
        g.Gather(x, 1, { axis = 1 })
    end,
    inputs = { x = { 3, 4, 3 } },
    gradient = 2,
  },
  test "GatherElements and GatherND" {
    graph = function(g, x)
      return g.GatherElements(x, { { 0, 2, 1 }, { 1, 1, 0 } }, { axis = 1 }),
        g.GatherND(x, { { 0, 1 }, { 2, 2 }, { 0, 1 } }), g.GatherND(x, { { 1 }, { -1 } })
    end,
    inputs = { x = { 3, 3 } },
    gradient = 2,
  },
  test "scattering" {
    graph = function(g, x, u, v)
      local places = { { 0, 2, 1 }, { 1, 1, 0 } }
      return g.ScatterElements(x, places, u, { axis = 1, reduction = "add" }),
        g.ScatterElements(x, { { 0, 2, 1 }, { 1, 1, 0 } }, u, { axis = 0 }),
        g.ScatterND(x, { { 2 }, { 0 } }, v),
        g.ScatterND(x, { { 1 }, { 1 } }, v, { reduction = "add" })
    end,
    inputs = { x = { 3, 3 }, u = { 2, 3 }, v = { 2, 3 } },
    gradient = 2,
  },
  test "products and extremes of what is scattered" {
    graph = function(g, x, u, v)
      local all, places = {}, { { 0, 2, 1 }, { 1, 1, 0 } }
      for k, reduction in ipairs { "mul", "max", "min" } do
        all[2 * k - 1] = g.ScatterElements(x, places, u, { axis = 0, reduction = reduction })
        all[2 * k] = g.ScatterND(x, { { 1 }, { 1 } }, v, { reduction = reduction })
      end
      return table.unpack(all)
    end,
    inputs = { x = { 3, 3 }, u = { 2, 3 }, v = { 2, 3 } },
    gradient = 2,
  },
  test "caches, and indices of a batch" {
    graph = function(g, x, u)
      local first = g.constant { 3, 1 }
      return g.TensorScatter(x, u, g.constant { 2, 0 }),
        g.TensorScatter(x, u, first, { mode = "circular" }), (g.TensorScatter(x, u)),
        g.GatherND(x, g.constant { { { 1 }, { 0 } }, { { 2 }, { 2 } } }, { batch_dims = 1 })
    end,
    inputs = { x = { 2, 4, 3 }, u = { 2, 2, 3 } },
    gradient = 2,
  },
  test "indices of a batch of nothing" {
    graph = function(g, x)
      return g.GatherND(x, g.zeros { 2, 0, 1, dtype = "int64" }, { batch_dims = 2 })
    end,
    inputs = { x = { 2, 0, 4 } },
    gradient = 2,
  },
  test "what is left of equal ones" {
    graph = function(g, x) return (g.Unique(x)), (g.Unique(x, { axis = 1, sorted = 0 })) end,
    inputs = { x = { 2, 3 } },
    gradient = 2,
  },
  test "TopK, OneHot and Compress" {
    graph = function(g, x, v)
      local largest = g.TopK(x, g.constant { 2 })
      return largest, g.OneHot(g.constant { 1, 0, 2 }, 3, v),
        g.Compress(x, g.constant({ false, true, true }, "bool"), { axis = 0 }),
        g.Compress(x, g.constant({ true, false, true }, "bool"))
    end,
    inputs = { x = { 3, 4 }, v = { 2 } },
    gradient = 2,
  },
}

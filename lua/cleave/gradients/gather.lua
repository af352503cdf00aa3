-- SPDX-License-Identifier: Apache-2.0
-- What picks and places by indices: what was picked several times adds up.
local common = include "common.lua"

local function zeros(g, like)
  return common.full(g, like, 0)
end

-- Reductions other than none and add have no gradient here.
local function is_plain(node)
  return node.attrs.reduction == "none" or node.attrs.reduction == "add"
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
    return g.Reshape(flat, g.Shape(x))
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

  gradient "GatherND" { function(g, node, dy)
    if node.attrs.batch_dims ~= 0 then
      return nil
    end
    return g.ScatterND(zeros(g, node.inputs[1]), node.inputs[2], dy, { reduction = "add" })
  end },

  gradient "OneHot" { function(g, node, dy)
    local on = g.OneHot(node.inputs[1], node.inputs[2], g.constant({ 0, 1 }, dy.dtype),
      { axis = node.attrs.axis })
    local all, those_on = g.ReduceSum(dy, { keepdims = 0 }), g.ReduceSum(dy * on, { keepdims = 0 })
    return false, false, g.Concat(common.vector(g, all - those_on), common.vector(g, those_on),
      { axis = 0 })
  end },

  gradient "ScatterElements" { function(g, node, dy)
    if not is_plain(node) then
      return nil
    end
    local indices, updates, axis = node.inputs[2], node.inputs[3], node.attrs.axis
    local picked = g.GatherElements(dy, indices, { axis = axis })
    if node.attrs.reduction == "add" then
      return dy, nil, picked
    end
    return g.ScatterElements(dy, indices, zeros(g, updates), { axis = axis }), nil, picked
  end },

  gradient "ScatterND" { function(g, node, dy)
    if not is_plain(node) then
      return nil
    end
    local indices, updates = node.inputs[2], node.inputs[3]
    local picked = g.GatherND(dy, indices)
    if node.attrs.reduction == "add" then
      return dy, nil, picked
    end
    return g.ScatterND(dy, indices, zeros(g, updates)), nil, picked
  end },

  gradient "TopK" { function(g, node, dy)
    return g.ScatterElements(zeros(g, node.inputs[1]), node.outputs[2], dy,
      { axis = node.attrs.axis, reduction = "add" })
  end },

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

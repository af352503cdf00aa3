-- SPDX-License-Identifier: Apache-2.0
-- Pools.
local common = include "common.lua"

local WINDOW = { "auto_pad", "ceil_mode", "dilations", "kernel_shape", "strides" }

-- The attributes of a pool, as they are written or by default.
local function attributes_of(node, more)
  local attrs, result = node.attrs, {}
  for _, name in ipairs(WINDOW) do
    result[name] = attrs[name]
  end
  result.pads = attrs.auto_pad == "NOTSET" and attrs.pads or nil
  for name, value in pairs(more) do
    result[name] = value
  end
  return result
end

-- The elements of `value` at places of the whole tensor, in the shape of `like`.
local function picked(g, value, places, like)
  return common.shaped(g, g.Gather(g.Reshape(value, { -1 }), g.Reshape(places, { -1 })), like)
end

-- Where the elements of MaxUnpool go in its result. Its indices count in what was pooled, which the
-- result may exceed, or fall short of, if `output_shape` says so.
local function unpooled(g, node)
  local x, y, places, attrs = node.inputs[1], node.outputs[1], node.inputs[2], node.attrs
  if not node.inputs[3] then
    return places
  end
  local rank, rest, at, step = common.rank(x, "MaxUnpool"), places, nil, nil
  for axis = rank - 1, 1, -1 do
    local size = common.size(g, x, axis)
    if axis > 1 then
      local k, count = axis - 1, rank - 2
      local pads = attrs.pads and attrs.pads[k] + attrs.pads[k + count] or 0
      size = (size - 1) * (attrs.strides and attrs.strides[k] or 1) + attrs.kernel_shape[k] - pads
    end
    local position = g.Mod(rest, size)
    at, rest = at and at + position * step or position, g.Div(rest, size)
    local wide = common.size(g, y, axis)
    step = step and step * wide or wide
  end
  return at + rest * step
end

-- 1 for the elements of MaxUnpool that stay in its result, 0 where a later one took the place: only
-- windows that overlap name a place twice.
local function lasting(g, node, places, dy)
  local attrs, overlaps = node.attrs, false
  for k, size in ipairs(attrs.kernel_shape) do
    overlaps = overlaps or size > (attrs.strides and attrs.strides[k] or 1)
  end
  if not overlaps then
    return nil
  end
  local flat, none = g.Reshape(places, { -1 }), g.constant(0, "int64")
  local order = g.Range(0, g.Size(places), 1)
  local last = g.ScatterElements(g.Expand(none, common.vector(g, g.Size(dy))), flat, order)
  local stays = g.Equal(g.Gather(last, flat), order)
  return common.mask(g, common.shaped(g, stays, places), dy)
end

local function spatial_axes(node)
  return common.axes_from(2, common.rank(node.inputs[1], node.op))
end

-- Of equal extremes, each gets the same share.
local function global_max(g, node, dy)
  local axes = spatial_axes(node)
  local mask = common.mask(g, g.Equal(node.inputs[1], node.outputs[1]), dy)
  return mask * (dy / g.ReduceSum(mask, axes, { keepdims = 1 }))
end

return {
  gradient "AveragePool" { function(g, node, dy)
    return g.AveragePoolGrad(dy, g.Shape(node.inputs[1]),
      attributes_of(node, { count_include_pad = node.attrs.count_include_pad }))
  end },
  gradient "AveragePoolGrad" { function(g, node, ddx)
    return g.AveragePool(ddx,
      attributes_of(node, { count_include_pad = node.attrs.count_include_pad })), false
  end },

  gradient "GlobalAveragePool" { function(g, node, dy)
    local x, whole = node.inputs[1], {}
    for k = 3, x.shape and #x.shape or 0 do
      whole[k - 2] = math.type(x.shape[k]) == "integer" and x.shape[k] or nil
    end
    if #whole > 0 and #whole == #x.shape - 2 then
      return g.AveragePoolGrad(dy, g.Shape(x), { kernel_shape = whole })
    end
    return g.Expand(dy / common.ratio(g, x, node.outputs[1]), g.Shape(x))
  end },
  gradient "GlobalLpPool" { function(g, node, dy)
    local x, y, p = node.inputs[1], node.outputs[1], node.attrs.p
    if p == 1 then
      return dy * g.Sign(x)
    elseif p == 2 then
      return g.Where(g.Equal(y, 0), g.constant(0, dy.dtype), dy / y) * x
    end
    local share = g.Where(g.Equal(y, 0), g.constant(0, dy.dtype), dy * g.Pow(y, 1 - p))
    return share * g.Sign(x) * g.Pow(g.Abs(x), p - 1)
  end },
  gradient "GlobalMaxPool" { global_max },

  gradient "LpPool" {
    doc = "As the root of a mean of powers, times the size of the window.",
    function(g, node, dy)
      local x, y, p, cells = node.inputs[1], node.outputs[1], node.attrs.p, 1
      for _, size in ipairs(node.attrs.kernel_shape) do
        cells = cells * size
      end
      local share = g.Where(g.Equal(y, 0), g.constant(0, dy.dtype), dy * g.Pow(y, 1 - p))
      local padded = 1
      if node.attrs.ceil_mode == 1 then
        -- Windows may end behind the pads, where no mean counts elements: those of x alone.
        padded, cells = 0, g.LpPool(common.full(g, x, 1), attributes_of(node, { p = 1 }))
      end
      local spread = g.AveragePoolGrad(share * cells, g.Shape(x),
        attributes_of(node, { count_include_pad = padded }))
      return spread * g.Sign(x) * g.Pow(g.Abs(x), p - 1)
    end,
  },

  gradient "MaxPool" {
    doc = "To the largest of each window, the first of equal ones.",
    function(g, node, dy)
      return g.MaxPoolGrad(dy, node.inputs[1], attributes_of(node, {}))
    end,
  },
  gradient "MaxPoolGrad" { function(g, node, ddx)
    local places = select(2, g.MaxPool(node.inputs[2], attributes_of(node, { outputs = 2 })))
    return picked(g, ddx, places, node.inputs[1]), false
  end },

  gradient "MaxUnpool" { function(g, node, dy)
    local places = unpooled(g, node)
    local dx, mask = picked(g, dy, places, node.inputs[1]), lasting(g, node, places, dy)
    return mask and dx * mask or dx
  end },

  test "averages of windows" {
    graph = function(g, x)
      return g.AveragePool(x, { kernel_shape = { 2, 2 } }),
        g.AveragePool(x, { kernel_shape = { 3, 2 }, strides = { 2, 1 }, pads = { 1, 1, 1, 1 } }),
        g.AveragePool(x, { kernel_shape = { 3, 3 }, strides = { 2, 2 }, ceil_mode = 1 }),
        g.AveragePool(x, { kernel_shape = { 3, 2 }, pads = { 1, 0, 1, 1 }, count_include_pad = 1 }),
        g.AveragePool(x, { kernel_shape = { 2, 2 }, dilations = { 2, 1 } }),
        g.AveragePool(x, { kernel_shape = { 2, 2 }, auto_pad = "SAME_UPPER", strides = { 2, 2 } })
    end,
    inputs = { x = { 2, 2, 5, 6 } },
    gradient = 2,
  },
  test "largest of windows" {
    graph = function(g, x)
      return (g.MaxPool(x, { kernel_shape = { 2, 2 }, strides = { 2, 2 } })),
        (g.MaxPool(x, { kernel_shape = { 3, 3 }, strides = { 2, 2 }, pads = { 1, 1, 1, 1 } })),
        (g.MaxPool(x, { kernel_shape = { 2, 2 }, ceil_mode = 1, strides = { 3, 3 } })),
        (g.MaxPool(x, { kernel_shape = { 2, 2 }, auto_pad = "SAME_LOWER" })),
        (g.MaxPool(x, { kernel_shape = { 2, 3 }, outputs = 2 }))
    end,
    inputs = { x = { 2, 2, 5, 6 } },
    gradient = 2,
  },
  test "pools of everything" {
    graph = function(g, x)
      return g.GlobalAveragePool(x), g.GlobalMaxPool(x), g.GlobalLpPool(x),
        g.GlobalLpPool(x, { p = 3 }), g.GlobalLpPool(x, { p = 1 })
    end,
    inputs = { x = { "N", 2, 3, "W" } },
    gradient = 2,
  },
  test "the mean of images of known size" {
    graph = function(g, x) return g.GlobalAveragePool(x) end,
    inputs = { x = { 2, 2, 3, 4 } },
    gradient = 2,
  },
  test "norms of windows" {
    graph = function(g, x)
      return g.LpPool(x, { kernel_shape = { 2, 2 } }),
        g.LpPool(x, { kernel_shape = { 3, 2 }, strides = { 2, 1 }, pads = { 1, 1, 1, 1 }, p = 3 }),
        g.LpPool(x, { kernel_shape = { 2, 3 }, strides = { 2, 2 }, pads = { 1, 0, 0, 0 },
          ceil_mode = 1 })
    end,
    inputs = { x = { 1, 2, 5, 4 } },
    gradient = 2,
  },
  test "undoing the largest of windows" {
    graph = function(g, x)
      local y, indices = g.MaxPool(x, { kernel_shape = { 2, 2 }, strides = { 2, 2 }, outputs = 2 })
      return g.MaxUnpool(y * y, indices, { kernel_shape = { 2, 2 }, strides = { 2, 2 } })
    end,
    inputs = { x = { 1, 2, 4, 6 } },
    gradient = 2,
  },
  test "undoing windows in a larger tensor, and where they overlap" {
    graph = function(g, x, z)
      local window = { kernel_shape = { 2, 2 }, strides = { 2, 2 }, outputs = 2 }
      local y, indices = g.MaxPool(x, window)
      local cut = { kernel_shape = { 3 }, strides = { 3 }, pads = { 1, 1 }, outputs = 2 }
      local line, places = g.MaxPool(z, cut)
      local twice = g.constant({ { { 1, 1, 4 }, { 9, 7, 7 } } }, "int64")
      local overlapped = g.MaxUnpool(line, twice, { kernel_shape = { 3 } })
      return g.MaxUnpool(y * y, indices, g.constant { 2, 3, 5, 8 },
          { kernel_shape = { 2, 2 }, strides = { 2, 2 } }),
        g.MaxUnpool(line, places, g.constant { 1, 2, 9 },
          { kernel_shape = { 3 }, strides = { 3 }, pads = { 1, 1 } }), overlapped
    end,
    inputs = { x = { 2, 3, 4, 6 }, z = { 1, 2, 7 } },
    gradient = 2,
  },
}

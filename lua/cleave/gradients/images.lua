-- SPDX-License-Identifier: Apache-2.0
-- Images and grids. Resize is linear, and each axis is resized on its own: an identity that is
-- resized is the matrix of an axis in any mode; the gradient is a product with its transpose.
local common = include "common.lua"

local KEPT = { "antialias", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside",
  "mode", "nearest_mode" }

-- The scale of each axis where it is a constant: a list by axis from 1.
local function known_scales(node, rank)
  local known, scales = common.known(node.inputs.scales), {}
  for k = 1, rank do
    scales[k] = 1.0
  end
  if not known or #known == 0 then
    return nil
  end
  for k, axis in ipairs(node.attrs.axes or common.axes_from(0, rank)) do
    scales[common.axis(axis, rank) + 1] = known[k]
  end
  return scales
end

-- [size before, size after]: what each place gives to each place of the result.
local function matrix(g, node, axis, scale)
  local x, attributes = node.inputs[1], {}
  for _, name in ipairs(KEPT) do
    attributes[name] = node.attrs[name]
  end
  local size = common.size(g, x, axis)
  local square = g.Expand(g.constant(0, x.dtype), g.Concat(size, size, { axis = 0 }))
  attributes.X = g.EyeLike(square)
  if scale then
    attributes.scales = g.constant({ 1, scale }, "float32")
  else
    attributes.sizes = g.Concat(size, common.size(g, node.outputs[1], axis), { axis = 0 })
  end
  return g.Resize(attributes)
end

local function along(g, value, factor, axis, rank)
  if axis == rank - 2 then
    return g.MatMul(factor, value)
  elseif axis == rank - 1 then
    return g.MatMul(value, g.Transpose(factor))
  end
  local perm = common.axes_from(0, rank)
  perm[axis + 1], perm[rank] = perm[rank], perm[axis + 1]
  local turned = g.MatMul(g.Transpose(value, { perm = perm }), g.Transpose(factor))
  return g.Transpose(turned, { perm = perm })
end

-- Where GridSample reads along one axis, in pixels, after padding; and its derivative by the grid.
local function pixels(g, place, size, attrs)
  local aligned, one = attrs.align_corners == 1, g.constant(1, place.dtype)
  local last = size - one
  local slope = (aligned and last or size) / 2
  local at = (place + one) * slope
  if not aligned then
    at = at - g.constant(0.5, place.dtype)
  end
  if attrs.padding_mode == "border" then
    local inside = g.And(g.GreaterOrEqual(at, 0), g.LessOrEqual(at, last))
    return g.Max(g.Min(at, last), g.constant(0, place.dtype)), common.only(g, inside, slope)
  elseif attrs.padding_mode == "reflection" then
    local low = g.constant(aligned and 0 or -0.5, place.dtype)
    -- Between the corners of one pixel there is nothing to reflect; all places are at it.
    local span = aligned and g.Max(last, one) or size
    local past = g.Abs(at - low)
    local turns = g.Floor(past / span)
    local rest = past - turns * span
    local is_even = g.Equal(turns - g.Floor(turns / 2) * 2, 0)
    local reflected = g.Where(is_even, rest, span - rest) + low
    local inside = g.And(g.GreaterOrEqual(reflected, 0), g.LessOrEqual(reflected, last))
    local sign = common.only(g, inside, g.Sign(at - low) * g.Where(is_even, one, -one))
    return g.Max(g.Min(reflected, last), g.constant(0, place.dtype)), sign * slope
  end
  return at, slope
end

-- The neighbours along one axis: their pixels, weights, and derivatives of these by the place.
local function neighbours(g, at, nearest)
  local one = g.constant(1, at.dtype)
  if nearest then
    return { { g.Round(at), one } }
  end
  local low = g.Floor(at)
  local share = at - low
  return { { low, one - share, -one }, { low + one, share, one } }
end

-- All combinations of one neighbour per axis.
local function corners(axes)
  local result = { {} }
  for _, choices in ipairs(axes) do
    local longer = {}
    for _, corner in ipairs(result) do
      for _, choice in ipairs(choices) do
        local next_corner = table.move(corner, 1, #corner, 1, {})
        next_corner[#next_corner + 1] = choice
        longer[#longer + 1] = next_corner
      end
    end
    result = longer
  end
  return result
end

-- One corner of all places: its index in a plane, and 1 where it is inside of the image, else 0.
local function index_of(g, corner, sizes)
  local index, inside
  for d, choice in ipairs(corner) do
    local last = sizes[d] - g.constant(1, sizes[d].dtype)
    local own = g.And(g.GreaterOrEqual(choice[1], 0), g.LessOrEqual(choice[1], last))
    local clipped = g.Max(g.Min(choice[1], last), g.constant(0, last.dtype))
    inside = inside and g.And(inside, own) or own
    index = index and index * sizes[d] + clipped or clipped
  end
  return g.Cast(index, { to = "int64" }), common.mask(g, inside, index)
end

-- [N, places] -> [N, 1, places], which goes along with all channels.
local function beside(g, value)
  return g.Unsqueeze(value, { 1 })
end

local function sampled(g, node, dy)
  local x, grid, attrs = node.inputs[1], node.inputs[2], node.attrs
  local rank = common.rank(x, "GridSample")
  if attrs.mode ~= "linear" and attrs.mode ~= "nearest" then
    return nil
  end
  local nearest, count = attrs.mode == "nearest", rank - 2
  local places = g.Reshape(grid, g.Concat(common.size(g, grid, 0), { -1, count }, { axis = 0 }))
  local sizes, slopes, axes = {}, {}, {}
  for d = 1, count do
    -- The grid names the last axis first.
    local k = count - d
    local own = g.Squeeze(g.Slice(places, { k }, { k + 1 }, { 2 }), { 2 })
    sizes[d] = g.Cast(g.Squeeze(common.size(g, x, d + 1), { 0 }), { to = dy.dtype })
    local at
    at, slopes[d] = pixels(g, g.Cast(own, { to = dy.dtype }), sizes[d], attrs)
    axes[d] = neighbours(g, at, nearest)
  end
  local leading = g.Shape(x, { start = 0, ["end"] = 2 })
  local plane, flat = g.Concat(leading, { -1 }, { axis = 0 }), g.Shape(x)
  local image, arrived = g.Reshape(x, plane), g.Reshape(dy, plane)
  local dx, dplaces = common.full(g, image, 0), {}
  for _, corner in ipairs(corners(axes)) do
    local index, inside = index_of(g, corner, sizes)
    local wide = g.Expand(beside(g, index), g.Shape(arrived))
    local weight = inside
    for _, choice in ipairs(corner) do
      weight = weight * choice[2]
    end
    dx = g.ScatterElements(dx, wide, arrived * beside(g, weight), { axis = 2, reduction = "add" })
    local read = not nearest and g.GatherElements(image, wide, { axis = 2 })
    local product = read and g.ReduceSum(arrived * read, { 1 }, { keepdims = 0 })
    for d = 1, nearest and 0 or count do
      local share = product * inside * corner[d][3]
      for e, choice in ipairs(corner) do
        share = e ~= d and share * choice[2] or share
      end
      dplaces[d] = dplaces[d] and dplaces[d] + share or share
    end
  end
  if nearest then
    return g.Reshape(dx, flat), false
  end
  local parts = {}
  for d = count, 1, -1 do
    parts[#parts + 1] = g.Unsqueeze(dplaces[d] * slopes[d], { -1 })
  end
  parts[#parts + 1] = { axis = -1 }
  local dgrid = g.Cast(g.Concat(table.unpack(parts)), { to = grid.dtype })
  return g.Reshape(dx, flat), g.Reshape(dgrid, g.Shape(grid))
end

return {
  gradient "GridSample" {
    doc = "Linear and nearest, by the neighbours of each place.",
    sampled,
  },

  gradient "AffineGrid" {
    doc = "The grid is linear in theta: that of the identity says what theta is multiplied with.",
    function(g, node, dy)
      local theta, size, attrs = node.inputs[1], node.inputs[2], node.attrs
      local axes = theta.shape and theta.shape[2]
      if math.type(axes) ~= "integer" then
        error("AffineGrid: the gradient needs the shape of theta")
      end
      local count = g.Shape(theta, { start = 0, ["end"] = 1 })
      local identity = g.EyeLike(g.zeros { axes, axes + 1, dtype = theta.dtype })
      local all = g.Expand(g.Unsqueeze(identity, { 0 }), g.Concat(count, { 1, 1 }, { axis = 0 }))
      local places = g.AffineGrid(all, size, { align_corners = attrs.align_corners })
      local function rows(value)
        return g.Reshape(value, g.Concat(count, { -1, axes }, { axis = 0 }))
      end
      local ones = common.full(g, g.Slice(rows(places), { 0 }, { 1 }, { 2 }), 1)
      local factors = g.Concat(rows(places), ones, { axis = 2 })
      return g.MatMul(g.Transpose(rows(dy), { perm = { 0, 2, 1 } }), factors), false
    end,
  },

  gradient "Resize" { function(g, node, dy)
    local x, attrs = node.inputs[1], node.attrs
    if attrs.keep_aspect_ratio_policy ~= "stretch"
      or attrs.coordinate_transformation_mode == "tf_crop_and_resize" then
      return nil
    end
    local rank = common.rank(x, "Resize")
    local scales = known_scales(node, rank)
    for axis = 0, rank - 1 do
      local before = x.shape[axis + 1]
      local same = before == node.outputs[1].shape[axis + 1] and before ~= "?"
      local scale = scales and scales[axis + 1]
      if scale ~= 1 and not (same and not scale) then
        dy = along(g, dy, matrix(g, node, axis, scale), axis, rank)
      end
    end
    return dy, false, false, false
  end },

  test "Resize in every mode" {
    graph = function(g, x)
      local function scaled(scales, attributes)
        attributes.X, attributes.scales = x, g.constant(scales, "float32")
        return g.Resize(attributes)
      end
      local function sized(sizes, attributes)
        attributes.X, attributes.sizes = x, g.constant(sizes)
        return g.Resize(attributes)
      end
      local asymmetric = { mode = "nearest", coordinate_transformation_mode = "asymmetric" }
      local aligned = { mode = "linear", coordinate_transformation_mode = "align_corners" }
      return scaled({ 1, 1, 2, 2 }, asymmetric), scaled({ 1, 1, 2, 1.5 }, { mode = "linear" }),
        sized({ 1, 2, 5, 3 }, aligned), sized({ 1, 2, 7, 8 }, { mode = "cubic" }),
        scaled({ 0.6, 0.5 }, { mode = "linear", antialias = 1, axes = { 2, 3 } }),
        sized({ 1, 3, 4, 4 }, { mode = "nearest" })
    end,
    inputs = { x = { 1, 2, 4, 4 } },
    gradient = 2,
  },
  test "Resize of open sizes" {
    graph = function(g, x)
      return g.Resize { X = x, scales = g.constant({ 1, 1, 2, 2 }, "float32"), mode = "linear" }
    end,
    inputs = { x = { "N", 2, "H", "W" } },
    gradient = 2,
  },
  test "GridSample with every padding" {
    graph = function(g, x, at)
      local all = {}
      for k, padding in ipairs { "zeros", "border", "reflection" } do
        all[2 * k - 1] = g.GridSample(x, at, { padding_mode = padding })
        all[2 * k] = g.GridSample(x, at * 1.3, { padding_mode = padding, align_corners = 1 })
      end
      return table.unpack(all)
    end,
    inputs = { x = { 2, 2, 4, 5 }, at = { 2, 3, 3, 2 } },
    gradient = true,
  },
  test "GridSample of axes of one element" {
    graph = function(g, x, at)
      local all = {}
      for k, padding in ipairs { "zeros", "border", "reflection" } do
        all[2 * k - 1] = g.GridSample(x, at, { padding_mode = padding })
        all[2 * k] = g.GridSample(x, at, { padding_mode = padding, align_corners = 1 })
      end
      return table.unpack(all)
    end,
    inputs = { x = { 2, 2, 1, 4 }, at = { 2, 3, 3, 2 } },
    gradient = true,
  },
  test "GridSample of images" {
    graph = function(g, x, at)
      return g.GridSample(x, at), g.GridSample(x, at, { mode = "nearest" })
    end,
    inputs = { x = { 2, 2, 4, 5 }, at = { 2, 3, 3, 2 } },
    gradient = 2,
  },
  test "GridSample of solids" {
    graph = function(g, x, at) return g.GridSample(x, at) end,
    inputs = { x = { 1, 2, 3, 2, 4 }, at = { 1, 2, 2, 2, 3 } },
    gradient = 2,
  },
  test "AffineGrid" {
    graph = function(g, theta, solid)
      return g.AffineGrid(theta, { 2, 1, 3, 4 }),
        g.AffineGrid(solid, { 1, 1, 2, 3, 2 }, { align_corners = 1 })
    end,
    inputs = { theta = { 2, 2, 3 }, solid = { 1, 3, 4 } },
    gradient = 2,
  },
}

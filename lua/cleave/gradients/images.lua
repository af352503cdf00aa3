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

return {
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
    gradient = true,
  },
  test "AffineGrid" {
    graph = function(g, theta, solid)
      return g.AffineGrid(theta, { 2, 1, 3, 4 }),
        g.AffineGrid(solid, { 1, 1, 2, 3, 2 }, { align_corners = 1 })
    end,
    inputs = { theta = { 2, 2, 3 }, solid = { 1, 3, 4 } },
    gradient = true,
  },
}

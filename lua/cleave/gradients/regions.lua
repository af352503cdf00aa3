-- SPDX-License-Identifier: Apache-2.0
-- Pools of regions. Reading between pixels is linear along each axis: max(0, 1 - |place - pixel|)
-- is what a pixel gives.
local common = include "common.lua"

-- 0 to `count` - 1 in that dtype; `count` is a vector of one integer.
local function numbers(g, count, dtype)
  return g.Cast(g.Range(0, g.Squeeze(count, { 0 }), 1), { to = dtype })
end

-- What each pixel of an axis gives to places of any shape: one more dimension.
local function shares(g, places, size)
  local away = g.Abs(g.Unsqueeze(places, { -1 }) - numbers(g, size, places.dtype))
  return g.Relu(1 - away)
end

local function column(g, value, k)
  return g.Slice(value, { k }, { k + 1 }, { 1 })
end

-- [rois, bins, pixels]: what the pixels of an axis give to the mean of each bin. `from` and `to`
-- are [rois, 1].
local function bins(g, from, to, size, bin_count, attrs)
  local dtype, is_half = from.dtype, attrs.coordinate_transformation_mode == "half_pixel"
  local scale, shift = attrs.spatial_scale, is_half and 0.5 or 0
  local first = from * scale - shift
  local length = to * scale - shift - first
  length = is_half and length or g.Max(length, g.constant(1, dtype))
  local bin = length / bin_count
  local count = g.Ceil(bin) -- samples of a bin, [rois, 1]; of one that is turned around, none
  if attrs.sampling_ratio > 0 then
    count = g.Expand(g.constant(attrs.sampling_ratio, dtype), g.Shape(bin))
  end
  local some = g.Max(count, g.constant(1, dtype))
  -- Without regions there is nothing to count.
  local counts = g.Concat(g.Reshape(some, { -1 }), g.constant({ 1 }, dtype), { axis = 0 })
  local most = g.Cast(g.ReduceMax(counts, { keepdims = 0 }), { to = "int64" })
  local samples = numbers(g, g.Reshape(most, { 1 }), dtype) -- [samples]
  local wide = g.Unsqueeze(some, { 2 })
  local offset = g.Unsqueeze(numbers(g, g.constant { bin_count }, dtype), { 1 })
    + (samples + 0.5) / wide
  local places = g.Unsqueeze(first, { 2 }) + offset * g.Unsqueeze(bin, { 2 })
  local last = g.Cast(g.Squeeze(size, { 0 }), { to = dtype })
  local is_near = g.And(g.GreaterOrEqual(places, -1), g.LessOrEqual(places, last))
  local is_read = common.mask(g, g.And(is_near, g.Less(samples, g.Unsqueeze(count, { 2 }))), places)
  local inside = g.Min(g.Max(places, g.constant(0, dtype)), last - 1)
  local weights = shares(g, inside, size) * g.Unsqueeze(is_read / wide, { -1 })
  return g.ReduceSum(weights, { 2 }, { keepdims = 0 })
end

local function roi_align(g, node, dy)
  local x, rois, batch, attrs = node.inputs[1], node.inputs[2], node.inputs[3], node.attrs
  if attrs.mode ~= "avg" then
    return nil
  end
  local rows = bins(g, column(g, rois, 1), column(g, rois, 3), common.size(g, x, 2),
    attrs.output_height, attrs)
  local columns = bins(g, column(g, rois, 0), column(g, rois, 2), common.size(g, x, 3),
    attrs.output_width, attrs)
  local turned = g.Unsqueeze(g.Transpose(rows, { perm = { 0, 2, 1 } }), { 1 })
  local each = g.MatMul(g.MatMul(turned, dy), g.Unsqueeze(columns, { 1 }))
  local places = g.Unsqueeze(g.Cast(batch, { to = "int64" }), { 1 })
  return g.ScatterND(common.full(g, x, 0), places, each, { reduction = "add" }), false, false
end

return {
  gradient "RoiAlign" {
    doc = "Means of samples; by the image alone, the regions are no parameters.",
    roi_align,
  },

  test "means of regions" {
    graph = function(g, x)
      local rois = g.constant({ { 0.4, 0.2, 4.1, 3.3 }, { -1, 1.5, 2.2, 6 }, { 1, 1, 9, 4 } },
        "float64")
      local batch = g.constant { 0, 1, 0 }
      return g.RoiAlign(x, rois, batch, { output_height = 2, output_width = 3 }),
        g.RoiAlign(x, rois, batch, { output_height = 2, output_width = 2, sampling_ratio = 2,
          spatial_scale = 0.7, coordinate_transformation_mode = "output_half_pixel" })
    end,
    inputs = { x = { 2, 2, 5, 6 } },
    gradient = 2,
  },
  test "means of no regions" {
    graph = function(g, x)
      local rois, batch = g.zeros { 0, 4, dtype = x.dtype }, g.zeros { 0, dtype = "int64" }
      return g.RoiAlign(x, rois, batch, { output_height = 2 }),
        g.RoiAlign(x, rois, batch, { output_height = 2, sampling_ratio = 2 })
    end,
    inputs = { x = { 2, 2, 5, 6 } },
    gradient = 2,
  },
}

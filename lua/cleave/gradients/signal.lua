-- SPDX-License-Identifier: Apache-2.0
-- Fourier transforms, and columns of windows. All are linear: the gradient is the transposed map.
local common = include "common.lua"

local function known(value, what)
  return common.known(value) or error(what .. " that is a constant")
end

local function product(list)
  local result = 1
  for _, size in ipairs(list) do
    result = result * size
  end
  return result
end

-- [N, C, space...]: the columns of its windows, [N, C, size of a window, windows], by a convolution
-- of each channel with an identity.
local function columns(g, image, window)
  local count, space = product(window.kernel_shape), g.Shape(image, { start = 2 })
  local kernel = { count, 1 }
  table.move(window.kernel_shape, 1, #window.kernel_shape, 3, kernel)
  local identity = g.Reshape(g.EyeLike(g.zeros { count, count, dtype = image.dtype }), kernel)
  local all = g.Conv(g.Reshape(image, g.Concat({ -1, 1 }, space, { axis = 0 })), identity, window)
  local leading = g.Shape(image, { start = 0, ["end"] = 2 })
  local sizes = g.Concat(leading, { count }, common.count(g, all, 2), { axis = 0 })
  return g.Reshape(all, sizes, { allowzero = 1 })
end

-- The real part where the signal had none but it: [..., 2] as [..., 1].
local function like_signal(g, value, signal)
  local parts = signal.shape and signal.shape[#signal.shape]
  if math.type(parts) ~= "integer" then
    error("DFT: the gradient needs to know whether its input is complex")
  end
  return parts == 1 and g.Slice(value, { 0 }, { 1 }, { -1 }) or value
end

-- Along an axis: as long as `size` says (a vector of one integer), with zeros at the end.
local function fitted(g, value, size, axis)
  local missing = g.Max(size - common.size(g, value, axis), g.constant { 0 })
  local zero = g.constant { 0 }
  local padded = g.Pad(value, g.Concat(zero, missing, { axis = 0 }), g.constant(0, value.dtype),
    g.constant { axis })
  return g.Slice(padded, zero, size, g.constant { axis })
end

-- The transposed transform of dy, whose signal had `length` numbers, a scalar.
local function transposed(g, dy, length, axis, inverse)
  local scale = g.Cast(length, { to = dy.dtype })
  local back = g.DFT(dy, length, g.constant(axis), { inverse = 1 - inverse })
  return inverse == 1 and back / scale or back * scale
end

-- The same of the inverse of a one-sided transform: what stands for its mirror image, too, counts
-- twice.
local function transposed_half(g, dy, axis, rank)
  local length, around = common.size(g, dy, axis), {}
  local half = g.DFT(dy, g.Squeeze(length, { 0 }), g.constant(axis), { onesided = 1 })
  local k = g.Range(0, g.Squeeze(common.size(g, half, axis), { 0 }), 1)
  local is_single = g.Or(g.Equal(k, 0), g.Equal(k * 2, length))
  local times = g.Where(is_single, g.constant(1, dy.dtype), g.constant(2, dy.dtype))
  for d = 1, rank do
    around[d] = d == axis + 1 and -1 or 1
  end
  return half * g.Reshape(times / g.Cast(length, { to = dy.dtype }), around)
end

return {
  gradient "Col2Im" { function(g, node, dy)
    local block = known(node.inputs[3], "Col2Im: the gradient needs a shape of blocks")
    local attrs = node.attrs
    local window = { kernel_shape = block, dilations = attrs.dilations, pads = attrs.pads,
      strides = attrs.strides }
    return common.shaped(g, columns(g, dy, window), node.inputs[1]), false, false
  end },

  gradient "DFT" { function(g, node, dy)
    local x, length, attrs = node.inputs[1], node.inputs[2], node.attrs
    local rank = common.rank(x, "DFT")
    local list = node.inputs[3] and known(node.inputs[3], "DFT: the gradient needs an axis")
    local axis = common.axis(list and list[1] or -2, rank)
    local own = common.size(g, x, axis)
    local is_half = attrs.inverse == 1 and attrs.onesided == 1
    local dx = is_half and transposed_half(g, dy, axis, rank)
      or transposed(g, dy, length or g.Squeeze(own, { 0 }), axis, attrs.inverse)
    dx = like_signal(g, dx, x)
    return length and fitted(g, dx, own, axis) or dx, false, false
  end },

  gradient "STFT" { function(g, node, dy)
    local signal, window, length = node.inputs[1], node.inputs[3], node.inputs[4]
    local what = "STFT: the gradient needs "
    local step = known(node.inputs[2], what .. "a step")[1]
    local size = length and known(length, what .. "a length of frames")[1] or window.shape[1]
    if math.type(size) ~= "integer" or (signal.rank or 3) ~= 3 then
      error(what .. "a length of frames that is known, and a signal [batch, samples, 1 or 2]")
    end
    local frames = like_signal(g, transposed(g, dy, g.constant(size), 2, 0), signal)
    local scaled = window and frames * g.Reshape(window, { -1, 1 }) or frames
    -- [batch, frames, size, parts] as columns of an image of one row, which add up.
    local parts = signal.shape[3]
    local turned = g.Transpose(scaled, { perm = { 0, 3, 2, 1 } })
    local batch = common.size(g, signal, 0)
    local joined = g.Reshape(turned, g.Concat(batch, { parts * size, -1 }, { axis = 0 }))
    local covered = (common.size(g, dy, 1) - 1) * step + size
    local row = g.Col2Im(joined, g.Concat({ 1 }, covered, { axis = 0 }), { 1, size },
      { strides = { 1, step } })
    local line = g.Reshape(row, g.Concat(batch, { parts, -1 }, { axis = 0 }))
    local dsignal = g.Transpose(line, { perm = { 0, 2, 1 } })
    dsignal = fitted(g, dsignal, common.size(g, signal, 1), 1)
    if not window then
      return dsignal, false, false, false
    end
    local image = g.Unsqueeze(g.Transpose(signal, { perm = { 0, 2, 1 } }), { 2 })
    local cut = columns(g, image, { kernel_shape = { 1, size }, strides = { 1, step } })
    local own = g.Transpose(cut, { perm = { 0, 3, 2, 1 } })
    return dsignal, false, g.ReduceSum(frames * own, { 0, 1, 3 }, { keepdims = 0 }), false
  end },

  test "columns of windows, put together" {
    graph = function(g, x, y)
      return g.Col2Im(x, { 4, 5 }, { 2, 3 }), g.Col2Im(y, { 5, 5 }, { 2, 2 },
        { strides = { 2, 1 }, pads = { 1, 0, 0, 1 }, dilations = { 1, 2 } })
    end,
    inputs = { x = { 2, 12, 9 }, y = { 1, 4, 12 } },
    gradient = 2,
  },
  test "columns of windows of no images" {
    graph = function(g, x)
      return g.Col2Im(x, { 4, 5 }, { 2, 3 }), g.Col2Im(x, { 20 }, { 12 })
    end,
    inputs = { x = { 0, 12, 9 } },
    gradient = 2,
  },
  test "Fourier transforms" {
    graph = function(g, x, z)
      local none = nil
      return g.DFT(x), g.DFT(z), g.DFT(x, none, g.constant(-2), { onesided = 1 }),
        g.DFT(z, none, g.constant(1), { inverse = 1 }), g.DFT(x, g.constant(7)),
        g.DFT(z, g.constant(3), g.constant(1)),
        g.DFT(x, g.constant(8), g.constant(2), { onesided = 1 })
    end,
    inputs = { x = { 2, 3, 5, 1 }, z = { 2, 4, 3, 2 } },
    gradient = 2,
  },
  test "inverse Fourier transforms of half a spectrum" {
    graph = function(g, z, x, one)
      local half, axis, none = { inverse = 1, onesided = 1 }, g.constant(1), nil
      return g.DFT(z, none, axis, half), g.DFT(z, g.constant(7), axis, half),
        g.DFT(z, g.constant(3), axis, half), g.DFT(z, g.constant(9), axis, half),
        g.DFT(x, none, axis, half), g.DFT(one, g.constant(1), axis, half)
    end,
    inputs = { z = { 2, 4, 3, 2 }, x = { 2, 3, 1 }, one = { 2, 1, 2 } },
    gradient = 2,
  },
  test "Fourier transforms of frames" {
    graph = function(g, x, z, w)
      return g.STFT(x, g.constant(3), w), g.STFT(x, g.constant(2), w, { onesided = 0 }),
        g.STFT(z, g.constant(2), w, { onesided = 0 }), g.STFT(x, g.constant(2), nil, g.constant(5))
    end,
    inputs = { x = { 2, 12, 1 }, z = { 1, 9, 2 }, w = { 4 } },
    gradient = 2,
  },
}

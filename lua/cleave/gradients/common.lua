-- SPDX-License-Identifier: Apache-2.0
-- What the gradients of several families need.

local M = {}

---A tensor of the dtype and shape of `like` whose elements are `number`.
function M.full(g, like, number)
  return g.Expand(g.constant(number, like.dtype), g.Shape(like))
end

---`value` in the shape of `like`, which has as many elements; none, too.
function M.shaped(g, value, like)
  return g.Reshape(value, g.Shape(like), { allowzero = 1 })
end

---Elements of dimensions `first` to before `last` (to the end without it), a vector of one integer:
---what -1 in a shape cannot say if other sizes are 0.
function M.count(g, value, first, last)
  return g.ReduceProd(g.Shape(value, { start = first, ["end"] = last }), { keepdims = 1 })
end

---0 or 1 per element of a bool tensor, in the dtype of `like`.
function M.mask(g, condition, like)
  return g.Cast(condition, { to = like.dtype })
end

---`value` where the condition holds, else 0.
function M.only(g, condition, value)
  return g.Where(condition, value, g.constant(0, value.dtype))
end

---A scalar of integers as a vector of one element.
function M.vector(g, value)
  return g.Reshape(value, { 1 })
end

---Size of a dimension as a vector of one integer: a constant where it is known.
function M.size(g, value, axis)
  local size = value.shape and value.shape[axis + 1]
  if math.type(size) == "integer" then
    return g.constant { size }
  end
  return g.Shape(value, { start = axis, ["end"] = axis + 1 })
end

---The rank of a value, which has to be known.
function M.rank(value, what)
  return value.rank or error(what .. ": the rank of its input is not known")
end

---An axis counted from the first dimension.
function M.axis(axis, rank)
  return axis < 0 and axis + rank or axis
end

---Axes from `first` to the last, from 0.
function M.axes_from(first, rank)
  local axes = {}
  for axis = first, rank - 1 do
    axes[#axes + 1] = axis
  end
  return axes
end

---A vector of channels as a tensor that broadcasts to [N, C, ...] of that rank.
function M.channels(g, vector, rank)
  local shape = { 1, -1 }
  for k = 3, rank do
    shape[k] = 1
  end
  return g.Reshape(vector, shape)
end

---All axes but that of the channels.
function M.but_channels(rank)
  local axes = { 0 }
  for axis = 2, rank - 1 do
    axes[#axes + 1] = axis
  end
  return axes
end

---How many elements of `whole` come to each of `part`, in the dtype of `whole`.
function M.ratio(g, whole, part)
  local counted = { to = whole.dtype }
  return g.Cast(g.Size(whole), counted) / g.Cast(g.Size(part), counted)
end

---The sum of slices of `updates` along an axis that belong to one place of an axis of `size` (a
---vector of one integer): place k of the axis goes to `places`[k], a vector.
function M.scatter_axis(g, updates, places, axis, size)
  local rank = M.rank(updates, "a sum along an axis")
  local around = {}
  for k = 1, rank do
    around[k] = k == axis + 1 and -1 or 1
  end
  local indices = g.Expand(g.Reshape(places, around), g.Shape(updates))
  local parts = { g.Shape(updates, { start = 0, ["end"] = axis }), size }
  if axis + 1 < rank then
    parts[#parts + 1] = g.Shape(updates, { start = axis + 1 })
  end
  local shape = g.Concat(parts[1], parts[2], parts[3], { axis = 0 })
  if axis == 0 then
    shape = parts[3] and g.Concat(size, parts[3], { axis = 0 }) or size
  end
  local zeros = g.Expand(g.constant(0, updates.dtype), shape)
  return g.ScatterElements(zeros, indices, updates, { axis = axis, reduction = "add" })
end

---The content of an input that is a constant, as a list; nil if it is left out or not known.
function M.known(value)
  local content = value and value:value()
  if content ~= nil and type(content) ~= "table" then
    content = { content }
  end
  return content
end

---Equal parts of a value along an axis, as a list.
function M.parts(g, value, axis, count)
  if count == 1 then
    return { value }
  end
  return { g.Split(value, { axis = axis, num_outputs = count }) }
end

---x times the transposed weight, and the bias if there is one.
function M.linear(g, x, weight, bias)
  if bias then
    return g.Gemm(x, weight, bias, { transB = 1 })
  end
  return g.Gemm(x, weight, { transB = 1 })
end

return M

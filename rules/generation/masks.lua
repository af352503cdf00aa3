-- SPDX-License-Identifier: Apache-2.0
-- Masks of attention, and whether they have a column for each place of a cache. For
-- rules/generation.lua.

local sizes = include "generation/sizes.lua"
local is_same, elements_of, sum_of_size = sizes.is_same, sizes.elements, sizes.of_size
local first_other = include("generation/cuts.lua").first_other

local POINTWISE = { Add = true, And = true, Cast = true, Equal = true, Expand = true,
  Greater = true, GreaterOrEqual = true, Identity = true, Less = true, LessOrEqual = true,
  Mul = true, Not = true, Or = true, Sub = true, Trilu = true, Unsqueeze = true, Where = true }

-- How many of its operands have the columns that its result has.
local FIRST = { Expand = 1, Reshape = 1, Trilu = 1, Unsqueeze = 1 }

-- Does each column of what it computes come from the same column of its operands?
local function keeps_columns(node)
  if node.op ~= "Reshape" then
    return POINTWISE[node.op]
  end
  local x, y = node.inputs[1], node.outputs[1]
  return x.rank ~= nil and y.rank ~= nil and x.rank > 0 and y.rank > 0
    and x.shape[x.rank] == y.shape[y.rank]
end

-- Is there a column of a mask for each place of the cache: is it cut from a table, counted, or as
-- long as the mask that comes with a call?
local function follows(value, given, cuts)
  local size = value.shape and (value.rank == 0 and 1 or value.shape[value.rank])
  local node = value.producer
  if size == 1 or value == given then
    return true
  elseif not node then
    return false
  elseif cuts[node] then
    for _, cut in ipairs(cuts[node]) do
      if cut.kind == "keys" and cut.axis == value.rank - 1 then
        return true
      end
    end
    return false
  elseif node.op == "ConstantOfShape" or node.op == "Range" then
    local last = elements_of(node.inputs[node.op == "Range" and 2 or 1])
    return given ~= nil and last ~= nil
      and is_same(last[#last], sum_of_size(given.shape[2]) or { rest = -1 })
  elseif not keeps_columns(node) then
    return false
  end
  for k = 1, FIRST[node.op] or #node.inputs do
    if not follows(node.inputs[k], given, cuts) then
      return false
    end
  end
  return true
end

-- Does a mask tell new tokens apart: is a part of it a triangle, or made of rows of a table, or of
-- places that are counted? Sizes alone do not.
local function tells_apart(value, cuts, seen)
  local node = value and value.producer
  if not node or node.op == "Shape" or seen[node] then
    return false
  end
  seen[node] = true
  local found = node.op == "Trilu"
  for _, cut in ipairs(cuts[node] or {}) do
    found = found or cut.kind == "rows"
  end
  for k = 1, #node.inputs do
    found = found or tells_apart(node.inputs[k], cuts, seen)
  end
  return found
end

-- A mask that also leaves out what is behind each new token, for `capacity` keys and tokens at
-- `rows`.
local function hide_later(g, mask, rows, capacity)
  local keys = g.Range(g.constant(0), g.Squeeze(capacity), g.constant(1))
  local seen = g.LessOrEqual(keys, g.Unsqueeze(rows, g.constant { 1 }))
  if not mask or mask.dtype == "bool" then
    return mask and g.And(seen, mask) or seen
  end
  return g.Where(seen, mask, g.constant(-math.huge, mask.dtype))
end

-- Who reads the mask of a call, or what is computed from it, other than Attention as its mask? What
-- is behind the last token has to stay where it is.
local function other_mask_reader(value, cuts)
  return first_other(value, function(node, read)
    local inputs = node.inputs
    return cuts[node] or node.op == "Shape" or node.op == "Attention" and inputs.attn_mask == read
      and inputs.Q ~= read and inputs.K ~= read and inputs.V ~= read
  end, keeps_columns)
end

-- The mask that comes with each call: integers, a row for each row of tokens and of another length.
local function find_mask(graph, fresh)
  for _, input in ipairs(graph.inputs) do
    local is_open = input.rank == 2 and type(input.shape[2]) == "string"
    local size = is_open and sum_of_size(input.shape[2])
    if size and (input.dtype == "int64" or input.dtype == "int32")
      and not is_same(size, fresh) then
      return input
    end
  end
  return nil
end

return {
  find = find_mask, follows = follows, other_reader = other_mask_reader, tells_apart = tells_apart,
  hide_later = hide_later,
}

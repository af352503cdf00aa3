-- SPDX-License-Identifier: Apache-2.0
-- What a model cuts from tables, or counts, by the size of the past. For rules/generation.lua.

local sizes = include "generation/sizes.lua"
local sum, is_same, elements_of = sizes.sum, sizes.is_same, sizes.elements

local function name_of(node)
  return node.op .. " '" .. node.name .. "'"
end

-- The cuts that a Slice makes, by axis: "rows" from past to past + new, "keys" from 0 to past +
-- new; nil if none of them depends on the past; false and why if it is another one.
local function cuts_of(node, past, fresh)
  local starts, ends = elements_of(node.inputs.starts), elements_of(node.inputs.ends)
  local axes, steps = elements_of(node.inputs.axes), elements_of(node.inputs.steps)
  if not starts or not ends then
    return nil
  end
  local whole, before, cuts = sum(fresh, { [past] = 1 }, 1), { [past] = 1, rest = 0 }, {}
  for k = 1, #starts do
    local depends = (starts[k][past] or 0) ~= 0 or (ends[k][past] or 0) ~= 0
    local axis = axes and axes[k].rest or k - 1
    axis = axis < 0 and axis + node.inputs.data.rank or axis
    if depends and steps and steps[k].rest ~= 1 then
      return false, name_of(node) .. " takes steps over the past"
    elseif depends and is_same(starts[k], before) and is_same(ends[k], whole) then
      cuts[#cuts + 1] = { axis = axis, kind = "rows" }
    elseif depends and is_same(starts[k], { rest = 0 }) and is_same(ends[k], whole) then
      cuts[#cuts + 1] = { axis = axis, kind = "keys" }
    elseif depends then
      return false, name_of(node) .. " cuts neither the new rows nor all keys from a table"
    else
      cuts[#cuts + 1] = { axis = axis, kind = "other", at = k }
    end
  end
  for _, cut in ipairs(cuts) do
    if cut.kind ~= "other" then
      return cuts
    end
  end
  return nil
end

-- A Range over the new rows, or over all keys, as a cut; nil and false as above.
local function range_of(node, past, fresh)
  local from, to = elements_of(node.inputs[1]), elements_of(node.inputs[2])
  local steps = elements_of(node.inputs[3])
  if not from or not to or (from[1][past] or 0) == 0 and (to[1][past] or 0) == 0 then
    return nil
  end
  local whole = sum(fresh, { [past] = 1 }, 1)
  local kind = is_same(from[1], { [past] = 1, rest = 0 }) and "rows"
    or is_same(from[1], { rest = 0 }) and "keys"
  if not kind or not is_same(to[1], whole) or not steps or not is_same(steps[1], { rest = 1 }) then
    return false, name_of(node) .. " counts neither the new rows nor all keys"
  end
  return { { axis = 0, kind = kind } }
end

local INTEGERS = { Shape = true, Gather = true, Concat = true, Add = true, Sub = true,
  Cast = true, Identity = true, Reshape = true, Squeeze = true, Unsqueeze = true }

-- The name of the first node that reads a value, or what is computed from it, and that neither ends
-- there (`ends(node, value)`) nor passes it on (`passes(node)`); nil: there is none.
local function first_other(value, ends, passes, seen)
  seen = seen or {}
  for _, node in ipairs(value.users) do
    if not seen[node] and not ends(node, value) then
      seen[node] = true
      local found = not passes(node) and name_of(node)
        or first_other(node.outputs[1], ends, passes, seen)
      if found then
        return found
      end
    end
  end
  return nil
end

-- Does a reader of sizes of the past do anything else than cutting tables? If so, its name.
local function other_reader(value, cuts)
  return first_other(value, function(node)
    return cuts[node]
  end, function(node)
    return INTEGERS[node.op] or node.op == "Slice" and elements_of(node.outputs[1])
  end)
end

-- The cuts of a node by the size `past` and the sum `fresh`; nil if it makes none, false and why if
-- it is another one.
local function cuts_of_node(node, past, fresh)
  if node.op == "Slice" then
    return cuts_of(node, past, fresh)
  elseif node.op == "Range" then
    return range_of(node, past, fresh)
  end
  return nil
end

return {
  name_of = name_of, of_node = cuts_of_node, first_other = first_other, other_reader = other_reader,
}

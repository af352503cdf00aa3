-- SPDX-License-Identifier: Apache-2.0
-- Sizes with names, and integers that a model computes from them, as sums: { rest = number,
-- <name> = factor }. For rules/generation.lua.

-- ---- sizes as sums: { rest = number, <symbol> = factor } ----

local function sum(a, b, factor)
  local result = {}
  for name, count in pairs(a) do
    result[name] = count
  end
  for name, count in pairs(b) do
    result[name] = (result[name] or 0) + factor * count
  end
  return result
end

-- A size as shapes print it, "past + 1" or "2*T"; nil: another form.
local function sum_of_text(text)
  local result = { rest = 0 }
  for part in text:gsub("%s", ""):gmatch("[^+]+") do
    local factor, name = part:match("^(%d+)%*(.+)$")
    name = name or part
    if tonumber(part) then
      result.rest = result.rest + math.tointeger(tonumber(part))
    elseif name:find("[%*%(%)/%-%?]") then
      return nil
    else
      result[name] = (result[name] or 0) + (math.tointeger(tonumber(factor)) or 1)
    end
  end
  return result
end

local function sum_of_size(size)
  return math.type(size) == "integer" and { rest = size } or sum_of_text(size)
end

local function is_same(a, b)
  for _, count in pairs(sum(a, b, -1)) do
    if count ~= 0 then
      return false
    end
  end
  return true
end

-- ---- integers that are computed from sizes ----

-- An element of one of these operators is what the element of an operand was.
local PASSED = { Cast = true, Identity = true, Reshape = true, Squeeze = true, Unsqueeze = true }

local elements_of

local EVALUATE = {
  Shape = function(node)
    local shape, found = node.inputs[1].shape, {}
    if not shape or (node.attrs.start or 0) ~= 0 or node.attrs["end"] then
      return nil
    end
    for d, size in ipairs(shape) do
      found[d] = sum_of_size(size)
      if not found[d] then
        return nil
      end
    end
    return found
  end,
  Gather = function(node)
    local data = elements_of(node.inputs[1])
    local index = node.inputs[2]:value()
    if not data or type(index) == "table" and #index ~= 1 or index == nil then
      return nil
    end
    index = type(index) == "table" and index[1] or index
    return { data[index < 0 and #data + index + 1 or index + 1] }
  end,
  Slice = function(node)
    local inputs = node.inputs
    local data, starts, ends = elements_of(inputs.data), elements_of(inputs.starts),
      elements_of(inputs.ends)
    local steps = elements_of(inputs.steps)
    if not data or inputs.data.rank ~= 1 or not starts or #starts ~= 1 or not ends or #ends ~= 1
      or inputs.steps and not (steps and is_same(steps[1], { rest = 1 })) then
      return nil
    end
    local first, last = starts[1].rest, ends[1].rest
    if not is_same(starts[1], { rest = first }) or not is_same(ends[1], { rest = last }) then
      return nil
    end
    first = math.max(first < 0 and first + #data or first, 0)
    last = math.min(last < 0 and last + #data or last, #data)
    return table.move(data, first + 1, last, 1, {})
  end,
  Concat = function(node)
    local all = {}
    for k = 1, #node.inputs do
      local part = elements_of(node.inputs[k])
      if not part then
        return nil
      end
      table.move(part, 1, #part, #all + 1, all)
    end
    return all
  end,
}

local function combined(factor)
  return function(node)
    local a, b = elements_of(node.inputs[1]), elements_of(node.inputs[2])
    if not a or not b or #a ~= 1 or #b ~= 1 then
      return nil
    end
    return { sum(a[1], b[1], factor) }
  end
end
EVALUATE.Add, EVALUATE.Sub = combined(1), combined(-1)

-- The elements of a list of integers as sums; nil: they are not known.
function elements_of(value)
  if not value then
    return nil
  elseif value.is_constant and value.rank > 1 then
    return nil
  elseif value.is_constant then
    local found, content = {}, value:value()
    for k, number in ipairs(type(content) == "table" and content or { content }) do
      if math.type(number) ~= "integer" then
        return nil
      end
      found[k] = { rest = number }
    end
    return found
  end
  local node = value.producer
  if not node then
    return nil
  elseif PASSED[node.op] then
    return elements_of(node.inputs[1])
  end
  return EVALUATE[node.op] and EVALUATE[node.op](node)
end

return { sum = sum, of_size = sum_of_size, is_same = is_same, elements = elements_of }

-- SPDX-License-Identifier: Apache-2.0
-- Values whose dimensions have the letters of an Einsum: functions transpose, join, separate and
-- sum dimensions by their letters. They emit no node that would change nothing.

-- The label of a dimension of size 1 that has no letter.
local ONE = "1"

local MAX_RANK = 8

local function is_number(size)
  return math.type(size) == "integer"
end

-- ---- lists ----

local function filter(list, keep)
  local kept = {}
  for _, item in ipairs(list) do
    if keep(item) then
      kept[#kept + 1] = item
    end
  end
  return kept
end

local function join(...)
  local all = {}
  for _, list in ipairs { ... } do
    table.move(list, 1, #list, #all + 1, all)
  end
  return all
end

local function set_of(list)
  local set = {}
  for _, item in ipairs(list) do
    set[item] = true
  end
  return set
end

local function equal_lists(a, b)
  return table.concat(a, " ") == table.concat(b, " ")
end

-- ---- emitted nodes ----

-- The nodes to build. Without a list of steps it only adds up what they would cost: the number of
-- elements that they move; views cost next to nothing. `why` says why it cannot be built. Values
-- are references, numbered from the operands on to the steps.
local function maker(steps, operand_count)
  return { steps = steps, operand_count = operand_count, cost = 0 }
end

local function emit(to, operator, ...)
  if not to.steps then
    return nil
  end
  to.steps[#to.steps + 1] = { operator = operator, ... }
  return { reference = to.operand_count + #to.steps }
end

-- Builds the nodes of all steps and returns the value of the last reference.
local function build(steps, operands, last, g)
  local values = join(operands)
  for _, step in ipairs(steps) do
    local arguments = {}
    for k, argument in ipairs(step) do
      local reference = type(argument) == "table" and argument.reference
      arguments[k] = reference and values[reference] or argument
    end
    values[#values + 1] = g[step.operator](table.unpack(arguments))
  end
  return values[last.reference]
end

-- A tensor is { value, labels, sizes, constant }: the labels of its dimensions, and their sizes.
local function like(tensor, value, labels)
  return { value = value, labels = labels, sizes = tensor.sizes, constant = tensor.constant }
end

local function elements(tensor)
  local count = 1
  for _, label in ipairs(tensor.labels) do
    local size = tensor.sizes[label]
    count = is_number(size) and count * size or count
  end
  return count
end

local function is_letter(label)
  return label ~= ONE
end

local function letters_of(tensor)
  return filter(tensor.labels, is_letter)
end

local function places_of(labels, wanted)
  local places = {}
  for d, label in ipairs(labels) do
    if wanted(label) then
      places[#places + 1] = d - 1
    end
  end
  return places
end

local function is_one(label)
  return label == ONE
end

-- Removes and inserts dimensions of size 1 without a letter until the dimensions are `labels`. The
-- letters have to be in order.
local function space(to, tensor, labels)
  if equal_lists(tensor.labels, labels) then
    return tensor
  end
  local value = tensor.value
  for _, step in ipairs { { "Squeeze", tensor.labels }, { "Unsqueeze", labels } } do
    local places = places_of(step[2], is_one)
    if #places > 0 then
      value = emit(to, step[1], value, places)
      to.cost = to.cost + 0.25
    end
  end
  return like(tensor, value, labels)
end

-- Transposes the tensor to this order of letters.
local function transpose(to, tensor, letters)
  if equal_lists(letters_of(tensor), letters) then
    return tensor
  end
  local place, order, labels = {}, {}, {}
  for d, label in ipairs(tensor.labels) do
    if label == ONE then
      order[#order + 1], labels[#labels + 1] = d - 1, ONE
    else
      place[label] = d - 1
    end
  end
  for _, letter in ipairs(letters) do
    order[#order + 1], labels[#labels + 1] = place[letter], letter
  end
  to.cost = to.cost + (tensor.constant and 0.25 or elements(tensor))
  return like(tensor, emit(to, "Transpose", tensor.value, { perm = order }), labels)
end

-- The letters of a dimension, as a list; most dimensions have one.
local function group_of(entry)
  return type(entry) == "table" and entry or { entry }
end

local function size_of_group(tensor, entry)
  local size = 1
  for _, letter in ipairs(group_of(entry)) do
    local own = letter == ONE and 1 or tensor.sizes[letter]
    if not is_number(own) then
      return nil
    end
    size = size * own
  end
  return size
end

local function key_of(entry)
  return table.concat(group_of(entry), " ")
end

-- A Reshape between dimensions with several letters and dimensions with one. It copies an unknown
-- size if that keeps its place, or infers it if it is the only one.
local function reshape(to, tensor, from, entries)
  local shape, open, copied = {}, 0, 0
  for d, entry in ipairs(entries) do
    shape[d] = size_of_group(tensor, entry)
    if not shape[d] and from[d] and key_of(from[d]) == key_of(entry) then
      shape[d], copied = 0, copied + 1
    elseif not shape[d] then
      shape[d], open = -1, open + 1
    end
  end
  if open > 1 or (open == 1 and copied > 0) then
    to.why = "several unknown sizes would have to be joined"
  end
  to.cost = to.cost + 0.25
  return not to.why and emit(to, "Reshape", tensor.value, shape) or nil
end

-- `tensor` with these dimensions: labels, ONE, or lists of letters that become one dimension.
local function arrange(to, tensor, entries)
  local letters, joined = {}, false
  for _, entry in ipairs(entries) do
    joined = joined or (type(entry) == "table" and #entry > 1)
    letters = join(letters, filter(group_of(entry), is_letter))
  end
  if #entries > MAX_RANK then
    to.why = "it takes more than " .. MAX_RANK .. " dimensions"
  end
  local turned = transpose(to, tensor, letters)
  if not joined then
    local labels = {}
    for d, entry in ipairs(entries) do
      labels[d] = group_of(entry)[1]
    end
    return space(to, turned, labels)
  end
  return like(tensor, reshape(to, turned, turned.labels, entries), letters)
end

-- The value that has `entries` as its dimensions, with each letter in a dimension of its own.
local function separate(to, tensor, entries)
  local labels, joined = {}, false
  for _, entry in ipairs(entries) do
    joined = joined or (type(entry) == "table" and #entry > 1)
    labels = join(labels, group_of(entry))
  end
  if not joined then
    return like(tensor, tensor.value, labels)
  end
  labels = filter(labels, is_letter)
  if #labels > MAX_RANK then
    to.why = "it takes more than " .. MAX_RANK .. " dimensions"
  end
  return like(tensor, reshape(to, tensor, entries, labels), labels)
end

local function sum(to, tensor, wanted)
  local places = places_of(tensor.labels, wanted)
  if #places == 0 then
    return tensor
  end
  local value = emit(to, "ReduceSum", tensor.value, places, { keepdims = 0 })
  to.cost = to.cost + elements(tensor)
  return like(tensor, value, filter(tensor.labels, function(label)
    return not wanted(label)
  end))
end

return {
  ONE = ONE, MAX_RANK = MAX_RANK,
  is_number = is_number, filter = filter, join = join, set_of = set_of,
  maker = maker, emit = emit, build = build,
  like = like, elements = elements, letters_of = letters_of,
  arrange = arrange, separate = separate, sum = sum,
}

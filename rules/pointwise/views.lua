-- SPDX-License-Identifier: Apache-2.0
-- A Reshape, Flatten, Squeeze or Unsqueeze between two pointwise operators splits their kernel,
-- whose values have one shape. Here it goes before the first operator, where it costs nothing: it
-- is a view of what the kernel reads. That is so where each operand of the operator has the shape
-- of its result, or is one number.

local grow = include("pointwise/grow.lua")

local views = option.boolean(true, "move reshapes between pointwise operators before them")

local VIEWS = { "Reshape", "Flatten", "Squeeze", "Unsqueeze" }
for _, name in ipairs(VIEWS) do
  VIEWS[name] = true
end

local ATTRIBUTES = {
  Cast = { "to" }, Celu = { "alpha" }, Elu = { "alpha" }, Gelu = { "approximate" },
  HardSigmoid = { "alpha", "beta" }, LeakyRelu = { "alpha" }, Mod = { "fmod" },
  Selu = { "alpha", "gamma" }, Shrink = { "bias", "lambd" }, Swish = { "alpha" },
  ThresholdedRelu = { "alpha" },
}

-- What CastLike reads beside its operand has a shape of its own.
local MOVED = {}
for name in pairs(grow.pointwise) do
  MOVED[#MOVED + 1] = name ~= "CastLike" and name or nil
end
table.sort(MOVED)

-- Sizes, if all are known and none is 0.
local function sizes(value)
  if not value.shape then
    return nil
  end
  local list, count = {}, 1
  for k, size in ipairs(value.shape) do
    if math.type(size) ~= "integer" or size < 1 then
      return nil
    end
    list[k], count = size, count * size
  end
  return list, count
end

local function same(a, b)
  if #a ~= #b then
    return false
  end
  for k = 1, #a do
    if a[k] ~= b[k] then
      return false
    end
  end
  return true
end

-- May it read a view that went before what it follows: as part of a kernel, or to be moved itself?
local function may_follow(node)
  return node.domain == "" and (grow.pointwise[node.op] == true or VIEWS[node.op] ~= nil)
end

return {
  options = { kernel_views = views },

  rewrite "view_first" {
    doc = "A Reshape, Flatten, Squeeze or Unsqueeze goes before the operator that it follows.",
    enabled = views,
    pattern = op { MOVED, as = "first" } >> op { VIEWS, as = "view" },
    where = function(m)
      local before, after = sizes(m.first), sizes(m.view)
      if not before or not after then
        return false, "a shape is not known"
      end
      if same(before, after) then
        return false, "it changes nothing"
      end
      for _, user in ipairs(m.view.users) do
        if not may_follow(user) then
          return false, "what reads it is not pointwise"
        end
      end
      if #m.view.users == 0 then
        return false, "nothing reads it but an output"
      end
      for k = 1, #m.first.inputs do
        local operand = m.first.inputs[k]
        local own, count = sizes(operand or m.first)
        if not own or not (count == 1 or same(own, before)) then
          return false, "an operand is broadcast"
        end
      end
      return true
    end,
    replace = function(m, g)
      local inputs = m.first.inputs
      local target, total = sizes(m.view)
      local arguments, attributes, count = {}, {}, #inputs
      for k = 1, count do
        local operand = inputs[k]
        if operand ~= nil then
          local own, elements = sizes(operand)
          local is_number = elements == 1 and total > 1 and #own <= #target
          arguments[k] = (is_number or same(own, target)) and operand
            or g.Reshape(operand, g.constant(target))
        end
      end
      for _, name in ipairs(ATTRIBUTES[m.first.op] or {}) do
        attributes[name] = m.first.attrs[name]
      end
      arguments[count + 1] = attributes
      return g[m.first.op](table.unpack(arguments, 1, count + 1))
    end,
  },

  test "reshapes between operators do not split a kernel" {
    graph = function(g, x, y)
      local z = g.Reshape(g.Clip(g.Tanh(x + y) * 2.0, nil, 1.0), g.constant { 256, 2048 })
      return g.Unsqueeze(g.Relu(g.Flatten(z, { axis = 0 })) + 1.0, { 0 })
    end,
    inputs = { x = { 512, 1024 }, y = { 512, 1024 } },
    expect = { pointwise = 1, view_first = true },
    equal = true,
  },
  test "a number gets the rank of its view" {
    graph = function(g, x, y)
      return g.Exp(g.Unsqueeze(g.Neg(x) * 2.0, { 0, 1 })) + y
    end,
    inputs = { x = { 1 }, y = { 64, 64, 1 } },
    expect = { view_first = true },
    equal = true,
  },
  test "what is broadcast, or read by others, stays" {
    graph = function(g, x, bias)
      local y, z = x + bias, g.Relu(x)
      return g.Neg(g.Reshape(y, g.constant { 4096 })), g.Neg(g.Reshape(z, g.constant { 4096 })), z,
        g.Reshape(g.Exp(x), g.constant { 128, 32 })
    end,
    inputs = { x = { 64, 64 }, bias = { 64 } },
    expect_not = { "view_first" },
    equal = true,
  },
}

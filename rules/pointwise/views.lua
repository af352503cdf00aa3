-- SPDX-License-Identifier: Apache-2.0
-- A Reshape, Flatten, Squeeze or Unsqueeze between two pointwise operators splits their kernel, whose
-- values have one shape. Here it goes before the first operator, where it costs nothing: a view of
-- what the kernel reads. That is so where each operand of the operator has the shape of its result,
-- or is one number.

local grow = include("pointwise/grow.lua")

local views = option.boolean(true, "move reshapes between pointwise operators before them")

local VIEWS = { "Reshape", "Flatten", "Squeeze", "Unsqueeze" }

-- Operators without attributes that hold for a shape.
local MOVED = {}
for name in pairs(grow.pointwise) do
  MOVED[#MOVED + 1] = name
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

local function is_pointwise(node)
  return node.domain == "" and grow.pointwise[node.op] == true
end

return ruleset {
  name = "pointwise_views",
  doc = "Reshapes between pointwise operators go before them.",
  options = { kernel_views = views },

  rewrite "view_first" {
    doc = "A Reshape, Flatten, Squeeze or Unsqueeze goes before the pointwise operator that it follows.",
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
        if not is_pointwise(user) then
          return false, "what reads it is not pointwise"
        end
      end
      if #m.view.users == 0 then
        return false, "nothing reads it but an output"
      end
      for _, operand in ipairs(m.first.inputs) do
        local own, count = sizes(operand)
        if not own or not (count == 1 or same(own, before)) then
          return false, "an operand is broadcast"
        end
      end
      return true
    end,
    replace = function(m, g)
      local target, arguments = sizes(m.view), {}
      for k, operand in ipairs(m.first.inputs) do
        local own, count = sizes(operand)
        local wanted = count == 1 and {} or target
        arguments[k] = same(own, wanted) and operand or g.Reshape(operand, g.constant(wanted))
      end
      arguments[#arguments + 1] = m.first.attrs
      return g[m.first.op](table.unpack(arguments))
    end,
  },

  test "reshapes between operators do not split a kernel" {
    graph = function(g, x, y)
      local z = g.Reshape(g.Tanh(x + y) * 2.0, g.constant { 32, 128 })
      return g.Unsqueeze(g.Relu(g.Flatten(z, { axis = 0 })), { 0 }) + 1.0
    end,
    inputs = { x = { 64, 64 }, y = { 64, 64 } },
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

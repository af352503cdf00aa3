-- SPDX-License-Identifier: Apache-2.0
-- Removes nodes that compute nothing: identities of all operators, and transpositions and reshapes
-- that cancel each other or can be one.

local identities = option.boolean(true, "remove nodes that return their input")
local views = option.boolean(true, "merge and cancel transpositions and reshapes")

local same_shapes = include("parts/shapes.lua").same_shapes

local VIEWS = { "Reshape", "Flatten", "Squeeze", "Unsqueeze" }

-- The elements of a constant, as a list; nil if it is not one.
local function list_of(value)
  if not value or not value.is_constant then
    return nil
  end
  local list = value:value()
  return type(list) == "table" and list or { list }
end

local function all_are(list, number)
  if not list then
    return false
  end
  for _, item in ipairs(list) do
    if item ~= number then
      return false
    end
  end
  return true
end

-- ---- identities ----

-- Why the node is more than an identity, by operator; nil if it is not.
local MORE = {
  Dropout = function(node)
    local mask, training = node.outputs.mask, node.inputs.training_mode
    if mask and (mask.uses_count > 0 or mask.is_output) then
      return "its mask is used"
    end
    return training and not all_are(list_of(training), false) and "it may be training" or nil
  end,
  Cast = function(node)
    return node.inputs.input.dtype ~= node.dtype and "it changes the dtype" or nil
  end,
  Slice = function(node)
    local steps = node.inputs.steps
    return steps and not all_are(list_of(steps), 1) and "it has steps" or nil
  end,
  Pad = function(node)
    return not all_are(list_of(node.inputs.pads), 0) and "it pads" or nil
  end,
  Concat = function(node)
    return #node.inputs > 1 and "it joins several" or nil
  end,
}

-- ---- orders and shapes ----

-- The order of a Transpose, from 0; by default it reverses all dimensions.
local function order_of(node)
  local order = {}
  for k, d in ipairs(node.attrs.perm or {}) do
    order[k] = d
  end
  if #order == 0 then
    for d = 1, node.rank or 0 do
      order[d] = node.rank - d
    end
  end
  return order
end

local function is_identity(order)
  for k, d in ipairs(order) do
    if d ~= k - 1 then
      return false
    end
  end
  return true
end

-- Do only dimensions of size 1 change their place among the others?
local function moves_only_ones(order, shape)
  local last = -1
  for _, d in ipairs(order) do
    if shape[d + 1] ~= 1 then
      if d < last then
        return false
      end
      last = d
    end
  end
  return true
end

-- The second input of a Reshape to this shape; nil if there is none, because more than one size is
-- a symbol.
local function target(shape)
  local sizes, open = {}, 0
  for d, size in ipairs(shape or { "?", "?" }) do
    if math.type(size) == "integer" and size > 0 then
      sizes[d] = size
    else
      sizes[d], open = -1, open + 1
    end
  end
  return open <= 1 and sizes or nil
end

return {
  options = { identities = identities, views = views },

  rewrite "identity" {
    doc = "Removes Identity, Dropout, and casts, slices and pads that change nothing.",
    enabled = identities,
    pattern = op {
      { "Identity", "Dropout", "Cast", "Slice", "Pad", "Expand", "Concat" },
      as = "node",
      inputs = { any "x" },
    },
    where = function(m)
      local more = MORE[m.node.op]
      local why = more and more(m.node)
      if why then
        return false, why
      end
      local keeps = m.node.op == "Identity" or m.node.op == "Dropout"
      return keeps or same_shapes(m.node.shape, m.x.shape), "it changes the shape, or may"
    end,
    replace = function(m)
      return m.x
    end,
  },

  rewrite "transpose_pair" {
    doc = "A Transpose of a Transpose is one Transpose, or none.",
    enabled = views,
    pattern = op { "Transpose", as = "first", inputs = { any "x" } }
      >> op { "Transpose", as = "second" },
    where = function(m)
      return m.x.rank ~= nil, "its rank is not known"
    end,
    replace = function(m, g)
      local first, order = order_of(m.first), {}
      for k, d in ipairs(order_of(m.second)) do
        order[k] = first[d + 1]
      end
      return is_identity(order) and m.x or g.Transpose(m.x, { perm = order })
    end,
  },

  rewrite "transpose_nothing" {
    doc = "Removes a Transpose that moves nothing; one that moves dimensions of 1 is a Reshape.",
    enabled = views,
    pattern = op { "Transpose", as = "node", inputs = { any "x" } },
    where = function(m)
      local order = order_of(m.node)
      if #order > 0 and is_identity(order) then
        return true
      end
      return m.x.rank ~= nil and moves_only_ones(order, m.x.shape) and target(m.node.shape) ~= nil,
        "it moves data"
    end,
    replace = function(m, g)
      return is_identity(order_of(m.node)) and m.x or g.Reshape(m.x, target(m.node.shape))
    end,
  },

  rewrite "view_pair" {
    doc = "A Reshape, Flatten, Squeeze or Unsqueeze of another is one Reshape.",
    enabled = views,
    pattern = op { VIEWS, inputs = { any "x" } } >> op { VIEWS, as = "node" },
    where = function(m)
      return target(m.node.shape) ~= nil, "more than one size of the result is not known"
    end,
    replace = function(m, g)
      return g.Reshape(m.x, target(m.node.shape))
    end,
  },

  rewrite "view_nothing" {
    doc = "Removes a Reshape, Flatten, Squeeze or Unsqueeze to the same shape.",
    enabled = views,
    pattern = op { VIEWS, as = "node", inputs = { any "x" } },
    where = function(m)
      return same_shapes(m.node.shape, m.x.shape), "it changes the shape, or may"
    end,
    replace = function(m)
      return m.x
    end,
  },

  test "what gives back its input goes" {
    inputs = { x = { 2, 6, 4 } },
    graph = function(g, x)
      local y = g.Cast(g.Identity(g.Relu(x)), { to = 1 })
      y = g.Slice(g.Dropout(y), { 0 }, { 100 }, { 1 })
      y = g.Concat(g.Expand(g.Pad(y, { 0, 0, 0, 0, 0, 0 }), { 2, 1, 4 }), { axis = 0 })
      return g.Abs(y)
    end,
    expect = { identity = 7 },
    equal = true,
  },

  test "what changes elements or shape stays" {
    inputs = { x = { 2, 6, 4 } },
    graph = function(g, x)
      return g.Slice(x, { -1 }, { -100 }, { 1 }, { -1 }), g.Pad(x, { 0, 1, 0, 0, -1, 0 }),
        g.Expand(x, { 3, 2, 6, 4 }), g.Concat(x, x, { axis = 0 }), g.Cast(x, { to = 7 })
    end,
    expect_not = { "identity" },
    equal = true,
  },

  test "transpositions that undo each other go, others become one" {
    inputs = { x = { 2, 3, 4, 5 } },
    graph = function(g, x)
      local there = g.Transpose(g.Relu(x), { perm = { 0, 2, 3, 1 } })
      local turned = g.Transpose(g.Abs(x), { perm = { 1, 0, 3, 2 } })
      return g.Abs(g.Transpose(there, { perm = { 0, 3, 1, 2 } })),
        g.Transpose(turned, { perm = { 3, 2, 1, 0 } })
    end,
    expect = { transpose_pair = 2 },
    equal = true,
  },

  test "a transposition that others read too stays" {
    inputs = { x = { 2, 3, 4 } },
    graph = function(g, x)
      local turned = g.Transpose(x, { perm = { 0, 2, 1 } })
      return g.Abs(turned), g.Transpose(turned, { perm = { 0, 2, 1 } })
    end,
    expect_not = { "transpose_pair" },
    equal = true,
  },

  test "a transposition of ones is a reshape" {
    inputs = { x = { 2, 1, 4, 1 } },
    graph = function(g, x)
      local same_order = g.Transpose(g.Relu(x), { perm = { 0, 1, 2, 3 } })
      return g.Transpose(x, { perm = { 1, 0, 3, 2 } }), g.Abs(same_order)
    end,
    expect = { transpose_nothing = 2 },
    equal = true,
  },

  test "a transposition of data is none" {
    inputs = { x = { 2, 1, 4, 3 } },
    graph = function(g, x)
      return g.Transpose(x, { perm = { 2, 1, 0, 3 } })
    end,
    expect_not = { "transpose_nothing" },
    equal = true,
  },

  test "views in a row are one, and none where the shape is that of the start" {
    inputs = { x = { 2, 3, 4 } },
    graph = function(g, x)
      local y = g.Unsqueeze(g.Reshape(g.Relu(x), { 6, 4 }), { 1 })
      local z = g.Reshape(g.Flatten(g.Abs(x)), { 2, 3, 4 })
      return g.Abs(g.Flatten(y)), g.Relu(z)
    end,
    expect = { view_pair = 3, view_nothing = 1 },
    equal = true,
  },

  test "views with something between them stay" {
    inputs = { x = { 2, 3, 4 } },
    graph = function(g, x)
      return g.Reshape(g.Relu(g.Reshape(x, { 6, 4 })), { 2, 12 })
    end,
    expect_not = { "view_pair", "view_nothing" },
    equal = true,
  },
}

-- SPDX-License-Identifier: Apache-2.0
-- Models of float16 or bfloat16 on processors that compute in float32 (parts/dtypes.lua): products
-- of float16 are rounded once for each value that leaves, not after every operator. What
-- `precision` asks for comes after it: products of 16 bits with sums in float32.
--
-- Caches of keys and values stay as they are, and so does the attention that reads them; rows that
-- are looked up in a table of weights are cast, not the table.

local dtypes = include("parts/dtypes.lua")

local function stays(node)
  return node.op == "Attention" and node.inputs.nonpad_kv_seqlen ~= nil
    or node.op == "Gather" and node.inputs[1].is_constant
end

local function widen(graph, _, g)
  for _, from in ipairs { "float16", "bfloat16" } do
    dtypes.change(graph, g, from, "float32", function(node)
      return not stays(node)
    end)
  end
end

return {
  options = {
    widen = option.boolean(true, "what models compute in float16 or bfloat16 is float32"),
  },

  pass "widen" {
    doc = "Values of float16 and bfloat16 in float32, with casts where they enter and leave.",
    enabled = function(set)
      return set.widen
    end,
    run = widen,
  },

  test "a model of float16 is computed in float32, rounded where it leaves" {
    graph = function(g, x)
      local w, b = g.Cast(g.normal { 32, 32 }, { to = 10 }), g.Cast(g.normal { 32 }, { to = 10 })
      return g.Relu(g.MatMul(x, w) + b)
    end,
    inputs = { x = { 4, 32, dtype = "float16" } },
    expect = { widen = 1, short = 1, Cast = 3, left = 2 },
    equal = true,
  },

  test "a table of float16 is not cast, but the rows that are looked up" {
    graph = function(g, ids)
      local table_ = g.Cast(g.normal { 50, 32 }, { to = 10 })
      return g.Softmax(g.MatMul(g.Gather(table_, ids), g.Cast(g.normal { 32, 32 }, { to = 10 })))
    end,
    inputs = { ids = { 4, dtype = "int64", low = 0, high = 50 } },
    expect = { widen = 1, Gather = 1, Cast = 3 },
    equal = true,
  },

  test "what is computed in float32 already, between casts, is not rounded" {
    graph = function(g, x)
      local y = g.Cast(g.Softmax(g.Cast(x, { to = 1 })), { to = 10 })
      return g.MatMul(y, g.Cast(g.normal { 32, 32 }, { to = 10 }))
    end,
    inputs = { x = { 4, 32, dtype = "float16" } },
    expect = { widen = 1, Cast = 3 },
    equal = true,
  },

  test "what the model casts to float32 itself is that already" {
    graph = function(g, x)
      local y = g.MatMul(x, g.Cast(g.normal { 32, 32 }, { to = 10 }))
      return g.Softmax(g.Cast(y, { to = 1 })), g.Cast(y, { to = 1 }), g.Relu(y)
    end,
    inputs = { x = { 4, 32, dtype = "float16" } },
    expect = { widen = 1, Cast = 4 },
    equal = true,
  },

  test "models of float32 stay" {
    graph = function(g, x)
      return g.Relu(x)
    end,
    expect_not = { "widen" },
  },
}

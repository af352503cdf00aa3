-- SPDX-License-Identifier: Apache-2.0
-- Models of float16 or bfloat16 on processors that compute in float32 (parts/dtypes.lua): products
-- of float16 are rounded once for each value that leaves, not after every operator. What
-- `precision` asks for comes after it: products of 16 bits with sums in float32.
--
-- Caches of keys and values stay as they are, and so does the attention that reads them.

local dtypes = include("parts/dtypes.lua")

local function reads_cache(node)
  return node.op == "Attention" and node.inputs.nonpad_kv_seqlen ~= nil
end

local function widen(graph, _, g)
  local count = 0
  for _, from in ipairs { "float16", "bfloat16" } do
    count = count + dtypes.change(graph, g, from, "float32", function(node)
      return not reads_cache(node)
    end)
  end
  return count > 0, "nothing of float16 or bfloat16 is computed"
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
    expect = { widen = 1, product = 1, Cast = 2, left = 2 },
    equal = true,
  },
}

-- SPDX-License-Identifier: Apache-2.0
-- Attention, from its scores again: softmax(scale Q K' + mask) V. Values have four dimensions here:
-- batch, head, place, width; heads of keys and values are repeated for the queries that share them.
local common = include "common.lua"

local SPLIT = { perm = { 0, 2, 1, 3 } } -- also its own inverse

-- [batch, places, heads * width] as four dimensions, where it has three.
local function apart(g, value, heads)
  if common.rank(value, "Attention") == 4 then
    return value
  end
  local whole = value.shape[3]
  local width = math.type(whole) == "integer" and whole // heads or -1
  return g.Transpose(g.Reshape(value, { 0, 0, heads, width }), SPLIT)
end

local function together(g, value, like)
  if like.rank == 4 then
    return value
  end
  return common.shaped(g, g.Transpose(value, SPLIT), like)
end

local function turned(g, value)
  return g.Transpose(value, { perm = { 0, 1, 3, 2 } })
end

-- Each head `count` times in a row; and the sum over these.
local function repeated(g, value, count)
  if count == 1 then
    return value
  end
  local wide = g.Expand(g.Unsqueeze(value, { 2 }), { 1, 1, count, 1, 1 })
  local sizes = g.Concat(common.size(g, value, 0), common.count(g, wide, 1, 3),
    g.Shape(value, { start = 2 }), { axis = 0 })
  return g.Reshape(wide, sizes, { allowzero = 1 })
end

local function summed(g, value, count)
  if count == 1 then
    return value
  end
  local heads = g.Div(common.size(g, value, 1), g.constant { count })
  local sizes = g.Concat(common.size(g, value, 0), heads, { count },
    g.Shape(value, { start = 2 }), { axis = 0 })
  return g.ReduceSum(g.Reshape(value, sizes, { allowzero = 1 }), { 2 }, { keepdims = 0 })
end

-- What nobody sees is minus infinity. `past`: how many keys come before those of the first query,
-- a scalar; `lengths`: how many keys are no padding, by batch.
local function masked(g, scores, mask, is_causal, past, lengths)
  local lowest = g.constant(-math.huge, scores.dtype)
  if lengths then
    local places = g.Range(0, g.Squeeze(common.size(g, scores, 3), { 0 }), 1)
    scores = g.Where(g.Less(places, g.Reshape(lengths, { -1, 1, 1, 1 })), scores, lowest)
  end
  if mask and mask.dtype == "bool" then
    scores = g.Where(mask, scores, lowest)
  elseif mask then
    scores = scores + mask
  end
  if is_causal then
    local square = g.Expand(g.constant(1, "float32"), g.Shape(scores, { start = 2 }))
    local below = past and g.Trilu(square, past, { upper = 0 }) or g.Trilu(square, { upper = 0 })
    scores = g.Where(g.Cast(below, { to = "bool" }), scores, lowest)
  end
  return scores
end

-- The probabilities of keys; a query that sees none has zeros, and no NaN on the way, whose
-- gradient would be one, too.
local function visible(g, scores, may_hide_all)
  if not may_hide_all then
    return g.Softmax(scores)
  end
  local hidden = g.IsInf(scores, { detect_positive = 0 })
  local lowest = g.constant(scores.dtype == "float16" and -6e4 or -1e30, scores.dtype)
  return g.Where(hidden, g.constant(0, scores.dtype), g.Softmax(g.Where(hidden, lowest, scores)))
end

local function heads_of(node)
  local q, k, attrs = node.inputs.Q, node.inputs.K, node.attrs
  local of_q = q.rank == 4 and q.shape[2] or attrs.q_num_heads
  local of_k = k.rank == 4 and k.shape[2] or attrs.kv_num_heads
  if math.type(of_q) ~= "integer" or math.type(of_k) ~= "integer" then
    error("Attention: the gradient needs the number of heads")
  end
  return of_q, of_k
end

return {
  gradient "Attention" {
    doc = "Not by the scores, if they are an output.",
    function(g, node, dy, dkeys, dvalues)
      local inputs, attrs = node.inputs, node.attrs
      local of_q, of_k = heads_of(node)
      local mask, groups = inputs.attn_mask, of_q // of_k
      local keys, values, past = apart(g, inputs.K, of_k), apart(g, inputs.V, of_k), nil
      if inputs.past_key then
        past = common.size(g, inputs.past_key, 2)
        keys = g.Concat(inputs.past_key, keys, { axis = 2 })
        values = g.Concat(inputs.past_value, values, { axis = 2 })
      end
      if not dy then
        dy = common.full(g, node.outputs[1], 0)
      end
      local q = apart(g, inputs.Q, of_q)
      local k, v = repeated(g, keys, groups), repeated(g, values, groups)
      local width = q.shape[4]
      local scale = attrs.scale or math.type(width) == "integer" and 1 / math.sqrt(width)
        or error("Attention: the gradient needs the width of a head, or a scale")
      local scores = g.MatMul(q * scale, turned(g, k))
      local cap, bent = attrs.softcap, nil
      if cap and cap > 0 then
        bent = g.Tanh(scores / cap)
        scores = bent * cap
      end
      scores = masked(g, scores, mask, attrs.is_causal == 1, past and g.Squeeze(past, { 0 }),
        inputs.nonpad_kv_seqlen)
      local p = visible(g, scores, mask or inputs.nonpad_kv_seqlen)
      dy = apart(g, dy, of_q)
      local dp = g.MatMul(dy, turned(g, v))
      local dscores = (dp - g.ReduceSum(dp * p, { -1 }, { keepdims = 1 })) * p
      local dmask = mask and mask.dtype ~= "bool" and g.sum_to(dscores, mask) or nil
      if bent then
        dscores = dscores * (1 - bent * bent)
      end
      local dq = g.MatMul(dscores, k) * scale
      local dk = summed(g, g.MatMul(turned(g, dscores), q) * scale, groups)
      local dv = summed(g, g.MatMul(turned(g, p), dy), groups)
      dk, dv = dkeys and dk + dkeys or dk, dvalues and dv + dvalues or dv
      local dpast_k, dpast_v
      if past then
        local own = common.size(g, inputs.K, inputs.K.rank == 4 and 2 or 1)
        local sizes = g.Concat(past, own, { axis = 0 })
        dpast_k, dk = g.Split(dk, sizes, { axis = 2, outputs = 2 })
        dpast_v, dv = g.Split(dv, sizes, { axis = 2, outputs = 2 })
      end
      return together(g, dq, inputs.Q), together(g, dk, inputs.K), together(g, dv, inputs.V), dmask,
        dpast_k, dpast_v
    end,
  },

  test "Attention with masks" {
    graph = function(g, q, k, v, mask)
      local seen = g.constant({ { true, false, true }, { true, true, true } }, "bool")
      local none = g.constant({ { false, false, false }, { true, true, false } }, "bool")
      local far = -math.huge
      local lowest = g.constant({ { far, far, far }, { 0, far, 0 } }, mask.dtype)
      return (g.Attention(q, k, v)), (g.Attention(q, k, v, mask, { scale = 0.7 })),
        (g.Attention(q, k, v, seen)), (g.Attention(q, k, v, { is_causal = 1 })),
        (g.Attention(q, k, v, none)), (g.Attention(q, k, v, mask + lowest))
    end,
    inputs = { q = { 2, 2, 2, 3 }, k = { 2, 2, 3, 3 }, v = { 2, 2, 3, 4 }, mask = { 2, 3 } },
    gradient = 2,
  },
  test "Attention with keys of earlier calls, and with padding" {
    graph = function(g, q, k, v, past_k, past_v)
      local y, keys, values = g.Attention { Q = q, K = k, V = v, past_key = past_k,
        past_value = past_v, is_causal = 1, outputs = 3 }
      return y, keys, values,
        (g.Attention { Q = q, K = k, V = v, nonpad_kv_seqlen = g.constant { 2, 3 } })
    end,
    inputs = { q = { 2, 2, 2, 3 }, k = { 2, 2, 3, 3 }, v = { 2, 2, 3, 4 },
      past_k = { 2, 2, 2, 3 }, past_v = { 2, 2, 2, 4 } },
    gradient = 2,
  },
  test "Attention without keys, and without queries" {
    graph = function(g, q, k, v, no_q, no_k, no_v)
      local heads = { q_num_heads = 4, kv_num_heads = 2 }
      return (g.Attention(q, no_k, no_v, heads)), (g.Attention(no_q, k, v, heads))
    end,
    inputs = { q = { 2, 3, 12 }, k = { 2, 2, 6 }, v = { 2, 2, 6 }, no_q = { 2, 0, 12 },
      no_k = { 2, 0, 6 }, no_v = { 2, 0, 6 } },
    gradient = 2,
  },
  test "Attention that splits heads, and shares keys" {
    graph = function(g, q, k, v)
      local heads = { q_num_heads = 4, kv_num_heads = 2 }
      local capped = { q_num_heads = 4, kv_num_heads = 2, softcap = 1.5 }
      return (g.Attention(q, k, v, heads)), (g.Attention(q, k, v, capped))
    end,
    inputs = { q = { 2, 3, 12 }, k = { 2, 2, 6 }, v = { 2, 2, 6 } },
    gradient = 2,
  },
}

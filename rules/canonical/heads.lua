-- SPDX-License-Identifier: Apache-2.0
-- Moves the reshapes and transpositions around Attention into it if they only split the heads and
-- join them again: of [batch, length, width], or of windows, [images, windows, length, width].

local heads = option.boolean(true, "let Attention split and join the heads itself")

local shapes = include "parts/shapes.lua"
local same, same_shapes, spelled = shapes.same, shapes.same_shapes, shapes.spelled

-- ---- patterns ----

-- Heads taken apart: of [batch, length, width], or of windows, [images, windows, length, width],
-- whose first two dimensions then become one.
local function split(as)
  local reshape = op { "Reshape", as = "split_" .. as, inputs = { data = any(as) } }
  return oneof {
    op { "Transpose", attrs = { perm = { 0, 2, 1, 3 } }, inputs = { reshape } },
    op { "Reshape", as = "folded_" .. as, inputs = { data =
      op { "Transpose", attrs = { perm = { 0, 1, 3, 2, 4 } }, inputs = { reshape } } } },
  }
end

-- What joins the heads again.
local function join(attention_pattern)
  return op { "Reshape", as = "join", inputs = { data = oneof {
    op { "Transpose", attrs = { perm = { 0, 2, 1, 3 } }, inputs = { attention_pattern } },
    op { "Transpose", attrs = { perm = { 0, 1, 3, 2, 4 } }, inputs = {
      op { "Reshape", as = "unfolded", inputs = { data = attention_pattern } },
    } },
  } } }
end

-- ---- conditions beyond the patterns ----

-- Is `node` [..., heads * size] seen as [..., heads, size]?
local function splits(flat, node)
  local from, to = flat.shape, node.shape
  if not from or not to or #to ~= #from + 1 or not same_shapes(from, to, #from - 1) then
    return false
  end
  local heads_count, size = to[#to - 1], to[#to]
  return math.type(heads_count) == "integer" and math.type(size) == "integer"
    and from[#from] == heads_count * size
end

-- Is `node` [..., length, heads * size] of [..., heads, length, size]?
local function joins(node, heads_apart)
  local from, to = heads_apart.shape, node.shape
  if not from or not to or #from ~= #to + 1 or not same_shapes(from, to, #from - 3) then
    return false
  end
  local heads_count, length, size = table.unpack(from, #from - 2)
  return same(length, to[#to - 1]) and math.type(heads_count) == "integer"
    and math.type(size) == "integer" and to[#to] == heads_count * size
end

-- Heads of an operand of Attention: split from [batch, length, width], or from windows, and then
-- folded.
local function splits_heads(m, name)
  local node, folded = m["split_" .. name], m["folded_" .. name]
  if not splits(m[name], node) then
    return false
  end
  local split_shape, folded_shape = node.shape, folded and folded.shape
  return #split_shape == 4 and not folded
    or #split_shape == 5 and folded_shape and #folded_shape == 4
      and math.type(split_shape[3]) == "integer" and same(folded_shape[2], split_shape[4])
      and same(folded_shape[3], split_shape[3]) and same(folded_shape[4], split_shape[5])
end

-- The heads of all windows are joined as those of the queries were split.
local function joins_windows(m)
  local shape, attended = m.unfolded and m.unfolded.shape, m.attention.shape
  return m.q.rank == 4 and shape and attended and #shape == 5 and #attended == 4
    and same_shapes(shape, m.q.shape, 2) and same(shape[3], attended[2])
    and same(shape[4], attended[3]) and same(shape[5], attended[4])
    and joins(m.join, m.unfolded) and spelled(m.join.shape) ~= nil
end

-- ---- tests ----

local function split_heads(g, x, count, size, order)
  local batch, length = x.shape[1], x.shape[2]
  local apart = g.Reshape(x, { batch, length, count, size })
  return g.Transpose(apart, { perm = order or { 0, 2, 1, 3 } })
end

-- An attention block as torch 1.13 exports BERT's.
local function block(g, q, k, v, mask)
  local s = g.MatMul(split_heads(g, q, 2, 4), split_heads(g, k, 2, 4, { 0, 2, 3, 1 })) / 2.0
  local p = g.Softmax(mask and s + mask or s, { axis = -1 })
  local y = g.Transpose(g.MatMul(p, split_heads(g, v, 2, 4)), { perm = { 0, 2, 1, 3 } })
  return g.Reshape(y, { q.shape[1], q.shape[2], 8 })
end

local ABOUT = { rtol = 1e-4, atol = 1e-5 }
local FLAT = { q = { 2, 5, 8 }, k = { 2, 7, 8 }, v = { 2, 7, 8 } }

return {
  options = { heads = heads },

  rewrite "attention_heads" {
    doc = "Attention between reshapes that split and join heads takes the matrices as they are.",
    enabled = heads,
    pattern = join(op { "Attention", as = "attention",
      inputs = { Q = split "q", K = split "k", V = split "v" } }),
    where = function(m)
      local attention_inputs = m.attention.inputs
      if attention_inputs.past_key or attention_inputs.past_value then
        return false, "it has keys of earlier calls"
      end
      for _, name in ipairs { "q", "k", "v" } do
        if m[name].rank ~= m.q.rank or not splits_heads(m, name) then
          return false, "a reshape does more than splitting heads"
        end
      end
      if m.q.rank == 4 then
        return joins_windows(m), "the windows are not joined as they were split"
      end
      return not m.unfolded and joins(m.join, m.attention),
        "the last reshape does more than joining heads"
    end,
    replace = function(m, g)
      local heads_at = m.split_q.rank - 1
      local attributes = {
        q_num_heads = m.split_q.shape[heads_at],
        kv_num_heads = m.split_k.shape[heads_at],
      }
      for _, name in ipairs { "is_causal", "scale", "softcap", "softmax_precision" } do
        attributes[name] = m.attention.attrs[name]
      end
      local inputs = { m.q, m.k, m.v, m.attention.inputs.attn_mask }
      for k = 1, m.q.rank == 4 and 3 or 0 do
        inputs[k] = g.Reshape(inputs[k], { -1, inputs[k].shape[3], inputs[k].shape[4] })
      end
      inputs[#inputs + 1] = attributes
      local y = g.Attention(table.unpack(inputs))
      return m.q.rank == 4 and g.Reshape(y, spelled(m.join.shape)) or y
    end,
  },

  test "an attention block is found, with its heads and its mask" {
    inputs = { q = FLAT.q, k = FLAT.k, v = FLAT.v, mask = { 2, 1, 1, 7 } },
    graph = function(g, q, k, v, mask)
      return block(g, q, k, v, mask), block(g, q, k, v)
    end,
    expect = { attention = 2, attention_heads = 2 },
    equal = ABOUT,
  },

  test "attention in windows of images has rank 5" {
    inputs = { x = { 2, 3, 4, 24 } },
    graph = function(g, x)
      local parts = { g.Split(x, { axis = 3, num_outputs = 3 }) }
      for k = 1, 3 do
        parts[k] = g.Transpose(g.Reshape(parts[k], { 2, 3, 4, 2, 4 }), { perm = { 0, 1, 3, 2, 4 } })
      end
      local turned = g.Transpose(parts[2] * 0.5, { perm = { 0, 1, 2, 4, 3 } })
      local s = g.MatMul(parts[1], turned) + g.normal { 1, 1, 2, 4, 4 }
      local y = g.MatMul(g.Softmax(s, { axis = -1 }), parts[3])
      return g.Reshape(g.Transpose(y, { perm = { 0, 1, 3, 2, 4 } }), { 2, 3, 4, 8 })
    end,
    expect = { attention = 1, attention_heads = 1, Transpose = 0 },
    equal = ABOUT,
  },

  test "windows that are split in another way keep their transpositions" {
    inputs = { q = { 2, 3, 4, 8 }, k = { 3, 2, 4, 8 }, v = { 2, 3, 4, 8 } },
    graph = function(g, q, k, v)
      local function apart(value, shape)
        return g.Transpose(g.Reshape(value, shape), { perm = { 0, 1, 3, 2, 4 } })
      end
      local s = g.MatMul(apart(q, { 2, 3, 4, 2, 4 }),
        g.Transpose(apart(k, { 2, 3, 4, 2, 4 }), { perm = { 0, 1, 2, 4, 3 } }))
      local y = g.MatMul(g.Softmax(s, { axis = -1 }), apart(v, { 2, 3, 4, 2, 4 }))
      return g.Reshape(g.Transpose(y, { perm = { 0, 1, 3, 2, 4 } }), { 2, 3, 4, 8 })
    end,
    expect = { attention = 1 },
    expect_not = { "attention_heads" },
    equal = ABOUT,
  },

  test "a reshape that mixes length and heads stays" {
    inputs = FLAT,
    graph = function(g, q, k, v)
      local function mixed(value, length, order)
        return g.Transpose(g.Reshape(value, { 2, length, 2, 2 }), { perm = order })
      end
      local s = g.MatMul(mixed(q, 10, { 0, 2, 1, 3 }), mixed(k, 14, { 0, 2, 3, 1 }))
      local y = g.MatMul(g.Softmax(s, { axis = -1 }), mixed(v, 14, { 0, 2, 1, 3 }))
      return g.Reshape(g.Transpose(y, { perm = { 0, 2, 1, 3 } }), { 2, 10, 4 })
    end,
    expect = { attention = 1 },
    expect_not = { "attention_heads" },
    equal = ABOUT,
  },
}

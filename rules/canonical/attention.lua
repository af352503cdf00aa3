-- SPDX-License-Identifier: Apache-2.0
-- Rewrites scaled dot-product attention, softmax(scale Q K' + mask) V, to Attention. The first rule
-- matches the two products and the nodes between them. The second moves the reshapes and transposes
-- into Attention if they only split the heads and join them again.
--
-- The operator requires that Q, K and V have the same leading dimensions, and that the mask
-- broadcasts to the shape of the scores.

local attention = option.boolean(true, "find scaled dot-product attention")
local windows = option.boolean(true, "find attention in shifted windows, with a mask per window")
local heads = option.boolean(true, "let Attention split and join the heads itself")

-- ---- patterns ----

local function scalar(as)
  return constant { as = as, scalar = true }
end

-- x, x * number or x / number, with the labels <name>_factor and <name>_divisor.
local function scaled(x, name)
  return oneof {
    op { "Mul", inputs = { x, scalar(name .. "_factor") } },
    op { "Div", inputs = { A = x, B = scalar(name .. "_divisor") } },
    x,
  }
end

-- Q K'. Scalar factors may be before or after the transposition, and after the product.
local function scores()
  local turned = op { "Transpose", as = "turn", inputs = { scaled(any "k", "key") } }
  local product = op { "MatMul", as = "product",
    inputs = { A = scaled(any "q", "query"), B = scaled(turned, "turned") } }
  return scaled(product, "score")
end

-- The mask: added to the scores, or a condition that replaces some of them.
local function masked()
  local fill = scalar "fill"
  return oneof {
    op { "Add", as = "masked", inputs = { scores(), any "mask" } },
    op { "Where", as = "masked", inputs = { condition = any "keep", X = scores(), Y = fill } },
    op { "Where", as = "masked", inputs = { condition = any "drop", X = fill, Y = scores() } },
    scores(),
  }
end

local function attend(argument)
  return op { "MatMul",
    inputs = { A = op { "Softmax", as = "softmax", inputs = { argument } }, B = any "v" } }
end

-- [windows of all images, heads, ...] + bias, reshaped to [images, windows, heads, ...] to add one
-- mask per window, and reshaped back.
local function in_windows()
  local biased = op { "Add", as = "masked", inputs = { scores(), any "mask" } }
  local apart = op { "Reshape", as = "apart", inputs = { data = biased } }
  local shifted = op { "Add", as = "shifted", inputs = { apart, any "shift" } }
  return op { "Reshape", as = "joined", inputs = { data = shifted } }
end

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

-- Are both sizes known to be the same, as numbers or as symbols?
local function same(a, b)
  return a == b and a ~= nil and a ~= "?"
end

local function same_shapes(a, b, count)
  if not a or not b or (not count and #a ~= #b) then
    return false
  end
  for d = 1, count or #a do
    if not same(a[d], b[d]) then
      return false
    end
  end
  return true
end

local function number_of(value)
  if not value then
    return nil
  end
  local number = value:value()
  return type(number) == "table" and number[1] or number
end

-- The product of all scalar factors of the scores.
local function scale_of(m)
  local function times(factor, divisor)
    return (number_of(factor) or 1.0) / (number_of(divisor) or 1.0)
  end
  return times(m.query_factor, m.query_divisor) * times(m.key_factor, m.key_divisor)
    * times(m.turned_factor, m.turned_divisor) * times(m.score_factor, m.score_divisor)
end

-- The order that makes K from the input of the transposition: its own with the last two swapped.
local function key_order(m)
  local order = {}
  for k, d in ipairs(m.turn.attrs.perm or {}) do
    order[k] = d
  end
  local rank = m.q.rank
  if #order ~= rank then
    return nil
  end
  order[rank - 1], order[rank] = order[rank], order[rank - 1]
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

-- Of rank 5, the first two dimensions become one: all other sizes are numbers, one of these two may
-- be a symbol, and a mask is the same along both.
local function folds(m)
  for _, operand in ipairs { m.q, m.turn, m.v } do
    local shape = operand.shape
    for d = 3, 5 do
      if math.type(shape[d]) ~= "integer" then
        return false
      end
    end
  end
  local mask = m.mask or m.keep or m.drop
  local is_number = math.type(m.q.shape[1]) == "integer" or math.type(m.q.shape[2]) == "integer"
  local is_repeated = not mask or mask.rank < 4
    or (mask.shape[mask.rank - 3] == 1 and (mask.rank == 4 or mask.shape[1] == 1))
  return is_number and is_repeated
end

local function check_scores(m)
  local rank = m.q.rank
  if rank < 3 or rank > 5 then
    return false, "its rank is none of 3 to 5"
  end
  if m.turn.rank ~= rank or m.v.rank ~= rank then
    return false, "its operands have different ranks"
  end
  local order = key_order(m)
  if not order then
    return false, "the order of the transposition of the keys is unknown"
  end
  for _, other in ipairs { m.turn, m.v, m.product } do
    if not same_shapes(m.q.shape, other.shape, rank - 2) then
      return false, "its batches differ, or are not known"
    end
  end
  if m.softmax.attrs.axis ~= -1 and m.softmax.attrs.axis ~= rank - 1 then
    return false, "the softmax is not over the keys"
  end
  local scale = scale_of(m)
  if not (scale > 0 and scale < math.huge) then
    return false, "its scale is not a positive number"
  end
  if m.masked and not same_shapes(m.masked.shape, m.product.shape) then
    return false, "the mask makes the scores larger"
  end
  return rank < 5 or folds(m), "the first two dimensions cannot become one"
end

-- The shape for Reshape, whose first two dimensions may be symbols; nil if both are.
local function spelled(shape)
  local sizes, symbols = { table.unpack(shape) }, 0
  for d = 1, #sizes do
    if math.type(sizes[d]) ~= "integer" then
      sizes[d], symbols = -1, symbols + 1
    end
  end
  return symbols <= 1 and sizes or nil
end

local function fold(g, value)
  if not value or value.rank ~= 5 then
    return value
  end
  return g.Reshape(value, { -1, value.shape[3], value.shape[4], value.shape[5] })
end

local function attend_to(g, q, k, v, mask, attributes)
  if mask then
    return g.Attention(q, k, v, mask, attributes)
  end
  return g.Attention(q, k, v, attributes)
end

-- The keys as the operator requires them. A batch of matrices is attention with one head.
local function build(m, g, mask)
  local rank = m.q.rank
  local k, order = m.k, key_order(m)
  if not is_identity(order) then
    k = g.Transpose(k, { perm = order })
  end
  local attributes = { scale = scale_of(m) }
  if rank == 5 then
    local y = attend_to(g, fold(g, m.q), fold(g, k), fold(g, m.v), fold(g, mask), attributes)
    local shape = { table.unpack(m.q.shape, 1, 4) }
    shape[5] = m.v.shape[5]
    return g.Reshape(y, spelled(shape))
  end
  if rank == 3 then
    attributes.q_num_heads, attributes.kv_num_heads = 1, 1
    if mask and mask.rank == 3 then
      mask = g.Unsqueeze(mask, { 1 })
    end
  end
  return attend_to(g, m.q, k, m.v, mask, attributes)
end

-- The mask as a term that is added to the scores.
local function mask_of(m, g)
  if m.keep then
    return g.Where(m.keep, g.constant(0.0, m.q.dtype), m.fill)
  elseif m.drop then
    return g.Where(m.drop, m.fill, g.constant(0.0, m.q.dtype))
  end
  return m.mask
end

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
local APART = { q = { 2, 3, 5, 4 }, k = { 2, 3, 7, 4 }, v = { 2, 3, 7, 4 } }

local function turn(g, k)
  return g.Transpose(k, { perm = { 0, 1, 3, 2 } })
end

return {
  options = { attention = attention, windows = windows, heads = heads },

  rewrite "attention" {
    doc = "softmax(scale Q K' + mask) V is Attention, with heads apart or without heads.",
    enabled = attention,
    pattern = attend(masked()),
    where = function(m)
      -- Masked scores become minus infinity or the lowest float32, next to which scores vanish, so
      -- that adding it gives the same result.
      if m.fill and number_of(m.fill) > -3.4e38 then
        return false, "masked scores become a number that is not minus infinity"
      end
      return check_scores(m)
    end,
    replace = function(m, g)
      return build(m, g, mask_of(m, g))
    end,
  },

  rewrite "attention_windows" {
    doc = "Attention with a bias and a mask per window, as shifted windows have it.",
    enabled = windows,
    pattern = attend(in_windows()),
    where = function(m)
      local fits, why = check_scores(m)
      if not fits then
        return false, why
      end
      local scores_shape, apart, joined = m.product.shape, m.apart.shape, m.joined.shape
      if m.q.rank ~= 4 or #apart ~= 5 or not same_shapes(scores_shape, joined)
        or not same_shapes(m.shifted.shape, apart) then
        return false, "the windows are not joined again as they were"
      end
      for d = 3, 5 do
        if not same(apart[d], scores_shape[d - 1]) then
          return false, "what is taken apart is not the first dimension"
        end
      end
      return m.mask.rank == 4 and m.mask.shape[1] == 1, "the bias is not the same for all windows"
    end,
    replace = function(m, g)
      local all = g.Add(m.shift, g.Unsqueeze(m.mask, { 0 }))
      local whole = g.Expand(all, m.apart.inputs.shape)
      return build(m, g, g.Reshape(whole, m.joined.inputs.shape))
    end,
  },

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
      local mask = m.attention.inputs.attn_mask
      if m.q.rank == 3 then
        return attend_to(g, m.q, m.k, m.v, mask, attributes)
      end
      local function flat(value)
        return g.Reshape(value, { -1, value.shape[3], value.shape[4] })
      end
      local y = attend_to(g, flat(m.q), flat(m.k), flat(m.v), mask, attributes)
      return g.Reshape(y, spelled(m.join.shape))
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

  test "a scale may stand at either operand, or at both" {
    inputs = APART,
    graph = function(g, q, k, v)
      return g.MatMul(g.Softmax(g.MatMul(q * 0.5, turn(g, k)), { axis = 3 }), v),
        g.MatMul(g.Softmax(g.MatMul(q * 0.7, turn(g, k) * 0.7), { axis = -1 }), v),
        g.MatMul(g.Softmax(g.MatMul(q / 2.0, turn(g, k / 2.0)) * 2.0, { axis = -1 }), v)
    end,
    expect = { attention = 3 },
    expect_not = { "attention_heads" },
    equal = ABOUT,
  },

  test "batches of matrices are attention with one head" {
    inputs = { q = { 6, 5, 4 }, k = { 7, 6, 4 }, v = { 6, 7, 4 } },
    graph = function(g, q, k, v)
      local s = g.MatMul(q / 2.0, g.Transpose(k, { perm = { 1, 2, 0 } }))
      return g.MatMul(g.Softmax(s, { axis = -1 }), v)
    end,
    expect = { attention = 1 },
    equal = ABOUT,
  },

  test "scores that are filled with minus infinity are masked" {
    inputs = APART,
    graph = function(g, q, k, v)
      local keep = g.constant({ { true, true, false, true, true, false, true } }, "bool")
      local drop = g.constant({ { false, true, false, false, false, true, false } }, "bool")
      local s, t = g.MatMul(q, turn(g, k)), g.MatMul(q, turn(g, k))
      return g.MatMul(g.Softmax(g.Where(keep, s, -math.huge), { axis = -1 }), v),
        g.MatMul(g.Softmax(g.Where(drop, -math.huge, t), { axis = -1 }), v)
    end,
    expect = { attention = 2 },
    equal = ABOUT,
  },

  test "scores that are filled with a number are not masked" {
    inputs = APART,
    graph = function(g, q, k, v)
      local keep = g.constant({ { true, true, false, true, true, false, true } }, "bool")
      local s = g.MatMul(q, turn(g, k))
      return g.MatMul(g.Softmax(g.Where(keep, s, -10.0), { axis = -1 }), v)
    end,
    expect_not = { "attention" },
    equal = ABOUT,
  },

  test "a softmax over queries is not attention" {
    inputs = APART,
    graph = function(g, q, k, v)
      return g.MatMul(g.Softmax(g.MatMul(q, turn(g, k)), { axis = 2 }), v)
    end,
    expect_not = { "attention" },
    equal = ABOUT,
  },

  test "scores that are used elsewhere stay" {
    inputs = APART,
    graph = function(g, q, k, v)
      local s = g.MatMul(q, turn(g, k))
      return g.MatMul(g.Softmax(s, { axis = -1 }), v), g.Abs(s)
    end,
    expect_not = { "attention" },
    equal = ABOUT,
  },

  test "a mask that makes the scores larger is none" {
    inputs = { q = { 1, 3, 5, 4 }, k = { 1, 3, 7, 4 }, v = { 1, 3, 7, 4 }, mask = { 2, 1, 1, 7 } },
    graph = function(g, q, k, v, mask)
      return g.MatMul(g.Softmax(g.MatMul(q, turn(g, k)) + mask, { axis = -1 }), v)
    end,
    expect_not = { "attention" },
    equal = ABOUT,
  },

  test "windows have masks of their own" {
    inputs = { q = { 6, 2, 4, 3 }, k = { 6, 2, 4, 3 }, v = { 6, 2, 4, 3 } },
    graph = function(g, q, k, v)
      local s = g.MatMul(q * 0.5, turn(g, k)) + g.normal { 1, 2, 4, 4 }
      local t = g.Reshape(s, { 2, 3, 2, 4, 4 }) + g.normal { 1, 3, 1, 4, 4 }
      return g.MatMul(g.Softmax(g.Reshape(t, { -1, 2, 4, 4 }), { axis = -1 }), v)
    end,
    expect = { attention_windows = 1 },
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

  test "a mask per window keeps rank 5 as it is" {
    inputs = { q = { 2, 3, 2, 5, 4 }, k = { 2, 3, 2, 7, 4 }, v = { 2, 3, 2, 7, 4 } },
    graph = function(g, q, k, v)
      local s = g.MatMul(q, g.Transpose(k, { perm = { 0, 1, 2, 4, 3 } })) + g.normal { 3, 1, 1, 7 }
      return g.MatMul(g.Softmax(s, { axis = -1 }), v)
    end,
    expect_not = { "attention" },
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

  test "windows that are joined in another way are none" {
    inputs = { q = { 6, 2, 4, 3 }, k = { 6, 2, 4, 3 }, v = { 12, 1, 4, 3 } },
    graph = function(g, q, k, v)
      local s = g.MatMul(q * 0.5, turn(g, k)) + g.normal { 1, 2, 4, 4 }
      local t = g.Reshape(s, { 2, 3, 2, 4, 4 }) + g.normal { 1, 3, 1, 4, 4 }
      return g.MatMul(g.Softmax(g.Reshape(t, { 12, 1, 4, 4 }), { axis = -1 }), v)
    end,
    expect_not = { "attention_windows" },
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

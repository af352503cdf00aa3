-- SPDX-License-Identifier: Apache-2.0
-- Rewrites scaled dot-product attention, softmax(scale Q K' + mask) V, to Attention: the two
-- products and the nodes between them.
--
-- The operator requires that Q, K and V have the same leading dimensions, and that the mask
-- broadcasts to the shape of the scores.

local attention = option.boolean(true, "find scaled dot-product attention")
local windows = option.boolean(true, "find attention in shifted windows, with a mask per window")

local shapes = include "parts/shapes.lua"
local same, same_shapes, spelled = shapes.same, shapes.same_shapes, shapes.spelled

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

-- A condition that replaces some of the scores.
local function chosen(as)
  local fill = scalar "fill"
  return oneof {
    op { "Where", as = as, inputs = { condition = any "keep", X = scores(), Y = fill } },
    op { "Where", as = as, inputs = { condition = any "drop", X = fill, Y = scores() } },
  }
end

-- The mask: added to the scores, a condition, or both.
local function masked()
  return oneof {
    op { "Add", as = "masked", inputs = { scores(), any "mask" } },
    op { "Add", as = "masked", inputs = { chosen(), any "mask" } },
    chosen "masked",
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

-- ---- conditions beyond the patterns ----

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
  local is_repeated = not mask or mask.rank and mask.rank < 4
    or (mask.shape and mask.shape[mask.rank - 3] == 1 and (mask.rank == 4 or mask.shape[1] == 1))
  return is_number and is_repeated and not (m.mask and m.fill)
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

local function fold(g, value)
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
    if mask and mask.rank == 5 then
      mask = g.Squeeze(mask, { 0 })
    end
    local y = attend_to(g, fold(g, m.q), fold(g, k), fold(g, m.v), mask, attributes)
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
  if not m.fill then
    return m.mask
  end
  local zero = g.constant(0.0, m.q.dtype)
  local term = m.keep and g.Where(m.keep, zero, m.fill) or g.Where(m.drop, m.fill, zero)
  return m.mask and g.Add(term, m.mask) or term
end

-- ---- tests ----

local ABOUT = { rtol = 1e-4, atol = 1e-5 }
local APART = { q = { 2, 3, 5, 4 }, k = { 2, 3, 7, 4 }, v = { 2, 3, 7, 4 } }

local function turn(g, k)
  return g.Transpose(k, { perm = { 0, 1, 3, 2 } })
end

return {
  options = { attention = attention, windows = windows },

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

  test "a scale may stand at either operand, or at both" {
    inputs = APART,
    graph = function(g, q, k, v)
      return g.MatMul(g.Softmax(g.MatMul(q * 0.5, turn(g, k)), { axis = 3 }), v),
        g.MatMul(g.Softmax(g.MatMul(q * 0.7, turn(g, k) * 0.7), { axis = -1 }), v),
        g.MatMul(g.Softmax(g.MatMul(q / 2.0, turn(g, k / 2.0)) * 2.0, { axis = -1 }), v)
    end,
    expect = { attention = 3 },
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

  test "what is left of the scores may have a mask, too" {
    inputs = APART,
    graph = function(g, q, k, v)
      local keep = g.constant({ { true, true, false, true, true, false, true } }, "bool")
      local mask = g.constant({ { -1e9, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0 } }, "float32")
      local left = g.Where(keep, g.MatMul(q, turn(g, k)), -math.huge)
      return g.MatMul(g.Softmax(mask + left, { axis = -1 }), v)
    end,
    expect = { attention = 1 },
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

  test "a mask per window keeps rank 5 as it is" {
    inputs = { q = { 2, 3, 2, 5, 4 }, k = { 2, 3, 2, 7, 4 }, v = { 2, 3, 2, 7, 4 } },
    graph = function(g, q, k, v)
      local s = g.MatMul(q, g.Transpose(k, { perm = { 0, 1, 2, 4, 3 } })) + g.normal { 3, 1, 1, 7 }
      return g.MatMul(g.Softmax(s, { axis = -1 }), v)
    end,
    expect_not = { "attention" },
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
}

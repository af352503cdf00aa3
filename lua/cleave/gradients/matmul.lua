-- SPDX-License-Identifier: Apache-2.0
-- Matrix products.
local common = include "common.lua"

local function transposed(g, value)
  local perm = common.axes_from(0, common.rank(value, "MatMul"))
  local rank = #perm
  perm[rank - 1], perm[rank] = perm[rank], perm[rank - 1]
  return g.Transpose(value, { perm = perm })
end

local function rows(g, value)
  return g.Flatten(value, { axis = -1 })
end

-- ---- Einsum ----

-- "ij, jk" -> { { "i", "j" }, { "j", "k" } }; "..." is a letter of its own.
local function letters_of(term)
  local letters = {}
  local k = 1
  while k <= #term do
    local letter = term:sub(k, k)
    if term:sub(k, k + 2) == "..." then
      letter, k = "...", k + 2
    end
    if letter ~= " " then
      letters[#letters + 1] = letter
    end
    k = k + 1
  end
  return letters
end

-- Without an arrow: the ellipsis, then the letters that occur once, in the order of the alphabet.
local function implicit_output(terms)
  local counts, once, output = {}, {}, {}
  for _, term in ipairs(terms) do
    for _, letter in ipairs(term) do
      counts[letter] = (counts[letter] or 0) + 1
    end
  end
  for letter, count in pairs(counts) do
    if letter ~= "..." and count == 1 then
      once[#once + 1] = letter
    end
  end
  table.sort(once)
  if counts["..."] then
    output[1] = "..."
  end
  return table.move(once, 1, #once, #output + 1, output)
end

local function parse(equation)
  local left, right = equation:match("^(.-)%->(.*)$")
  local terms = {}
  for term in ((left or equation) .. ","):gmatch("([^,]*),") do
    terms[#terms + 1] = letters_of(term)
  end
  return terms, right and letters_of(right) or implicit_output(terms)
end

local function contains(list, wanted)
  for _, item in ipairs(list) do
    if item == wanted then
      return true
    end
  end
  return false
end

-- The letters once each, and the places of those that come again: the first place, the other.
local function once(letters)
  local first, rest, again = {}, {}, {}
  for place, letter in ipairs(letters) do
    if first[letter] then
      again[#again + 1] = { first[letter], place }
    else
      first[letter] = place
      rest[#rest + 1] = letter
    end
  end
  return rest, again
end

-- Puts the gradient of a diagonal back into the whole: 0 around it.
local function around_diagonals(g, dx, x, letters, again)
  local spare, names, operands = ("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), { table.unpack(letters) }, { dx }
  local here = table.concat((once(letters)))
  local equation = { here }
  for k, pair in ipairs(again) do
    local letter = spare:sub(k, k)
    while contains(names, letter) do
      k = k + 1
      letter = spare:sub(k, k)
    end
    names[pair[2]] = letter
    local size = common.size(g, x, pair[2] - 1)
    operands[#operands + 1] = g.EyeLike(g.Expand(g.constant(0, x.dtype),
      g.Concat(size, size, { axis = 0 })))
    equation[#equation + 1] = letters[pair[1]] .. letter
  end
  local whole = table.concat(equation, ",") .. "->" .. table.concat(names)
  operands[#operands + 1] = { equation = whole }
  return g.Einsum(table.unpack(operands))
end

-- The gradient of operand `k`: dy times the other operands, in the letters of the operand. Letters
-- that only the operand has were summed alone: every element gets the same.
-- `x`: what has the letters, if that is not the operand itself.
local function einsum_operand(g, node, dy, terms, output, k, x)
  local equation, operands = { table.concat(output) }, { dy }
  local here, missing, offered = {}, {}, table.move(output, 1, #output, 1, {})
  for other, term in ipairs(terms) do
    if other ~= k then
      equation[#equation + 1] = table.concat(term)
      operands[#operands + 1] = node.inputs[other]
      table.move(term, 1, #term, #offered + 1, offered)
    end
  end
  local letters, again = once(terms[k])
  if #again > 0 then
    local all = table.move(terms, 1, #terms, 1, {})
    all[k] = letters
    local own, whole = node.inputs[k], table.concat(terms[k])
    local like = g.Einsum(own, { equation = whole .. "->" .. table.concat(letters) })
    local dx = einsum_operand(g, node, dy, all, output, k, like)
    return around_diagonals(g, dx, own, terms[k], again)
  end
  local has_ellipsis = contains(offered, "...")
  if has_ellipsis and not contains(terms[k], "...") then
    here[1] = "..." -- repeated for these dimensions
  end
  for place, letter in ipairs(terms[k]) do
    if contains(offered, letter) then
      here[#here + 1] = letter
    else
      missing[#missing + 1] = place - 1
    end
  end
  operands[#operands + 1] = { equation = table.concat(equation, ",") .. "->" .. table.concat(here) }
  local dx = g.Einsum(table.unpack(operands))
  x = x or node.inputs[k]
  if #missing > 0 then
    dx = g.Expand(g.Unsqueeze(dx, missing), g.Shape(x))
  end
  return g.sum_to(dx, x)
end

-- The cofactors of [..., n, n]: determinants of what is left without a row and a column.
local function cofactors(g, x, n)
  local others, signs, order = {}, {}, {}
  for i = 0, n - 1 do
    others[i + 1], signs[i + 1] = {}, {}
    for j = 0, n - 1 do
      signs[i + 1][j + 1] = (i + j) % 2 == 0 and 1 or -1
      if j ~= i then
        table.insert(others[i + 1], j)
      end
    end
  end
  local left = g.constant(others)
  local minors = g.Gather(g.Gather(x, left, { axis = -1 }), left, { axis = -3 })
  local rank = x.rank - 2
  for d = 0, rank - 1 do
    order[#order + 1] = d
  end
  -- [..., without row, row, without column, column]
  for _, d in ipairs { 0, 2, 1, 3 } do
    order[#order + 1] = rank + d
  end
  return g.Det(g.Transpose(minors, { perm = order })) * g.constant(signs, x.dtype)
end

return {
  gradient "Det" {
    doc = "By cofactors, so that matrices without an inverse have one, too.",
    function(g, node, dy)
      local x = node.inputs[1]
      local n = x.shape and x.shape[#x.shape]
      if math.type(n) ~= "integer" or n < 1 then
        error("Det: the gradient needs the size of its matrices")
      end
      local wide = g.Unsqueeze(dy, { -2, -1 })
      return n == 1 and wide or wide * cofactors(g, x, n)
    end,
  },

  gradient "Einsum" { function(g, node, dy)
    local terms, output = parse(node.attrs.equation)
    local results = {}
    for k = 1, #terms do
      results[k] = einsum_operand(g, node, dy, terms, output, k)
    end
    return table.unpack(results, 1, #terms)
  end },

  gradient "Gemm" { function(g, node, dy)
    local a, b, c = node.inputs[1], node.inputs[2], node.inputs[3]
    local attrs = node.attrs
    local alpha, turned_a, turned_b = attrs.alpha, attrs.transA, attrs.transB
    local da, db
    if turned_a == 0 then
      da = g.Gemm(dy, b, { alpha = alpha, transB = 1 - turned_b })
    else
      da = g.Gemm(b, dy, { alpha = alpha, transA = turned_b, transB = 1 })
    end
    if turned_b == 0 then
      db = g.Gemm(a, dy, { alpha = alpha, transA = 1 - turned_a })
    else
      db = g.Gemm(dy, a, { alpha = alpha, transA = 1, transB = turned_a })
    end
    if not c then
      return da, db
    end
    return da, db, g.sum_to(attrs.beta == 1 and dy or dy * attrs.beta, c)
  end },

  gradient "MatMul" {
    doc = "With a matrix on the right, one product over all rows; nothing is transposed.",
    function(g, node, dy)
      local a, b = node.inputs[1], node.inputs[2]
      local rank_a, rank_b = common.rank(a, "MatMul"), common.rank(b, "MatMul")
      if rank_a == 2 and rank_b == 2 then
        return g.Gemm(dy, b, { transB = 1 }), g.Gemm(a, dy, { transA = 1 })
      elseif rank_a > 2 and rank_b == 2 then
        local dy_rows = rows(g, dy)
        local da = g.Reshape(g.Gemm(dy_rows, b, { transB = 1 }), g.Shape(a), { allowzero = 1 })
        return da, g.Gemm(rows(g, a), dy_rows, { transA = 1 })
      end
      -- A vector is a matrix of one row on the left, of one column on the right.
      if rank_b == 1 then
        dy = g.Unsqueeze(dy, { -1 })
      end
      if rank_a == 1 then
        dy = g.Unsqueeze(dy, { -2 })
      end
      local left = rank_a == 1 and g.Unsqueeze(a, { 0 }) or a
      local right = rank_b == 1 and g.Unsqueeze(b, { 1 }) or b
      local da = g.sum_to(g.MatMul(dy, transposed(g, right)), left)
      local db = g.sum_to(g.MatMul(transposed(g, left), dy), right)
      return rank_a == 1 and g.Squeeze(da, { 0 }) or da, rank_b == 1 and g.Squeeze(db, { 1 }) or db
    end,
  },

  test "determinants" {
    graph = function(g, x, y, z) return g.Det(x), g.Det(y), g.Det(z) end,
    inputs = { x = { 4, 4 }, y = { 2, 3, 3, 3 }, z = { 3, 1, 1 } },
    gradient = 2,
  },
  test "determinants of matrices of two" {
    graph = function(g, x) return g.Det(x) end,
    inputs = { x = { 3, 2, 2 } },
    gradient = 2,
  },
  test "MatMul of matrices, stacks and vectors" {
    graph = function(g, a, b, c, d, v, w)
      return g.MatMul(a, b), g.MatMul(c, b), g.MatMul(c, d), g.MatMul(a, v), g.MatMul(w, a),
        g.MatMul(v, v), g.MatMul(c, v), g.MatMul(w, g.Transpose(c, { perm = { 2, 1, 0 } }))
    end,
    inputs = { a = { 2, 3 }, b = { 3, 4 }, c = { 4, 2, 3 }, d = { 2, 1, 3, 2 }, v = { 3 },
      w = { 2 } },
    gradient = 2,
  },
  test "MatMul of open sizes" {
    graph = function(g, x, w, y) return g.MatMul(x, w), g.MatMul(x, y) end,
    inputs = { x = { "N", "T", 3 }, w = { 3, 4 }, y = { "N", 3, "T" } },
    gradient = 2,
  },
  test "Gemm in every orientation" {
    graph = function(g, a, b, c, d, e)
      return g.Gemm(a, b, c, { alpha = 0.5, beta = 2 }), g.Gemm(a, d, { transA = 1, alpha = 1.5 }),
        g.Gemm(a, e, { transB = 1 }), g.Gemm(b, a, c, { transA = 1, transB = 1 })
    end,
    inputs = { a = { 3, 3 }, b = { 3, 3 }, c = { 3 }, d = { 3, 4 }, e = { 2, 3 } },
    gradient = 2,
  },
  test "Einsum" {
    graph = function(g, a, b, c)
      return g.Einsum(a, b, { equation = "ij,jk->ik" }), g.Einsum(a, b, { equation = "ij,jk" }),
        g.Einsum(c, b, { equation = "...i,ij->...j" }), g.Einsum(a, { equation = "ij->i" }),
        g.Einsum(c, a, { equation = "nti, si -> nst" }), g.Einsum(a, a, { equation = "ij,ij->" }),
        g.Einsum(c, { equation = "abc->cab" }), g.Einsum(c, a, { equation = "aab,ab->b" }),
        g.Einsum(c, { equation = "aab->" })
    end,
    inputs = { a = { 2, 3 }, b = { 3, 4 }, c = { 2, 2, 3 } },
    gradient = 2,
  },
}

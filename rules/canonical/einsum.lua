-- SPDX-License-Identifier: Apache-2.0
-- Rewrites Einsum to simpler operators. A letter that only one operand has is summed first
-- (ReduceSum). A letter that is twice in an operand is a diagonal (Slice of the joined dimensions).
-- Operands are multiplied in pairs: by MatMul if letters are summed and others are left, by Mul and
-- ReduceSum if none is left, by Mul if none is summed. The orders of dimensions are those that move
-- the least data.
-- Long file: one operator, with every product that an equation can contain.

local enabled = option.boolean(true, "write Einsum as products and sums")

local dimensions = include "canonical/dimensions.lua"
local same = include("parts/shapes.lua").same
local ONE, is_number, emit = dimensions.ONE, dimensions.is_number, dimensions.emit
local filter, join, set_of = dimensions.filter, dimensions.join, dimensions.set_of
local like, letters_of, elements = dimensions.like, dimensions.letters_of, dimensions.elements
local arrange, separate, sum = dimensions.arrange, dimensions.separate, dimensions.sum

-- MatMul and ReduceSum do not accept these dtypes.
local NARROW = { int8 = true, uint8 = true, int16 = true, uint16 = true }

-- The size that two sizes broadcast to.
local function wider(a, b)
  if a == nil or same(a, b) then
    return b
  elseif b == nil then
    return a
  end
  for _, pair in ipairs { { a, b }, { b, a } } do
    if is_number(pair[1]) then
      return pair[1] == 1 and pair[2] or pair[1]
    end
  end
  return "?"
end

-- ---- equations ----

-- The dimensions of a term: letters, and "...2", "...1" for the dimensions of an ellipsis, numbered
-- from the right so that those of several operands are aligned.
local function labels_of(term, wild)
  local labels, place = {}, 1
  while place <= #term do
    if term:sub(place, place) == "." then
      for k = wild, 1, -1 do
        labels[#labels + 1] = "..." .. k
      end
      place = place + 3
    else
      labels[#labels + 1] = term:sub(place, place)
      place = place + 1
    end
  end
  return labels
end

-- The output if there is no arrow: the ellipsis, then the letters that occur once, sorted.
local function default_output(left)
  local uses, once = {}, {}
  for letter in left:gmatch("%a") do
    uses[letter] = (uses[letter] or 0) + 1
  end
  for letter, count in pairs(uses) do
    if count == 1 then
      once[#once + 1] = letter
    end
  end
  table.sort(once)
  return (left:find(".", 1, true) and "..." or "") .. table.concat(once)
end

-- The labels of each operand and of the output, or nil and the reason.
local function parse(node)
  local equation = node.attrs.equation:gsub(" ", "")
  local left, right = equation:match("^(.*)%->(.*)$")
  left = left or equation
  local terms, most = {}, 0
  for term in (left .. ","):gmatch("([^,]*),") do
    local value = node.inputs[#terms + 1]
    if not value or not value.rank then
      return nil, nil, "the rank of an operand is not known"
    end
    local wild = value.rank - #term:gsub("%.", "")
    terms[#terms + 1] = labels_of(term, wild)
    most = term:find(".", 1, true) and math.max(most, wild) or most
  end
  return terms, labels_of(right or default_output(left), most)
end

-- ---- one operand ----

-- The operand, with the label of a repeated letter marked (i, i', i''), and a dimension of 1 that
-- stretches to the size of its letter as ONE.
local function operand(value, place, labels, common)
  local tensor = {
    value = { reference = place }, labels = {}, sizes = {}, constant = value.is_constant,
  }
  for d, letter in ipairs(labels) do
    local size, label = value.shape[d], letter
    while tensor.sizes[label] do
      label = label .. "'"
    end
    if size == 1 and common[letter] ~= 1 then
      tensor.labels[d] = ONE
    else
      tensor.labels[d], tensor.sizes[label] = label, size
    end
  end
  return tensor
end

-- Makes a letter that is twice in an operand single: in the joined dimension, the diagonal is every
-- (n + 1)th element.
local function diagonals(to, tensor)
  for _, label in ipairs(tensor.labels) do
    local letter = label:gsub("'", "")
    local size = tensor.sizes[letter]
    if letter ~= label and not (is_number(size) and size == tensor.sizes[label]) then
      to.why = "the size of a diagonal is not known"
      return tensor
    elseif letter ~= label then
      local rest = filter(tensor.labels, function(other)
        return other ~= letter and other ~= label and other ~= ONE
      end)
      local flat = arrange(to, tensor, join(rest, { { letter, label } }))
      if to.why then
        return tensor
      end
      local value = emit(to, "Slice", flat.value, { 0 }, { size * size }, { #rest }, { size + 1 })
      return diagonals(to, like(tensor, value, join(rest, { letter })))
    end
  end
  return tensor
end

-- ---- two operands ----

-- The letters that are in `a` and `b` and stay, that are in both and are summed, that are in one.
local function classify(a, b, stays)
  local in_a, in_b = set_of(a.labels), set_of(b.labels)
  local function of(tensor, other, shared, kept)
    return filter(letters_of(tensor), function(letter)
      return (other[letter] or false) == shared and (not shared or (stays[letter] or false) == kept)
    end)
  end
  return {
    batch = of(a, in_b, true, true),
    summed = of(a, in_b, true, false),
    rows = of(a, in_b, false),
    columns = of(b, in_a, false),
  }
end

local function result_of(a, b, value, labels)
  local sizes = {}
  for _, tensor in ipairs { a, b } do
    for letter, size in pairs(tensor.sizes) do
      sizes[letter] = wider(sizes[letter], size)
    end
  end
  return { value = value, labels = labels, sizes = sizes, constant = a.constant and b.constant }
end

-- Both operands, with a dimension of 1 for each letter of `order` that they lack, but not in front.
local function spread(to, tensor, order)
  local has, entries = set_of(tensor.labels), {}
  for _, letter in ipairs(order) do
    if has[letter] or #entries > 0 then
      entries[#entries + 1] = has[letter] and letter or ONE
    end
  end
  return arrange(to, tensor, entries)
end

-- Multiplies element by element, then sums.
local function multiply(to, a, b, order, stays)
  local x, y = spread(to, a, order), spread(to, b, order)
  local product = result_of(a, b, emit(to, "Mul", x.value, y.value), order)
  to.cost = to.cost + elements(product)
  return sum(to, product, function(letter)
    return not stays[letter]
  end)
end

-- A matrix product. `head` are the dimensions of `a` before its matrices, letters that `b` may
-- lack; `rows` is one dimension of `a`, or empty.
local function matrices(to, a, b, plan)
  local in_b, before = set_of(b.labels), {}
  for _, letter in ipairs(plan.head) do
    if in_b[letter] or #before > 0 then
      before[#before + 1] = in_b[letter] and letter or ONE
    end
  end
  local rows = #plan.rows > 0 and { plan.rows } or #before > 0 and { ONE } or {}
  local columns = #plan.columns > 0 and { plan.columns } or #before > 0 and { ONE } or {}
  local x = arrange(to, a, join(plan.head, rows, { plan.summed }))
  local y = arrange(to, b, join(before, { plan.summed }, columns))
  local product = result_of(a, b, emit(to, "MatMul", x.value, y.value), {})
  -- A dimension between the batch dimensions would repeat the product of the same matrices.
  to.cost = to.cost + (set_of(before)[ONE] and 1 or 0)
  return separate(to, product, join(plan.head, rows, columns))
end

-- The orders in which the lists have some letters.
local function orders(letters, ...)
  local wanted, found, known = set_of(letters), {}, {}
  for _, list in ipairs { ... } do
    local order = filter(list, function(letter)
      return wanted[letter]
    end)
    local key = table.concat(order, " ")
    if #order == #letters and not known[key] then
      known[key] = true
      found[#found + 1] = order
    end
  end
  return found
end

-- The last letter of the rows is in the matrices, the others are batch dimensions.
local function last_row(outer, kinds, summed, columns)
  local is_row, last = set_of(kinds.rows), nil
  for _, letter in ipairs(outer) do
    last = is_row[letter] and letter or last
  end
  local head = filter(outer, function(letter)
    return letter ~= last
  end)
  return { head = head, rows = { last }, summed = summed, columns = columns }
end

-- The ways to multiply `a`, on the left, with `b`.
local function ways(a, b, stays, target, add)
  local kinds = classify(a, b, stays)
  local from_a, from_b = letters_of(a), letters_of(b)
  if #kinds.summed == 0 or #kinds.rows + #kinds.columns == 0 then
    for _, order in ipairs(orders(join(from_a, kinds.columns), target, join(from_a, kinds.columns),
      join(kinds.rows, from_b))) do
      add(function(to)
        return multiply(to, a, b, order, stays)
      end)
    end
    return
  end
  for _, summed in ipairs(orders(kinds.summed, from_a, from_b)) do
    for _, columns in ipairs(orders(kinds.columns, target, from_b)) do
      for _, batch in ipairs(orders(kinds.batch, target, from_a, from_b)) do
        for _, rows in ipairs(orders(kinds.rows, target, from_a)) do
          add(function(to)
            return matrices(to, a, b,
              { head = batch, rows = rows, summed = summed, columns = columns })
          end)
        end
      end
      for _, outer in ipairs(orders(join(kinds.batch, kinds.rows), target, from_a)) do
        if #kinds.rows > 1 then
          add(function(to)
            return matrices(to, a, b, last_row(outer, kinds, summed, columns))
          end)
        end
      end
    end
  end
end

-- `a` times `b`, summed over letters that do not stay, in the way that moves the least data.
local function pair(to, a, b, stays, target)
  for _, letter in ipairs(classify(a, b, stays).summed) do
    if not same(a.sizes[letter], b.sizes[letter]) then
      to.why = "the size of '" .. letter .. "' is not known to be the same in both operands"
      return a
    end
  end
  local best, lowest, why
  local function add(way)
    local trial = dimensions.maker()
    local result = way(trial)
    if #target > 0 then
      arrange(trial, result, target)
    end
    why = trial.why
    if not why and (not lowest or trial.cost < lowest) then
      best, lowest = way, trial.cost
    end
  end
  ways(a, b, stays, target, add)
  ways(b, a, stays, target, add)
  if not best then
    to.why = why
    return a
  end
  return best(to)
end

-- ---- equations as a whole ----

-- The number of multiplications of a product of two; nil if a size is unknown.
local function work_of(a, b)
  local work, seen = 1, {}
  for _, tensor in ipairs { a, b } do
    for _, letter in ipairs(letters_of(tensor)) do
      if not is_number(tensor.sizes[letter]) then
        return nil
      end
      work = seen[letter] and work or work * tensor.sizes[letter]
      seen[letter] = true
    end
  end
  return work
end

-- The two operands to multiply next: the pair that costs least, or the first if sizes are unknown.
local function next_pair(tensors)
  local first, second, least
  for i = 1, #tensors do
    for j = i + 1, #tensors do
      local work = work_of(tensors[i], tensors[j])
      if not work then
        return 1, 2
      end
      if not least or work < least then
        first, second, least = i, j, work
      end
    end
  end
  return first, second
end

-- The letters that the output or one of the tensors has.
local function stay_for(output, tensors)
  local stays = set_of(output)
  for _, tensor in ipairs(tensors) do
    for _, label in ipairs(tensor.labels) do
      stays[label] = true
    end
  end
  return stays
end

-- The size of each letter, or nil and the reason if these rules do not cover the equation.
local function sizes_of(node, terms, output)
  local common, seen = {}, {}
  for k, labels in ipairs(terms) do
    for d, letter in ipairs(labels) do
      local size = node.inputs[k].shape[d]
      if size == 0 then
        return nil, "a size is 0"
      end
      common[letter] = wider(common[letter], size)
    end
  end
  for _, letter in ipairs(output) do
    if seen[letter] or not common[letter] then
      return nil, "the output has a letter twice, or one that no operand has"
    end
    seen[letter] = true
  end
  return common
end

local function any_of(list, wanted)
  return #filter(list, wanted) > 0
end

-- Sums letters that only this operand has, and dimensions of 1 with them.
local function sum_own(to, tensors, place, output)
  local tensor, others = tensors[place], join(tensors)
  table.remove(others, place)
  local stays = stay_for(output, others)
  if not any_of(letters_of(tensor), function(letter) return not stays[letter] end) then
    return tensor
  end
  return sum(to, tensor, function(label)
    return label == ONE or not stays[label]
  end)
end

local function multiply_all(to, tensors, output)
  while #tensors > 1 and not to.why do
    local i, j = next_pair(tensors)
    local b, a = table.remove(tensors, j), table.remove(tensors, i)
    local product = pair(to, a, b, stay_for(output, tensors), #tensors == 0 and output or {})
    table.insert(tensors, i, product)
  end
  return tensors[1]
end

-- The steps that make the value of the node, and the last reference; or nil and why it stays.
local function plan(node)
  local terms, output, malformed = parse(node)
  if not terms then
    return nil, malformed
  end
  local common, why = sizes_of(node, terms, output)
  if not common then
    return nil, why
  end
  local stays = set_of(output)
  local function is_summed(letter)
    return not stays[letter]
  end
  if NARROW[node.dtype] and any_of(join(table.unpack(terms)), is_summed) then
    return nil, "no operator sums " .. node.dtype
  end
  local to, tensors = dimensions.maker({}, #terms), {}
  for k, labels in ipairs(terms) do
    tensors[k] = diagonals(to, operand(node.inputs[k], k, labels, common))
    if to.why then
      return nil, to.why
    end
  end
  for k = 1, #tensors do
    tensors[k] = sum_own(to, tensors, k, output)
  end
  local product = multiply_all(to, tensors, output)
  if to.why then
    return nil, to.why
  end
  local last = arrange(to, product, output).value
  return { steps = to.steps, last = last }, to.why
end

-- A key of everything in a node that the steps depend on.
local function key_of(node)
  local parts = { node.attrs.equation, tostring(node.dtype) }
  for _, value in ipairs(node.inputs) do
    parts[#parts + 1] = value.is_constant and "constant" or "computed"
    for d = 1, value.rank or 0 do
      parts[#parts + 1] = tostring(value.shape[d])
    end
    parts[#parts + 1] = value.rank and "" or "of any rank"
  end
  return table.concat(parts, "\n")
end

-- Models repeat their equations, so at most KEPT lists of steps are cached.
local KEPT <const> = 256
local plans, plan_count = {}, 0

-- The value that replaces the node, or nil and why it stays.
local function lower(node, g)
  local key = key_of(node)
  if not plans[key] then
    if plan_count == KEPT then
      plans, plan_count = {}, 0
    end
    local made, why = plan(node)
    plans[key], plan_count = made or { why = why }, plan_count + 1
  end
  local known = plans[key]
  if known.why then
    return nil, known.why
  end
  return dimensions.build(known.steps, node.inputs, known.last, g)
end

-- ---- tests ----

-- Equations, and the shapes of their operands.
local EQUATIONS = {
  { "ij -> ji", { 2, 3 } },
  { "ij->ij", { 2, 3 } },
  { "ijk->k", { 2, 3, 4 } },
  { "ij->", { 2, 3 } },
  { "ba", { 2, 3 } },
  { "ii->i", { 3, 3 } },
  { "ii", { 3, 3 } },
  { "iij->ij", { 3, 3, 2 } },
  { "iji,kj->ik", { 3, 2, 3 }, { 4, 2 } },
  { "iijji->ij", { 2, 2, 3, 3, 2 } },
  { "ii->i", { 1, 1 } },
  { "iij,ik->jk", { 1, 3, 2 }, { 3, 4 } },
  { "...ii->...i", { 2, 4, 3, 3 } },
  { "i,i", { 3 }, { 3 } },
  { "i,j->ij", { 2 }, { 3 } },
  { "i,j->ji", { 2 }, { 3 } },
  { "ij,ij->ij", { 2, 3 }, { 2, 3 } },
  { "ij,ji->ij", { 2, 3 }, { 3, 2 } },
  { "ij,i->ij", { 2, 3 }, { 2 } },
  { "i,jk->", { 2 }, { 3, 4 } },
  { "ij,j->i", { 2, 3 }, { 3 } },
  { "j,ij->i", { 3 }, { 2, 3 } },
  { "bij,bj->bi", { 2, 3, 4 }, { 2, 4 } },
  { "bi,bij->bj", { 2, 3 }, { 2, 3, 4 } },
  { "ij,ij->i", { 2, 3 }, { 2, 3 } },
  { "ij,jk", { 2, 3 }, { 3, 4 } },
  { "ij,kj->ki", { 2, 3 }, { 4, 3 } },
  { "ijl,jk->ik", { 2, 3, 2 }, { 3, 4 } },
  { "bhid,bhjd->bhij", { 2, 3, 4, 5 }, { 2, 3, 6, 5 } },
  { "bqhd,bkhd->bhqk", { 2, 4, 3, 5 }, { 2, 6, 3, 5 } },
  { "bhqk,bkhd->bqhd", { 2, 3, 4, 6 }, { 2, 6, 3, 5 } },
  { "bqc,chd->bhqd", { 2, 4, 6 }, { 6, 3, 2 } },
  { "bqhd,hdc->bqc", { 2, 4, 3, 2 }, { 3, 2, 6 } },
  { "bhwc,hkc->bhwk", { 2, 3, 4, 5 }, { 3, 6, 5 } },
  { "bhwc,wkc->bhwk", { 2, 3, 4, 5 }, { 4, 6, 5 } },
  { "nctkv,kvw->nctw", { 2, 3, 2, 3, 4 }, { 3, 4, 5 } },
  { "abc,cde->eabd", { 2, 3, 4 }, { 4, 2, 5 } },
  { "...ij,...jk->...ik", { 2, 1, 3, 4 }, { 3, 4, 5 } },
  { "...ij, jk", { 2, 2, 3, 4 }, { 4, 5 } },
  { "i...,...j->j...i", { 3, 2, 4 }, { 2, 4, 5 } },
  { "ij,jk->ik", { 2, 1 }, { 3, 4 } },
  { "bij,bjk->bik", { 1, 2, 3 }, { 4, 3, 2 } },
  { "bij,bjk->bik", { 2, 2, 3 }, { 2, 1, 2 } },
  { "ij,jk,kl->il", { 2, 3 }, { 3, 4 }, { 4, 5 } },
  { "bi,ijk,bk->bj", { 2, 3 }, { 3, 4, 5 }, { 2, 5 } },
  { "i,j,k,l->lkji", { 2 }, { 3 }, { 2 }, { 3 } },
  { "ij,jk,kl,lm,mi", { 2, 3 }, { 3, 2 }, { 2, 4 }, { 4, 3 }, { 3, 2 } },
}

-- Random equations, with repeated letters, sums, sizes of 1, ellipses and blanks, with and without
-- an output.
local function drawn_equation(next)
  local letters, size, wild = { "a", "b", "c", "D", "e" }, {}, { 1 + next(3), 1 + next(3) }
  for _, letter in ipairs(letters) do
    size[letter] = 1 + next(4)
  end
  local terms, shapes, used = {}, {}, {}
  for t = 1, 1 + next(3) do
    local term, shape, count = "", {}, next(4)
    local place = next(2 * count + 2)
    for k = 0, count do
      if k == place then
        term = term .. "..."
        for d = next(3), 1, -1 do
          shape[#shape + 1] = next(3) == 0 and 1 or wild[d]
        end
      end
      if k < count then
        local letter = letters[1 + next(#letters)]
        term, used[letter] = term .. (next(4) == 0 and " " or "") .. letter, true
        shape[#shape + 1] = next(6) == 0 and 1 or size[letter]
      end
    end
    terms[t], shapes[t] = term, shape
  end
  local equation, pool, output = table.concat(terms, ","), {}, ""
  for letter in pairs(used) do
    pool[#pool + 1] = letter
  end
  while #pool > 0 and next(3) > 0 do
    output = output .. table.remove(pool, 1 + next(#pool))
  end
  if next(4) > 0 then
    equation = equation .. "->" .. (equation:find(".", 1, true) and "..." or "") .. output
  end
  return { equation, table.unpack(shapes) }
end

-- The value of each equation for random operands of this dtype times `x`, which is no constant.
local function all_of(g, equations, x, dtype)
  local values = {}
  for k, case in ipairs(equations) do
    local operands = {}
    for t = 2, #case do
      local drawn = g.normal(case[t])
      local cast = dtype and g.Cast(g.Round(drawn * 3), { to = dtype }) or drawn
      operands[#operands + 1] = cast * x
    end
    operands[#operands + 1] = { equation = case[1] }
    values[k] = g.Einsum(table.unpack(operands))
  end
  return table.unpack(values)
end

local function numbers(seed)
  local state = seed
  return function(below)
    state = (state * 1103515245 + 12345) & 0x7fffffff
    return (state >> 12) % below
  end
end

return {
  options = { einsum = enabled },

  rewrite "einsum" {
    doc = "Einsum is transpositions, products and sums.",
    enabled = enabled,
    pattern = op { "Einsum", as = "node" },
    replace = function(m, g)
      return lower(m.node, g)
    end,
  },

  test "equations of all kinds are products and sums" {
    inputs = { x = {} },
    graph = function(g, x)
      return all_of(g, EQUATIONS, x)
    end,
    expect = { einsum = #EQUATIONS, Einsum = 0 },
    equal = { rtol = 1e-4, atol = 1e-5 },
  },

  test "equations by chance are products and sums" {
    inputs = { x = {} },
    graph = function(g, x)
      local equations, next = {}, numbers(7)
      for k = 1, 60 do
        equations[k] = drawn_equation(next)
      end
      return all_of(g, equations, x)
    end,
    expect = { einsum = 60, Einsum = 0 },
    equal = { rtol = 1e-4, atol = 1e-5 },
  },

  test "integers come out to the bit" {
    inputs = { x = { dtype = "int32" } },
    graph = function(g, x)
      return all_of(g, EQUATIONS, x, "int32")
    end,
    expect = { einsum = #EQUATIONS, Einsum = 0 },
    equal = { rtol = 0, atol = 0 },
  },

  test "sums of 8 bits stay" {
    inputs = { x = { 2, 3, dtype = "int8" }, y = { 3, 4, dtype = "int8" } },
    graph = function(g, x, y)
      return g.Einsum(x, y, { equation = "ij,jk->ik" }), g.Einsum(x, { equation = "ij->ji" })
    end,
    expect = { einsum = 1, Einsum = 1, Transpose = 1 },
  },

  test "matrices that stand as they have to are not moved" {
    inputs = { q = { 2, 3, 4, 5 }, k = { 2, 3, 5, 6 }, w = { 5, 7 } },
    graph = function(g, q, k, w)
      return g.Einsum(q, k, { equation = "bhid,bhdj->bhij" }),
        g.Einsum(q, w, { equation = "bhwc,cd->bhwd" }),
        g.Einsum(k, q, { equation = "bhdj,bhid->bhij" })
    end,
    expect = { einsum = 3, MatMul = 3, Transpose = 0, Reshape = 0, Squeeze = 0, Unsqueeze = 0 },
    equal = true,
  },

  test "attention with heads in the middle moves each operand at most once" {
    inputs = { q = { 2, 4, 3, 5 }, k = { 2, 6, 3, 5 } },
    graph = function(g, q, k)
      return g.Einsum(q, k, { equation = "bqhd,bkhd->bhqk" })
    end,
    expect = { einsum = 1, MatMul = 1, Transpose = 2, Reshape = 0 },
    equal = true,
  },

  test "sizes may be open" {
    inputs = {
      q = { "B", "T", 3, 5 }, k = { "B", "S", 3, 5 }, x = { "B", "T", 6 }, y = { "B", "T", 6 },
    },
    graph = function(g, q, k, x, y)
      return g.Einsum(q, k, { equation = "bqhd,bkhd->bhqk" }),
        g.Einsum(x, g.normal { 6, 3, 2 }, { equation = "btc,chd->bthd" }),
        g.Einsum(q, g.normal { 3, 5, 6 }, { equation = "bthd,hdc->btc" }),
        g.Einsum(x, y, { equation = "btc,btc->bt" }), g.Einsum(x, y, { equation = "btc,bsc->bts" }),
        g.Einsum(x, y, { equation = "btc,btd->bcd" })
    end,
    expect = { einsum = 6, Einsum = 0 },
    equal = { rtol = 1e-4, atol = 1e-5 },
  },

  test "what the sizes do not let be said stays" {
    inputs = {
      x = { "N", "N" }, y = { "A", "B", "M", 4 }, z = { "A", "B", "K", 4 }, w = { 3, "S" },
      v = { "T", 2 },
    },
    graph = function(g, x, y, z, w, v)
      return g.Einsum(x, { equation = "ii->i" }), g.Einsum(w, v, { equation = "ij,jk->ik" }),
        g.Einsum(y, z, { equation = "abmc,abkc->mk" })
    end,
    expect = { Einsum = 3 },
    expect_not = { "einsum" },
  },

  test "Einsum stays where it is wanted" {
    inputs = { x = { 2, 3 } },
    graph = function(g, x)
      return g.Einsum(x, { equation = "ij->ji" })
    end,
    options = { einsum = false },
    expect = { Einsum = 1 },
    expect_not = { "einsum" },
    equal = true,
  },
}

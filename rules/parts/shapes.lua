-- SPDX-License-Identifier: Apache-2.0
-- Sizes that are numbers, symbols, or not known.

local M = {}

---Are both sizes known to be the same, as numbers or as symbols?
function M.same(a, b)
  return a == b and a ~= nil and a ~= "?"
end

---The same of whole shapes, or of their first `count` dimensions.
function M.same_shapes(a, b, count)
  if not a or not b or (not count and #a ~= #b) then
    return false
  end
  for d = 1, count or #a do
    if not M.same(a[d], b[d]) then
      return false
    end
  end
  return true
end

---The shape as Reshape takes it, if at most one size is no number; otherwise nil.
function M.spelled(shape)
  local sizes, symbols = { table.unpack(shape) }, 0
  for d = 1, #sizes do
    if math.type(sizes[d]) ~= "integer" then
      sizes[d], symbols = -1, symbols + 1
    end
  end
  return symbols <= 1 and sizes or nil
end

return M

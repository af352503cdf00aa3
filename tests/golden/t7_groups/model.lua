-- SPDX-License-Identifier: Apache-2.0
-- A node of any group joins its neighbours whichever end the search starts from.
local x = g.input("x", "float32", { 4 })
local function chain(value, ...)
  for _, name in ipairs { ... } do
    value = g.Relu(value, { name = name })
  end
  return value
end
g.output("first", chain(x, "a_3", "b_any", "c_3"))
g.output("second", chain(x, "d_any", "e_3"))
g.output("third", chain(x, "f_any", "g_any", "h_1", "i_2"))

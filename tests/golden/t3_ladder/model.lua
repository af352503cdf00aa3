-- SPDX-License-Identifier: Apache-2.0
-- A path outside that a search which gives up early does not see, with both orders of the inputs
-- of `desc`.
local x = g.input("x", "float32", { 4 })
local s0 = g.Relu(x, { name = "s0_0" })
local anc = g.Neg(s0, { name = "anc" })
local d = g.input("v", "float32", { 4 })
for k = 0, 11 do
  d = g.Add(d, d, { name = "d" .. k })
end
g.output("s1", g.Add(s0, g.Add(anc, d, { name = "desc" }), { name = "s1_0" }))
g.output("s2", g.Add(s0, g.Add(d, anc, { name = "cesd" }), { name = "s2_0" }))

-- SPDX-License-Identifier: Apache-2.0
-- The second set is not even convex: y lies between s1 and s2.
local x = g.input("x", "float32", { 4 })
local a0 = g.Relu(x, { name = "a0_0" })
local s1 = g.Relu(x, { name = "s1_1" })
local y = g.Add(a0, s1, { name = "y_0" })
g.output("s2", g.Add(y, s1, { name = "s2_1" }))

-- SPDX-License-Identifier: Apache-2.0
-- The filter keeps s0 and s2 of s0 -> s1 -> s2, s0 -> s2: together they are not convex.
local x = g.input("x", "float32", { 4 })
local s0 = g.Relu(x, { name = "s0" })
local s1 = g.Relu(s0, { name = "s1" })
g.output("s2", g.Add(s1, s0, { name = "s2" }))

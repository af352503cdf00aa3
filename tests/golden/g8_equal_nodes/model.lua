-- SPDX-License-Identifier: Apache-2.0
-- Graph 8: two equal nodes feed a sum that two nodes read.
local d = g.input("data", "float32", { 1 })
local p = g.Add(g.Sin(d, { name = "s1" }), g.Sin(d, { name = "s2" }), { name = "p" })
g.output("y", g.Sub(g.Cos(p, { name = "c1" }), g.Cos(p, { name = "c2" }), { name = "y" }))

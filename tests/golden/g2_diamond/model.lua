-- SPDX-License-Identifier: Apache-2.0
-- Graph 2: exp feeds sin and cos, which are added.
local e = g.Exp(g.input("data", "float32", { 2, 3, 10, 10 }), { name = "e" })
g.output("a", g.Add(g.Cos(e, { name = "c" }), g.Sin(e, { name = "s" }), { name = "a" }))

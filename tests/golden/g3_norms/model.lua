-- SPDX-License-Identifier: Apache-2.0
-- Graph 3: graph 2 with two batch norms behind it.
local e = g.Exp(g.input("data", "float32", { 2, 3, 10, 10 }), { name = "e" })
local a = g.Add(g.Cos(e, { name = "c" }), g.Sin(e, { name = "s" }), { name = "a" })
g.output("b2", g.batch_norm(g.batch_norm(a, { name = "b1" }), { name = "b2" }))

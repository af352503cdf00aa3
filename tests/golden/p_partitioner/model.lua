-- SPDX-License-Identifier: Apache-2.0
-- Graph P of MXNet's extensions: y = log(exp(a + b)), and a tail.
local a, b = g.input("a", "float32", { 3, 2 }), g.input("b", "float32", { 3, 2 })
local c = g.Add(a, b, { name = "c" })
local y = g.Log(g.Exp(c, { name = "d" }), { name = "y" })
g.output("y", y)
g.output("z", g.Sqrt(g.Abs(y, { name = "e" }), { name = "z" }))

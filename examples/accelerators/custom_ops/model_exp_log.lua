-- SPDX-License-Identifier: Apache-2.0
-- The model of MXNet's tutorial on partitioners, log(exp(a + b)), and a Log by itself:
-- log(a * a + 1).
local a = g.input("a", "float32", { 3, 2 })
local b = g.input("b", "float32", { 3, 2 })
g.output("c", g.Log(g.Exp(g.Add(a, b), { name = "exp" }), { name = "log" }))
g.output("d", g.Log(g.Add(g.Mul(a, a), 1.0), { name = "alone" }))

-- SPDX-License-Identifier: Apache-2.0
-- Two sets that need each other: accepting both whole would close a cycle.
local x = g.input("x", "float32", { 4 })
local y = g.input("y", "float32", { 4 })
local a0 = g.Relu(x, { name = "a0_0" })
local b1 = g.Relu(y, { name = "b1_1" })
local a1 = g.Add(a0, b1, { name = "a1_0" })
local a2 = g.Relu(a0, { name = "a2_0" })
g.output("a1", a1)
g.output("b2", g.Add(a2, b1, { name = "b2_1" }))

-- SPDX-License-Identifier: Apache-2.0
-- Two producers of one name: names are for people, both are inputs of the region.
local x = g.input("x", "float32", { 4 })
local one = g.Relu(x, { name = "dup" })
local two = g.Neg(x, { name = "dup" })
g.output("s", g.Sub(one, two, { name = "s_0" }))

-- SPDX-License-Identifier: Apache-2.0
-- Graph 5: one variable read twice by one node.
local d = g.input("data", "float32", { 2, 3, 10, 10 })
g.output("sum", g.Add(d, d, { name = "sum" }))

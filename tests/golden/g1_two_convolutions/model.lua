-- SPDX-License-Identifier: Apache-2.0
-- MXNet's test_subgraph_op, graph 1: two convolutions that share a variable; data2 is the weight
-- of the first.
local data1 = g.input("data1", "float32", { 2, 3, 10, 10 })
local data2 = g.input("data2", "float32", { 1, 3, 2, 2 })
g.output("c1", g.Conv(data1, data2, { name = "c1" }))
g.output("c2", g.Conv(data2, g.weight { 1, 3, 1, 1, name = "weight" }, { name = "c2" }))

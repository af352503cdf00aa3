-- SPDX-License-Identifier: Apache-2.0
-- MXNet's test_fusion_cycle: the two activations and the two sums must not end up in one set each.
local x = g.input("x", "float32", { 4, 4 })
local y = g.input("y", "float32", { 4, 4 })
local rx = g.Relu(x, { name = "rx_0" })
local ry = g.Relu(y, { name = "ry_0" })
local axes = g.constant({ 1 }, "int64")
local z1 = g.Identity(g.ReduceSum(rx, axes, { name = "sum_x", keepdims = 1 }), { name = "z1_0" })
local z2 = g.Identity(g.ReduceSum(ry, axes, { name = "sum_y", keepdims = 1 }), { name = "z2_0" })
g.output("o1", g.Add(rx, z2, { name = "o1_0" }))
g.output("o2", g.Add(ry, z1, { name = "o2_0" }))

-- SPDX-License-Identifier: Apache-2.0
-- Graph 6: the weight of a convolution is computed.
local data1 = g.input("data1", "float32", { 3, 3, 10, 10 })
local data2 = g.input("data2", "float32", { 1, 3, 2, 2 })
g.output("y", g.Conv(data1, g.Sin(data2, { name = "s" }), g.zeros { 1 }, { name = "conv" }))

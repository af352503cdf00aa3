-- SPDX-License-Identifier: Apache-2.0
-- Graph 7: a long way round between two supported nodes.
local s = g.Sin(g.input("data", "float32", { 1 }), { name = "s" })
local k = s
for n = 1, 6 do
  k = g.Cos(k, { name = "k" .. n })
end
g.output("y", g.Add(s, k, { name = "sum" }))

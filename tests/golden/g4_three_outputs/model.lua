-- SPDX-License-Identifier: Apache-2.0
-- Graph 4: one value as three outputs of the model.
local e = g.Exp(g.input("data", "float32", { 2, 3, 10, 10 }), { name = "e" })
g.output("a", e)
g.output("b", e)
g.output("c", e)

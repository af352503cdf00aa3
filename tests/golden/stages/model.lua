-- SPDX-License-Identifier: Apache-2.0
-- Four layers. Fusions and regions stay inside of stages: a Relu in the next one is not fused.
local x = g.input("x", "float32", { 4, 8 })
for k = 1, 4 do
  local product = g.MatMul(x, g.weight { 8, 8, name = "weight" .. k }, { name = "layer" .. k })
  x = g.Relu(product, { name = "relu" .. k })
end
g.output("y", x)

-- SPDX-License-Identifier: Apache-2.0
-- Operators of the gemms library by their full names: two products in a row, the second counts its
-- runs.
local x = g.input("x", "float32", { "N", 3 })
local hidden = g["my.company.Gemm"](x, g.constant({ { 1, 2 }, { 3, 4 }, { 5, 6 } }, "float32"),
  { alpha = 0.5, name = "first" })
local y, runs = g["my.company.StatefulGemm"](g.Relu(hidden),
  g.constant({ { 1, 0 }, { 0, -1 }, { 1, 1 } }, "float32"), { transB = 1, start = 10, outputs = 2 })
g.output("y", y)
g.output("runs", runs)

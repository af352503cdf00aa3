-- SPDX-License-Identifier: Apache-2.0
-- Weights of matrix products as integers, and nothing else, to write models with:
--
--   cleave partition model.onnx --rules weights --set weights=int4 --opset 21 -o smaller.onnx
--
-- The rewrites and their options are those of parts/weights.lua. The written model has
-- DequantizeLinear of constant integers, of 4 bits where they fit, and runs wherever that operator
-- does.

local part = include("parts/weights.lua")

return ruleset {
  name = "weights",
  doc = "Constant weights of matrix products as integers of 8 or 4 bits.",
  backend = "cpu",
  options = {
    keep = option.list({}, "operators or names of nodes (* is any text) that stay float32"),
  },

  { options = part.options, part.matmul, part.gemm },

  -- ---- tests ----

  test "both products read integers, without fusions" {
    graph = function(g, x)
      return g.Relu(g.MatMul(g.Gemm(x, g.weight { 64, 32 }), g.weight { 32, 40 }))
    end,
    inputs = { x = { 1, 64 } },
    options = { weights = "int8" },
    expect = { narrow_matmul = 1, narrow_gemm = 1, DequantizeLinear = 2, fusions = 0 },
    equal = { rtol = 0.02, atol = 0.05 },
  },
  test "blocks of 64 with zero points, in 4 bits" {
    graph = function(g, x)
      return g.MatMul(g.Gemm(x, g.weight { 64, 128 }), g.weight { 128, 40 })
    end,
    inputs = { x = { 1, 64 } },
    options = { weights = "int4", block = 64, zero_points = true },
    expect = { narrow_matmul = 1, narrow_gemm = 1, DequantizeLinear = 2 },
    equal = { rtol = 0.2, atol = 1 },
  },
  test "what is kept, and weights that are computed, stay" {
    graph = function(g, x, y)
      return g.MatMul(g.Gemm(x, g.weight { 64, 32 }), y)
    end,
    inputs = { x = { 1, 64 }, y = { 32, 40 } },
    options = { weights = "int8", keep = { "Gemm" } },
    expect = { MatMul = 1, Gemm = 1 },
    expect_not = { "narrow_matmul", "narrow_gemm" },
    equal = true,
  },
}

-- SPDX-License-Identifier: Apache-2.0
-- Models of float32 with QuantizeLinear and DequantizeLinear around what 8-bit integers can
-- compute, and nothing else, to write models with:
--
--   cleave calibrate model.onnx --data DIR -o ranges.json
--   cleave partition model.onnx --rules int8 --ranges ranges.json -o integers.onnx
--
-- The pass and its options are those of parts/int8.lua. The written model runs wherever these
-- operators do. Runtimes that add integers want it with `--set float_sums=false`.

local part = include("parts/int8.lua")

return ruleset {
  name = "int8",
  doc = "QuantizeLinear and DequantizeLinear around what integers can compute.",
  backend = "cpu",
  options = {
    precision = option.enum("int8", "of convolutions and matrix products", { "float32", "int8" }),
    keep = option.list({}, "operators or names of nodes (* is any text) that stay float32"),
  },

  { options = part.options, part.int8 },

  -- ---- tests ----

  test "a convolution and a product read integers, without fusions" {
    graph = function(g, x)
      local y = g.Relu(g.Conv(x, g.weight { 16, 3, 3, 3 }))
      return g.Gemm(g.Flatten(g.GlobalAveragePool(y)), g.weight { 10, 16 }, nil, { transB = 1 })
    end,
    inputs = { x = { 1, 3, 16, 16 } },
    calibrate = true,
    expect = { int8 = 1, QuantizeLinear = 2, DequantizeLinear = 4, fusions = 0 },
    equal = { rtol = 0, atol = 0.05 },
  },
  test "what is kept, and a model in float32, stay as they are" {
    graph = function(g, x)
      return g.Conv(x, g.weight { 16, 16, 1, 1 })
    end,
    inputs = { x = { 1, 16, 8, 8 } },
    options = { keep = { "Conv" } },
    calibrate = true,
    expect = { QuantizeLinear = 0, fusions = 0 },
    expect_not = { "int8" },
    equal = true,
  },
}

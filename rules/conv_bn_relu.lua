-- SPDX-License-Identifier: Apache-2.0
-- A convolution with its batch norm, a residual add and an activation, as one oneDNN kernel; and
-- everything else of a residual network in as few regions as possible, so that oneDNN's own memory
-- layouts stay inside.

local conv = op { "Conv", as = "conv", inputs = { w = constant "w" } }
local bn = op { "BatchNormalization", as = "bn", attrs = { training_mode = 0 } }
local sum = op { "Add", as = "sum", inputs = { any "residual" } }
local act = op { { "Relu", "Clip", "LeakyRelu", "Sigmoid" }, as = "act" }

local residual = option.boolean(true, "fuse the residual add")

return ruleset {
  name = "conv_bn_relu",
  backend = "onednn",
  options = { residual = residual },

  fuse "conv_bn_act" {
    doc = "One convolution kernel with everything that follows it pointwise.",
    pattern = conv >> maybe(bn) >> maybe { sum, when = residual } >> maybe(act),
    where = function(m)
      return m.conv.dtype == "float32", "only float32 convolutions"
    end,
  },

  region "island" {
    doc = "The convolutions and what stands between them, in as few pieces as the graph allows.",
    ops = {
      "Conv", "BatchNormalization", "Relu", "Clip", "LeakyRelu", "Sigmoid", "Add",
      "MaxPool", "AveragePool", "GlobalAveragePool", "Flatten", "Reshape", "Gemm", "MatMul",
      "Softmax",
    },
  },

  test "takes batch norm, sum and activation along" {
    graph = function(g, x)
      local y = g.batch_norm(g.Conv(x, g.weight { 8, 8, 3, 3 }, { pads = { 1, 1, 1, 1 } }))
      return g.Relu(g.Add(y, x))
    end,
    inputs = { { 1, 8, 16, 16 } },
    expect = { conv_bn_act = 1, island = 1 },
  },
}

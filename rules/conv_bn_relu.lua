-- SPDX-License-Identifier: Apache-2.0
-- Fuses a convolution with its batch norm, a residual add and an activation into one oneDNN kernel.
-- All other operators of a residual network form as few regions as possible, because oneDNN's own
-- memory layouts do not leave a region.

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
      return g.Relu(g.BatchNormalization(g.Conv(x)) + x)
    end,
    inputs = { x = { 1, 8, 16, 16 } },
    expect = { conv_bn_act = 1, ["conv_bn_act.sum"] = 1, island = 1, left = 0 },
    equal = true,
  },
  test "leaves the sum to itself where the option says so" {
    graph = function(g, x)
      return g.Relu(g.BatchNormalization(g.Conv(x)) + x)
    end,
    inputs = { x = { 1, 8, 16, 16 } },
    options = { residual = false },
    expect = { conv_bn_act = 1, ["conv_bn_act.bn"] = 1, ["conv_bn_act.sum"] = 0, island = 1 },
    equal = true,
  },
  test "leaves convolutions of other types alone" {
    graph = function(g, x)
      return g.Relu(g.Conv(x))
    end,
    inputs = { x = { 1, 8, 16, 16, dtype = "float64" } },
    expect_not = { "conv_bn_act" },
    refused = { conv_bn_act = "only float32" },
  },
  test "leaves what is neither a convolution nor around one alone" {
    graph = function(g, x)
      return g.Exp(g.Tanh(x))
    end,
    expect_not = { "conv_bn_act", "island" },
  },
}

-- SPDX-License-Identifier: Apache-2.0
-- What XNNPACK computes in one operator, and regions of all that it supports. Constant factors and
-- terms per channel, batch norm among them, go into the weights of a convolution or product; Relu
-- and Clip become bounds of the output. The library looks at each proposal and says why not.

local bounded = op { { "Relu", "Clip" }, as = "act" }

-- What can be folded into weights.
local function affine()
  return oneof {
    op { "BatchNormalization", attrs = { training_mode = 0 } },
    op { { "Add", "Mul" }, inputs = { constant() } },
    op { { "Sub", "Div" }, inputs = { B = constant() } },
  }
end

return ruleset {
  name = "xnnpack",
  backend = "xnnpack",
  options = {
    least = option.integer(1, "nodes that make a region", { min = 1 }),
  },

  fuse "product_act" {
    doc = "A convolution or product with what is constant per channel after it, and its bounds.",
    pattern = op { { "Conv", "ConvTranspose", "Gemm", "MatMul" }, as = "product" }
      >> maybe(affine()) >> maybe(affine()) >> maybe(bounded),
  },

  fuse "bounded" {
    doc = "Arithmetic, batch norm or a pooling, and the bounds of its output.",
    pattern = op {
      {
        "Add", "Sub", "Mul", "Div", "Sum", "BatchNormalization", "MaxPool", "AveragePool",
        "GlobalAveragePool",
      },
      as = "head",
    } >> bounded,
  },

  region "island" {
    doc = "Everything that XNNPACK supports, in as few pieces as the graph allows.",
    review = function(sub, options)
      return #sub.nodes >= options.least, "too few nodes"
    end,
  },

  test "folds batch norm and bounds into a convolution" {
    graph = function(g, x)
      return g.Clip(g.BatchNormalization(g.Conv(x)), 0.0, 6.0)
    end,
    inputs = { x = { 1, 8, 16, 16 } },
    expect = { product_act = 1, island = 1, left = 0 },
    equal = true,
  },
  test "bounds a residual sum" {
    graph = function(g, x)
      return g.Relu(g.Conv(x) + x)
    end,
    inputs = { x = { 1, 8, 16, 16 } },
    expect = { product_act = 1, bounded = 1, island = 1 },
    equal = true,
  },
  test "leaves out what XNNPACK lacks" {
    graph = function(g, x)
      return g.Erf(g.Tanh(x))
    end,
    inputs = { x = { 1, 8, 16, 16 } },
    expect_not = { "island" },
  },
}

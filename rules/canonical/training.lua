-- SPDX-License-Identifier: Apache-2.0
-- Rewrites the gradient of Relu for images, a comparison and a Where in backward graphs, to one
-- operator. Regions then keep it in the layout of the convolutions around it.

local relu_grad = option.boolean(true, "make ReluGrad, of images, out of Greater and Where")

-- Gradients of images are between convolutions. Pointwise kernels compute all others.
local function is_image(m)
  local rank = m.dy.rank
  return rank and rank >= 3 and rank <= 5, "not images"
end

return {
  options = { relu_grad = relu_grad },

  rewrite "relu_grad" {
    doc = "Where(y > 0, dy, 0), of images: ReluGrad.",
    pattern = op {
      "Where",
      inputs = {
        op { "Greater", inputs = { any "y", constant { value = 0 } } },
        any "dy",
        constant { value = 0 },
      },
    },
    enabled = relu_grad,
    where = function(m)
      if m.y.dtype ~= m.dy.dtype then
        return false, "the gradient has another dtype"
      end
      local a, b = m.y.shape, m.dy.shape
      if not a or not b or #a ~= #b then
        return false, "the gradient has another shape"
      end
      for d = 1, #a do
        if a[d] ~= b[d] or a[d] == "?" then
          return false, "the gradient has another shape"
        end
      end
      return is_image(m)
    end,
    replace = function(m, g)
      return g.ReluGrad(m.dy, m.y)
    end,
  },

  test "what passes a Relu on the way back is one operator" {
    graph = function(g, x, dy)
      return g.Where(g.Greater(x, 0.0), dy, 0.0)
    end,
    inputs = { x = { 1, 16, 8, 8 }, dy = { 1, 16, 8, 8 } },
    expect = { relu_grad = 1, ReluGrad = 1, left = 0 },
    equal = true,
  },
  test "another bound, other shapes and matrices are not" {
    graph = function(g, x, dy, a, b)
      return g.Where(g.Greater(x, 0.5), dy, 0.0), g.Where(g.Greater(x, 0.0), dy, 1.0),
        g.Where(g.Greater(a, 0.0), b, 0.0)
    end,
    inputs = { x = { 1, 16, 8, 8 }, dy = { 1, 16, 8, 8 }, a = { 4, 16 }, b = { 4, 16 } },
    expect_not = { "relu_grad" },
    refused = { relu_grad = "not images" },
    equal = true,
  },
}

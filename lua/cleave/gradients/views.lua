-- SPDX-License-Identifier: Apache-2.0
-- What changes the shape alone: the gradient is given the shape of the input again.

local function as_input(g, node, dy)
  return g.Reshape(dy, g.Shape(node.inputs[1]), { allowzero = 1 })
end

return {
  gradient "Flatten" { as_input },
  gradient "Reshape" { as_input },
  gradient "Squeeze" { as_input },
  gradient "Unsqueeze" { as_input },
  gradient "Expand" { function(g, node, dy) return g.sum_to(dy, node.inputs[1]) end },
  gradient "Transpose" { function(g, node, dy)
    local perm, inverse = node.attrs.perm, {}
    if not perm then
      return g.Transpose(dy)
    end
    for k, axis in ipairs(perm) do
      inverse[axis + 1] = k - 1
    end
    return g.Transpose(dy, { perm = inverse })
  end },
  gradient "DepthToSpace" { function(g, node, dy)
    local b = node.attrs.blocksize
    if node.attrs.mode ~= "CRD" then
      return g.SpaceToDepth(dy, { blocksize = b })
    end
    local shape = g.Shape(node.inputs[1]) -- N, C, H, W; dy is N, C / (b b), H b, W b
    local function part(first, last)
      return g.Slice(shape, { first }, { last })
    end
    local sizes = g.Concat(part(0, 1), g.Div(part(1, 2), g.constant { b * b }), part(2, 3), { b },
      part(3, 4), { b }, { axis = 0 })
    local apart = g.Reshape(dy, sizes, { allowzero = 1 })
    return as_input(g, node, g.Transpose(apart, { perm = { 0, 1, 3, 5, 2, 4 } }))
  end },
  gradient "SpaceToDepth" { function(g, node, dy)
    return g.DepthToSpace(dy, { blocksize = node.attrs.blocksize })
  end },

  test "shapes of open sizes" {
    graph = function(g, x)
      return g.Flatten(x), g.Reshape(x, { 0, -1, 2 }), g.Squeeze(g.Unsqueeze(x, { 1 }), { 1 }),
        g.Transpose(x), g.Transpose(x, { perm = { 1, 2, 0 } })
    end,
    inputs = { x = { "N", 4, 3 } },
    gradient = 2,
  },
  test "Expand" {
    graph = function(g, x, y) return g.Expand(x, { 2, 3, 4 }), g.Expand(y, g.Shape(x)) * x end,
    inputs = { x = { 3, 1 }, y = { 1 } },
    gradient = 2,
  },
  test "depth and space of nothing" {
    graph = function(g, x) return g.DepthToSpace(x, { blocksize = 2, mode = "CRD" }) end,
    inputs = { x = { 1, 8, 0, 4 } },
    gradient = 2,
  },
  test "depth and space" {
    graph = function(g, x)
      return g.DepthToSpace(x, { blocksize = 2 }),
        g.DepthToSpace(x, { blocksize = 2, mode = "CRD" }),
        g.SpaceToDepth(x, { blocksize = 2 })
    end,
    inputs = { x = { 1, 8, 2, 4 } },
    gradient = 2,
  },
}

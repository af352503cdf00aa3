-- SPDX-License-Identifier: Apache-2.0
-- Regions for the test accelerator: our cpu kernels behind the header, on devices with memory of
-- their own (tests/mirror).
--
--   cleave run model.onnx --load libmirror.so --rules mirror
--   cleave run model.onnx --load libmirror.so --rules mirror --set pieces=nodes
--
-- The device runs nearly everything, so a rule has only to say in which pieces, and what is not
-- worth the way there: arithmetic on shapes, which is a few integers that other operators of the
-- host want to read.

local pieces = option.enum("islands", "as large as possible, or every operator on its own", {
  "islands", "nodes",
})
local least = option.integer(1, "nodes of an island at least", { min = 1, max = 1000000 })
local shapes = option.boolean(false, "also arithmetic on shapes: integers of at most one dimension")

local function is_shape(value)
  return value.dtype == "int64" and value.rank ~= nil and value.rank <= 1
end

-- All that the node makes is shapes.
local function stays(node, options)
  return not options.shapes and is_shape(node)
end

return ruleset {
  name = "mirror",
  backend = "mirror",
  options = { pieces = pieces, least = least, shapes = shapes },

  region "island" {
    doc = "All that the device runs, in as few pieces as the graph allows.",
    enabled = function(options)
      return options.pieces == "islands"
    end,
    min_nodes = least,
    supported = function(node, options)
      return not stays(node, options)
    end,
  },

  region "single" {
    doc = "Every operator is a region: each value crosses a boundary of regions.",
    enabled = function(options)
      return options.pieces == "nodes"
    end,
    selector = function(_, options)
      local function no()
        return false
      end
      return {
        select = function(node)
          return not stays(node, options)
        end,
        select_input = no,
        select_output = no,
      }
    end,
  },

  test "a whole graph is one region" {
    graph = function(g, x)
      local y = g.Conv(x)
      return g.Relu(g.batch_norm(y)) + y
    end,
    expect = { island = 1, left = 0 },
    expect_not = { "single" },
    equal = true,
  },
  test "arithmetic on shapes stays on the host" {
    graph = function(g, x)
      return g.Reshape(x, g.Concat(g.constant({ -1 }, "int64"), g.Slice(g.Shape(x),
        g.constant({ 1 }, "int64"), g.constant({ 9 }, "int64")), { axis = 0 }))
    end,
    inputs = { x = { "N", "T", 8 } },
    expect = { island = 1, Reshape = 1, left = 3 },
  },
  test "unless it is asked for" {
    graph = function(g, x)
      return g.Add(g.Shape(x), g.constant({ 1 }, "int64"))
    end,
    inputs = { x = { "N", "T", 8 } },
    options = { shapes = true },
    expect = { island = 1, left = 0 },
  },
  test "small regions are left alone" {
    graph = function(g, x)
      return g.Relu(x)
    end,
    options = { least = 2 },
    expect = { left = 1 },
    expect_not = { "island", "single" },
  },
  test "every operator on its own" {
    graph = function(g, x)
      return g.Relu(g.Conv(x)) + x
    end,
    options = { pieces = "nodes" },
    expect = { single = 3, left = 0 },
    expect_not = { "island" },
    equal = true,
  },
  test "also then shapes stay" {
    graph = function(g, x)
      return g.Shape(x)
    end,
    inputs = { x = { "N", "T", 8 } },
    options = { pieces = "nodes" },
    expect = { left = 1 },
    expect_not = { "island", "single" },
  },
}

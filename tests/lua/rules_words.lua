-- SPDX-License-Identifier: Apache-2.0
-- Every word of rules/README.md once: loading this file is a test that the page is true.

local an_option = option.boolean(true, "switches a part of a pattern")
local least = option.number(1e6, "FLOPs that make a region worth it", { min = 0 })

local function silu(x)
  return op { "Mul", as = "act", inputs = { x, op { "Sigmoid", inputs = { x } } } }
end
local conv_silu = op { "Conv", as = "conv" } >> maybe(op "BatchNormalization") >> silu

local parts = {
  op "Relu",
  op { "Relu", "Clip", as = "act" },
  op { "Conv", inputs = { w = constant "w" } },
  op { "Add", inputs = { any "residual" } },
  op { "Pow", inputs = { Y = 2 } },
  op { "Transpose", attrs = { perm = { 0, 2, 1, 3 } } },
  op {
    "Conv",
    attrs = {
      group = range { min = 2 },
      auto_pad = one_of { "NOTSET", "VALID" },
      dilations = absent,
    },
  },
  op { "MatMul", dtype = "float32", shape = { "N", "T", 768 } },
  op { "MaxPool", output = "Indices", shared = true },
  any { as = "x", rank = 4 } >> op "Relu",
  constant { as = "c", value = 0.044715, tolerance = 1e-5 } >> op "Relu",
  constant { scalar = true } >> op "Relu",
  constant { all_equal = true } >> op "Relu",
  op "Conv" >> op "Relu" | op "Gemm" >> "Tanh",
  oneof { "Conv", op "Gemm", op "MatMul" },
  op "Conv" >> maybe { op "Add", when = an_option },
  op "Conv" >> repeated { op "Relu", min = 1, max = 12 },
  op "Conv" >> repeated(op "Relu"),
  conv_silu,
}

local content = {
  name = "words",
  backend = "onednn",
  doc = "All words.",
  options = {
    an_option = an_option,
    least = least,
    count = option.integer(3, "an integer", { 1, 9 }),
    text = option.string("x", "a text"),
    list = option.list({ "Exp", "Sin" }, "operators"),
    kind = option.enum("a", "one of two", { "a", "b" }),
  },

  fuse "conv_silu" {
    doc = "One line for people.",
    pattern = conv_silu,
    where = function(m)
      return m.conv.attrs.group == 1, "grouped"
    end,
    priority = 0,
    enabled = an_option,
  },

  region "island" {
    ops = { "Conv", "MaxPool", "Gemm" },
    min_nodes = 2,
    review = function(sub, options)
      return sub.flops >= options.least, "too little to do"
    end,
  },

  region "a" {},
  region "b" { ops = { "Exp", "Sin" } },
  region "c" {
    supported = function(node)
      return node.dtype == "float32" and node.rank == 4
    end,
  },
  region "d" {
    selector = function()
      local size = 0
      return {
        select = function(node)
          size = 1
          return node.op == "Conv"
        end,
        select_input = function()
          return false
        end,
        select_output = function()
          size = size + 1
          return size <= 8
        end,
        filter = function(nodes)
          return nodes
        end,
        reset = function()
          size = 0
        end,
      }
    end,
  },

  test "a sentence" {
    graph = function(g, x)
      return g.Relu(x)
    end,
    expect = { conv_silu = 0 },
  },
}
for k, pattern in ipairs(parts) do
  content[#content + 1] = fuse("part" .. k) { pattern = pattern }
end

return ruleset(content)

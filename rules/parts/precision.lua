-- SPDX-License-Identifier: Apache-2.0
-- Regions in low precision: their convolutions and matrix products read bfloat16 (or float16) and
-- accumulate in float32. Weights are converted and packed at compile time. Epilogues of products
-- and all other operators are computed in float32. Values between products are stored in the low
-- dtype; inputs and outputs of the region are float32.
--
-- `keep` lists what stays float32: operators ("Softmax"), names of nodes, or names with `*` for any
-- text ("encoder/layer.0/*"). A fusion stays float32 if one of its nodes does; rules of other files
-- keep fusions by the attribute `precision = "float32"`.
--
-- With `precision = "int8"` products that are not of integers, as those of attention, are computed
-- in the precision `rest`.
--
-- If the processor lacks the instructions, the backend refuses the region, the plan says why, and
-- the next rule makes a region in float32.

local keep = include("parts/keep.lua")
local moves = include("parts/moves.lua")

local options = {
  regions = option.boolean(true, "put all that the backend supports into regions"),
  precision = option.enum("float32", "of convolutions and matrix products", {
    "float32", "bfloat16", "float16", "int8",
  }),
  rest = option.enum("float32", "of products that are not of integers, with precision=int8", {
    "float32", "bfloat16",
  }),
  keep = option.list({}, "operators or names of nodes (* is any text) that stay float32"),
  strict = option.boolean(true,
    "regions compute special values (NaN, infinities) as the operators define them"),
  rows = option.integer(0, "rows of a batch that a region computes at a time, if results of one "
    .. "row depend on it alone; 0: all, or fewer that stay in the caches; -1: all", { min = -1 }),
  tune = option.boolean(false,
    "regions are measured when they are compiled, and get the fastest layouts and implementations"),
}

-- What stays float32, in the form that the backend reads: operators, and names without `*`.
local function kept(sub, set)
  local found, seen, matches = {}, {}, keep.matcher(set.keep)
  for _, node in ipairs(sub.nodes) do
    local name = matches(node)
    if name and not seen[name] then
      found[#found + 1], seen[name] = name, true
    end
  end
  return #found > 0 and found or nil
end

-- The attribute of regions that need not keep NaN and infinities.
local LOST = "Relu, Clip, Exp, Max, Min, Softmax and max poolings may make numbers of NaN, "
  .. "maxima over -inf are -3.4e38, Softplus and Mish are off by up to 2e-6 below -10"

local function reviewed(sub, set, attributes)
  local nodes, reason = moves.computes(sub)
  if set.tune then
    attributes.tune = true
  end
  if set.rows ~= 0 then
    attributes.rows = set.rows
  end
  if not set.strict then
    attributes.strict, attributes.special_values = false, LOST
  end
  return nodes, reason, attributes
end

return {
  options = options,

  region "low_precision" {
    doc = "All that the backend supports, with products in fewer bits; fusions come along whole.",
    enabled = function(set)
      return set.regions and set.precision ~= "float32"
    end,
    review = function(sub, set)
      local is_rest = set.precision == "int8" and set.rest ~= "float32"
      local precision = is_rest and set.rest or set.precision
      return reviewed(sub, set, { precision = precision, float32 = kept(sub, set) })
    end,
  },

  region "everything" {
    doc = "All that the backend supports, in float32; fusions come along whole.",
    enabled = options.regions,
    review = function(sub, set)
      return reviewed(sub, set, {})
    end,
  },

  -- ---- tests ----

  test "products of bfloat16 numbers are close to those of float32" {
    graph = function(g, x)
      local y = g.Relu(g.Conv(x, g.weight { 32, 16, 3, 3 }, { pads = { 1, 1, 1, 1 } }))
      return g.Relu(g.Conv(y, g.weight { 32, 32, 1, 1 }) + y)
    end,
    inputs = { x = { 1, 16, 12, 12 } },
    options = { precision = "bfloat16" },
    expect = { product = 2, left = 0 },
    equal = { rtol = 0.02, atol = 0.02 },
  },
  test "what is kept stays float32, by operator and by name" {
    graph = function(g, x)
      return g.Softmax(g.MatMul(g.Relu(g.MatMul(x, g.weight { 64, 64 })), g.weight { 64, 64 }))
    end,
    inputs = { x = { 8, 64 } },
    options = { precision = "bfloat16", keep = { "MatMul", "Soft*" } },
    expect = { product = 1, left = 0 },
    equal = { rtol = 1e-5, atol = 1e-5 },
  },
  test "beside products of integers others can have fewer digits" {
    graph = function(g, x)
      local y = g.MatMul(x, g.weight { 32, 64 })
      return g.MatMul(g.Softmax(g.MatMul(y, g.Transpose(y, { perm = { 0, 2, 1 } }))), y)
    end,
    inputs = { x = { 2, 16, 32 } },
    options = { precision = "int8", rest = "bfloat16" },
    calibrate = true,
    expect = { quantized = 1, left = 0 },
    equal = { rtol = 0, atol = 0.2 },
  },
  test "without a precision there is one rule for regions" {
    graph = function(g, x)
      return g.Relu(g.Conv(x))
    end,
    expect = { everything = 1, left = 0 },
    expect_not = { "low_precision" },
    equal = true,
  },
  test "no regions, no precision" {
    graph = function(g, x)
      return g.Softmax(g.Relu(g.Conv(x)))
    end,
    options = { precision = "bfloat16", regions = false },
    expect = { product = 1, left = 1 },
    expect_not = { "low_precision", "everything" },
    equal = true,
  },
}

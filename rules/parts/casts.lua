-- SPDX-License-Identifier: Apache-2.0
-- Models of float32 that are computed in 16 bits: casts stand where values enter what is computed
-- so, and where they leave it, once per value. Casts of weights are computed once the rule is done.
-- Products and kernels add up in float32 whatever they read.
--
-- `keep` lists what stays float32: operators ("Softmax"), names of nodes, or names with `*` for any
-- text. `cleave verify` says what the rounding costs.

local grow = include("pointwise/grow.lua")
local keep = include("parts/keep.lua")

-- Operators whose operands and results of floats have one dtype; of others with a number, only so
-- many operands do. Sums, squares and exponents of sums are left out: they pass 65504 soon; and
-- remainders, which are other numbers if their operands are rounded.
local NARROW = {
  Attention = true, AveragePool = true, BatchNormalization = true, Concat = true, Conv = true,
  ConvTranspose = true, Expand = true, Flatten = true, Gather = 1, Gemm = true,
  GlobalAveragePool = true, GlobalMaxPool = true, GroupNormalization = true,
  InstanceNormalization = true, LayerNormalization = true, LogSoftmax = true, MatMul = true,
  MaxPool = true, Pad = true, ReduceMax = true, ReduceMean = true, ReduceMin = true,
  Reshape = true, Resize = 1, RMSNormalization = true, Slice = true, Softmax = true, Split = true,
  Squeeze = true, Tile = true, Transpose = true, Unsqueeze = true,
}
for name in pairs(grow.pointwise) do
  NARROW[name] = name ~= "Cast" and name ~= "CastLike" and name ~= "Mod" and true or nil
end

local TYPES = { float16 = 10, bfloat16 = 16 } -- of the attribute `to` of Cast

local function operands(node)
  local count = NARROW[node.op]
  return count == true and #node.inputs or count
end

-- Does the node compute floats of float32, and of nothing else?
local function is_float32(node)
  local found = false
  for k = 1, operands(node) do
    local dtype = node.inputs[k] and node.inputs[k].dtype
    if dtype == "float64" or dtype == "float16" or dtype == "bfloat16" then
      return false
    end
    found = found or dtype == "float32"
  end
  return found
end

-- Casts to one dtype, one per value.
local function caster(g, to)
  local known = {}
  return function(value)
    known[value.index] = known[value.index] or g.Cast(value, { to = to })
    return known[value.index]
  end
end

local function narrow(graph, set, g)
  local matches = keep.matcher(set.keep)
  local nodes, chosen, count = {}, {}, 0
  for node in graph:topological() do
    nodes[#nodes + 1] = node
    if NARROW[node.op] and is_float32(node) and not matches(node) then
      chosen[node.index] = true
      count = count + 1
    end
  end
  if count == 0 then
    return false, "nothing of float32 is left"
  end
  local function is_narrow(value)
    return value.dtype == "float32" and value.producer ~= nil
      and chosen[value.producer.index] == true
  end
  local down, up = caster(g, TYPES[set.precision]), caster(g, 1)
  for _, node in ipairs(nodes) do
    local last = chosen[node.index] and operands(node) or 0
    for k = 1, #node.inputs do
      local value = node.inputs[k]
      if value and value.dtype == "float32" and is_narrow(value) ~= (k <= last) then
        g.set_input(node, k, k <= last and down(value) or up(value))
      end
    end
  end
  for k, value in ipairs(graph.outputs) do
    if is_narrow(value) then
      g.set_output(k, up(value))
    end
  end
  return true
end

return {
  options = {
    keep = option.list({}, "operators or names of nodes (* is any text) that stay float32"),
  },

  pass "narrow" {
    doc = "Values of float32 in 16 bits, with casts where they enter and leave.",
    enabled = function(set)
      return TYPES[set.precision] ~= nil
    end,
    run = narrow,
  },
}

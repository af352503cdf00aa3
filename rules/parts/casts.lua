-- SPDX-License-Identifier: Apache-2.0
-- Models of float32 that are computed in 16 bits (parts/dtypes.lua). Products and kernels add up in
-- float32 whatever they read.
--
-- `keep` lists what stays float32: operators ("Softmax"), names of nodes, or names with `*` for any
-- text. `cleave verify` says what the rounding costs.

local dtypes = include("parts/dtypes.lua")
local keep = include("parts/keep.lua")

local NARROW = { float16 = true, bfloat16 = true }

-- Sums, squares and exponents of sums pass 65504 soon, and become infinite; remainders are other
-- numbers if their operands are rounded; the rest is not what kernels of 16 bits are for.
local WIDE = {
  DequantizeLinear = true, Einsum = true, GridSample = true, GRU = true, IsInf = true, LRN = true,
  LSTM = true, Mod = true, QuantizeLinear = true, ReduceL1 = true, ReduceL2 = true,
  ReduceLogSum = true, ReduceLogSumExp = true, ReduceProd = true, ReduceSum = true,
  ReduceSumSquare = true, RNN = true,
}

local function narrow(graph, set, g)
  local matches = keep.matcher(set.keep)
  local count = dtypes.change(graph, g, "float32", set.precision, function(node)
    return not WIDE[node.op] and not matches(node)
  end)
  return count > 0, "nothing of float32 is left"
end

return {
  options = {
    keep = option.list({}, "operators or names of nodes (* is any text) that stay float32"),
  },

  pass "narrow" {
    doc = "Values of float32 in 16 bits, with casts where they enter and leave.",
    enabled = function(set)
      return NARROW[set.precision] ~= nil
    end,
    run = narrow,
  },
}

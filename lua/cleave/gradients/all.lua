-- SPDX-License-Identifier: Apache-2.0
-- The gradients that come with cleave, by families of operators.

local FAMILIES = {
  "unary.lua", "activations.lua", "binary.lua", "reduce.lua", "matmul.lua", "views.lua",
  "moves.lua", "gather.lua", "images.lua", "regions.lua", "signal.lua", "constants.lua", "none.lua",
  "layers/softmax.lua", "layers/recurrent.lua", "layers/attention.lua", "layers/norm.lua",
  "layers/conv.lua", "layers/pool.lua", "layers/loss.lua",
}

local set = { name = "gradients", doc = "How gradients pass the operators of ONNX." }

for _, path in ipairs(FAMILIES) do
  set[#set + 1] = include(path)
end

return ruleset(set)

-- SPDX-License-Identifier: Apache-2.0
-- Rewrites that replace subgraphs of primitive operators by the operator that they compute. They
-- run before all other rules and keep the values of the model: nodes stay if their constants, axes
-- or shapes are not those of the operator. Each file of the folder canonical/ has one subject with
-- its options, rules and tests.

local PARTS = {
  "canonical/recurrent.lua", -- knows steps by the transpositions that the next part may merge
  "canonical/views.lua", -- before others: what only moves data hides patterns
  "canonical/einsum.lua", -- products that attention may be made of
  "canonical/linear.lua",
  "canonical/activations.lua",
  "canonical/normalization.lua",
  "canonical/attention.lua",
  "canonical/heads.lua",
}

local set = {
  name = "canonical",
  doc = "What exporters spell out, as the operators that they mean.",
  backend = "cpu",
}

for _, path in ipairs(PARTS) do
  set[#set + 1] = include(path)
end

return ruleset(set)

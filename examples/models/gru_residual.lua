-- SPDX-License-Identifier: Apache-2.0
-- A residual cell around a GRU, unrolled: each step is y = x + GRU(x, h), out of matrix products
-- and pointwise operators. The GRU is that of Cho et al. (2014) in the form that applies the reset
-- gate after the product (cuDNN's; ONNX: linear_before_reset). It is small on purpose: what it
-- costs is the launching of many small kernels, which is what fusion is about.
--
--   options   features = 50, batch = 10, hidden = 50, steps = 2
-- The large variant: features = 500, batch = 100, hidden = 500.
local features = options.features or 50
local batch = options.batch or 10
local hidden = options.hidden or features
local steps = options.steps or 2

assert(features == hidden, "the residual adds state and input: features must equal hidden")

-- One matrix for the three gates (update, reset, candidate) of the input and one of the state.
local input_weight = g.weight { features, 3 * hidden, name = "gru.w", fan_in = features, gain = 1 }
local state_weight = g.weight { hidden, 3 * hidden, name = "gru.r", fan_in = hidden, gain = 1 }
local input_bias = g.normal { 3 * hidden, std = 0.1, name = "gru.wb" }
local state_bias = g.normal { 3 * hidden, std = 0.1, name = "gru.rb" }

local function gru(x, h)
  local wx = g.MatMul(x, input_weight) + input_bias
  local rh = g.MatMul(h, state_weight) + state_bias
  local xz, xr, xn = g.Split(wx, { axis = 1, num_outputs = 3 })
  local hz, hr, hn = g.Split(rh, { axis = 1, num_outputs = 3 })
  local update = g.Sigmoid(xz + hz)
  local reset = g.Sigmoid(xr + hr)
  local candidate = g.Tanh(xn + reset * hn)
  return (1 - update) * candidate + update * h
end

local h = g.input("state", "float32", { batch, hidden })
for step = 1, steps do
  local x = g.input("x" .. step, "float32", { batch, features })
  h = gru(x, h)
  g.output("y" .. step, x + h)
end
g.output("state_out", h)

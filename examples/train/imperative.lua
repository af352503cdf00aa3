-- SPDX-License-Identifier: Apache-2.0
-- Trains a small network call by call, without a model file: two interleaved spirals, two hidden
-- layers, Adam. Prints the loss as it falls and the share of points on the right side at the end.
--
--   cleave script imperative.lua
--   cleave script imperative.lua --rules onednn        # rules partition the recorded graph
local POINTS, HIDDEN, STEPS, RATE = 200, 32, 400, 0.01

local places, sides = {}, {}
for k = 1, POINTS do
  local side = k % 2
  local radius = k / POINTS
  local angle = 3 * math.pi * radius + side * math.pi
  places[k] = { radius * math.cos(angle), radius * math.sin(angle) }
  sides[k] = side
end
local x, labels = nd.array(places, "float32"), nd.array(sides)

local function weights(rows, columns, seed)
  local deviation = math.sqrt(2 / rows)
  return nd.RandomNormal { shape = { rows, columns }, scale = deviation, seed = seed }
end
local parameters = {
  weights(2, HIDDEN, 1.0), nd.zeros { HIDDEN },
  weights(HIDDEN, HIDDEN, 2.0), nd.zeros { HIDDEN },
  weights(HIDDEN, 2, 3.0), nd.zeros { 2 },
}

local function network()
  local w1, b1, w2, b2, w3, b3 = table.unpack(parameters)
  local h = nd.Tanh(nd.MatMul(x, w1) + b1)
  h = nd.Tanh(nd.MatMul(h, w2) + b2)
  return nd.MatMul(h, w3) + b3
end

-- Adam's moments, of each parameter.
local mean, square = {}, {}
for k, parameter in ipairs(parameters) do
  mean[k], square[k] = nd.zeros(parameter:shape()), nd.zeros(parameter:shape())
end

for step = 1, STEPS do
  local loss, gradients = nd.record(function()
    return (nd.SoftmaxCrossEntropyLoss(network(), labels))
  end, parameters)
  local rate = nd.array(RATE * math.sqrt(1 - 0.999 ^ step) / (1 - 0.9 ^ step), "float32")
  for k, gradient in ipairs(gradients) do
    mean[k] = mean[k] * 0.9 + gradient * 0.1
    square[k] = square[k] * 0.999 + gradient * gradient * 0.001
    parameters[k] = parameters[k] - rate * mean[k] / (nd.Sqrt(square[k]) + 1e-8)
  end
  if step == 1 or step % 100 == 0 then
    print(("step %3d  loss %.4f"):format(step, loss:item()))
  end
end

local found = nd.ArgMax(network(), { axis = 1, keepdims = 0 }):elements()
local right = 0
for k = 1, POINTS do
  right = right + (found[k] == sides[k] and 1 or 0)
end
print(("right: %.1f %%"):format(100 * right / POINTS))

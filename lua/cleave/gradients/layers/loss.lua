-- SPDX-License-Identifier: Apache-2.0
-- Losses over classes, which are axis 1 of the scores.
local common = include "common.lua"
local through = include "through.lua"

-- The weight of each target, 0 if it is ignored, for the mean divided by their sum; times dy.
local function target_share(g, node, dy, target, weight)
  local input, ignored = node.inputs[1], node.attrs.ignore_index
  local counted = ignored and g.Not(g.Equal(target, g.constant(ignored, target.dtype)))
  local safe = counted and g.Where(counted, target, g.constant(0, target.dtype)) or target
  local share
  if weight then
    share = g.Gather(weight, safe)
  else
    share = g.Expand(g.constant(1, input.dtype), g.Shape(target))
  end
  if counted then
    share = common.only(g, counted, share)
  end
  if node.attrs.reduction == "mean" then
    return share * (dy / g.ReduceSum(share, { keepdims = 0 })), safe
  end
  return share * dy, safe
end

-- The gradient of the weights of classes, from logarithms of probabilities. `dy`: of the loss.
local function to_weights(g, node, dy, log, target, weight)
  local ignored, reduction = node.attrs.ignore_index, node.attrs.reduction
  local counted = ignored and g.Not(g.Equal(target, g.constant(ignored, target.dtype)))
  local safe = counted and g.Where(counted, target, g.constant(0, target.dtype)) or target
  local picked = g.Squeeze(g.GatherElements(log, g.Unsqueeze(safe, { 1 }), { axis = 1 }), { 1 })
  return through(g, { weight }, 1, { dy }, 1, function(w)
    local share = g.Gather(w, safe)
    share = counted and common.only(g, counted, share) or share
    local losses = -picked * share
    if reduction == "none" then
      return losses
    end
    local sum = g.ReduceSum(losses, { keepdims = 0 })
    return reduction == "sum" and sum or sum / g.ReduceSum(share, { keepdims = 0 })
  end)
end

-- One 1 along axis 1 for each target.
local function one_hot(g, input, target)
  local classes = g.Squeeze(common.size(g, input, 1), { 0 })
  return g.OneHot(target, classes, g.constant({ 0, 1 }, input.dtype), { axis = 1 })
end

return {
  gradient "NegativeLogLikelihoodLoss" { function(g, node, dy)
    local input, target, weight = node.inputs[1], node.inputs[2], node.inputs[3]
    local share, safe = target_share(g, node, dy, target, weight)
    local dx = -one_hot(g, input, safe) * g.Unsqueeze(share, { 1 })
    if not weight then
      return dx
    end
    return dx, false, to_weights(g, node, dy, input, target, weight)
  end },

  gradient "SoftmaxCrossEntropyLoss" { function(g, node, dloss, dlog)
    local scores, labels, weights = node.inputs[1], node.inputs[2], node.inputs[3]
    local p, dx = g.Softmax(scores, { axis = 1 }), nil
    if dloss then
      local share, safe = target_share(g, node, dloss, labels, weights)
      dx = (p - one_hot(g, scores, safe)) * g.Unsqueeze(share, { 1 })
    end
    if dlog then
      local by_log = dlog - p * g.ReduceSum(dlog, { 1 }, { keepdims = 1 })
      dx = dx and dx + by_log or by_log
    end
    if not (weights and dloss) then
      return dx, false, weights and false
    end
    local log = g.LogSoftmax(scores, { axis = 1 })
    return dx, false, to_weights(g, node, dloss, log, labels, weights)
  end },

  test "cross entropy" {
    graph = function(g, x, w, classes)
      local labels, all = g.constant { 1, 0, 3 }, {}
      for k, reduction in ipairs { "mean", "sum", "none" } do
        all[k] = g.SoftmaxCrossEntropyLoss(x, labels, { reduction = reduction })
        all[k + 3] = g.SoftmaxCrossEntropyLoss(x, labels, classes,
          { reduction = reduction, ignore_index = 0 })
      end
      local loss, log = g.SoftmaxCrossEntropyLoss(x, labels, { outputs = 2 })
      all[7], all[8] = loss * 2, log * w
      return table.unpack(all)
    end,
    inputs = { x = { 3, 4 }, w = { 4 }, classes = { 4, low = 0.5, high = 2 } },
    gradient = 2,
  },
  test "likelihood of pixels" {
    graph = function(g, x, classes)
      local labels, all = g.constant { { { 1, 0 }, { 2, -100 } } }, {}
      for k, reduction in ipairs { "mean", "sum", "none" } do
        all[k] = g.NegativeLogLikelihoodLoss(x, labels,
          { reduction = reduction, ignore_index = -100 })
        all[k + 3] = g.NegativeLogLikelihoodLoss(x, labels, classes,
          { reduction = reduction, ignore_index = -100 })
      end
      return table.unpack(all)
    end,
    inputs = { x = { 1, 3, 2, 2 }, classes = { 3, low = 0.5, high = 2 } },
    gradient = 2,
  },
}

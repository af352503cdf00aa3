-- SPDX-License-Identifier: Apache-2.0
-- Nodes that compute in another dtype of floats than the model has: casts stand where values enter
-- what is computed so, and where they leave it, once per value. Casts of weights are computed once
-- the pass is done.

local grow = include("pointwise/grow.lua")

-- Operators whose operands and results of floats have one dtype; of others with a number, only so
-- many operands do.
local OPERATORS = {
  Attention = true, AveragePool = true, BatchNormalization = true, Concat = true, Conv = true,
  ConvTranspose = true, DequantizeLinear = true, Einsum = true, Expand = true, Flatten = true,
  Gather = 1, Gemm = true, GlobalAveragePool = true, GlobalMaxPool = true, GridSample = true,
  GroupNormalization = true, GRU = true, InstanceNormalization = true, LayerNormalization = true,
  LogSoftmax = true, LRN = true, LSTM = true, MatMul = true, MaxPool = true, Pad = true,
  QuantizeLinear = true, ReduceL1 = true, ReduceL2 = true, ReduceLogSum = true,
  ReduceLogSumExp = true, ReduceMax = true, ReduceMean = true, ReduceMin = true,
  ReduceProd = true, ReduceSum = true, ReduceSumSquare = true, Reshape = true, Resize = 1,
  RMSNormalization = true, RNN = true, Slice = true, Softmax = true, Split = true, Squeeze = true,
  Tile = true, Transpose = true, Unsqueeze = true,
}
for name in pairs(grow.pointwise) do
  OPERATORS[name] = name ~= "Cast" and name ~= "CastLike" and true or nil
end

local CODES = { float32 = 1, float16 = 10, bfloat16 = 16 } -- of the attribute `to` of Cast
local FLOATS = { float32 = true, float64 = true, float16 = true, bfloat16 = true }

local M = {}

local function operands(node)
  local count = OPERATORS[node.op]
  return count == true and #node.inputs or count
end

-- Does the node compute floats of this dtype, and of no other?
local function computes(node, dtype)
  local found = false
  for k = 1, operands(node) or 0 do
    local own = node.inputs[k] and node.inputs[k].dtype
    if own ~= dtype and FLOATS[own] then
      return false
    end
    found = found or own == dtype
  end
  return found
end

-- Casts to a dtype, one per value; what was cast the other way is taken as it was.
local function caster(g, to)
  local known = {}
  return function(value)
    local node = value.producer
    if node and node.op == "Cast" and node.inputs[1].dtype == to then
      return node.inputs[1]
    end
    known[value.index] = known[value.index] or g.Cast(value, { to = CODES[to] })
    return known[value.index]
  end
end

-- Who reads a Cast reads what it casts.
local function pass_by(g, node)
  for _, reader in ipairs(node.outputs[1].users) do
    for k = 1, #reader.inputs do
      if reader.inputs[k] == node.outputs[1] then
        g.set_input(reader, k, node.inputs[1])
      end
    end
  end
end

---Computes nodes in the dtype `to` that compute in `from`, if `chooses(node)`. How many it changed.
function M.change(graph, g, from, to, chooses)
  local nodes, chosen, count = {}, {}, 0
  for node in graph:topological() do
    nodes[#nodes + 1] = node
    if computes(node, from) and chooses(node) then
      chosen[node.index] = true
      count = count + 1
    end
  end
  local function is_changed(value)
    return value.dtype == from and value.producer ~= nil
      and chosen[value.producer.index] == true
  end
  local enter, leave, casts = caster(g, to), caster(g, from), {}
  for _, node in ipairs(count > 0 and nodes or {}) do
    local last = chosen[node.index] and operands(node) or 0
    for k = 1, #node.inputs do
      local value = node.inputs[k]
      if value and value.dtype == from and is_changed(value) ~= (k <= last) then
        if node.op == "Cast" and node.attrs.to == CODES[to] then
          casts[#casts + 1] = node
        else
          g.set_input(node, k, k <= last and enter(value) or leave(value))
        end
      end
    end
  end
  for _, node in ipairs(casts) do
    pass_by(g, node)
  end
  for k, value in ipairs(count > 0 and graph.outputs or {}) do
    if is_changed(value) then
      g.set_output(k, leave(value))
    end
  end
  return count
end

return M

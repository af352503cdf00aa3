-- SPDX-License-Identifier: Apache-2.0
-- Cuts a model into stages, one for each machine, with equal shares of the weights (or, for
-- throughput, of the work), where few bytes cross: `mpirun -n 2 cleave run MODEL --rules stages
-- --rules onednn --set stages=2`. It has no fusions or regions of its own: the rule files that
-- follow partition each stage.
local SIZES = { float64 = 8, int64 = 8, uint64 = 8, float32 = 4, int32 = 4, uint32 = 4,
  float16 = 2, bfloat16 = 2, int16 = 2, uint16 = 2, int8 = 1, uint8 = 1, bool = 1 }

-- Elements of a value, from dimension `first` on; open sizes count as 1.
local function count_of(value, first)
  local count = 1
  for k, size in ipairs(value.shape or {}) do
    count = count * (k >= (first or 1) and math.type(size) and size or 1)
  end
  return count
end

local function bytes_of(value)
  return count_of(value) * (SIZES[value.dtype] or 1)
end

-- Products and sums of a node, roughly: of each element of its output as many as a convolution's
-- filter or the row of a product has, else one.
local function work_of(node)
  local elements, x, w = 0, node.inputs[1], node.inputs[2]
  for k = 1, #node.outputs do
    elements = elements + (node.outputs[k] and count_of(node.outputs[k]) or 0)
  end
  if node.op == "Conv" then
    return elements * count_of(w, 2)
  elseif node.op == "MatMul" then
    return elements * count_of(x, x.rank or 1)
  elseif node.op == "Gemm" then
    local summed = x.shape and x.shape[node.attrs.transA == 1 and 1 or 2]
    return elements * count_of { shape = { summed } }
  end
  return elements
end

-- The nodes in order; `weights[k]`: bytes of constants that the nodes up to k read, or their work,
-- and one for each node; `crossing[k]`: bytes that later nodes read of what the nodes up to k make.
local function measure(graph, by)
  local nodes, weights, crossing = graph.nodes, { [0] = 0 }, { [0] = 0 }
  local seen, place, ends, change = {}, {}, {}, {}
  for k, node in ipairs(nodes) do
    place[node] = k
    weights[k] = weights[k - 1] + 1 + (by == "work" and work_of(node) or 0)
    for i = 1, #node.inputs do
      local value = node.inputs[i]
      if value and value.is_constant and not seen[value] then
        seen[value] = true
        weights[k] = weights[k] + (by == "weights" and bytes_of(value) or 0)
      elseif value and place[value.producer] then
        ends[value] = k
      end
    end
  end
  for value, last in next, ends do
    local first, bytes = place[value.producer], bytes_of(value)
    change[first] = (change[first] or 0) + bytes
    change[last] = (change[last] or 0) - bytes
  end
  for k = 1, #nodes do
    crossing[k] = crossing[k - 1] + (change[k] or 0)
  end
  return nodes, weights, crossing
end

-- The last node of each stage but the last one. A stage ends near its share of the weights, give or
-- take `slack` of a share, and there where the fewest bytes cross. Each has a node at least.
local function cut(weights, crossing, count, stages, slack)
  local share, last, ends = weights[count] / stages, 0, {}
  for stage = 1, stages - 1 do
    local wanted, most = share * stage, count - (stages - stage)
    local k = last + 1
    while k < most and weights[k] < wanted - share * slack do
      k = k + 1
    end
    if k > last + 1 and wanted - weights[k - 1] < weights[k] - wanted then
      k = k - 1
    end
    local best = k
    while k < most and weights[k + 1] <= wanted + share * slack do
      k = k + 1
      best = crossing[k] <= crossing[best] and k or best
    end
    last, ends[stage] = best, best
  end
  return ends
end

local stages = option.integer(2, "machines that share the model", { min = 1, max = 1024 })
local slack = option.number(0.2, "how far from its share a stage may be", { min = 0, max = 1 })
local by = option.enum("weights", "what stages have equal shares of", { "weights", "work" })

return ruleset {
  name = "stages",
  doc = "Stages with equal shares of the weights or the work, cut where few bytes cross.",
  options = { stages = stages, slack = slack, by = by },

  stage "balanced" {
    doc = "One stage for each machine, in the order of the nodes.",
    assign = function(graph, options)
      local nodes, weights, crossing = measure(graph, options.by)
      if #nodes < options.stages then
        error("the model has " .. #nodes .. (#nodes == 1 and " node" or " nodes")
          .. ", expected at least the " .. options.stages .. " stages")
      end
      local ends = cut(weights, crossing, #nodes, options.stages, options.slack)
      local result, at = {}, 1
      for k, node in ipairs(nodes) do
        while ends[at] and k > ends[at] do
          at = at + 1
        end
        result[node] = at - 1
      end
      return result
    end,
  },

  test "halves the weights" {
    graph = function(g, x)
      local y = g.Relu(g.MatMul(x, g.weight { 8, 8 }))
      return g.Relu(g.MatMul(y, g.weight { 8, 8 }))
    end,
    inputs = { x = { 4, 8 } },
    expect = { balanced = 2, left = 4 },
  },

  test "cuts where few bytes cross" {
    options = { slack = 0.5 },
    graph = function(g, x)
      local narrow = g.MatMul(x, g.weight { 8, 2 })
      local wide = g.MatMul(narrow, g.weight { 2, 32 })
      return g.MatMul(g.Relu(wide), g.weight { 32, 4 })
    end,
    inputs = { x = { 4, 8 } },
    expect = { balanced = 2 },
  },

  -- The first product has a 64th of the weights, and most of the work.
  test "halves the work" {
    options = { by = "work", slack = 0 },
    graph = function(g, x)
      local y = g.Conv(x, g.weight { 4, 3, 3, 3 })
      local z = g.ReduceMean(y, g.constant { 2, 3 }, { keepdims = 0 })
      return g.MatMul(g.MatMul(z, g.weight { 4, 64 }), g.weight { 64, 27 })
    end,
    expect = { balanced = 2 },
  },

  test "has as many stages as it is told" {
    options = { stages = 3 },
    graph = function(g, x)
      return g.Exp(g.Sin(g.Relu(x)))
    end,
    expect = { balanced = 3 },
  },
}

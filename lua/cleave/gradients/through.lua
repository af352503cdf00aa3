-- SPDX-License-Identifier: Apache-2.0
-- Gradients by what an operator is made of: a rule builds again, of other operators, what its own
-- computes, and the rules of these pass the gradients back. For options that are too rare for a
-- backward graph of their own.
local FAMILIES = {
  "unary.lua", "activations.lua", "binary.lua", "reduce.lua", "layers/softmax.lua", "matmul.lua",
  "views.lua", "moves.lua", "gather.lua",
}

local rules = {}
for _, path in ipairs(FAMILIES) do
  for _, rule in ipairs(include(path)) do
    if rule.op then
      rules[rule.op] = rule.apply or false
    end
  end
end

local function is_float(value)
  return value.dtype:find("float", 1, true) ~= nil
end

-- The nodes from `results` back to the values from index `first` on, in the order of the graph.
local function nodes_behind(results, count, first)
  local nodes, seen, pending = {}, {}, {}
  for k = 1, count do
    pending[#pending + 1] = results[k]
  end
  while #pending > 0 do
    local value = table.remove(pending)
    local node = value.index >= first and value.producer
    if node and not seen[node.index] then
      seen[node.index] = true
      nodes[#nodes + 1] = node
      for k = 1, #node.inputs do
        pending[#pending + 1] = node.inputs[k]
      end
    end
  end
  table.sort(nodes, function(a, b) return a.index < b.index end)
  return nodes
end

local function pass(g, node, given, flows)
  local rule, dys, any = rules[node.op], {}, false
  for k = 1, #node.outputs do
    dys[k] = given[node.outputs[k].index]
    any = any or dys[k] ~= nil
  end
  if not any or rule == false then
    return
  elseif not rule then
    error(node.op .. ": no gradient here")
  end
  local results = table.pack(rule(g, node, table.unpack(dys, 1, #node.outputs)))
  for k = 1, #node.inputs do
    local input, result = node.inputs[k], results[k]
    if input and flows[input.index] and result ~= false then
      if not result then
        error(node.op .. ": no gradient of input " .. k)
      end
      local before = given[input.index]
      given[input.index] = before and before + result or result
    end
  end
end

---The gradients of `inputs` (values, nil if left out; `n` of them) from those of what
---`build(table.unpack(inputs))` returns: `dys`, nil if there is none; `count` of them.
return function(g, inputs, n, dys, count, build)
  local own, flows, first = {}, {}, nil
  for k = 1, n do
    if inputs[k] then
      -- One input may be given twice, and what lies before it is of no interest.
      own[k] = g.Identity(inputs[k])
      first = first or own[k].index
      flows[own[k].index] = is_float(own[k]) or nil
    end
  end
  local results, given, gradients = { build(table.unpack(own, 1, n)) }, {}, {}
  local nodes = nodes_behind(results, count, first)
  for _, node in ipairs(nodes) do
    for k = 1, #node.inputs do
      if node.inputs[k] and flows[node.inputs[k].index] and rules[node.op] ~= false then
        for o = 1, #node.outputs do
          local output = node.outputs[o]
          flows[output.index] = flows[output.index] or is_float(output) or nil
        end
      end
    end
  end
  for k = 1, count do
    if dys[k] and flows[results[k].index] then
      local before = given[results[k].index]
      given[results[k].index] = before and before + dys[k] or dys[k]
    end
  end
  for k = #nodes, 1, -1 do
    pass(g, nodes[k], given, flows)
  end
  for k = 1, n do
    gradients[k] = own[k] and given[own[k].index] or false
  end
  return table.unpack(gradients, 1, n)
end

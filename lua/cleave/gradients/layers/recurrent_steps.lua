-- SPDX-License-Identifier: Apache-2.0
-- What a recurrent layer computes, step by step, of other operators: with every option.
local common = include "common.lua"
local linear, parts = common.linear, common.parts

-- By name in small letters: what it computes, and the scales that it has, as they are by default.
local FUNCTIONS = {
  relu = { function(g, x) return g.Relu(x) end },
  tanh = { function(g, x) return g.Tanh(x) end },
  sigmoid = { function(g, x) return g.Sigmoid(x) end },
  softsign = { function(g, x) return g.Softsign(x) end },
  softplus = { function(g, x) return g.Softplus(x) end },
  affine = { function(_, x, a, b) return x * a + b end, 1.0, 0.0 },
  scaledtanh = { function(g, x, a, b) return g.Tanh(x * b) * a end, 1.0, 1.0 },
  hardsigmoid = {
    function(g, x, a, b) return g.HardSigmoid(x, { alpha = a, beta = b }) end, 0.2, 0.5,
  },
  leakyrelu = { function(g, x, a) return g.LeakyRelu(x, { alpha = a }) end, 0.01 },
  thresholdedrelu = { function(g, x, a) return g.ThresholdedRelu(x, { alpha = a }) end, 1.0 },
  elu = { function(g, x, a) return g.Elu(x, { alpha = a }) end, 1.0 },
}
local DEFAULTS = {
  RNN = { "tanh" }, GRU = { "sigmoid", "tanh" }, LSTM = { "sigmoid", "tanh", "tanh" },
}

-- Functions of all directions, one after the other. Scales are taken in order by those that have
-- them.
local function activations_of(node, directions)
  local attrs, names, result = node.attrs, DEFAULTS[node.op], {}
  local alphas, betas = attrs.activation_alpha or {}, attrs.activation_beta or {}
  local next_alpha, next_beta = 1, 1
  for k = 1, #names * directions do
    local name = attrs.activations and attrs.activations[k] or names[(k - 1) % #names + 1]
    local known = FUNCTIONS[name:lower()] or error(node.op .. ": activation " .. name)
    local alpha, beta = known[2], known[3]
    if alpha then
      alpha, next_alpha = alphas[next_alpha] or alpha, next_alpha + 1
    end
    if beta then
      beta, next_beta = betas[next_beta] or beta, next_beta + 1
    end
    result[k] = function(g, x) return known[1](g, x, alpha, beta) end
  end
  return result
end

local function stack(g, list, axis)
  local inputs = {}
  for k, value in ipairs(list) do
    inputs[k] = g.Unsqueeze(value, { axis })
  end
  inputs[#inputs + 1] = { axis = axis }
  return g.Concat(table.unpack(inputs))
end

-- One step: from what x gives to the gates, and the states, to the next states.
local CELLS = {}

function CELLS.RNN(g, layer, a, h)
  return layer.close(g, a + linear(g, h, layer.r, layer.rb), 1)
end

function CELLS.GRU(g, layer, a, h)
  local xz, xr, xh = table.unpack(parts(g, a, 1, 3))
  local rz, rr, rh = table.unpack(parts(g, layer.r, 0, 3))
  local bz, br, bh = table.unpack(layer.rb and parts(g, layer.rb, 0, 3) or {})
  local z = layer.close(g, xz + linear(g, h, rz, bz), 1)
  local r = layer.close(g, xr + linear(g, h, rr, br), 1)
  local through
  if layer.attrs.linear_before_reset ~= 0 then
    through = r * linear(g, h, rh, bh)
  else
    through = linear(g, r * h, rh, bh)
  end
  local n = layer.close(g, xh + through, 2)
  return (1 - z) * n + z * h
end

function CELLS.LSTM(g, layer, a, h, c)
  local i, o, f, n = table.unpack(parts(g, a + linear(g, h, layer.r, layer.rb), 1, 4))
  local pi, po, pf = table.unpack(layer.p and parts(g, layer.p, 0, 3) or {})
  i = layer.close(g, pi and i + pi * c or i, 1)
  f = layer.attrs.input_forget ~= 0 and 1 - i or layer.close(g, pf and f + pf * c or f, 1)
  c = f * c + i * layer.close(g, n, 2)
  o = layer.close(g, po and o + po * c or o, 1)
  return o * layer.functions[3](g, c), c
end

-- All steps of a direction: the states of each, and the last ones.
local function run(g, layer, x, h, c, steps)
  local lengths, is_reverse, ys = layer.lengths, layer.is_reverse, {}
  local function turned(value)
    return g.ReverseSequence(value, lengths, { batch_axis = 1, time_axis = 0 })
  end
  if is_reverse and lengths then
    x = turned(x)
  end
  local width = g.Shape(x, { start = 2 })
  local rows = g.Reshape(x, g.Concat({ -1 }, width, { axis = 0 }))
  local gates = parts(g, linear(g, rows, layer.w, layer.wb), 0, steps)
  for k = 1, steps do
    local t = is_reverse and not lengths and steps + 1 - k or k
    local next_h, next_c = layer.cell(g, layer, gates[t], h, c)
    if lengths then
      local is_in = g.Unsqueeze(g.Greater(lengths, k - 1), { 1 })
      next_h, next_c = g.Where(is_in, next_h, h), next_c and g.Where(is_in, next_c, c)
      ys[t] = common.only(g, is_in, next_h)
    else
      ys[t] = next_h
    end
    h, c = next_h, next_c
  end
  local all = stack(g, ys, 0)
  return is_reverse and lengths and turned(all) or all, h, c
end

local function batch_second(g, value)
  return value and g.Transpose(value, { perm = { 1, 0, 2 } })
end

-- The direction d of a layer with its own part of the weights.
local function direction(g, node, d, functions, lengths, weights)
  local count, attrs = #DEFAULTS[node.op], node.attrs
  local layer = { attrs = attrs, lengths = lengths, cell = CELLS[node.op],
    is_reverse = attrs.direction == "reverse" or d == 1,
    functions = table.move(functions, d * count + 1, (d + 1) * count, 1, {}) }
  local function own(value)
    return value and g.Squeeze(g.Slice(value, { d }, { d + 1 }, { 0 }), { 0 })
  end
  for name, value in pairs(weights) do
    layer[name] = own(value)
  end
  if layer.b then
    layer.wb, layer.rb = table.unpack(parts(g, layer.b, 0, 2))
  end
  function layer.close(_, x, k)
    local clip = attrs.clip
    x = clip and clip > 0 and g.Clip(x, -clip, clip) or x
    return layer.functions[k](g, x)
  end
  return layer, own
end

---What the node computes of its inputs, in their order; `steps`: how many there are.
return function(g, node, steps, x, w, r, b, lengths, h0, c0, p)
  local attrs = node.attrs
  local count = attrs.direction == "bidirectional" and 2 or 1
  local functions, batch_first = activations_of(node, count), attrs.layout ~= 0
  if batch_first then
    x, h0, c0 = batch_second(g, x), batch_second(g, h0), batch_second(g, c0)
  end
  lengths = lengths and g.Cast(lengths, { to = "int64" })
  local shape = g.Concat(common.size(g, x, 1), common.size(g, r, 2), { axis = 0 })
  local zeros = g.Expand(g.constant(0, x.dtype), shape)
  local ys, hs, cs = {}, {}, {}
  for d = 0, count - 1 do
    local layer, own = direction(g, node, d, functions, lengths, { w = w, r = r, b = b, p = p })
    local c = node.op == "LSTM" and (own(c0) or zeros) or nil
    ys[d + 1], hs[d + 1], cs[d + 1] = run(g, layer, x, own(h0) or zeros, c, steps)
  end
  local y, h = stack(g, ys, 1), stack(g, hs, 0)
  local c = cs[1] and stack(g, cs, 0)
  if batch_first then
    y, h, c = g.Transpose(y, { perm = { 2, 0, 1, 3 } }), batch_second(g, h), batch_second(g, c)
  end
  return y, h, c
end

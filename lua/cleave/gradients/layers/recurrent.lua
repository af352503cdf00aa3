-- SPDX-License-Identifier: Apache-2.0
-- Recurrent layers. The states before each step are known from the output, so that gates, and the
-- gradients of weights and inputs, are products over all steps at once; only what a step hands to
-- the one before it is computed step by step: the number of steps has to be known.
--
-- Values of all steps are matrices of rows: step after step, and in each the batch.
local common = include "common.lua"
local layer_of = include "layers/recurrent_steps.lua"
local through = include "through.lua"
local linear, parts = common.linear, common.parts

-- A part of a value along an axis.
local function part(g, value, axis, first, last)
  return g.Slice(value, { first }, { last }, { axis })
end

local function rows(g, value)
  return g.Reshape(value, g.Concat({ -1 }, g.Shape(value, { start = -1 }), { axis = 0 }))
end

local function joined(g, list, axis)
  if #list == 1 then
    return list[1]
  end
  local inputs = table.move(list, 1, #list, 1, {})
  inputs[#inputs + 1] = { axis = axis }
  return g.Concat(table.unpack(inputs))
end

local function steps_of(node, axis)
  local shape = node.inputs.X.shape
  local steps = shape and shape[axis]
  if math.type(steps) ~= "integer" or steps < 1 then
    error(node.op .. ": the gradient needs the number of steps, which is open")
  end
  return steps
end

-- Does the layer have none of the options that the cells here lack?
local function is_plain(node, activations)
  local attrs, inputs = node.attrs, node.inputs
  for k, name in ipairs(attrs.activations or {}) do
    local wanted = activations[(k - 1) % #activations + 1]
    if name ~= wanted and not (node.op == "RNN" and name == "Relu") then
      return false
    end
  end
  local is_simple = node.op ~= "LSTM" or not inputs.P and attrs.input_forget == 0
  return is_simple and node.outputs[1] and not inputs.sequence_lens and not attrs.clip
    and attrs.layout == 0
end

-- Any layer: of the operators that compute it step by step.
local function by_steps(g, node, ...)
  local steps = steps_of(node, node.attrs.layout == 0 and 1 or 2)
  return through(g, node.inputs, #node.inputs, { ... }, #node.outputs, function(...)
    return layer_of(g, node, steps, ...)
  end)
end

-- One direction of a layer: its weights, all states, and the order of its steps.
local function direction(g, node, d, steps, gates, name)
  local inputs, is_reverse = node.inputs, name == "reverse" or d == 1
  local function own(value)
    return value and g.Squeeze(part(g, value, 0, d, d + 1), { 0 })
  end
  local layer = { x = rows(g, inputs.X), w = own(inputs.W), r = own(inputs.R), steps = steps,
    gates = gates, activation = node.attrs.activations and node.attrs.activations[d + 1] }
  local states = g.Squeeze(part(g, node.outputs[1], 1, d, d + 1), { 1 }) -- [steps, batch, hidden]
  layer.y = rows(g, states)
  local first = own(inputs.initial_h)
  layer.start = first or common.full(g, g.Squeeze(part(g, states, 0, 0, 1), { 0 }), 0)
  if inputs.B then
    layer.wb, layer.rb = table.unpack(parts(g, own(inputs.B), 0, 2))
  end
  local others = parts(g, layer.y, 0, steps)
  local before = {}
  layer.order = {} -- steps, the last one first
  for k = 1, steps do
    layer.order[k] = is_reverse and k or steps + 1 - k
    before[k] = others[is_reverse and k + 1 or k - 1] or layer.start
  end
  layer.before = joined(g, before, 0)
  return layer
end

-- ---- cells: return for each step, from the last one computed, what goes into the sums ----

-- Walks the steps backward; `step(k, dh)` returns what the step before gets, besides its own.
local function walk(g, layer, dys, dlast, step)
  local carry = dlast
  for _, k in ipairs(layer.order) do
    local dh = dys and dys[k] or nil
    if carry then
      dh = dh and dh + carry or carry
    end
    carry = step(k, dh or common.full(g, layer.start, 0))
  end
  return carry
end

local function rnn(g, layer, dys, dlast)
  local slope
  if layer.activation == "Relu" then
    slope = common.mask(g, g.Greater(layer.y, 0), layer.y)
  else
    slope = 1 - layer.y * layer.y
  end
  local slopes, da = parts(g, slope, 0, layer.steps), {}
  local dstart = walk(g, layer, dys, dlast, function(k, dh)
    da[k] = dh * slopes[k]
    return g.MatMul(da[k], layer.r)
  end)
  local all = joined(g, da, 0)
  return all, all, layer.before, dstart
end

-- Gates z, r, h. With linear_before_reset, r times what R makes of the state; without, R of both.
local function gru(g, layer, dys, dlast, before_reset)
  local xz, xr, xh = table.unpack(parts(g, linear(g, layer.x, layer.w, layer.wb), 1, 3))
  local hz, hr, hh = table.unpack(parts(g, linear(g, layer.before, layer.r, layer.rb), 1, 3))
  local z, r = g.Sigmoid(xz + hz), g.Sigmoid(xr + hr)
  local rz, rr, rh = table.unpack(parts(g, layer.r, 0, 3))
  local reset = r * layer.before
  if not before_reset then
    hh = linear(g, reset, rh, layer.rb and parts(g, layer.rb, 0, 3)[3])
  end
  local n = g.Tanh(xh + (before_reset and r * hh or hh))
  local new = (1 - z) * (1 - n * n)
  local function of_steps(value)
    return parts(g, value, 0, layer.steps)
  end
  local by_z, by_n = of_steps((layer.before - n) * z * (1 - z)), of_steps(new)
  local keep, at_r = of_steps(z), of_steps(r)
  local by_r = of_steps((before_reset and hh or layer.before) * r * (1 - r))
  local dz, dr, dn, dhn = {}, {}, {}, {}
  local dstart = walk(g, layer, dys, dlast, function(k, dh)
    dz[k], dn[k] = dh * by_z[k], dh * by_n[k]
    if before_reset then
      dr[k], dhn[k] = dn[k] * by_r[k], dn[k] * at_r[k]
      return dh * keep[k] + g.MatMul(g.Concat(dz[k], dr[k], dhn[k], { axis = 1 }), layer.r)
    end
    local reached = g.MatMul(dn[k], rh)
    dr[k] = reached * by_r[k]
    return dh * keep[k] + reached * at_r[k] + g.MatMul(dz[k], rz) + g.MatMul(dr[k], rr)
  end)
  dz, dr, dn = joined(g, dz, 0), joined(g, dr, 0), joined(g, dn, 0)
  local by_x = g.Concat(dz, dr, dn, { axis = 1 })
  if before_reset then
    return by_x, g.Concat(dz, dr, joined(g, dhn, 0), { axis = 1 }), layer.before, dstart
  end
  return by_x, by_x, layer.before, dstart, reset
end

-- Gates i, o, f, c. The cells of all steps are computed again, step by step.
local function lstm(g, layer, dys, dlast, start, dcell)
  local all = linear(g, layer.x, layer.w, layer.wb) + linear(g, layer.before, layer.r, layer.rb)
  local ai, ao, af, ac = table.unpack(parts(g, all, 1, 4))
  local i, o, f, c = g.Sigmoid(ai), g.Sigmoid(ao), g.Sigmoid(af), g.Tanh(ac)
  local function of_steps(value)
    return parts(g, value, 0, layer.steps)
  end
  local forget, fresh = of_steps(f), of_steps(i * c)
  local cells, previous, cell = {}, {}, start
  for n = layer.steps, 1, -1 do
    local k = layer.order[n]
    previous[k] = cell
    cell = forget[k] * cell + fresh[k]
    cells[k] = cell
  end
  local seen = g.Tanh(joined(g, cells, 0))
  local by_cell, by_o = of_steps(o * (1 - seen * seen)), of_steps(seen * o * (1 - o))
  local by_i, by_c = of_steps(c * i * (1 - i)), of_steps(i * (1 - c * c))
  local by_f = of_steps(joined(g, previous, 0) * f * (1 - f))
  local da = {}
  local dstart = walk(g, layer, dys, dlast, function(k, dh)
    local dc = dh * by_cell[k]
    dc = dcell and dc + dcell or dc
    da[k] = g.Concat(dc * by_i[k], dh * by_o[k], dc * by_f[k], dc * by_c[k], { axis = 1 })
    dcell = dc * forget[k]
    return g.MatMul(da[k], layer.r)
  end)
  all = joined(g, da, 0)
  return all, all, layer.before, dstart, nil, dcell
end

-- ---- layers ----

-- Gradients of the weights of a direction, from those of what enters the gates from x and from the
-- state. `reset`: what the last gate's R is multiplied with, where that is not the state.
local function of_weights(g, layer, by_x, by_h, state, reset)
  local dw = g.Gemm(by_x, layer.x, { transA = 1 })
  local dr
  if reset then
    local z, r, n = table.unpack(parts(g, by_h, 1, 3))
    dr = g.Concat(g.Gemm(z, state, { transA = 1 }), g.Gemm(r, state, { transA = 1 }),
      g.Gemm(n, reset, { transA = 1 }), { axis = 0 })
  else
    dr = g.Gemm(by_h, state, { transA = 1 })
  end
  local function sum(value)
    return g.ReduceSum(value, { 0 }, { keepdims = 0 })
  end
  return dw, dr, layer.wb and g.Concat(sum(by_x), sum(by_h), { axis = 0 })
end

local function stack(g, list)
  local result = {}
  for k, value in ipairs(list) do
    result[k] = g.Unsqueeze(value, { 0 })
  end
  return #result > 0 and joined(g, result, 0) or nil
end

-- `cell(layer, dys, dlast, d)` is one of the above, for direction d.
local function layer_gradients(g, node, dy, dlast, gates, cell)
  local steps, name = steps_of(node, 1), node.attrs.direction
  local x, dx = node.inputs.X, nil
  local dws, drs, dbs, dhs, dcs = {}, {}, {}, {}, {}
  for d = 0, name == "bidirectional" and 1 or 0 do
    local layer = direction(g, node, d, steps, gates, name)
    local dys = dy and parts(g, rows(g, g.Squeeze(part(g, dy, 1, d, d + 1), { 1 })), 0, steps)
    local last = dlast and g.Squeeze(part(g, dlast, 0, d, d + 1), { 0 })
    local by_x, by_h, state, dstart, reset, dcell = cell(layer, dys, last, d)
    local dw, dr, db = of_weights(g, layer, by_x, by_h, state, reset)
    local from_here = g.MatMul(by_x, layer.w)
    dx = dx and dx + from_here or from_here
    dws[d + 1], drs[d + 1], dbs[d + 1], dhs[d + 1], dcs[d + 1] = dw, dr, db, dstart, dcell
  end
  dx = common.shaped(g, dx, x)
  return dx, stack(g, dws), stack(g, drs), stack(g, dbs), stack(g, dhs), stack(g, dcs)
end

return {
  gradient "GRU" { function(g, node, dy, dlast)
    local before_reset = node.attrs.linear_before_reset ~= 0
    if not is_plain(node, { "Sigmoid", "Tanh" }) then
      return by_steps(g, node, dy, dlast)
    end
    local dx, dw, dr, db, dh = layer_gradients(g, node, dy, dlast, 3,
      function(layer, dys, last) return gru(g, layer, dys, last, before_reset) end)
    return table.unpack({ dx, dw, dr, db, nil, dh }, 1, #node.inputs)
  end },

  gradient "LSTM" { function(g, node, dy, dlast, dcell)
    if not is_plain(node, { "Sigmoid", "Tanh", "Tanh" }) then
      return by_steps(g, node, dy, dlast, dcell)
    end
    local initial = node.inputs.initial_c
    local function own(value, d)
      return value and g.Squeeze(part(g, value, 0, d, d + 1), { 0 })
    end
    local dx, dw, dr, db, dh, dc = layer_gradients(g, node, dy, dlast, 4,
      function(layer, dys, last, d)
        local start = own(initial, d) or common.full(g, layer.start, 0)
        return lstm(g, layer, dys, last, start, own(dcell, d))
      end)
    return table.unpack({ dx, dw, dr, db, nil, dh, dc }, 1, #node.inputs)
  end },

  gradient "RNN" { function(g, node, dy, dlast)
    if not is_plain(node, { "Tanh" }) then
      return by_steps(g, node, dy, dlast)
    end
    local dx, dw, dr, db, dh = layer_gradients(g, node, dy, dlast, 1,
      function(layer, dys, last) return rnn(g, layer, dys, last) end)
    return table.unpack({ dx, dw, dr, db, nil, dh }, 1, #node.inputs)
  end },

  test "GRU, both ways to reset" {
    graph = function(g, x, w, r, b, h)
      local y, last = g.GRU(x, w, r, b, nil, h, { hidden_size = 2, outputs = 2 })
      local z = g.GRU(x, w, r, b, { hidden_size = 2, linear_before_reset = 1, outputs = 1 })
      local _, q = g.GRU { X = x, W = w, R = r, hidden_size = 2, direction = "reverse",
        outputs = 2 }
      return y, last, z, q
    end,
    inputs = { x = { 3, 2, 4 }, w = { 1, 6, 4 }, r = { 1, 6, 2 }, b = { 1, 12 }, h = { 1, 2, 2 } },
    gradient = 2,
  },
  test "layers with other functions, lengths, and the batch first" {
    graph = function(g, x, w, r, b)
      local lengths = g.constant({ 3, 2 }, "int32")
      local y, last = g.RNN { X = x, W = w, R = r, B = b, sequence_lens = lengths, hidden_size = 2,
        direction = "bidirectional", activations = { "Affine", "ScaledTanh" }, outputs = 2,
        activation_alpha = { 0.7, 1.3 }, activation_beta = { 0.2, 0.5 } }
      local z = g.RNN { X = g.Transpose(x, { perm = { 1, 0, 2 } }), W = w, R = r, hidden_size = 2,
        layout = 1, direction = "bidirectional", activations = { "Softsign", "Softplus" } }
      return y, last, (z)
    end,
    inputs = { x = { 3, 2, 4 }, w = { 2, 2, 4 }, r = { 2, 2, 2 }, b = { 2, 4 } },
    gradient = 2,
  },
  test "LSTM with peepholes" {
    graph = function(g, x, w, r, b, p)
      local y, last, cell = g.LSTM { X = x, W = w, R = r, B = b, P = p, hidden_size = 2, clip = 5,
        input_forget = 1, outputs = 3 }
      return y, last, cell
    end,
    inputs = { x = { 3, 2, 4 }, w = { 1, 8, 4 }, r = { 1, 8, 2 }, b = { 1, 16 }, p = { 1, 6 } },
    gradient = 2,
  },
  test "LSTM with states" {
    graph = function(g, x, w, r, b, h, c)
      local y, last, cell = g.LSTM(x, w, r, b, nil, h, c, { hidden_size = 2, outputs = 3 })
      return y, last, cell, (g.LSTM { X = x, W = w, R = r, hidden_size = 2, outputs = 1 })
    end,
    inputs = { x = { 3, 2, 4 }, w = { 1, 8, 4 }, r = { 1, 8, 2 }, b = { 1, 16 }, h = { 1, 2, 2 },
      c = { 1, 2, 2 } },
    gradient = 2,
  },
  test "layers in two directions" {
    graph = function(g, x, w, r, b)
      local both = { hidden_size = 2, direction = "bidirectional", outputs = 2 }
      local y, last = g.LSTM(x, w, r, b, both)
      local v = g.Slice(w, { 0 }, { 6 }, { 1 })
      local u = g.Slice(r, { 0 }, { 6 }, { 1 })
      local z = g.GRU(x, v, u, both)
      return y, last, z
    end,
    inputs = { x = { 2, 2, 3 }, w = { 2, 8, 3 }, r = { 2, 8, 2 }, b = { 2, 16 } },
    gradient = 2,
  },
  test "RNN" {
    graph = function(g, x, w, r, b)
      local y, last = g.RNN(x, w, r, b, { hidden_size = 2, outputs = 2 })
      return y, last, (g.RNN(x, w, r, { hidden_size = 2, outputs = 1, activations = { "Relu" } }))
    end,
    inputs = { x = { 3, 2, 4 }, w = { 1, 2, 4 }, r = { 1, 2, 2 }, b = { 1, 4 } },
    gradient = 2,
  },
  test "RNN of an empty batch" {
    graph = function(g, x, w, r) return (g.RNN(x, w, r, { hidden_size = 2, outputs = 1 })) end,
    inputs = { x = { 3, 0, 4 }, w = { 1, 2, 4 }, r = { 1, 2, 2 } },
    gradient = 2,
  },
}

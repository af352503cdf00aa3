-- SPDX-License-Identifier: Apache-2.0
-- Rewrites recurrent layers of which only the first or the last step is read: a direction that ends
-- there gives its final state, and a direction that begins there computes only one step.

local enabled = option.boolean(true, "recurrent layers compute no steps that nobody reads")

-- Y is [steps, directions, batch, hidden]. Exporters reshape it to [steps, batch, directions *
-- hidden], or the same with the batch first, and select one step.
local last_step = op { { "LSTM", "GRU", "RNN" }, as = "layer" }
  >> maybe { op { "Transpose", as = "beside", attrs = { perm = { 0, 2, 1, 3 } } } }
  >> op { { "Reshape", "Squeeze" }, as = "joined" }
  >> maybe { op { "Transpose", as = "turned", attrs = { perm = { 1, 0, 2 } } } }
  >> op { "Gather", as = "pick", inputs = { indices = constant { as = "index", scalar = true } } }

-- The inputs and attributes that the layer of one direction keeps.
local PARTS = {
  LSTM = {
    weights = { "W", "R", "B", "P" }, states = { "initial_h", "initial_c" },
    options = { "clip", "hidden_size", "input_forget" },
  },
  GRU = {
    weights = { "W", "R", "B" }, states = { "initial_h" },
    options = { "clip", "hidden_size", "linear_before_reset" },
  },
  RNN = {
    weights = { "W", "R", "B" }, states = { "initial_h" }, options = { "clip", "hidden_size" },
  },
}

local function is_bidirectional(layer)
  return layer.attrs.direction == "bidirectional"
end

-- Is the layer's result [steps, batch, directions * hidden], and is a step selected from it?
local function picks_a_step(m)
  local y, joined = m.layer.outputs.Y.shape, m.joined.shape
  if not y or not joined or #joined ~= 3 or m.pick.rank ~= 2 then
    return false
  end
  for place, size in ipairs { y[1], y[3] } do
    if size == "?" or joined[place] ~= size then
      return false
    end
  end
  local hidden, both = y[4], is_bidirectional(m.layer)
  if math.type(hidden) ~= "integer" or joined[3] ~= (both and 2 or 1) * hidden
    or (both and not m.beside) then
    return false
  end
  local axis = m.pick.attrs.axis
  return (axis < 0 and axis + 3 or axis) == (m.turned and 1 or 0)
end

-- "first" or "last", or nil for another step.
local function picked(m)
  local steps, index = m.layer.outputs.Y.shape[1], m.index:value()
  if math.type(steps) == "integer" and index < 0 then
    index = index + steps
  end
  if index == 0 then
    return "first"
  end
  return (index == -1 or index + 1 == steps) and "last" or nil
end

local function has_constant_weights(layer)
  for _, name in ipairs(PARTS[layer.op].weights) do
    local value = layer.inputs[name]
    if value and not value.is_constant then
      return false
    end
  end
  return true
end

-- Why the layer stays as it is; nil if it can be rewritten.
local function obstacle(m)
  local layer = m.layer
  local attrs, both = layer.attrs, is_bidirectional(layer)
  if layer.inputs.sequence_lens then
    return "sequences end at steps of their own"
  elseif attrs.layout ~= 0 or not picks_a_step(m) then
    return "the selected index is not known to be one step"
  elseif not picked(m) then
    return "neither the first nor the last step is picked"
  elseif layer.outputs.Y.shape[1] == 1 then
    return "there is one step"
  elseif both and not has_constant_weights(layer) then
    return "its weights are not constants"
  elseif both and (attrs.activation_alpha or attrs.activation_beta) then
    return "which scales belong to which direction is not said"
  end
  return nil
end

-- The final state of one direction, [1, batch, hidden], after all steps or after the selected one.
local function final_state(m, g, number, which)
  local layer = m.layer
  local attrs, both = layer.attrs, is_bidirectional(layer)
  local backwards = attrs.direction == "reverse" or number == 2
  local arguments = { direction = backwards and "reverse" or "forward", outputs = 2 }
  for _, name in ipairs(PARTS[layer.op].options) do
    arguments[name] = attrs[name]
  end
  for _, kind in ipairs { "weights", "states" } do
    for _, name in ipairs(PARTS[layer.op][kind]) do
      local value = layer.inputs[name]
      if value and both then
        value = g.Slice(value, { number - 1 }, { number }, { 0 })
      end
      arguments[name] = value
    end
  end
  for _, name in ipairs { "activations", "activation_alpha", "activation_beta" } do
    local list = attrs[name]
    local count = list and (both and #list // 2 or #list) or 0
    if count > 0 then
      arguments[name] = table.move(list, (number - 1) * count + 1, number * count, 1, {})
    end
  end
  arguments.X = layer.inputs.X
  if backwards == (which == "last") then
    arguments.X = g.Gather(arguments.X, { which == "last" and -1 or 0 }, { axis = 0 })
  end
  local _, state = g[layer.op](arguments)
  return state
end

-- ---- tests ----

local GATES = { LSTM = 4, GRU = 3, RNN = 1 }

-- A layer with 5 hidden units over [batch, steps, 6] as PyTorch exports it. Returns its outputs as
-- [steps, batch, directions * 5], and the final states.
local function exported(g, x, name, arguments)
  local directions = arguments.direction == "bidirectional" and 2 or 1
  local y, y_h
  arguments.X = g.Transpose(x, { perm = { 1, 0, 2 } })
  arguments.W = arguments.W or g.normal { directions, GATES[name] * 5, 6 }
  arguments.R = g.normal { directions, GATES[name] * 5, 5 }
  arguments.B = g.normal { directions, GATES[name] * 10 }
  arguments.hidden_size, arguments.outputs = 5, 2
  y, y_h = g[name](arguments)
  if directions == 1 then
    return g.Squeeze(y, { 1 }), y_h
  end
  return g.Reshape(g.Transpose(y, { perm = { 0, 2, 1, 3 } }), { 0, 0, -1 }), y_h
end

-- One step, with the batch first.
local function step_of(g, x, name, arguments, index)
  local y = g.Transpose((exported(g, x, name, arguments)), { perm = { 1, 0, 2 } })
  return g.Gather(y, g.constant(index), { axis = 1 })
end

local X = { x = { 3, 4, 6 } }

return {
  options = { last_step = enabled },

  rewrite "last_step" {
    doc = "A recurrent layer of which one end is read computes no steps beyond it.",
    enabled = enabled,
    pattern = last_step,
    replace = function(m, g)
      local why = obstacle(m)
      if why then
        return nil, why
      end
      local which = picked(m)
      local state = final_state(m, g, 1, which)
      if is_bidirectional(m.layer) then
        state = g.Concat(state, final_state(m, g, 2, which), { axis = 2 })
      end
      return g.Squeeze(state, { 0 })
    end,
  },

  test "of both directions, the one that begins at the last step computes one step" {
    inputs = X,
    graph = function(g, x)
      return step_of(g, x, "LSTM", { direction = "bidirectional" }, -1),
        step_of(g, x, "GRU", { direction = "bidirectional", linear_before_reset = 1 }, 3)
    end,
    expect = { last_step = 2, LSTM = 2, GRU = 2, Concat = 2 },
    equal = { rtol = 1e-4, atol = 1e-5 },
  },

  test "of both directions, the one that begins at the first step computes one step" {
    inputs = X,
    graph = function(g, x)
      return step_of(g, x, "LSTM", { direction = "bidirectional", input_forget = 1 }, 0),
        step_of(g, x, "RNN", { direction = "bidirectional", activations = { "Relu", "Tanh" } }, -4)
    end,
    expect = { last_step = 2, LSTM = 2, RNN = 2, Concat = 2 },
    equal = { rtol = 1e-4, atol = 1e-5 },
  },

  test "one direction gives its final state, or computes one step" {
    inputs = X,
    graph = function(g, x)
      return step_of(g, x, "LSTM", { clip = 0.5 }, -1), step_of(g, x, "GRU", {}, 0),
        step_of(g, x, "RNN", { direction = "reverse" }, -1),
        step_of(g, x, "LSTM", { direction = "reverse" }, 0)
    end,
    expect = { last_step = 4, LSTM = 2, GRU = 1, RNN = 1 },
    equal = { rtol = 1e-4, atol = 1e-5 },
  },

  test "steps in front, and states to begin with" {
    inputs = { x = { 3, 4, 6 }, h = { 2, 3, 5 }, c = { 2, 3, 5 } },
    graph = function(g, x, h, c)
      local both = { direction = "bidirectional", initial_h = h, initial_c = c }
      return g.Gather((exported(g, x, "LSTM", both)), g.constant(-1))
    end,
    expect = { last_step = 1, LSTM = 2 },
    equal = { rtol = 1e-4, atol = 1e-5 },
  },

  test "how many steps there are may be open" {
    inputs = { x = { "N", "T", 6 } },
    graph = function(g, x)
      return step_of(g, x, "LSTM", { direction = "bidirectional" }, -1)
    end,
    expect = { last_step = 1, LSTM = 2 },
    equal = { rtol = 1e-4, atol = 1e-5 },
  },

  test "a step in the middle needs what comes before it" {
    inputs = X,
    graph = function(g, x)
      return step_of(g, x, "LSTM", { direction = "bidirectional" }, -2)
    end,
    expect_not = { "last_step" },
    refused = { last_step = "neither the first nor the last step" },
    equal = true,
  },

  test "one unit of all steps is not a step" {
    inputs = X,
    graph = function(g, x)
      return g.Gather((exported(g, x, "GRU", {})), g.constant(-1), { axis = 2 })
    end,
    expect_not = { "last_step" },
    refused = { last_step = "not known to be one step" },
    equal = true,
  },

  test "a layer whose final state is read as well stays" {
    inputs = X,
    graph = function(g, x)
      local y, y_h = exported(g, x, "LSTM", { direction = "bidirectional" })
      return g.Gather(y, g.constant(-1)), y_h
    end,
    expect_not = { "last_step" },
    equal = true,
  },

  test "a layer whose other steps are read as well stays" {
    inputs = X,
    graph = function(g, x)
      local y = exported(g, x, "LSTM", { direction = "bidirectional" })
      return g.Gather(y, g.constant(-1)), y
    end,
    expect_not = { "last_step" },
    equal = true,
  },

  test "a layer that is told the lengths of its sequences stays" {
    inputs = { x = { 3, 4, 6 }, lengths = { 3, dtype = "int32" } },
    graph = function(g, x, lengths)
      return step_of(g, x, "GRU", { sequence_lens = lengths }, -1)
    end,
    expect_not = { "last_step" },
    refused = { last_step = "end at steps of their own" },
    equal = true,
  },

  test "both directions with weights that are computed stay" {
    inputs = { x = { 3, 4, 6 }, w = { 2, 20, 6 } },
    graph = function(g, x, w)
      return step_of(g, x, "LSTM", { direction = "bidirectional", W = w }, -1)
    end,
    expect_not = { "last_step" },
    refused = { last_step = "its weights are not constants" },
    equal = true,
  },

  test "both directions with scales of activations stay" {
    inputs = X,
    graph = function(g, x)
      local scaled = { "LeakyRelu", "Tanh" }
      return step_of(g, x, "RNN",
        { direction = "bidirectional", activations = scaled, activation_alpha = { 0.25 } }, -1)
    end,
    expect_not = { "last_step" },
    refused = { last_step = "which scales belong to which direction" },
    equal = true,
  },

  test "a layer of one step stays" {
    inputs = { x = { 3, 1, 6 } },
    graph = function(g, x)
      return step_of(g, x, "LSTM", { direction = "bidirectional" }, -1)
    end,
    expect_not = { "last_step" },
    refused = { last_step = "there is one step" },
    equal = true,
  },
}

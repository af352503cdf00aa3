-- SPDX-License-Identifier: Apache-2.0
-- Models that generate token by token, with keys and values of earlier calls as inputs and
-- outputs: Attention over Concat(past, new), where the joined keys and values are outputs that
-- become the next inputs. Each call then has other sizes than the one before. This pass gives the
-- caches a fixed capacity, as ONNX 24 has it: TensorScatter writes the new rows into the cache, in
-- place if the session feeds the output back (cleave_session_feed), and Attention reads as many as
-- count (nonpad_kv_seqlen).
--
-- The size of the past becomes the capacity. The number of tokens so far is a new input of one
-- element, `past_length` (int64); with it, positions and rows of masks are looked up that the model
-- cut from tables, or counted by Range. A mask that comes with each call, as exporters have it,
-- has the capacity as its length then, with zeros for what is still to come. A model that computes
-- anything else from the size of the past or from the mask stays as it is, with the reason among
-- the refusals. Run `canonical` before, which finds Attention.
--
-- A call with several new tokens gives what as many calls with one would give: where the mask does
-- not tell them apart, since the model was exported for one at a time, none sees a later one.
--
-- GroupQueryAttention of ONNX Runtime is read as such caches, which it makes larger in front of
-- each call if they have no room. Here they have: the rewrite `kept_room` leaves that out.

local sizes = include "generation/sizes.lua"
local is_same, sum_of_size = sizes.is_same, sizes.of_size
local cuts_of = include "generation/cuts.lua"
local masks = include "generation/masks.lua"
local name_of = cuts_of.name_of

-- ---- what the pass looks for ----

-- Outputs that are an input joined with what is new: { past, fresh, joined, axis, output }.
local function find_caches(graph)
  local caches = {}
  for k, output in ipairs(graph.outputs) do
    local node = output.producer
    if node and node.op == "Concat" and #node.inputs == 2 and node.inputs[1].is_input
      and output.rank == 4 then
      local axis = node.attrs.axis
      caches[#caches + 1] = {
        past = node.inputs[1], fresh = node.inputs[2], joined = output, output = k,
        axis = axis < 0 and axis + 4 or axis,
      }
    end
  end
  return caches
end

-- The name of the size that all caches have, the past, and a reason against them.
local function check_caches(caches)
  local past = nil
  for _, cache in ipairs(caches) do
    local size = cache.past.shape[cache.axis + 1]
    if cache.axis ~= 2 or type(size) ~= "string" or not size:find("^[%w_.]+$") then
      return nil, ("input '%s' is not of [batch, heads, past, size] with an open size of "
        .. "the past"):format(cache.past.name)
    elseif past and size ~= past then
      return nil, ("inputs have different pasts, '%s' and '%s'"):format(past, size)
    elseif cache.past.uses_count ~= #cache.past.users then
      return nil, ("input '%s' is an output, too"):format(cache.past.name)
    end
    past = size
    for _, reader in ipairs(cache.joined.users) do
      local inputs = reader.inputs
      local is_attention = reader.op == "Attention" and inputs.Q ~= cache.joined
        and inputs.attn_mask ~= cache.joined and inputs.Q.rank == 4
      if reader.op ~= "Shape" and not is_attention then
        return nil, ("'%s' is read by %s, not as keys or values of Attention with heads "
          .. "apart"):format(cache.joined.name, name_of(reader))
      end
    end
  end
  return past
end

-- Attention that reads caches, each once, in order.
local function find_attention(graph, cache_of)
  local found = {}
  for node in graph:topological() do
    if node.op == "Attention" then
      local keys, values = cache_of[node.inputs.K], cache_of[node.inputs.V]
      if (keys == nil) ~= (values == nil) then
        return nil, name_of(node) .. " has a cache of keys or of values, not both"
      elseif keys and (node.attrs.is_causal == 1 or #node.outputs > 1) then
        return nil, name_of(node) .. " is causal by an attribute, or has more than one output"
      elseif keys then
        found[#found + 1] = node
      end
    end
  end
  return found
end

-- ---- what it makes of it ----

-- `data` cut as the Slice cuts it, with a cache of the size of `past`.
local function cut_again(g, node, cuts, rows, capacity)
  if node.op == "Range" then
    local counted = cuts[1].kind == "rows" and rows
      or g.Range(g.constant(0), g.Squeeze(capacity), g.constant(1))
    return g.Cast(counted, { to = node.outputs[1].dtype })
  end
  local data = node.inputs.data
  for _, cut in ipairs(cuts) do
    local axis = g.constant { cut.axis }
    if cut.kind == "rows" then
      data = g.Gather(data, rows, { axis = cut.axis })
    elseif cut.kind == "keys" then
      data = g.Slice(data, g.constant { 0 }, capacity, axis)
    else
      local at = g.constant { cut.at - 1 }
      data = g.Slice(data, g.Gather(node.inputs.starts, at), g.Gather(node.inputs.ends, at), axis)
    end
  end
  return data
end

local KEPT = { "q_num_heads", "kv_num_heads", "scale", "softcap", "softmax_precision" }

local function attend(g, node, keys, values, mask, valid)
  local attributes = {}
  for _, name in ipairs(KEPT) do
    attributes[name] = node.attrs[name]
  end
  return g.Attention {
    Q = node.inputs.Q, K = keys, V = values, attn_mask = mask,
    nonpad_kv_seqlen = valid, scale = attributes.scale, softcap = attributes.softcap,
    q_num_heads = attributes.q_num_heads, kv_num_heads = attributes.kv_num_heads,
    softmax_precision = attributes.softmax_precision,
  }
end

-- An input with the number of new tokens as a size, and which of its sizes that is.
local function input_of_size(graph, size)
  for _, input in ipairs(graph.inputs) do
    for d, own in ipairs(input.shape or {}) do
      local found = sum_of_size(own)
      if found and is_same(found, size) then
        return input, d
      end
    end
  end
  return nil
end

-- What the pass changes: { past, fresh, caches, attention, shows_later, tokens, axis, mask }; nil
-- and why not.
local function find(graph)
  local caches = find_caches(graph)
  if #caches == 0 then
    return nil, "no output is an input of rank 4 joined with new keys or values"
  end
  local past, why = check_caches(caches)
  if not past then
    return nil, why
  end
  local found = { past = past, caches = caches, shows_later = {} }
  found.fresh = sum_of_size(caches[1].fresh.shape[3])
  local cache_of = {}
  for _, cache in ipairs(caches) do
    cache_of[cache.joined] = cache
    local size = sum_of_size(cache.fresh.shape[3])
    if not size or not found.fresh or not is_same(size, found.fresh) or size[past] then
      return nil, "the numbers of new keys differ, or are not known"
    end
  end
  found.tokens, found.axis = input_of_size(graph, found.fresh)
  if not found.tokens then
    return nil, "no input has the number of new keys as a size"
  end
  found.mask = masks.find(graph, found.fresh)
  found.attention, why = find_attention(graph, cache_of)
  return found.attention and found, why
end

-- The name of a node that reads the past, or its size, with or without what is new, for anything
-- else than its cache, and cuts.
local function other_reader(cache, cuts)
  for _, value in ipairs { cache.past, cache.joined } do
    for _, reader in ipairs(value.users) do
      local is_size = reader.op == "Shape"
      local other = is_size and cuts_of.other_reader(reader.outputs[1], cuts)
        or not is_size and value == cache.past and reader.outputs[1] ~= cache.joined
        and name_of(reader)
      if other then
        return other
      end
    end
  end
  return nil
end

-- The tables that are cut, and whether nothing else depends on the past.
local function find_cuts(graph, found)
  local cuts = {}
  for node in graph:topological() do
    local why
    cuts[node], why = cuts_of.of_node(node, found.past, found.fresh)
    if cuts[node] == false then
      return nil, why
    end
  end
  for _, cache in ipairs(found.caches) do
    local other = other_reader(cache, cuts)
    if other then
      return nil, ("%s computes something else from the past '%s'"):format(other, cache.past.name)
    end
  end
  for _, node in ipairs(found.attention) do
    local mask = node.inputs.attn_mask
    if mask and not masks.follows(mask, found.mask, cuts) then
      return nil, ("the mask of %s is not cut from tables"):format(name_of(node))
    end
    found.shows_later[node] = not masks.tells_apart(mask, cuts, {})
  end
  local other = found.mask and masks.other_reader(found.mask, cuts)
  if other then
    return nil, ("%s computes something else from the mask '%s'"):format(other, found.mask.name)
  end
  return cuts
end

local function fixed_capacity(graph, _, g)
  local found, why = find(graph)
  if not found then
    return false, why
  end
  local cuts
  cuts, why = find_cuts(graph, found)
  if not cuts then
    return false, why
  end
  local first = found.caches[1].past
  local function size(value, d, index)
    return g.Gather(g.Shape(value), g.constant(index or { d - 1 }))
  end
  local length = g.input("past_length", "int64", { 1 })
  local count = size(found.tokens, nil, found.axis - 1)
  local rows = g.Add(length, g.Range(g.constant(0), count, g.constant(1)))
  local index = first.shape[1] == 1 and length or g.Expand(length, size(first, 1))
  local valid = g.Add(index, count)
  for node in graph:topological() do
    if cuts[node] then
      g.replace(node.outputs[1], cut_again(g, node, cuts[node], rows, size(first, 3)))
    end
  end
  local present = {}
  for _, cache in ipairs(found.caches) do
    present[cache.joined] = g.TensorScatter(cache.past, cache.fresh, index, { axis = 2 })
  end
  local hidden = {}
  for _, node in ipairs(found.attention) do
    local keys, values = present[node.inputs.K], present[node.inputs.V]
    local mask = node.inputs.attn_mask
    if found.shows_later[node] then
      local key = mask or "none"
      hidden[key] = hidden[key] or masks.hide_later(g, mask, rows, size(first, 3))
      mask = hidden[key]
    end
    g.replace(node.outputs[1], attend(g, node, keys, values, mask, valid))
  end
  for _, cache in ipairs(found.caches) do
    g.set_output(cache.output, present[cache.joined])
  end
end

-- ---- tests ----

local SIZES = { q = { 1, 2, "T", 4 }, k = { 1, 2, "T", 4 }, v = { 1, 2, "T", 4 },
  past_k = { 1, 2, "P", 4 }, past_v = { 1, 2, "P", 4 } }

local WITH_MASK = { q = SIZES.q, k = SIZES.k, v = SIZES.v, past_k = SIZES.past_k,
  past_v = SIZES.past_v, mask = { 1, "M", dtype = "int64" } }

-- Rows [P, P + T) of a table, and its first P + T columns, if it has any.
local function cut(g, table_, past, fresh, axis)
  local before = g.Gather(g.Shape(past), g.constant { 2 })
  local all = g.Add(before, g.Gather(g.Shape(fresh), g.constant { 2 }))
  local rows = g.Slice(table_, before, all, g.constant { axis })
  return axis == 0 and rows or g.Slice(rows, g.constant { 0 }, all, g.constant { axis + 1 })
end

return ruleset {
  name = "generation",
  doc = "Caches of keys and values with a fixed capacity, for generation token by token.",
  backend = "cpu",

  pass "fixed_capacity" {
    doc = "Attention over past and new keys writes the new ones into caches of a fixed capacity.",
    run = fixed_capacity,
  },

  rewrite "kept_room" {
    doc = "New keys or values are written into a state that has room for them, not into a copy.",
    pattern = op { "Pad", inputs = { data = any "past" } }
      >> op { "TensorScatter", as = "scatter" },
    where = function(m)
      return m.past.is_input and m.past.rank == 4 and m.scatter.outputs[1].is_output,
        "it is no state: an input of rank 4 that becomes an output"
    end,
    replace = function(m, g)
      local inputs = m.scatter.inputs
      return g.TensorScatter(m.past, inputs.update, inputs.write_indices,
        { axis = m.scatter.attrs.axis, mode = m.scatter.attrs.mode })
    end,
  },

  test "keys and values go into caches, positions and masks are looked up" {
    inputs = SIZES,
    graph = function(g, q, k, v, past_k, past_v)
      local mask = cut(g, g.normal { 1, 1, 9, 9 }, past_k, k, 2)
      local keys, values = g.Concat(past_k, k, { axis = 2 }), g.Concat(past_v, v, { axis = -2 })
      local x = q + g.Unsqueeze(cut(g, g.normal { 9, 4 }, past_k, k, 0), g.constant { 0, 1 })
      return g.Attention(x, keys, values, mask), keys, values
    end,
    expect = { fixed_capacity = 1, TensorScatter = 2, Attention = 1, Concat = 0 },
  },

  test "without a mask, new tokens see all that came before, and themselves" {
    inputs = SIZES,
    graph = function(g, q, k, v, past_k, past_v)
      local keys, values = g.Concat(past_k, k, { axis = 2 }), g.Concat(past_v, v, { axis = 2 })
      return g.Attention(q, keys, values), keys, values
    end,
    expect = { fixed_capacity = 1, TensorScatter = 2, Concat = 0, LessOrEqual = 1 },
  },

  test "without a mask that tells new tokens apart, none sees a later one" {
    inputs = WITH_MASK,
    graph = function(g, q, k, v, past_k, past_v, mask)
      local keys, values = g.Concat(past_k, k, { axis = 2 }), g.Concat(past_v, v, { axis = 2 })
      local hidden = g.Unsqueeze((1 - g.Cast(mask, { to = "float32" })) * -1e9, g.constant { 1, 2 })
      local once = g.Attention(q, keys, values, hidden)
      return g.Attention(once, keys, values, hidden), keys, values
    end,
    expect = { fixed_capacity = 1, TensorScatter = 2, LessOrEqual = 1, Where = 1 },
  },

  test "a model without caches stays as it is" {
    inputs = { q = SIZES.q, k = SIZES.k, v = SIZES.v },
    graph = function(g, q, k, v)
      return g.Attention(q, k, v)
    end,
    expect_not = { "fixed_capacity" },
    refused = { fixed_capacity = "no output is an input" },
  },

  test "a past of a known size is not a cache" {
    inputs = { k = { 1, 2, 1, 4 }, past_k = { 1, 2, 5, 4 } },
    graph = function(g, k, past_k)
      return g.Concat(past_k, k, { axis = 2 })
    end,
    expect_not = { "fixed_capacity" },
    refused = { fixed_capacity = "open size of the past" },
  },

  test "the size of the keys cuts tables, too" {
    inputs = SIZES,
    graph = function(g, q, k, v, past_k, past_v)
      local keys, values = g.Concat(past_k, k, { axis = 2 }), g.Concat(past_v, v, { axis = 2 })
      local function size(x)
        return g.Gather(g.Shape(x), g.constant { 2 })
      end
      local before = size(keys) - g.Slice(g.Shape(q), g.constant { -2 }, g.constant { -1 })
      local rows = g.Slice(g.normal { 1, 1, 9, 9 }, before, size(keys), g.constant { 2 })
      local mask = g.Slice(rows, g.constant { 0 }, size(keys), g.constant { 3 })
      return g.Attention(q, keys, values, mask), keys, values
    end,
    expect = { fixed_capacity = 1, TensorScatter = 2, LessOrEqual = 0 },
  },

  test "keys whose size is a number in it stay" {
    inputs = SIZES,
    graph = function(g, q, k, v, past_k, past_v)
      local keys, values = g.Concat(past_k, k, { axis = 2 }), g.Concat(past_v, v, { axis = 2 })
      local length = g.Cast(g.Gather(g.Shape(values), g.constant { 2 }), { to = 1 })
      return g.Attention(q / g.Sqrt(length), keys, values), keys, values
    end,
    expect_not = { "fixed_capacity" },
    refused = { fixed_capacity = "computes something else" },
  },

  test "keys that something else reads stay" {
    inputs = SIZES,
    graph = function(g, q, k, v, past_k, past_v)
      local keys, values = g.Concat(past_k, k, { axis = 2 }), g.Concat(past_v, v, { axis = 2 })
      return g.Attention(q, keys, values), keys, values, g.ReduceSum(keys)
    end,
    expect_not = { "fixed_capacity" },
    refused = { fixed_capacity = "is read by ReduceSum" },
  },

  test "a mask of floats that comes with the call stays" {
    inputs = { q = SIZES.q, k = SIZES.k, v = SIZES.v, past_k = SIZES.past_k, past_v = SIZES.past_v,
      mask = { 1, 1, 1, "M" } },
    graph = function(g, q, k, v, past_k, past_v, mask)
      local keys, values = g.Concat(past_k, k, { axis = 2 }), g.Concat(past_v, v, { axis = 2 })
      return g.Attention(q, keys, values, mask), keys, values
    end,
    expect_not = { "fixed_capacity" },
    refused = { fixed_capacity = "is not cut from tables" },
  },

  test "a mask that comes with the call has a place for each of the cache" {
    inputs = WITH_MASK,
    graph = function(g, q, k, v, past_k, past_v, mask)
      local keys, values = g.Concat(past_k, k, { axis = 2 }), g.Concat(past_v, v, { axis = 2 })
      local hidden = g.Unsqueeze((1 - g.Cast(mask, { to = "float32" })) * -1e9, g.constant { 1, 2 })
      local causal = cut(g, g.normal { 1, 1, 9, 9 }, past_k, k, 2)
      return g.Attention(q, keys, values, hidden + causal), keys, values
    end,
    expect = { fixed_capacity = 1, TensorScatter = 2, Concat = 0 },
  },

  test "what is seen may be counted" {
    inputs = WITH_MASK,
    graph = function(g, q, k, v, past_k, past_v, mask)
      local keys, values = g.Concat(past_k, k, { axis = 2 }), g.Concat(past_v, v, { axis = 2 })
      local function size(x, d)
        return g.Gather(g.Shape(x), g.constant(d))
      end
      local all = g.Range(g.constant(0), size(mask, 1), g.constant(1))
      local past = size(past_k, 2)
      local own = g.Range(past, past + size(k, 2), g.constant(1))
      local seen = g.LessOrEqual(all, g.Unsqueeze(own, g.constant { 1 }))
      return g.Attention(q, keys, values, g.And(seen, g.Cast(mask, { to = "bool" }))), keys, values
    end,
    expect = { fixed_capacity = 1, TensorScatter = 2, Concat = 0, Range = 2 },
  },

  test "positions from a mask that comes with the call stay" {
    inputs = WITH_MASK,
    graph = function(g, q, k, v, past_k, past_v, mask)
      local keys, values = g.Concat(past_k, k, { axis = 2 }), g.Concat(past_v, v, { axis = 2 })
      local hidden = g.Unsqueeze((1 - g.Cast(mask, { to = "float32" })) * -1e9, g.constant { 1, 2 })
      return g.Attention(q, keys, values, hidden), keys, values, g.CumSum(mask, g.constant(1))
    end,
    expect_not = { "fixed_capacity" },
    refused = { fixed_capacity = "computes something else from the mask" },
  },

  test "the size of the past as a number stays" {
    inputs = SIZES,
    graph = function(g, q, k, v, past_k, past_v)
      local keys, values = g.Concat(past_k, k, { axis = 2 }), g.Concat(past_v, v, { axis = 2 })
      local length = g.Cast(g.Gather(g.Shape(past_k), g.constant { 2 }), { to = 1 })
      return g.Attention(q / g.Sqrt(length), keys, values), keys, values
    end,
    expect_not = { "fixed_capacity" },
    refused = { fixed_capacity = "computes something else" },
  },

  test "states of GroupQueryAttention have room" {
    inputs = { k = SIZES.k, past_k = SIZES.past_k },
    graph = function(g, k, past_k)
      local room = g.Concat(g.constant { 0 }, g.Gather(g.Shape(k), g.constant { 2 }), { axis = 0 })
      local kept = g.Pad(past_k, room, nil, g.constant { 2 })
      return g.TensorScatter(kept, k, g.Gather(g.Shape(past_k), g.constant { 2 }), { axis = 2 })
    end,
    expect = { kept_room = 1, TensorScatter = 1, Pad = 0 },
  },

  test "what is no state is padded" {
    inputs = { k = SIZES.k, past_k = SIZES.past_k },
    graph = function(g, k, past_k)
      local room = g.Concat(g.constant { 0 }, g.Gather(g.Shape(k), g.constant { 2 }), { axis = 0 })
      local kept = g.Pad(g.Relu(past_k), room, nil, g.constant { 2 })
      return g.TensorScatter(kept, k, g.Gather(g.Shape(past_k), g.constant { 2 }), { axis = 2 })
    end,
    expect_not = { "kept_room" },
    refused = { kept_room = "no state" },
  },
}

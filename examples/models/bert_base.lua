-- SPDX-License-Identifier: Apache-2.0
-- BERT-base (Devlin et al., 2018): 12 layers of width 768 with 12 heads, post-norm, gelu. Takes
-- token ids, an attention mask (1: look at it, 0: padding) and segment ids; gives the last layer's
-- states and the pooled first token.
--
--   options   batch = 1, T = 128 (tokens), layers = 12, vocabulary = 30522
-- batch and T may be names ("N", "T"): then the sizes are decided when the model runs.
local batch = options.batch or 1
local length = options.T or 128
local layers = options.layers or 12
local vocabulary = options.vocabulary or 30522

local WIDTH, HEADS, INNER, POSITIONS = 768, 12, 3072, 512
local HEAD = WIDTH // HEADS
local EPSILON = 1e-12

-- x @ W + b, with W as [in, out].
local function linear(x, name, inputs, outputs)
  local w = g.weight { inputs, outputs, name = name .. ".weight", std = 0.02 }
  local b = g.normal { outputs, std = 0.02, name = name .. ".bias" }
  return g.MatMul(x, w, { name = name }) + b
end

local function layer_norm(x, name)
  local scale = g.uniform { WIDTH, low = 0.8, high = 1.2, name = name .. ".scale" }
  local shift = g.normal { WIDTH, std = 0.1, name = name .. ".shift" }
  local y = g.LayerNormalization(x, scale, shift, { axis = -1, epsilon = EPSILON, name = name })
  return y
end

-- [N, T, width] -> [N, heads, T, width / heads]. 0 keeps a dimension as it is, -1 is what remains.
local function split_heads(x)
  local y = g.Transpose(g.Reshape(x, { 0, 0, HEADS, HEAD }), { perm = { 0, 2, 1, 3 } })
  return y
end

local function attention(x, mask, name)
  local q = split_heads(linear(x, name .. ".query", WIDTH, WIDTH))
  local k = split_heads(linear(x, name .. ".key", WIDTH, WIDTH))
  local v = split_heads(linear(x, name .. ".value", WIDTH, WIDTH))
  local scores = g.MatMul(q, g.Transpose(k, { perm = { 0, 1, 3, 2 } }))
  local weights = g.Softmax(scores / math.sqrt(HEAD) + mask, { axis = -1 })
  local y = g.Transpose(g.MatMul(weights, v), { perm = { 0, 2, 1, 3 } })
  return linear(g.Reshape(y, { 0, 0, WIDTH }), name .. ".output", WIDTH, WIDTH)
end

local function layer(x, mask, name)
  x = layer_norm(x + attention(x, mask, name .. ".attention"), name .. ".attention.norm")
  local y = g.Gelu(linear(x, name .. ".inner", WIDTH, INNER))
  y = linear(y, name .. ".outer", INNER, WIDTH)
  return layer_norm(x + y, name .. ".norm")
end

local ids = g.input("ids", "int64", { batch, length })
local mask = g.input("mask", "int64", { batch, length })
local segments = g.input("segments", "int64", { batch, length })

-- Embeddings of words, positions and segments, added. The first T positions, also where T is only
-- known when the model runs.
local words = g.normal { vocabulary, WIDTH, std = 0.02, name = "embeddings.words" }
local positions = g.normal { 1, POSITIONS, WIDTH, std = 0.02, name = "embeddings.positions" }
local kinds = g.normal { 2, WIDTH, std = 0.02, name = "embeddings.segments" }
local tokens = g.Shape(ids, { start = 1, ["end"] = 2 })
local x = g.Gather(words, ids) + g.Gather(kinds, segments)
x = layer_norm(x + g.Slice(positions, { 0 }, tokens, { 1 }), "embeddings.norm")

-- 0 where the mask is 1, -10000 where it is 0, to be added to the scores of all heads and rows.
local bias = (1 - g.Unsqueeze(g.Cast(mask, { to = "float32" }), { 1, 2 })) * -10000

for k = 1, layers do
  x = layer(x, bias, "layer" .. k)
end

local first = g.Gather(x, 0, { axis = 1 })
g.output("states", x)
g.output("pooled", g.Tanh(linear(first, "pooler", WIDTH, WIDTH)))

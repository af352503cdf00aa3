-- SPDX-License-Identifier: Apache-2.0
-- One block of a transformer as exporters spell it: layer norm, attention with a mask, gelu.
local function layer_norm(x)
  local d = x - g.ReduceMean(x, { -1 })
  local variance = g.ReduceMean(g.Pow(d, 2.0), { -1 })
  return d / g.Sqrt(variance + 1e-5) * g.uniform { 16 } + g.normal { 16 }
end

local function linear(x, from, to)
  return g.MatMul(x, g.normal { from, to }) + g.normal { to }
end

local function heads(x, order)
  return g.Transpose(g.Reshape(x, { 2, 6, 4, 4 }), { perm = order })
end

local x = g.input("x", "float32", { 2, 6, 16 })
local mask = g.input("mask", "float32", { 2, 1, 1, 6 })
local y = layer_norm(x)
local q, k, v = linear(y, 16, 16), linear(y, 16, 16), linear(y, 16, 16)
local scores = g.MatMul(heads(q, { 0, 2, 1, 3 }), heads(k, { 0, 2, 3, 1 })) / 2.0 + mask
local mixed = g.MatMul(g.Softmax(scores, { axis = -1 }), heads(v, { 0, 2, 1, 3 }))
local joined = g.Reshape(g.Transpose(mixed, { perm = { 0, 2, 1, 3 } }), { 2, 6, 16 })
y = x + linear(joined, 16, 16)
local up = linear(layer_norm(y), 16, 32)
local gelu = up * (g.Erf(up / 1.4142135) + 1.0) * 0.5
g.output("y", y + linear(gelu, 32, 16))

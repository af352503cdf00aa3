-- SPDX-License-Identifier: Apache-2.0
-- What the kernels of a GPU are measured with: --set work=NAME, and rows, columns, dtype where they apply; length and
-- causal for attention.
local work = options.work or "chain4"
local rows, columns = options.rows or 8192, options.columns or 8192
local dtype = options.dtype or "float32"
local x = g.input("x", dtype, { rows, columns })

local WORKS = {}

function WORKS.copy()
  return g.Reshape(x, g.constant { -1 })
end

function WORKS.chain4()
  local y = g.input("y", dtype, { rows, columns })
  return g.Relu(g.Mul(g.Add(x, y), 0.5) - 1)
end

function WORKS.chain16()
  local y = x
  for _ = 1, 4 do
    y = g.Sigmoid(g.Mul(y, 1.1)) + g.Tanh(y)
  end
  return y
end

function WORKS.softmax()
  return g.Softmax(x)
end

function WORKS.layer_norm()
  local y = g.input("y", dtype, { rows, columns })
  return g.LayerNormalization(x + y, g.weight { columns }, g.weight { columns })
end

function WORKS.bias_gelu()
  return g.Gelu(x + g.weight { columns })
end

function WORKS.transpose()
  return g.Relu(g.Transpose(x))
end

function WORKS.columns()
  return g.ReduceSum(x, g.constant { 0 })
end

function WORKS.product()
  return g.Relu(g.MatMul(x, g.weight { columns, columns }) + g.weight { columns })
end

-- Rows are tokens, of sequences of `length`; heads have 64 columns.
local length = math.min(options.length or 128, rows)
local heads = columns // 64

local function sequences(value)
  return g.Reshape(value, { rows // length, length, columns })
end

function WORKS.attention()
  local k, v = g.input("k", dtype, { rows, columns }), g.input("v", dtype, { rows, columns })
  return g.Attention(sequences(x), sequences(k), sequences(v),
    { q_num_heads = heads, kv_num_heads = heads, is_causal = options.causal or 0 })
end

-- The same as products and a softmax, with the heads apart already.
function WORKS.attention_apart()
  local k, v = g.input("k", dtype, { rows, columns }), g.input("v", dtype, { rows, columns })
  local function split(value)
    return g.Reshape(value, { rows // length, heads, length, 64 })
  end
  local scores = g.MatMul(split(x), g.Transpose(split(k), { perm = { 0, 1, 3, 2 } }))
  return g.MatMul(g.Softmax(g.Mul(scores, g.constant(0.125, dtype))), split(v))
end

g.output("z", WORKS[work]())

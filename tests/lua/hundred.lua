-- SPDX-License-Identifier: Apache-2.0
-- A hundred rules as a large rule file would have them, for the time that matching takes: products
-- with what follows them, activations, norms and attention as exporters spell them, views, groups.

local function near(value)
  return constant { value = value, tolerance = 1e-3 }
end
local function scalar()
  return constant { scalar = true }
end

local function silu(x)
  return op { "Mul", inputs = { x, op { "Sigmoid", inputs = { x } } } }
end

local function half_times(x, t)
  return oneof {
    op { "Mul", inputs = { op { "Mul", inputs = { x, t } }, 0.5 } },
    op { "Mul", inputs = { op { "Mul", inputs = { x, 0.5 } }, t } },
    op { "Mul", inputs = { x, op { "Mul", inputs = { t, 0.5 } } } },
  }
end

local function gelu(x)
  local argument = oneof {
    op { "Div", inputs = { A = x, B = near(1.41421356) } },
    op { "Mul", inputs = { x, near(0.70710678) } },
  }
  return half_times(x, op { "Add", inputs = { op { "Erf", inputs = { argument } }, 1 } })
end

local function gelu_tanh(x)
  local cube = oneof {
    op { "Pow", inputs = { X = x, Y = 3 } },
    op { "Mul", inputs = { op { "Mul", inputs = { x, x } }, x } },
  }
  local inner = op { "Add", inputs = { x, op { "Mul", inputs = { cube, near(0.044715) } } } }
  local tanh = op { "Tanh", inputs = { op { "Mul", inputs = { inner, near(0.79788456) } } } }
  return half_times(x, op { "Add", inputs = { tanh, 1 } })
end

-- Layer norm, or RMS norm where nothing is subtracted.
local function norm(centres)
  local x = any "x"
  local c = x
  if centres then
    c = op { "Sub", inputs = { A = x, B = op { "ReduceMean", inputs = { data = x } } } }
  end
  local square = oneof {
    op { "Pow", inputs = { X = c, Y = 2 } },
    op { "Mul", inputs = { c, c } },
  }
  local mean = op { "ReduceMean", inputs = { data = square } }
  local deviation = op { "Sqrt", inputs = { op { "Add", inputs = { mean, scalar() } } } }
  local quotient = oneof {
    op { "Div", inputs = { A = c, B = deviation } },
    op { "Mul", inputs = { c, op { "Reciprocal", inputs = { deviation } } } },
  }
  return quotient
    >> maybe(op { "Mul", inputs = { constant "gamma" } })
    >> maybe(op { "Add", inputs = { constant "beta" } })
end

local function softmax()
  local x = any "x"
  local shifted = op { "Sub", inputs = { A = x, B = op { "ReduceMax", inputs = { data = x } } } }
  local e = op { "Exp", inputs = { shifted } }
  return op { "Div", inputs = { A = e, B = op { "ReduceSum", inputs = { data = e } } } }
end

local function attention(scale, mask)
  local scores = op { "MatMul", as = "scores" } >> scale
  if mask then
    scores = scores >> op { "Add", inputs = { any "mask" } }
  end
  return scores >> op "Softmax" >> op { "MatMul", as = "context" }
end

local rules, count = { name = "hundred", backend = "cpu" }, 0
local function add(spec)
  if count < 100 then
    count = count + 1
    rules[count] = fuse("r" .. count)(spec)
  end
end

for _, scale in ipairs {
  op { "Div", inputs = { B = scalar() } },
  op { "Mul", inputs = { scalar() } },
  op { "Mul", inputs = { any "scale" } },
} do
  add { pattern = attention(scale, true), priority = 9 }
  add { pattern = attention(scale, false), priority = 8 }
end
add { pattern = norm(true), priority = 7 }
add { pattern = norm(false), priority = 7 }
add { pattern = softmax(), priority = 7 }

for _, product in ipairs { "Conv", "Gemm", "MatMul", "ConvTranspose" } do
  local function base()
    return op { product, as = "product" } >> maybe(op "BatchNormalization") >> maybe(op "Add")
  end
  for _, activation in ipairs { gelu, gelu_tanh, silu } do
    add { pattern = base() >> activation, priority = 6 }
  end
  for _, activation in ipairs {
    "Relu", "Clip", "LeakyRelu", "Sigmoid", "HardSwish", "Tanh", "Elu", "Softplus", "Mish", "Gelu",
  } do
    add { pattern = base() >> op { activation, as = "act" }, priority = 5 }
  end
  add {
    pattern = base() >> op { "Mul", inputs = { any "factor" } }
      >> repeated(op { { "Add", "Mul", "Sub", "Div" } }, 1, 6),
  }
  add { pattern = base() >> op "Reshape" >> maybe(op "Transpose") }
end

for _, activation in ipairs { gelu, gelu_tanh, silu } do
  add { pattern = any "x" >> activation, priority = 4 }
end
add {
  pattern = op {
    "MatMul", shape = { "B", "T", "C" }, where = "C % 16 == 0", inputs = { B = constant "w" },
  } >> op { "Add", inputs = { constant "b" } },
}
add { pattern = op "Add" >> op "LayerNormalization" }

local shared = any "x"
local function projection(name)
  return op { "MatMul", as = name, inputs = { A = shared, B = constant() } }
end
add { pattern = group { projection "q", projection "k", projection "v" } }
add { pattern = op { "Concat", inputs = variadic("Slice", 2) } }
add { pattern = op { "Concat", inputs = variadic("Unsqueeze", 2) } >> op "Reshape" }
add { pattern = op "Reshape" >> op "Transpose" >> op "Reshape" }
add { pattern = op "Transpose" >> op { "Transpose", attrs = { perm = { 0, 2, 1, 3 } } } }
add { pattern = op "Pad" >> op { { "Conv", "AveragePool" } } }
add {
  pattern = repeated(op { { "Add", "Mul", "Sub", "Div", "Relu", "Sigmoid", "Erf" } }, 2, 12),
  priority = -1,
}

for _, name in ipairs {
  "GlobalAveragePool", "AveragePool", "MaxPool", "ReduceMean", "ReduceSum", "ReduceMax",
} do
  add { pattern = op(name) >> repeated(op { { "Add", "Mul", "Relu" } }, 1, 4) }
  add { pattern = op(name) >> op "Flatten" >> maybe(op "Gemm") }
end
for _, name in ipairs {
  "Softmax", "LogSoftmax", "Gather", "Cast", "Slice", "Unsqueeze", "Shape", "Split", "Pad",
  "Expand", "Where",
} do
  add { pattern = op(name) >> op { { "Add", "Mul", "Sub" }, inputs = { scalar() } } }
end
while count < 100 do
  local last = op { "Concat", attrs = { axis = count % 4 } }
  add { pattern = op { "Slice", as = "slice" } >> op "Slice" >> last }
end

return ruleset(rules)

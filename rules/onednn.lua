-- SPDX-License-Identifier: Apache-2.0
-- All that oneDNN computes in one kernel: a convolution, matrix product, pooling or reduction with
-- what follows it pointwise; activations and layer normalization as exporters spell them; chains of
-- pointwise operators. A region holds whatever the backend supports, so that layouts are oneDNN's
-- choice throughout.
--
-- Rules only propose: the backend looks at each fusion and refuses, with a reason, what it cannot
-- express; then the next shorter match is tried.

-- ---- parts ----

local product = op { { "Conv", "ConvTranspose", "Gemm", "MatMul" }, as = "product" }
local primitive = op {
  {
    "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "Resize",
    "ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
    "ReduceSumSquare",
  },
  as = "primitive",
}

-- What stands before a kernel and becomes a part of it: zeros around the input of a convolution or
-- an average, scalar factors of a matrix product's inputs.
local function scale()
  return oneof {
    op { "Mul", inputs = { constant { scalar = true } } },
    op { "Div", inputs = { B = constant { scalar = true } } },
  }
end
local padded = op { "Pad", as = "pad" } >> op { { "Conv", "AveragePool" }, as = "product" }
local scaled = scale() >> op { { "MatMul", "Gemm" }, as = "product" }
local scaled_twice = op { "MatMul", as = "product", inputs = { A = scale(), B = scale() } }

local function norm()
  return op { "BatchNormalization", attrs = { training_mode = 0 } }
end

-- One operator that becomes a post-op of the kernel before it. Operands from elsewhere are read by
-- the kernel too (binary post-ops).
local POINTWISE = {
  "Abs", "Add", "BatchNormalization", "Celu", "Clip", "Div", "Elu", "Exp", "Gelu", "HardSigmoid",
  "HardSwish", "LeakyRelu", "Max", "Min", "Mish", "Mul", "Neg", "Pow", "Reciprocal", "Relu",
  "Round", "Selu", "Sigmoid", "Softplus", "Sqrt", "Sub", "Sum", "Tanh",
}
local function step()
  return op { POINTWISE }
end

-- ---- activations as exporters spell them: functions of a pattern, which they read twice ----

-- x * sigmoid(x)
local function silu(x)
  return op { "Mul", as = "act", inputs = { x, op { "Sigmoid", inputs = { x } } } }
end

-- x * relu6(x + 3) / 6, or x * hardsigmoid(x)
local function hard_swish(x)
  local ramp = op { "Clip", inputs = { input = op { "Add", inputs = { x, 3 } }, min = 0, max = 6 } }
  return oneof {
    op { "Mul", as = "act", inputs = { x, op { "HardSigmoid", inputs = { x } } } },
    op { "Div", as = "act", inputs = { A = op { "Mul", inputs = { x, ramp } }, B = 6 } },
    op { "Mul", as = "act", inputs = { x, op { "Div", inputs = { A = ramp, B = 6 } } } },
  }
end

-- Factors that make up 0.5 * x * t, in the orders that occur.
local function half_times(x, t)
  return oneof {
    op { "Mul", as = "act", inputs = { op { "Mul", inputs = { x, t } }, 0.5 } },
    op { "Mul", as = "act", inputs = { op { "Mul", inputs = { x, 0.5 } }, t } },
    op { "Mul", as = "act", inputs = { x, op { "Mul", inputs = { t, 0.5 } } } },
  }
end

-- 0.5 * x * (1 + erf(x / sqrt(2)))
local function gelu_erf(x)
  local argument = oneof {
    op { "Div", inputs = { A = x, B = constant { value = 1.41421356, tolerance = 1e-3 } } },
    op { "Mul", inputs = { x, constant { value = 0.70710678, tolerance = 1e-3 } } },
  }
  return half_times(x, op { "Add", inputs = { op { "Erf", inputs = { argument } }, 1 } })
end

-- 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
local function gelu_tanh(x)
  local cubic = constant { value = 0.044715, tolerance = 1e-5 }
  local root = constant { value = 0.79788456, tolerance = 1e-4 }
  local cube = oneof {
    op { "Pow", inputs = { X = x, Y = 3 } },
    op { "Mul", inputs = { op { "Mul", inputs = { x, x } }, x } },
  }
  local inner = op { "Add", inputs = { x, op { "Mul", inputs = { cube, cubic } } } }
  local tanh = op { "Tanh", inputs = { op { "Mul", inputs = { inner, root } } } }
  return half_times(x, op { "Add", inputs = { tanh, 1 } })
end

-- (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * scale + shift, over the last dimension.
local function layer_norm()
  local x = any "x"
  local centred = op { "Sub", as = "centred",
    inputs = { A = x, B = op { "ReduceMean", inputs = { data = x } } } }
  local square = oneof {
    op { "Pow", inputs = { X = centred, Y = 2 } },
    op { "Mul", inputs = { centred, centred } },
  }
  local variance = op { "ReduceMean", as = "variance", inputs = { data = square } }
  local deviation = op { "Sqrt",
    inputs = { op { "Add", inputs = { variance, constant { scalar = true } } } } }
  local quotient = oneof {
    op { "Div", inputs = { A = centred, B = deviation } },
    op { "Mul", inputs = { centred, op { "Reciprocal", inputs = { deviation } } } },
  }
  return quotient
    >> maybe(op { "Mul", as = "scale", inputs = { constant "gamma" } })
    >> maybe(op { "Add", as = "shift", inputs = { constant "beta" } })
end

-- What stands before an activation that reads its input more than once.
local function base()
  return product >> maybe(norm()) >> maybe(op "Add")
end

-- What only moves data is not worth a region of its own.
local MOVES = {}
for _, name in ipairs {
  "Concat", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Slice", "Split", "Squeeze",
  "Transpose", "Unsqueeze",
} do
  MOVES[name] = true
end

local function computes(sub)
  for _, node in ipairs(sub.nodes) do
    if not MOVES[node.op] then
      return true
    end
  end
  return false, "moves data, computes nothing"
end

local regions = option.boolean(true, "put all that the backend supports into regions")
local chains = option.boolean(true, "fuse chains of pointwise operators that follow no primitive")

return ruleset {
  name = "onednn",
  doc = "Everything that oneDNN fuses and runs.",
  backend = "onednn",
  options = { regions = regions, chains = chains },

  fuse "layer_norm" {
    doc = "Layer normalization out of means, squares and a root.",
    pattern = layer_norm(),
  },

  fuse "product_gelu" {
    doc = "A product with gelu (by erf or tanh) spelled out, and what follows.",
    pattern = oneof { base() >> gelu_erf, base() >> gelu_tanh } >> maybe(step()),
  },

  fuse "product_swish" {
    doc = "A product with SiLU or hard-swish spelled out, and what follows.",
    pattern = oneof { base() >> silu, base() >> hard_swish } >> maybe(step()),
  },

  fuse "product" {
    doc = "A convolution or product with batch norm, bias, sum, activations, binary post-ops.",
    pattern = oneof {
      oneof { scaled_twice, scaled, padded } >> maybe(repeated { step(), max = 12 }),
      product >> repeated { step(), max = 12 },
    },
  },

  fuse "primitive" {
    doc = "A pooling or reduction with what follows it pointwise.",
    pattern = primitive >> repeated { step(), max = 12 },
  },

  fuse "activation" {
    doc = "Gelu, SiLU or hard-swish alone, spelled out.",
    pattern = oneof {
      any "x" >> gelu_erf, any "x" >> gelu_tanh, any "x" >> silu, any "x" >> hard_swish,
    },
    priority = -1,
  },

  fuse "chain" {
    doc = "Pointwise operators in a row.",
    pattern = step() >> repeated { step(), max = 12 },
    enabled = chains,
    priority = -2,
  },

  region "everything" {
    doc = "All that the backend supports; fusions come along whole.",
    enabled = regions,
    review = computes,
  },
}

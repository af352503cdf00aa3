-- SPDX-License-Identifier: Apache-2.0
-- Pointwise operators that become post-ops of the kernel before them in oneDNN.

local POINTWISE = {
  "Abs", "Add", "BatchNormalization", "Celu", "Clip", "Div", "Elu", "Exp", "Gelu", "HardSigmoid",
  "HardSwish", "LeakyRelu", "Max", "Min", "Mish", "Mul", "Neg", "Pow", "Reciprocal", "Relu",
  "Round", "Selu", "Sigmoid", "Softplus", "Sqrt", "Sub", "Sum", "Swish", "Tanh",
}

local M = { operators = POINTWISE }

---One operator. The kernel also reads its other operands (binary post-ops).
function M.step()
  return op { POINTWISE }
end

return M

-- SPDX-License-Identifier: Apache-2.0
-- Weights of matrix products that are stored in 16 bits: a Cast of a constant to float32, which
-- stays a node of the graph, as DequantizeLinear of integers does, until a session is made.

local M = {}

local SHORT = { float16 = true, bfloat16 = true }

---Is the value such a Cast?
function M.is_cast(value)
  local node = value.producer
  return node ~= nil and node.op == "Cast" and value.dtype == "float32"
    and node.inputs[1].is_constant and SHORT[node.inputs[1].dtype] == true
end

---Pattern of such a Cast of a matrix.
function M.cast()
  return op { "Cast", dtype = "float32",
    inputs = { constant { rank = 2, dtype = { "float16", "bfloat16" } } } }
end

return M

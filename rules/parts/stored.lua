-- SPDX-License-Identifier: Apache-2.0
-- Weights of matrix products as they are stored: in 16 bits, as a Cast of a constant to float32,
-- or as integers, DequantizeLinear of a constant or of UnpackBits of one. These nodes stay in the
-- graph until a session is made.

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

---Pattern of DequantizeLinear of constant integers, perhaps packed ones.
function M.integers()
  local packed = op { "UnpackBits", inputs = { constant() } }
  return op { "DequantizeLinear", as = "numbers", inputs = { x = oneof { packed, constant() } } }
end

return M

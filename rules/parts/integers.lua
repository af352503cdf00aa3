-- SPDX-License-Identifier: Apache-2.0
-- Values that are made of 8-bit integers.

local M = {}

---Operators that only move elements of their first input.
M.MOVES = {
  Flatten = true, MaxPool = true, Reshape = true, Squeeze = true, Transpose = true,
  Unsqueeze = true,
}

---Is the value made of 8-bit integers, perhaps through operators that only move its elements?
function M.are_in(value)
  local producer = value.producer
  while producer and M.MOVES[producer.op] do
    producer = producer.inputs[1].producer
  end
  if producer and producer.op == "Concat" then
    for k = 1, #producer.inputs do
      if not M.are_in(producer.inputs[k]) then
        return false
      end
    end
    return true
  end
  return producer ~= nil and producer.op == "DequantizeLinear"
end

return M

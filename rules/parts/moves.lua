-- SPDX-License-Identifier: Apache-2.0
-- A region that only moves data does not pay for new layouts or for copies to a device.

local MOVES = {}
for _, name in ipairs {
  "After", "CenterCropPad", "Concat", "Expand", "EyeLike", "Flatten", "Gather", "GatherElements",
  "GatherND", "Identity", "OneHot", "Pad", "Reshape", "ReverseSequence", "ScatterElements",
  "ScatterND", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Trilu", "Unsqueeze",
} do
  MOVES[name] = true
end

local M = {}

---Does some node of the region compute? If not, also the reason.
function M.computes(sub)
  for _, node in ipairs(sub.nodes) do
    if not MOVES[node.op] then
      return true
    end
  end
  return false, "moves data, computes nothing"
end

return M

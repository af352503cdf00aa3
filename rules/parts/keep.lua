-- SPDX-License-Identifier: Apache-2.0
-- The option `keep`: operators ("Softmax"), names of nodes, or names with `*` for any text.

local M = {}

-- `text` as a pattern in which only * is special.
local function wildcard(text)
  return "^" .. text:gsub("[%^%$%(%)%%%.%[%]%+%-%?]", "%%%0"):gsub("%*", ".*") .. "$"
end

---A function that tells for a node whether one of the texts of `keep` means it: nil, or the text in
---the form without `*`.
function M.matcher(keep)
  local patterns = {}
  for k, text in ipairs(keep) do
    patterns[k] = wildcard(text)
  end
  return function(node)
    for k, text in ipairs(keep) do
      local name = node.op == text and text or node.name:find(patterns[k]) and node.name
      if name and name ~= "" then
        return name
      end
    end
    return nil
  end
end

return M

-- SPDX-License-Identifier: Apache-2.0
-- A selector that takes everything, and whose filter drops the nodes named in `drop`.
local drop = option.list({}, "names of nodes that the filter drops")

return ruleset {
  name = "pick",
  options = { drop = drop },
  region "picked" {
    selector = function(_, options)
      local dropped = {}
      for _, name in ipairs(options.drop) do
        dropped[name] = true
      end
      local function yes()
        return true
      end
      return {
        select = function(node)
          return not dropped[node.name]
        end,
        select_input = yes,
        select_output = yes,
        filter = function(nodes)
          local kept = {}
          for _, node in ipairs(nodes) do
            if not dropped[node.name] then
              kept[#kept + 1] = node
            end
          end
          return kept
        end,
      }
    end,
  },
}

-- SPDX-License-Identifier: Apache-2.0
-- Groups by the node's name, for graphs that are about structure only: a name that ends in _0, _1,
-- ... is supported as that group, in _any as any group, and every other name is not.
return ruleset {
  name = "by_name",
  region "group" {
    supported = function(node)
      if node.name:sub(-4) == "_any" then
        return -1
      end
      local group = node.name:match("_(%d)$")
      return group ~= nil and tonumber(group)
    end,
  },
}

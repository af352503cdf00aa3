-- SPDX-License-Identifier: Apache-2.0
-- supportedOps with options, reviewSubgraph that rejects, trims or attaches; named rulesets.
local verdict = option.enum("accept", "what review does", { "accept", "reject", "trim" })
local least = option.number(0, "FLOPs of a region")

local function is_wanted(node)
  return node.op == "Exp" or node.op == "Log"
end

return ruleset {
  name = "partitioner",
  options = { verdict = verdict, least = least },

  ruleset "first" {
    fuse "root" {
      pattern = op "Abs" >> op "Sqrt",
      attributes = { digits = 12, scales = { 0.5, 2 } },
    },
    region "first" {
      supported = is_wanted,
      min_flops = least,
      review = function(sub, options)
        if options.verdict == "reject" then
          return false, "rejected on request"
        elseif options.verdict == "trim" then
          return { sub.nodes[1] }, "one is enough", { myKey = "myVal" }
        end
        local about = { myKey = "myVal", nodes = sub.node_count, accurate = true }
        about.names = { "a", "b" }
        return true, about
      end,
    },
  },
  ruleset "second" {
    region "second" { ops = { "Add", "Exp", "Log" } },
  },
}

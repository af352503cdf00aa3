-- SPDX-License-Identifier: Apache-2.0
local by = option.enum("layers", "where stages end", { "layers", "products", "between", "odd",
  "gap" })
local grows = option.boolean(false, "fusions and regions grow, from one node to the next")

local STAGES = {
  layers = function(node) return node.name:match("[34]$") and 1 end,
  products = function(node) return node.op == "MatMul" and tonumber(node.name:match("%d")) - 1 end,
  between = function(node) return node.name == "relu2" and 1 end,
  odd = function(node) return node.index % 2 end,
  gap = function(node) return node.name == "relu4" and 2 end,
}

return ruleset {
  name = "staged",
  options = { by = by, grows = grows },

  stage "cut" {
    of = function(node, options) return STAGES[options.by](node) end,
  },

  fuse "grown" { supported = function() return 7 end, enabled = grows },

  fuse "product" { pattern = op { "MatMul", as = "product" } >> op { "Relu", as = "act" } },

  region "searched" {
    selector = function()
      local function yes() return true end
      return { select = yes, select_input = yes, select_output = yes }
    end,
    enabled = grows,
  },

  region "all" { supported = function() return true end },
}

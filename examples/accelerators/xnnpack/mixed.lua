-- SPDX-License-Identifier: Apache-2.0
-- Two libraries in one graph: XNNPACK takes depthwise convolutions with what belongs to them,
-- oneDNN all else. Each region converts at its border: this shows that it works, not that it is
-- fast.

local bounded = op { { "Relu", "Clip" }, as = "act" }

local function norm()
  return op { "BatchNormalization", attrs = { training_mode = 0 } }
end

local function is_depthwise(node)
  return node.op == "Conv" and (node.attrs.group or 1) > 1
end

return ruleset {
  name = "mixed",

  strategy "depthwise" {
    backend = "xnnpack",
    fuse "depthwise_act" {
      doc = "A depthwise convolution, batch norm and bounds.",
      pattern = op { "Conv", as = "conv" } >> maybe(norm()) >> maybe(bounded),
      where = function(m)
        return is_depthwise(m.conv), "not a depthwise convolution"
      end,
    },
    region "depthwise" {
      doc = "Depthwise convolutions, a region each.",
      supported = is_depthwise,
    },
  },
  strategy "rest" {
    backend = "onednn",
    fuse "conv_act" {
      doc = "Other convolutions, batch norm and bounds.",
      pattern = op "Conv" >> maybe(norm()) >> maybe(bounded),
    },
    region "rest" {
      doc = "Everything else that oneDNN supports.",
    },
  },
}

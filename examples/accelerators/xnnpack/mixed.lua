-- SPDX-License-Identifier: Apache-2.0
-- Two libraries in one graph: XNNPACK takes depthwise convolutions with what belongs to them (with
-- the option, those of one pixel too), oneDNN all else. Each region converts at its border: this
-- shows that it works, not that it is fast.

local bounded = op { { "Relu", "Clip" }, as = "act" }

local function norm()
  return op { "BatchNormalization", attrs = { training_mode = 0 } }
end

local one_pixel = option.boolean(false, "also convolutions with kernels of one pixel")

local function is_wanted(node, options)
  if node.op ~= "Conv" then
    return false
  end
  local kernel = node.attrs.kernel_shape
  local is_small = options.one_pixel and kernel and kernel[1] * (kernel[2] or 2) == 1
  return (node.attrs.group or 1) > 1 or is_small == true
end

return ruleset {
  name = "mixed",
  options = { one_pixel = one_pixel },

  ruleset "xnnpack" {
    backend = "xnnpack",
    fuse "its_act" {
      doc = "A convolution for XNNPACK, batch norm and bounds.",
      pattern = op { "Conv", as = "conv" } >> maybe(norm()) >> maybe(bounded),
      where = function(m, options)
        return is_wanted(m.conv, options), "a convolution for oneDNN"
      end,
    },
    region "its_part" {
      doc = "These convolutions, in regions of their own.",
      supported = is_wanted,
    },
  },
  ruleset "onednn" {
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

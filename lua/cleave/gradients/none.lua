-- SPDX-License-Identifier: Apache-2.0
-- Operators that carry no gradient, and why.

local NONE = {
  { "its results are truth values", "And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN",
    "Less", "LessOrEqual", "Not", "Or", "Xor" },
  { "its results are integers", "ArgMax", "ArgMin", "BitShift", "BitwiseAnd", "BitwiseNot",
    "BitwiseOr", "BitwiseXor", "ConvInteger", "MatMulInteger", "NonMaxSuppression", "NonZero",
    "QLinearConv", "QLinearMatMul", "Shape", "Size", "UnpackBits" },
  { "it rounds to integers", "DynamicQuantizeLinear", "QuantizeLinear" },
  { "its result depends on sizes and attributes alone", "BlackmanWindow", "Constant",
    "ConstantOfShape", "EyeLike", "HammingWindow", "HannWindow", "MelWeightMatrix" },
  { "its result is random", "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike",
    "RandomUniform", "RandomUniformLike" },
  { "it is constant between steps", "Ceil", "Floor", "Hardmax", "Round", "Sign" },
}

local rules = {}
for _, group in ipairs(NONE) do
  for k = 2, #group do
    rules[#rules + 1] = gradient(group[k]) { false, doc = group[1] }
  end
end
return rules

-- SPDX-License-Identifier: Apache-2.0
-- What a fusion must not swallow: an interior value that is an output or has another reader, a sum
-- of two convolutions, a batch norm that shares its input.
local function conv(x, name)
  return g.Conv(x, g.weight { 4, 4, 1, 1, name = name .. ".w" }, { name = name })
end
local x = g.input("x", "float32", { 1, 4, 8, 8 })
local head = conv(x, "conv_is_output")
g.output("head", head)
g.output("after_head", g.Relu(head, { name = "relu_of_output" }))
local shared = conv(x, "conv_has_two_readers")
g.output("left", g.Relu(shared, { name = "first_reader" }))
g.output("right", g.Sigmoid(shared, { name = "second_reader" }))
local a, b = conv(x, "left_conv"), conv(x, "right_conv")
g.output("sum", g.Relu(g.Add(a, b, { name = "sum_of_two" }), { name = "relu_of_sum" }))
local twice = conv(x, "conv_added_to_itself")
g.output("double", g.Add(twice, twice, { name = "itself" }))
local norm = conv(x, "conv_before_norm")
g.output("norm", g.batch_norm(norm, { name = "norm" }))
g.output("pool", g.AveragePool(norm, { name = "pool", kernel_shape = { 2, 2 } }))
g.output("residual", g.Relu(g.Add(x, conv(x, "conv_plus_input"), { name = "plus_input" }),
  { name = "relu_at_the_end" }))

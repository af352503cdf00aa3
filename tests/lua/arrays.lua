-- SPDX-License-Identifier: Apache-2.0
-- What `cleave script` must do, for any backend (tests/scripts/runs/test_script.sh); prints
-- "N checks".
local checks = 0

local function same(found, expected, what)
  checks = checks + 1
  if type(found) == "table" and type(expected) == "table" then
    assert(#found == #expected, ("%s: %d entries, expected %d"):format(what, #found, #expected))
    for k = 1, #expected do
      same(found[k], expected[k], what .. "[" .. k .. "]")
    end
    return
  end
  local near = type(found) == "number" and type(expected) == "number"
    and math.abs(found - expected) <= 1e-6 * math.max(1, math.abs(expected))
  if found ~= expected and not near then
    error(("%s: %s, expected %s"):format(what, tostring(found), tostring(expected)), 2)
  end
end

local function fails(pattern, body, ...)
  checks = checks + 1
  local ok, message = pcall(body, ...)
  assert(not ok, "expected an error like: " .. pattern)
  assert(tostring(message):find(pattern),
    ("expected '%s', found '%s'"):format(pattern, tostring(message)))
end

-- Arrays.
local x = nd.array({ { 1, -2, 0.5 }, { 3, 4, -1 } })
same(x:shape(), { 2, 3 }, "shape")
same(x:dtype(), "float32", "dtype")
same(x:count(), 6, "count")
same(x:table(), { { 1, -2, 0.5 }, { 3, 4, -1 } }, "table")
same(nd.array({ 1, 2 }):dtype(), "int64", "integers")
same(nd.array({ true, false }):table(), { true, false }, "booleans")
same(nd.array(7, "float64"):item(), 7, "scalar")
same(#nd.array(7):shape(), 0, "shape of a scalar")
same(nd.zeros({ 2, 2 }, "int32"):elements(), { 0, 0, 0, 0 }, "zeros")
same(nd.full({ 3 }, 2.5):elements(), { 2.5, 2.5, 2.5 }, "full")
same(nd.ones({}):item(), 1, "a scalar one")
same(tostring(x), "float32[2,3] { 1, -2, 0.5, 3, 4, -1 }", "tostring")
same(tostring(nd.zeros { 100 }), "float32[100] { 0, 0, 0, 0, 0, 0, 0, 0, ... }", "tostring of many")
same(nd.is_array(x) and not nd.is_array(1) and not nd.is_array {}, true, "is_array")

-- Files.
local path = os.tmpname()
x:save(path)
same(nd.load(path):table(), x:table(), "save and load")
os.remove(path)
fails("No such file", nd.load, path)

-- Operators, with numbers and tables as inputs, attributes, inputs by name, several outputs.
same(nd.Relu(x):elements(), { 1, 0, 0.5, 3, 4, 0 }, "Relu")
same(nd.LeakyRelu(x, { alpha = 0.5 }):elements(), { 1, -1, 0.5, 3, 4, -0.5 }, "LeakyRelu")
same((2 * x + 1 - x / 4):elements(), { 2.75, -2.5, 1.875, 6.25, 8, -0.75 }, "arithmetic")
same((-x ^ 2):elements(), { -1, -4, -0.25, -9, -16, -1 }, "power and minus")
same(nd.Clip(x, nil, 1):elements(), { 1, -2, 0.5, 1, 1, -1 }, "an input left out")
same(nd.Clip(x, { max = 1 }):elements(), { 1, -2, 0.5, 1, 1, -1 }, "an input by name")
local a, b, c = nd.Split(x, { axis = 1, num_outputs = 3 })
same(b:elements(), { -2, 4 }, "Split")
same(nd.Concat(a, b, c, { axis = 1 }):table(), x:table(), "Concat")
same(nd.ReduceSum(x, { 1 }, { keepdims = 0 }):elements(), { -0.5, 6 }, "ReduceSum")
local function transpose(array)
  return nd.Transpose(array, { perm = { 1, 0 } })
end
same(nd.MatMul(x, transpose(x)):table(), { { 5.25, -5.5 }, { -5.5, 26 } }, "MatMul")
same(nd.Cast(x, { to = "int32" }):dtype(), "int32", "Cast")

-- Shapes by content, and by a run.
same(nd.Reshape(x, { 3, -1 }):shape(), { 3, 2 }, "Reshape")
same(nd.Slice(x, { 0, 1 }, { 2, 3 }):elements(), { -2, 0.5, 4, -1 }, "Slice")
same(nd.NonZero(nd.array { 0, 5, 0, 6 }):elements(), { 1, 3 }, "NonZero")

-- A loop that looks at values.
local root = nd.array(1, "float64")
local steps = 0
repeat
  local before = root
  root = (root + 2 / root) * 0.5
  steps = steps + 1
until math.abs((root - before):item()) < 1e-12
same(root:item(), math.sqrt(2), "Newton's method")

-- Mistakes.
fails("arrays.lua:%d+: .*do not broadcast", function() return nd.Add(x, nd.array { 1.5, 2 }) end)
fails("did you mean 'Relu'", function() return nd.Rely(x) end)
fails("no attribute or input 'alpha'", function() return nd.Relu(x, { alpha = 1 }) end)
fails("expected an array, found a string", function() return nd.Relu("x") end)
fails("an array has no method 'shapes'", function() return x:shapes() end)
fails("array of one element, found 6", function() return x:item() end)
fails("dtype 'flaot' is unknown", nd.array, { 1 }, "flaot")
local lost = nd.Gather(x, nd.array { 9 })
fails("Gather at arrays.lua:94.*9", function() return lost:elements() end)
fails("was not computed", function() return lost:elements() end)

-- Compiled functions.
local traces = 0
local weights = nd.array({ { 1, 2 }, { 0, 1 }, { -1, 0 } }, "float32")
local layer = nd.hybrid(function(u) return nd.Relu(nd.MatMul(u, weights) + 0.5) end)
local function network(u, v)
  traces = traces + 1
  local y = layer(u) * v
  return y, nd.Softmax(y, { axis = -1 }), -y
end
local compiled = nd.hybrid(network)
for _, rows in ipairs { 2, 1, 2 } do
  local u = nd.Slice(x, { 0 }, { rows })
  local two = nd.array(2.0, "float32")
  local eager, found = { network(u, two) }, { compiled(u, two) }
  same(#found, 3, "results of a compiled function")
  for k = 1, 3 do
    same(found[k]:table(), eager[k]:table(), "compiled function")
  end
end
same(traces, 3 + 2, "traces") -- three calls, and two shapes
local widen = nd.hybrid(function(u)
  return nd.Unsqueeze(nd.Cast(u, { to = 1 }), nd.array { -1 })
end)
same(widen(nd.array({ true, false }, "bool")):table(), { { 1 }, { 0 } }, "a function of a vector")
same(widen(nd.array({ { true }, { false } }, "bool")):table(), { { { 1 } }, { { 0 } } },
  "the same of a matrix")
local find = nd.hybrid(function(u) return nd.NonZero(u) end)
same(find(nd.array { 0, 3, 0 }):elements(), { 1 }, "shape by a run")
fails("expected an array, found 3", compiled, x, 3)
fails("a stranger", nd.hybrid(function() error("a stranger") end), x)
same(layer(x):shape(), { 2, 2 }, "after a failed trace")

-- Gradients, also of a loop that trains.
local function loss(u, v)
  local error = nd.Sub(nd.MatMul(u, v), 1)
  return nd.ReduceMean(error * error, { keepdims = 0 }), error
end
local value, difference, du, dv = nd.gradient(loss)(x, weights)
same(value:item(), loss(x, weights):item(), "value of a function with gradients")
same(difference:shape(), { 2, 2 }, "another result")
same(du:table(), nd.MatMul(difference * 0.5, transpose(weights)):table(), "gradient of u")
same(dv:table(), nd.MatMul(transpose(x), difference * 0.5):table(), "gradient of v")
local learned, descend = weights, nd.gradient(loss)
local before = descend(x, learned):item()
for _ = 1, 200 do
  local _, _, _, slope = descend(x, learned)
  learned = learned - 0.05 * slope
end
same(descend(x, learned):item() < 1e-3 and before > 1, true, "descent")
fails("no gradient", nd.gradient(function(u)
  return nd.MaxRoiPool(u, nd.zeros { 1, 5 }, { pooled_shape = { 1, 1 } })
end), nd.ones { 1, 1, 2, 2 })
fails("argument of floating%-point numbers", nd.gradient(function(u) return nd.Neg(u) end),
  nd.array { 1, 2 })

-- Recorded calls: gradients against finite differences, with a number of steps that values decide.
local function random(...)
  return nd.RandomUniform { shape = { ... }, low = 0.5, high = 1.5, dtype = 11, seed = 1.0 }
end
local image, kernel, bias = random(2, 2, 5, 5), random(3, 2, 3, 3), random(3)
local function recorded(k, shift)
  local y = nd.Conv(image, k, shift, { pads = { 1, 1, 1, 1 } })
  local left, right = nd.Split(nd.Softmax(y, { axis = 1 }), { 2, 3 }, { axis = 3 })
  local scale = nd.ReduceMax(shift, { keepdims = 0 })
  while scale:item() < 9 do
    scale = scale * 3
  end
  local sum = nd.ReduceSum(right * right * scale, { 2, 3 }, { keepdims = 0 })
  return nd.ReduceMean(sum, { keepdims = 0 }) + nd.ReduceMean(left * left, { keepdims = 0 }), sum
end
local function by_differences(function_of, array)
  local elements, slopes, step = array:elements(), {}, 1e-5
  local function at(k, distance)
    local moved = table.move(elements, 1, #elements, 1, {})
    moved[k] = moved[k] + distance
    return function_of(nd.Reshape(nd.array(moved, "float64"), array:shape())):item()
  end
  for k = 1, #elements do
    slopes[k] = (at(k, step) - at(k, -step)) / (2 * step)
  end
  return slopes
end
local stranger = nd.ones { 2 }
local function record()
  return nd.record(function()
    return recorded(kernel, bias)
  end, { kernel, stranger, bias, kernel })
end
local total, sums, grads = record()
same(total:item(), recorded(kernel, bias):item(), "result of recorded calls")
same(sums:shape(), { 2, 3 }, "another result of recorded calls")
local function near(found, expected, what)
  for k = 1, #expected do
    local allowed = 1e-7 * (1 + math.abs(expected[k]))
    same(math.abs(found[k] - expected[k]) < allowed, true, what .. "[" .. k .. "]")
  end
end
local along_kernel = by_differences(function(u) return recorded(u, bias) end, kernel)
near(grads[1]:elements(), along_kernel, "kernel")
near(grads[3]:elements(), by_differences(function(u) return recorded(kernel, u) end, bias), "bias")
same(grads[1]:shape(), kernel:shape(), "shape of a gradient")
same(grads[2]:elements(), { 0, 0 }, "gradient of what the result does not depend on")
same(grads[4]:elements(), grads[1]:elements(), "an array that is given twice")
local compiled_before = nd.count().compiled
record()
same(nd.count().compiled, compiled_before, "recorded calls are compiled once")

local function slope(body, array)
  return select(2, nd.record(body, { array }))[1]:elements()
end
local v = nd.array({ 1, 2, 3, 4 }, "float64")
for _, factor in ipairs { 2, 3 } do
  same(slope(function() return v * factor end, v)[1], factor, "numbers are part of the graph")
  local power = nd.array(factor, "float64")
  same(slope(function() return v ^ power end, v)[2], factor * 2 ^ (factor - 1), "an input")
end
local order = nd.array { 2, -1 }
local square = nd.Reshape(v, { 2, 2 })
same(slope(function() return nd.Reshape(v, order) * square end, v), { 1, 2, 3, 4 },
  "a shape by an array")
same(slope(function() return v end, v), { 1, 1, 1, 1 }, "no call at all")
same(slope(function() return v * nd.pause(function() return v * v end) end, v), { 1, 4, 9, 16 },
  "pause")
local double = nd.hybrid(function(u) return u * 2 end)
same(slope(function() return double(v) * v end, v), { 4, 8, 12, 16 }, "a compiled function inside")
local drawn
same(slope(function()
  drawn = nd.RandomNormalLike(v)
  return drawn * v
end, v), drawn:elements(), "random numbers are drawn once")
same(slope(function() return (nd.Dropout(v)) * v end, v), { 2, 4, 6, 8 }, "Dropout in inference")
fails("no gradient for MaxRoiPool", slope, function()
  local rois = nd.zeros({ 1, 5 }, "float64")
  return nd.MaxRoiPool(nd.Reshape(v, { 1, 1, 2, 2 }), rois, { pooled_shape = { 1, 1 } })
end, v)
fails("to return an array first, found 3", nd.record, function() return 3 end, { v })
fails("parameter 2: expected an array of floating%-point numbers, found one of int64", nd.record,
  function() return v end, { v, order })
fails("not inside of a compiled function", nd.hybrid(function()
  return nd.record(record, {})
end), v)
fails("head 2: expected an array of floating%-point numbers, found 3", nd.record,
  function() return v, v end, { v }, { v, 3 })
fails("head 1: expected an array of the dtype and shape", nd.record,
  function() return v end, { v }, { nd.ones({ 2 }, "float64") })

-- Heads: what results are multiplied with before they are summed; several results.
local heads = { nd.array({ 1, 10, 100, 1000 }, "float64"), false }
local by_heads = select(3, nd.record(function() return v * v, v * 3 end, { v }, heads))[1]
same(by_heads:elements(), { 5, 43, 603, 8003 }, "gradients of two results with a head for one")

local by_itself = select(2, nd.record(function() return v * v end, { v }, { v }))[1]
same(by_itself:elements(), { 2, 8, 18, 32 }, "a head that is a parameter")

-- Gradients are calls: of the third order, and along a value between.
local w = nd.array({ 0.5, -1, 2 }, "float64")
local third = select(2, nd.record(function()
  local second = select(2, nd.record(function()
    local first = select(2, nd.record(function() return w * w * nd.Exp(w) end, { w }))[1]
    return first
  end, { w }))[1]
  return second
end, { w }))[1]:elements()
for k, number in ipairs(w:elements()) do
  local expected = (number * number + 6 * number + 6) * math.exp(number)
  same(math.abs(third[k] - expected) < 1e-12 * (1 + math.abs(expected)), true, "third derivative")
end
local penalty, penalized = nd.record(function()
  local y, _, inner = nd.record(function() return recorded(kernel, bias) end, { kernel })
  return y + nd.ReduceSum(inner[1] * inner[1], { keepdims = 0 })
end, { kernel, bias })
same(penalty:item() > recorded(kernel, bias):item(), true, "a penalty on gradients")
local function penalize(k, shift)
  local y, _, inner = nd.record(function() return recorded(k, shift) end, { k })
  return y + nd.ReduceSum(inner[1] * inner[1], { keepdims = 0 })
end
near(penalized[2]:elements(), by_differences(function(u) return penalize(kernel, u) end, bias),
  "bias, of a penalty on gradients")
same(slope(function()
  local u = v * v
  return select(2, nd.record(function() return u * u * v end, { u }))[1]
end, v), { 6, 24, 54, 96 }, "a gradient by a value between")
local along = nd.gradient(function(u) return nd.ReduceSum(u * u * u, { keepdims = 0 }) end)
same(slope(function() return (select(2, along(v))) end, v), { 6, 12, 18, 24 },
  "a compiled gradient inside")
fails("a stranger", nd.record, function() error("a stranger") end, {})
same(slope(function() return v * v end, v), { 2, 4, 6, 8 }, "after a failed function")

nd.wait()
same(nd.count().calls > 50 and nd.count().compiled < nd.count().calls, true, "count")
print(checks .. " checks with " .. (arg[1] or "no argument"))

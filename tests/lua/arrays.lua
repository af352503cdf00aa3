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
fails("no gradient", nd.gradient(function(u) return nd.Det(u) end), nd.ones { 2, 2 })
fails("argument of floating%-point numbers", nd.gradient(function(u) return nd.Neg(u) end),
  nd.array { 1, 2 })

nd.wait()
same(nd.count().calls > 50 and nd.count().compiled < nd.count().calls, true, "count")
print(checks .. " checks with " .. (arg[1] or "no argument"))

local x = g.input('x', 'float32', { 4, 6 })
local k = g.Concat(g.Exp(x, { name = 'a' }), g.Relu(x, { name = 'b' }), g.Relu(x, { name = 'c' }), { axis = 0, name = 'k' })
g.output('y', g.Mul(k, x, { name = 'm' }))

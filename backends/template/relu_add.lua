-- Gives the library what it can run: Relu and Add, in as few pieces as the graph allows.
return ruleset {
  name = "relu_add",
  backend = "template",

  region "everything" {
    doc = "All nodes that the library supports, two or more at a time.",
    min_nodes = 2,
  },

  test "takes a chain of both" {
    graph = function(g, x) return g.Relu(g.Add(g.Relu(x), x)) end,
    expect = { everything = 1 },
    equal = true,
  },

  test "leaves other operators alone" {
    graph = function(g, x) return g.Sigmoid(g.Tanh(x)) end,
    expect_not = { "everything" },
  },
}

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Merges two decoders into one file, as Optimum does (decoder_model_merged.onnx):

    merged.py DECODER FIRST FILE

The input `use_cache_branch` (bool [1]) is the condition of the one node, an If: its then-branch is DECODER, which reads
past_key_values.* (or past_*), its else-branch FIRST with constants of length 0 in their place. Weights are initializers of the
file, once where both have the same; scalars and lists of integers stay in the branches."""
import sys

import onnx
from onnx import helper, numpy_helper
from onnx import TensorProto as types


def is_past(name):
    return name.startswith("past")


def copied(message):
    return type(message).FromString(message.SerializeToString())


def without_past(model):
    """The decoder with constants of length 0 in the place of its past."""
    graph = copied(model).graph
    for info in [info for info in graph.input if is_past(info.name)]:
        dims = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        empty = helper.make_tensor("none", info.type.tensor_type.elem_type, [max(dims[0], 1), dims[1], 0, dims[3]], [])
        name = info.name + ".none"
        graph.node.insert(0, helper.make_node("Constant", [], [name], value=empty))
        for node in graph.node:
            node.input[:] = [name if own == info.name else own for own in node.input]
        graph.input.remove(info)
    return graph


def is_small(tensor):
    return not tensor.dims or (len(tensor.dims) == 1 and tensor.data_type in (types.INT32, types.INT64))


def branch(name, graph, weights):
    """A graph without inputs. `weights`, by their content, are those of the file."""
    new_names = {}
    for tensor in graph.initializer:
        if not is_small(tensor):
            key = tensor.data_type, tuple(tensor.dims), numpy_helper.to_array(tensor).tobytes()
            if key not in weights:
                weights[key] = copied(tensor)
                weights[key].name = f"{tensor.name}_merged_{len(weights)}"
            new_names[tensor.name] = weights[key].name
    nodes = [copied(node) for node in graph.node]
    for node in nodes:
        node.input[:] = [new_names.get(own, own) for own in node.input]
    return helper.make_graph(nodes, name, [], graph.output, [tensor for tensor in graph.initializer if is_small(tensor)])


def merge(decoder, first):
    weights = {}
    graphs = {"with_past": decoder.graph, "no_past": without_past(first)}
    branches = [branch(name, graph, weights) for name, graph in graphs.items()]
    node = helper.make_node("If", ["use_cache_branch"], [info.name for info in decoder.graph.output], "optimum::if",
                            then_branch=branches[0], else_branch=branches[1])
    use_cache = helper.make_tensor_value_info("use_cache_branch", types.BOOL, [1])
    graph = helper.make_graph([node], "merged", [*decoder.graph.input, use_cache], decoder.graph.output, weights.values())
    model = helper.make_model(graph, opset_imports=decoder.opset_import)
    model.ir_version = decoder.ir_version
    return model


if __name__ == "__main__":
    onnx.save(merge(*map(onnx.load, sys.argv[1:3])), sys.argv[3])

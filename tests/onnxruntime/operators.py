#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small models of operators that ONNX Runtime has beside ONNX's, with inputs.

    operators.py FOLDER

Each becomes FOLDER/NAME/model.onnx, with its inputs as NAME.pb and, in `options`, as options of `cleave run`. Names that
begin with "q_" have integers as outputs, which may be off by one where a rounding falls on the other side.
"""
import os
import sys

import numpy
import onnx
from onnx import helper
import onnx.numpy_helper

random = numpy.random.RandomState(7)


def floats(*shape):
    return random.randn(*shape).astype(numpy.float32)


def some_bytes(*shape):
    return random.randint(0, 255, shape).astype(numpy.uint8)


def number(value):
    return numpy.float32(value)


def node(op, inputs, outputs, domain="com.microsoft", **attributes):
    """Names with blanks between them; "-" is one that is left out."""
    names = [["" if name == "-" else name for name in text.split()] for text in (inputs, outputs)]
    return helper.make_node(op, *names, domain=domain, **attributes)


def write(name, nodes, inputs, constants=None, sizes=None, opset=17):
    """`sizes`: names of dimensions that stay open, by input."""
    folder = os.path.join(sys.argv[1], name)
    os.makedirs(folder)
    nodes = nodes if isinstance(nodes, list) else [nodes]
    options = []
    infos = []
    for key, value in inputs.items():
        tensor = onnx.numpy_helper.from_array(numpy.asarray(value), key)
        shape = (sizes or {}).get(key, numpy.shape(value))
        infos.append(helper.make_tensor_value_info(key, tensor.data_type, shape))
        path = os.path.join(folder, key + ".pb")
        with open(path, "wb") as file:
            file.write(tensor.SerializeToString())
        options.append("--input %s=%s" % (key, path))
    read = {value for each in nodes for value in each.input}
    outputs = [value for each in nodes for value in each.output if value and value not in read]
    graph = helper.make_graph(
        nodes, name, infos, [onnx.ValueInfoProto(name=each) for each in outputs],
        [onnx.numpy_helper.from_array(numpy.asarray(value), key) for key, value in (constants or {}).items()])
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 10 if opset > 21 else 8
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(model.SerializeToString())
    with open(os.path.join(folder, "options"), "w") as file:
        file.write("\n".join(options) + "\n")


def activations():
    x, bias = floats(2, 3, 8), floats(8)
    write("gelu", node("Gelu", "x", "y"), {"x": x})
    write("bias_gelu", node("BiasGelu", "x b", "y"), {"x": x}, {"b": bias})
    write("fast_gelu", node("FastGelu", "x", "y"), {"x": x})
    write("fast_gelu_bias", node("FastGelu", "x b", "y"), {"x": x}, {"b": bias})
    write("quick_gelu", [node("QuickGelu", "x", "y"), node("QuickGelu", "x", "z", alpha=0.7)], {"x": x})


def products():
    x, w, b, z = floats(1, 4, 6, 6), floats(4, 2, 3, 3), floats(4), floats(1, 4, 6, 6)
    conv = {"group": 2, "pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    for name, numbers in (("Relu", []), ("Tanh", []), ("Sigmoid", []), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.75]),
                          ("HardSigmoid", [0.3, 0.4])):
        write("fused_conv_" + name.lower(),
              node("FusedConv", "x w b", "y", activation=name, activation_params=numbers, **conv) if numbers else
              node("FusedConv", "x w b", "y", activation=name, **conv), {"x": x}, {"w": w, "b": b})
    write("fused_conv_sum", node("FusedConv", "x w b z", "y", activation="Relu", **conv), {"x": x, "z": z},
          {"w": w, "b": b})
    write("fused_matmul", node("FusedMatMul", "a b", "y", alpha=0.5), {"a": floats(2, 3, 4), "b": floats(4, 5)})
    write("fused_matmul_a", node("FusedMatMul", "a b", "y", transA=1), {"a": floats(2, 4, 3), "b": floats(2, 4, 5)})
    write("fused_matmul_b", node("FusedMatMul", "a b", "y", transB=1, alpha=0.125),
          {"a": floats(2, 2, 3, 4), "b": floats(2, 2, 5, 4)}, sizes={"a": ["n", 2, "t", 4], "b": ["n", 2, "s", 4]})
    write("fused_gemm", node("FusedGemm", "a b c", "y", activation="LeakyRelu", activation_alpha=0.3, transB=1, alpha=0.5),
          {"a": floats(3, 4)}, {"b": floats(5, 4), "c": floats(5)})


def normalisations():
    x, skip, g, b, bias = floats(2, 3, 8), floats(2, 3, 8), floats(8), floats(8), floats(8)
    write("simplified_layer_norm", node("SimplifiedLayerNormalization", "x g", "y", domain="", axis=-1, epsilon=1e-6),
          {"x": x}, {"g": g})
    write("layer_norm_13", node("LayerNormalization", "x g b", "y", domain="", axis=-1, epsilon=1e-5), {"x": x},
          {"g": g, "b": b}, opset=13)
    write("skip_layer_norm", node("SkipLayerNormalization", "x s g b", "y"), {"x": x, "s": skip}, {"g": g, "b": b})
    write("skip_layer_norm_sum", node("SkipLayerNormalization", "x s g b c", "y - - z", epsilon=1e-5),
          {"x": x, "s": skip}, {"g": g, "b": b, "c": bias})
    write("skip_layer_norm_wide", node("SkipLayerNormalization", "x s g", "y", epsilon=1e-5), {"x": x, "s": floats(1, 3, 8)},
          {"g": g})
    write("skip_simplified", node("SkipSimplifiedLayerNormalization", "x s g", "y - - z", epsilon=1e-6),
          {"x": x, "s": skip}, {"g": g})
    write("skip_simplified_bias", node("SkipSimplifiedLayerNormalization", "x s g c", "y", epsilon=1e-6),
          {"x": x, "s": skip}, {"g": g, "c": bias})
    ids, segments = random.randint(0, 10, (2, 3)).astype(numpy.int32), numpy.int32([[0, 0, 1], [0, 1, 1]])
    tables = {"w": floats(10, 8), "p": floats(5, 8), "t": floats(2, 8), "g": g, "b": b}
    write("embed_layer_norm", node("EmbedLayerNormalization", "i s w p t g b m", "y n"),
          {"i": ids, "s": segments, "m": numpy.int32([[1, 1, 1], [1, 1, 0]])}, tables)
    write("embed_layer_norm_plain", node("EmbedLayerNormalization", "i - w p - g b - o", "y n e", epsilon=1e-6),
          {"i": ids, "o": numpy.int32([[2, 0, 1], [4, 3, 1]])}, tables)


def attention():
    x, w, b = floats(2, 3, 8), floats(8, 24), floats(24)
    past = floats(2, 2, 2, 4, 4)
    both = {"w": w, "b": b}
    write("attention", node("Attention", "x w b", "y", num_heads=2), {"x": x}, both)
    write("attention_causal", node("Attention", "x w b", "y", num_heads=2, unidirectional=1, scale=0.3), {"x": x}, both)
    write("attention_present", node("Attention", "x w b", "y p", num_heads=2), {"x": x}, both)
    write("attention_past", node("Attention", "x w b - o", "y p", num_heads=2, unidirectional=1), {"x": x, "o": past}, both,
          {"x": ["b", "t", 8], "o": [2, "b", 2, "p", 4]})
    write("attention_lengths", node("Attention", "x w b m", "y", num_heads=2), {"x": x, "m": numpy.int32([3, 2])}, both)
    write("attention_mask", node("Attention", "x w b m", "y", num_heads=2, mask_filter_value=-50.0),
          {"x": x, "m": numpy.int32([[1, 1, 1], [1, 0, 1]])}, both)
    write("attention_mask_3d", node("Attention", "x w b m o", "y p", num_heads=2),
          {"x": x, "m": random.randint(0, 2, (2, 3, 7)).astype(numpy.int32), "o": past}, both)
    write("attention_bias", node("Attention", "x w b - - a", "y", num_heads=2), {"x": x, "a": floats(1, 2, 3, 3)}, both)
    write("attention_sizes", node("Attention", "x w b", "y", num_heads=2, qkv_hidden_sizes=[8, 8, 4]), {"x": x},
          {"w": floats(8, 20), "b": floats(20)})
    q, k, v = floats(2, 3, 8), floats(2, 5, 8), floats(2, 5, 8)
    qkv = {"q": q, "k": k, "v": v}
    write("heads", node("MultiHeadAttention", "q k v", "y", num_heads=2), qkv)
    write("heads_bias", node("MultiHeadAttention", "q k v b", "y", num_heads=2), qkv, {"b": b})
    write("heads_mask", node("MultiHeadAttention", "q k v - m a", "y", num_heads=2),
          dict(qkv, m=numpy.int32([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]), a=floats(2, 2, 3, 5)))
    write("heads_lengths", node("MultiHeadAttention", "q k v - m", "y", num_heads=2), dict(qkv, m=numpy.int32([5, 2])))
    write("heads_apart", node("MultiHeadAttention", "q k v", "y", num_heads=2, scale=0.4),
          {"q": q, "k": floats(2, 2, 5, 4), "v": floats(2, 2, 5, 4)})
    write("heads_present", node("MultiHeadAttention", "q k v", "y o p", num_heads=2, unidirectional=1),
          {"q": q, "k": floats(2, 3, 8), "v": floats(2, 3, 8)})
    write("heads_past", node("MultiHeadAttention", "q k v - - - r s", "y o p", num_heads=2, unidirectional=1),
          {"q": q, "k": floats(2, 3, 8), "v": floats(2, 3, 8), "r": floats(2, 2, 4, 4), "s": floats(2, 2, 4, 4)},
          sizes={"q": ["b", "t", 8], "k": ["b", "t", 8], "v": ["b", "t", 8], "r": ["b", 2, "p", 4], "s": ["b", 2, "p", 4]})


def groups():
    def case(name, rows, new, capacity, inputs="q k v r s l t", size=8, extra=None, constants=None, **attributes):
        """`rows`: how many keys came before, of each row. Behind all keys of a row, ONNX Runtime leaves its memory as it is."""
        batch = len(rows)
        is_packed = "k" not in inputs.split()
        given = {"q": floats(batch, new, (8 if is_packed else 4) * size)}
        if not is_packed:
            given.update(k=floats(batch, new, 2 * size), v=floats(batch, new, 2 * size))
        if "r" in inputs.split():
            given.update(r=floats(batch, 2, capacity, size), s=floats(batch, 2, capacity, size))
        given.update(l=numpy.int32([row + new - 1 for row in rows]), t=numpy.int32(max(rows) + new), **(extra or {}))
        write(name, [node("GroupQueryAttention", inputs, "y o p", num_heads=4, kv_num_heads=2, **attributes),
                     node("Slice", "o first least axis", "keys", domain=""),
                     node("Slice", "p first least axis", "values", domain="")], given,
              dict(constants or {}, first=numpy.int64([0]), least=numpy.int64([min(rows) + new]), axis=numpy.int64([2])))
    angles = {"size": 16, "constants": {"c": floats(20, 8), "d": floats(20, 8)}, "do_rotary": 1}
    case("groups_token", [4], 1, 4)
    case("groups_prompt", [0, 0], 3, 0)
    case("groups_no_past", [0], 3, 0, "q k v - - l t")
    case("groups_several", [4], 3, 4)
    case("groups_buffer", [4], 1, 10)
    case("groups_rows", [4, 2], 1, 10)
    case("groups_packed", [4], 1, 4, "q - - r s l t", scale=0.2)
    case("groups_rotary", [4], 1, 4, "q k v r s l t c d", **angles)
    case("groups_rotary_rows", [4, 2], 1, 10, "q k v r s l t c d", rotary_interleaved=1, **angles)
    case("groups_rotary_prompt", [0], 3, 0, "q - - r s l t c d", **angles)
    case("groups_window", [4], 3, 4, local_window_size=3)
    case("groups_cap", [4], 1, 4, softcap=2.0)
    case("groups_bias", [4], 2, 4, "q k v r s l t - - - a", extra={"a": floats(1, 4, 2, 6)})


def rotary():
    x, places = floats(2, 2, 3, 8), numpy.int64([[0, 1, 2], [3, 4, 5]])
    angles = {"c": floats(10, 4), "d": floats(10, 4)}
    write("rotary", node("RotaryEmbedding", "x p c d", "y"), {"x": x, "p": places}, angles)
    write("rotary_interleaved", node("RotaryEmbedding", "x p c d", "y", interleaved=1), {"x": x, "p": places}, angles)
    write("rotary_offset", node("RotaryEmbedding", "x p c d", "y"), {"x": x, "p": numpy.int64([4])}, angles)
    write("rotary_flat", node("RotaryEmbedding", "x p c d", "y"), {"x": floats(2, 3, 16), "p": places}, angles)
    write("rotary_flat_offset", node("RotaryEmbedding", "x p c d", "y"), {"x": floats(2, 3, 16), "p": numpy.int64([1])},
          angles, {"x": ["b", "t", 16]})
    write("rotary_part", node("RotaryEmbedding", "x p c d", "y", num_heads=2, rotary_embedding_dim=4),
          {"x": floats(2, 3, 16), "p": places}, {"c": floats(10, 2), "d": floats(10, 2)})
    write("rotary_23", node("RotaryEmbedding", "x c d p", "y", domain="", interleaved=1), {"x": x, "p": places}, angles,
          opset=23)
    write("rotary_23_flat", node("RotaryEmbedding", "x c d p", "y", domain="", num_heads=2, rotary_embedding_dim=4),
          {"x": floats(2, 3, 16), "p": places}, {"c": floats(10, 2), "d": floats(10, 2)}, opset=23)
    write("rotary_23_given", node("RotaryEmbedding", "x c d", "y", domain=""),
          {"x": x, "c": floats(2, 3, 4), "d": floats(2, 3, 4)}, opset=23)


def quantized():
    one = {"s": number(0.02), "z": numpy.uint8(128), "r": number(0.04), "o": numpy.uint8(120)}
    a, b = some_bytes(2, 8), some_bytes(2, 8)
    write("q_add", node("QLinearAdd", "a s z b r o r o", "y"), {"a": a, "b": b}, one)
    write("q_mul", node("QLinearMul", "a s z b s z r o", "y"), {"a": a, "b": b[:1]}, one)
    write("q_sigmoid", node("QLinearSigmoid", "a s z e g", "y"), {"a": a}, dict(one, e=number(1 / 256), g=numpy.uint8(0)))
    write("q_leaky", node("QLinearLeakyRelu", "a s z r o", "y", alpha=0.2), {"a": a}, one)
    write("q_pool", node("QLinearGlobalAveragePool", "a s z r o", "y", channels_last=0), {"a": some_bytes(1, 3, 4, 4)}, one)
    write("q_concat", node("QLinearConcat", "r o a s z b r o", "y", axis=1), {"a": a, "b": b}, one)
    write("q_linear", [node("QuantizeLinear", "x s z", "y")], {"x": floats(2, 8)}, one)
    write("linear_16", [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z", "y")],
          {"x": floats(2, 8)}, {"s": number(0.001), "z": numpy.uint16(30000)})
    weights = {"w": some_bytes(8, 5), "s": number(0.02), "z": numpy.uint8(128), "b": floats(5)}
    write("dynamic_matmul", node("DynamicQuantizeMatMul", "x w s z b", "y"), {"x": floats(2, 8)}, weights)
    write("dynamic_matmul_columns", node("DynamicQuantizeMatMul", "x w s z", "y"), {"x": floats(2, 3, 8)},
          dict(weights, s=numpy.abs(floats(5)) * number(0.02), z=some_bytes(5)))
    write("integer_matmul", node("MatMulIntegerToFloat", "a w r s o z b", "y"), {"a": some_bytes(2, 8)},
          dict(one, **weights))


def tables():
    """Rows of tables of integers, in blocks of 16 with a scale each; two numbers of 4 bits are in a byte."""
    def case(name, bits=4, indices=((3, 0), (5, 2)), inputs="d i s", shape=(6, 32), extra=None, **attributes):
        packed = shape[:-1] + (shape[-1] * bits // 8,)
        axis = attributes.get("quantize_axis", 1)
        blocks = tuple(-(-size // 16) if d == axis else size for d, size in enumerate(shape))
        constants = {"d": some_bytes(*packed), "s": numpy.abs(floats(*blocks)), **(extra or {})}
        write(name, node("GatherBlockQuantized", inputs, "y", bits=bits, block_size=16, **attributes),
              {"i": numpy.int64(indices)}, constants)
    case("table_4_bits")
    case("table_8_bits", bits=8)
    case("table_one_row", indices=4)
    case("table_zero_points", inputs="d i s z", extra={"z": some_bytes(6, 1)})
    case("table_zero_points_8_bits", bits=8, inputs="d i s z", extra={"z": some_bytes(6, 2)})
    case("table_part_of_a_block", shape=(6, 40))
    case("table_rank_3", shape=(6, 3, 32), quantize_axis=2)


for part in (activations, products, normalisations, attention, groups, rotary, quantized, tables):
    part()

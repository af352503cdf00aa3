#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a decoder as ONNX Runtime's model builder does, with weights that are drawn:

    decoder.py FILE [BITS]

Rotary positions, groups of queries, gated layers; inputs input_ids, attention_mask and past_key_values.N.key and .value,
outputs logits and present.N.key and .value. BITS: 32, or 4 for MatMulNBits and a table of GatherBlockQuantized."""
import sys

import numpy
import onnx
from onnx import helper, numpy_helper
from onnx import TensorProto as types

LAYERS, HEADS, KEY_HEADS, SIZE, TOKENS, INNER, LONGEST = 2, 8, 2, 32, 1000, 512, 512
WIDTH = HEADS * SIZE
BLOCK = 32


class Decoder:
    def __init__(self, bits):
        self.bits = bits
        self.random = numpy.random.default_rng(0)
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, op, inputs, outputs, name, domain="", **attributes):
        self.nodes.append(helper.make_node(op, inputs, outputs, name, domain=domain, **attributes))
        return outputs[0]

    def microsoft(self, op, inputs, outputs, name, **attributes):
        return self.node(op, inputs, outputs, name, "com.microsoft", **attributes)

    def drawn(self, *shape):
        return (self.random.standard_normal(shape) / numpy.sqrt(shape[-1])).astype(numpy.float32)

    def packed(self, name, rows):
        """Numbers of 4 bits and a scale per block of a row: names of both."""
        blocks = rows.reshape(rows.shape[0], -1, BLOCK)
        scales = abs(blocks).max(-1) / 7
        numbers = numpy.clip(numpy.round(blocks / scales[..., None]) + 8, 0, 15).astype(numpy.uint8)
        halves = numbers[..., 0::2] | numbers[..., 1::2] << 4
        return self.constant(name + ".numbers", halves), self.constant(name + ".scales", scales.astype(numpy.float32))

    def product(self, x, name, depth, columns, out=None):
        weights = self.drawn(columns, depth)
        outputs = [out or name + "/output"]
        if self.bits == 32:
            return self.node("MatMul", [x, self.constant(name + ".weight", weights.T.copy())], outputs, name)
        numbers, scales = self.packed(name, weights)
        return self.microsoft("MatMulNBits", [x, numbers, scales], outputs, name, K=depth, N=columns, bits=4,
                              block_size=BLOCK, accuracy_level=1)

    def norm_weights(self, name):
        return self.constant(name + ".weight", (1 + 0.1 * self.random.standard_normal(WIDTH)).astype(numpy.float32))

    def embed(self):
        table = self.random.standard_normal((TOKENS, WIDTH)).astype(numpy.float32)
        name = "/model/embed_tokens"
        if self.bits == 32:
            return self.node("Gather", [self.constant("embed", table), "input_ids"], ["x"], name)
        numbers, scales = self.packed("embed", table)
        self.constants[-2].dims[:] = [TOKENS, WIDTH // 2]
        return self.microsoft("GatherBlockQuantized", [numbers, "input_ids", scales], ["x"], name, bits=4,
                              block_size=BLOCK, gather_axis=0, quantize_axis=1)

    def lengths(self):
        """How many tokens there are, less one, and the length of the mask; angles of positions."""
        one = self.constant("one", numpy.int64([1]))
        count = self.node("ReduceSum", ["attention_mask", one], ["count"], "/attn_mask/ReduceSum", keepdims=1)
        last = self.node("Sub", [count, one], ["last"], "/attn_mask/Sub")
        self.node("Cast", [last], ["seqlens_k"], "/attn_mask/Cast", to=types.INT32)
        shape = self.node("Shape", ["attention_mask"], ["mask_shape"], "/attn_mask/Shape")
        total = self.node("Gather", [shape, self.constant("axis", numpy.int64(1))], ["all"], "/attn_mask/Gather")
        self.node("Cast", [total], ["total_seq_len"], "/attn_mask/Cast_1", to=types.INT32)
        angles = numpy.outer(numpy.arange(LONGEST), 1e4 ** (-numpy.arange(0, SIZE, 2) / SIZE))
        self.constant("cos_cache", numpy.cos(angles).astype(numpy.float32))
        self.constant("sin_cache", numpy.sin(angles).astype(numpy.float32))

    def attention(self, x, name, layer):
        states = [f"{layer}.key", f"{layer}.value"]
        for shape, infos, prefix in (("past_sequence_length", self.inputs, "past_key_values."),
                                     ("total_sequence_length", self.outputs, "present.")):
            infos += [helper.make_tensor_value_info(prefix + state, types.FLOAT, ["batch_size", KEY_HEADS, shape, SIZE])
                      for state in states]
        if layer % 2 == 0:
            parts = [self.product(x, name + "/qkv_proj", WIDTH, WIDTH + 2 * KEY_HEADS * SIZE), "", ""]
        else:
            parts = [self.product(x, f"{name}/{part}_proj", WIDTH, heads * SIZE)
                     for part, heads in (("q", HEADS), ("k", KEY_HEADS), ("v", KEY_HEADS))]
        y = self.microsoft(
            "GroupQueryAttention",
            parts + ["past_key_values." + state for state in states] + ["seqlens_k", "total_seq_len", "cos_cache", "sin_cache"],
            [name + "/output"] + ["present." + state for state in states], name + "/GroupQueryAttention", num_heads=HEADS,
            kv_num_heads=KEY_HEADS, do_rotary=1, rotary_interleaved=0, local_window_size=-1, scale=SIZE ** -0.5)
        return self.product(y, name + "/o_proj", WIDTH, WIDTH)

    def gated(self, x, name):
        gate = self.product(x, name + "/gate_proj", WIDTH, INNER)
        up = self.product(x, name + "/up_proj", WIDTH, INNER)
        sigmoid = self.node("Sigmoid", [gate], [name + "/sigmoid"], name + "/act_fn/Sigmoid")
        act = self.node("Mul", [gate, sigmoid], [name + "/act"], name + "/act_fn/Mul")
        y = self.node("Mul", [act, up], [name + "/product"], name + "/Mul")
        return self.product(y, name + "/down_proj", INNER, WIDTH)

    def skip_norm(self, x, y, name, is_last):
        outputs = [name + "/output"] + ([] if is_last else ["", "", name + "/sum"])
        self.microsoft("SkipSimplifiedLayerNormalization", [x, y, self.norm_weights(name)], outputs, name, epsilon=1e-5)
        return outputs[-1], outputs[0]

    def model(self):
        self.lengths()
        x = self.embed()
        normed = self.node("SimplifiedLayerNormalization", [x, self.norm_weights("norm")], ["norm/output"], "/norm", axis=-1,
                           epsilon=1e-5, stash_type=1)
        for layer in range(LAYERS):
            name = f"/model/layers.{layer}"
            x, normed = self.skip_norm(x, self.attention(normed, name + "/attn", layer), name + "/post_norm", False)
            x, normed = self.skip_norm(x, self.gated(normed, name + "/mlp"), name + "/next_norm", layer == LAYERS - 1)
        self.product(normed, "/lm_head", WIDTH, TOKENS, "logits")
        tokens = [helper.make_tensor_value_info(name, types.INT64, ["batch_size", size])
                  for name, size in (("input_ids", "sequence_length"), ("attention_mask", "total_sequence_length"))]
        logits = helper.make_tensor_value_info("logits", types.FLOAT, ["batch_size", "sequence_length", TOKENS])
        graph = helper.make_graph(self.nodes, "decoder", tokens + self.inputs, [logits] + self.outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
        model.ir_version = 8
        return model


def write(path, bits):
    onnx.save(Decoder(bits).model(), path)


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]) if sys.argv[2:] else 32)

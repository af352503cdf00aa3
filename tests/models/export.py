#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes real ONNX models with reference inputs and outputs, for tests and benchmarks.

    export.py FOLDER [NAME[@OPSET]]...

Each model becomes FOLDER/NAME_opOPSET/model.onnx with test_data_set_0/{input,output}_N.pb, the layout of the
ONNX backend tests. Weights are seeded random numbers (nothing is downloaded); the outputs are PyTorch's. Without names:
the models of the tests, at opsets 13 and 17. A model that is there already is not written again. Needs Debian's
python3-torch, python3-torchvision and python3-onnx; --list prints the names of the tests' models, --list all also
those that only benchmarks use.
"""
import ctypes
import math
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor

warnings.filterwarnings("ignore")
import torch
from onnx import numpy_helper
from torch import nn
from torch.nn import functional as F

VISION = ["resnet50", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "densenet121", "squeezenet1_1",
          "shufflenet_v2_x1_0", "googlenet", "inception_v3", "vgg11", "regnet_y_400mf", "mnasnet1_0", "vit_b_16",
          "swin_t", "convnext_tiny"]
# What only tests/bench/compare runs.
MORE = ["resnet18", "resnet101", "resnext50_32x4d", "wide_resnet50_2", "densenet161", "mobilenet_v3_large",
        "efficientnet_b1", "efficientnet_v2_s", "shufflenet_v2_x0_5", "squeezenet1_0", "alexnet", "regnet_x_400mf",
        "mnasnet0_5", "convnext_small", "maxvit_t"]


class Attention(nn.Module):
    """Multi-head attention as model code spells it: views, permutes, matmul, softmax."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, mask, past=None):
        """With keys and values of earlier calls: also all of them as a pair."""
        batch, length, width = x.shape

        def split(t):
            return t.view(batch, length, self.heads, self.size).permute(0, 2, 1, 3)

        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        mixed = torch.matmul(F.softmax(self.score(q, k, mask), -1), v)
        y = self.out(mixed.permute(0, 2, 1, 3).contiguous().view(batch, length, width))
        return y if past is None else (y, (k, v))

    def score(self, q, k, mask):
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.size)
        return scores if mask is None else scores + mask


class ChosenAttention(Attention):
    """The same as GPT-2 has it: scores are chosen by a table, of which the sizes of queries and keys say the rows, then masked."""

    def __init__(self, width, heads):
        super().__init__(width, heads)
        self.register_buffer("seen", torch.tril(torch.ones(256, 256, dtype=torch.bool))[None, None])

    def score(self, q, k, mask):
        new, total = q.size(-2), k.size(-2)
        lowest = torch.full([], torch.finfo(q.dtype).min, dtype=q.dtype)
        return torch.where(self.seen[:, :, total - new:total, :total], super().score(q, k, None), lowest) + mask


class EncoderLayer(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.attention, self.norm1 = Attention(width, heads), nn.LayerNorm(width, eps=1e-12)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    """BERT-base: 12 layers, width 768, 12 heads (Devlin et al., 2018)."""

    def __init__(self, layers=12, width=768, heads=12, hidden=3072, words=30522, places=512):
        super().__init__()
        self.words, self.places, self.kinds = (nn.Embedding(n, width) for n in (words, places, 2))
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList([EncoderLayer(width, heads, hidden) for _ in range(layers)])
        self.pool = nn.Linear(width, width)
        self.register_buffer("positions", torch.arange(places)[None])

    def forward(self, ids, mask, kinds):
        x = self.words(ids) + self.kinds(kinds) + self.places(self.positions[:, : ids.shape[1]])
        x = self.norm(x)
        bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.layers:
            x = layer(x, bias)
        return x, torch.tanh(self.pool(x[:, 0]))


class DecoderLayer(nn.Module):
    def __init__(self, width, heads, attention):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(width), attention(width, heads), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, mask, past=None):
        y = self.attention(self.norm1(x), mask, past)
        y, present = (y, None) if past is None else y
        x = x + y
        x = x + self.mlp(self.norm2(x))
        return x if past is None else (x, present)


class Gpt(nn.Module):
    """A small GPT: 6 layers, width 384, causal mask, tied embedding."""

    def __init__(self, layers=6, width=384, heads=6, words=8000, places=256, attention=Attention):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(places, width)
        self.layers = nn.ModuleList([DecoderLayer(width, heads, attention) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight
        self.register_buffer("mask", torch.triu(torch.full((places, places), -1e9), 1)[None, None])
        self.register_buffer("positions", torch.arange(places)[None])

    def forward(self, ids):
        length = ids.shape[1]
        x = self.words(ids) + self.places(self.positions[:, :length])
        for layer in self.layers:
            x = layer(x, self.mask[:, :, :length, :length])
        return self.head(self.norm(x))


class CachedGpt(Gpt):
    """The same with keys and values of earlier calls as inputs and outputs: for prompts and for single tokens."""

    def forward(self, ids, *past):
        before = past[0].shape[2]
        total = before + ids.shape[1]
        x = self.words(ids) + self.places(self.positions[:, before:total])
        return self.decode(x, self.mask[:, :, before:total, :total], past)

    def decode(self, x, mask, past):
        present = []
        for k, layer in enumerate(self.layers):
            x, pair = layer(x, mask, past[2 * k: 2 * k + 2])
            present += pair
        return (self.head(self.norm(x)), *present)


def cached_inputs(layers=6, heads=6, words=8000, length=5, past=11):
    return torch.randint(0, words, (1, length)), *(torch.randn(1, heads, past, 64) for _ in range(2 * layers))


class MaskedGpt(CachedGpt):
    """The same with a mask and positions as inputs, as Optimum exports GPT-2: added to a causal mask that is cut from a table."""

    def __init__(self, attention=Attention):
        super().__init__(attention=attention)
        self.register_buffer("seen", torch.tril(torch.ones(256, 256, dtype=torch.bool))[None, None])

    def see(self, ids, mask, before):
        total = before + ids.shape[1]
        causal = self.seen[:, :, total - ids.shape[1]:total, :total]
        hidden = (1.0 - mask[:, None, None, :].to(torch.float32)) * -1e9
        return torch.where(causal, torch.tensor(0.0), torch.tensor(-1e9)) + hidden

    def forward(self, ids, mask, positions, *past):
        x = self.words(ids) + self.places(positions)
        return self.decode(x, self.see(ids, mask, past[0].shape[2]), past)


class CountedGpt(MaskedGpt):
    """The same, as Optimum exports Llama: what is seen follows from positions that are counted."""

    def see(self, ids, mask, before):
        places = torch.arange(before, before + ids.shape[1])
        seen = torch.triu(torch.full((ids.shape[1], mask.shape[-1]), -1e9), diagonal=1)
        seen = seen * (torch.arange(mask.shape[-1]) > places.reshape(-1, 1))
        seen = seen[None, None].expand(ids.shape[0], 1, -1, -1)
        return seen.masked_fill(seen + mask[:, None, None, :] == 0, -1e9)


class StepGpt(MaskedGpt):
    """The same as Optimum exports the half of a merged model that has a past: for one token at a time, which sees all."""

    def see(self, ids, mask, before):
        return (1.0 - mask[:, None, None, :].to(torch.float32)) * -1e9


class ChosenGpt(StepGpt):
    """The same as Optimum exports GPT-2: its attention chooses what is seen."""

    def __init__(self):
        super().__init__(ChosenAttention)


def masked_inputs(length=5, past=11):
    ids, *states = cached_inputs(length=length, past=past)
    return ids, torch.ones(1, past + length, dtype=torch.int64), torch.arange(past, past + length)[None], *states


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(5000, 128)
        self.lstm = nn.LSTM(128, 256, 2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(512, 10)

    def forward(self, x):
        y, _ = self.lstm(self.words(x))
        return self.out(y[:, -1])


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.out = nn.GRU(80, 256, 2, batch_first=True), nn.Linear(256, 40)

    def forward(self, x):
        y, state = self.gru(x)
        return F.log_softmax(self.out(y), -1), state


def double_conv(before, after):
    return nn.Sequential(nn.Conv2d(before, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(),
                         nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU())


class UNet(nn.Module):
    """U-Net with both ways up: transposed convolution and bilinear resizing."""

    def __init__(self, w=32):
        super().__init__()
        self.down = nn.ModuleList([double_conv(a, b) for a, b in ((3, w), (w, 2 * w), (2 * w, 4 * w), (4 * w, 8 * w))])
        self.bottom = double_conv(8 * w, 16 * w)
        self.up = nn.ModuleList([nn.ConvTranspose2d(16 * w, 8 * w, 2, 2), nn.ConvTranspose2d(8 * w, 4 * w, 2, 2)])
        self.join = nn.ModuleList([double_conv(16 * w, 8 * w), double_conv(8 * w, 4 * w), double_conv(6 * w, 2 * w),
                                   double_conv(3 * w, w)])
        self.out = nn.Conv2d(w, 1, 1)

    def forward(self, x):
        skips = []
        for block in self.down:
            x = block(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.bottom(x)
        for k, block in enumerate(self.join):
            if k < 2:
                x = self.up[k](x)
            else:
                x = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
            x = block(torch.cat([x, skips[3 - k]], 1))
        return torch.sigmoid(self.out(x))


def image(size=224):
    return lambda: (torch.randn(1, 3, size, size),)


def bert_inputs(length=128, padding=28):
    mask = torch.ones(1, length, dtype=torch.int64)
    mask[:, length - padding:] = 0
    return torch.randint(0, 30522, (1, length)), mask, torch.zeros(1, length, dtype=torch.int64)


def batch(*names):
    return {name: {0: "N"} for name in names}


def sequence(*names):
    return {name: {0: "N", 1: "T"} for name in names}


BERT_NAMES = ["ids", "mask", "kinds"]


def cached(make, inputs, layers, *more):
    """A model with caches of keys and values, as an entry of MODELS; `more`: inputs behind the tokens."""
    names = [f"{kind}_{k}" for k in range(layers) for kind in ("key", "value")]
    past, present = [f"past_{name}" for name in names], [f"present_{name}" for name in names]
    axes = {"ids": {0: "N", 1: "T"}, "logits": {0: "N", 1: "T"}, **{name: {0: "N", 2: "P"} for name in past},
            **{name: {0: "N", 2: "total"} for name in present}, "attention_mask": {0: "N", 1: "P + T"},
            "position_ids": {0: "N", 1: "T"}}
    names = ["ids", *more] + past, ["logits"] + present
    return make, inputs, *names, {name: axes[name] for name in sum(names, [])}


MODELS = {
    "bert_base": (Bert, bert_inputs, BERT_NAMES, ["hidden", "pooled"], sequence(*BERT_NAMES, "hidden")),
    "bert_base_static": (Bert, bert_inputs, BERT_NAMES, ["hidden", "pooled"], None),
    "gpt": (Gpt, lambda: (torch.randint(0, 8000, (1, 64)),), ["ids"], ["logits"], sequence("ids", "logits")),
    "gpt_cached": cached(CachedGpt, cached_inputs, 6),
    "unet": (UNet, image(256), ["x"], ["y"], batch("x", "y")),
    "lstm": (Lstm, lambda: (torch.randint(0, 5000, (1, 32)),), ["x"], ["y"], sequence("x")),
    "gru": (Gru, lambda: (torch.randn(1, 50, 80),), ["x"], ["y", "state"], sequence("x")),
}


# Exported only if they are named; the last one has the sizes of GPT-2 (124 million parameters).
OTHERS = {"gpt_masked": cached(MaskedGpt, masked_inputs, 6, "attention_mask", "position_ids"),
          "gpt_counted": cached(CountedGpt, masked_inputs, 6, "attention_mask", "position_ids"),
          "gpt_step": cached(StepGpt, lambda: masked_inputs(1), 6, "attention_mask", "position_ids"),
          "gpt_chosen": cached(ChosenGpt, lambda: masked_inputs(1), 6, "attention_mask", "position_ids"),
          "gpt2_cached": cached(lambda: CachedGpt(12, 768, 12, 50257, 1024), lambda: cached_inputs(12, 12, 50257), 12)}


def vision(name):
    import torchvision

    def make():
        model = getattr(torchvision.models, name)(weights=None)
        for part in model.modules():
            if isinstance(part, nn.Linear) and part.out_features == 1000:
                nn.init.normal_(part.weight, std=0.05)
        return model

    return make, image(299 if name == "inception_v3" else 224), ["x"], ["y"], batch("x", "y")


def randomise(model):
    """Statistics that a batch norm cannot ignore, and activations that neither die nor explode much."""
    for part in model.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
            part.weight.data.uniform_(0.5, 1.5)
            part.bias.data.normal_(0, 0.1)
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, mode="fan_out")
    return model.eval()


def write_tensors(folder, kind, tensors, names):
    for k, (tensor, name) in enumerate(zip(tensors, names)):
        with open(f"{folder}/{kind}_{k}.pb", "wb") as file:
            file.write(numpy_helper.from_array(tensor.detach().numpy(), name).SerializeToString())


def export(folder, name, opset):
    target = f"{folder}/{name}_op{opset}"
    if os.path.exists(f"{target}/model.onnx"):
        return
    make, inputs, input_names, output_names, axes = {**MODELS, **OTHERS}.get(name) or vision(name)
    torch.manual_seed(0)
    model, values = randomise(make()), inputs()
    with torch.no_grad():
        results = model(*values)
    results = results if isinstance(results, tuple) else (results,)
    data = f"{target}/test_data_set_0"
    os.makedirs(data, exist_ok=True)
    write_tensors(data, "input", values, input_names)
    write_tensors(data, "output", results, output_names)
    torch.onnx.export(model, values, f"{target}/model.tmp", opset_version=opset, input_names=input_names,
                      output_names=output_names, dynamic_axes=axes, do_constant_folding=True)
    os.rename(f"{target}/model.tmp", f"{target}/model.onnx")
    print(f"{target}/model.onnx", flush=True)


def prepare():
    """One thread; and memory that was freed stays with the process. PyTorch copies a model several times as it exports it, and
    the system would clear new memory for each copy, which takes as long as all the rest."""
    torch.set_num_threads(1)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # of glibc; the numbers are those of malloc.h
    for option, value in ((-4, 0), (-1, 2**31 - 1), (-2, 2**28)) if mallopt else ():  # no mmap, no trimming, steps of 256 MiB
        mallopt(option, value)


def side_by_side(function, tasks):
    """What the function returns for each tuple of arguments: two at a time, in processes of their own."""
    with ProcessPoolExecutor(2, initializer=prepare) as pool:
        return list(pool.map(function, *zip(*tasks)))


def main(arguments):
    names = VISION + list(MODELS)
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.exit(__doc__)
    if arguments[0] == "--list":
        print("\n".join(names + (MORE if arguments[1:] == ["all"] else [])))
        return
    tasks = []
    wanted = arguments[1:] or [f"{name}@{opset}" for opset in (13, 17) for name in names]
    for item in wanted:
        name, _, opset = item.partition("@")
        if name not in names + MORE + list(OTHERS):
            sys.exit(f"export.py: model '{name}' is unknown; expected one of {', '.join(names + MORE)}")
        tasks += [(arguments[0], name, int(version)) for version in ([opset] if opset else [13, 17])]
    side_by_side(export, tasks)


if __name__ == "__main__":
    main(sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0
"""The kernels of workloads.lua and the models of examples/ in PyTorch, eager and compiled with CUDA graphs: us per run.

torch_times.py RUNS [--warm NAME]: --warm compiles one of them alone, whose code PyTorch then keeps on disk; all are
compiled so first, side by side. ResNet-50 needs torchvision and BERT transformers; without them they are left out.
"""
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import torch

RUNS = int(sys.argv[1])
BATCHES = 9
functional = torch.nn.functional


def measure(function, *inputs):
    for _ in range(4):
        function(*inputs)
    times = []
    for _ in range(BATCHES):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(RUNS):
            function(*inputs)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / RUNS)
    return sorted(times)[BATCHES // 2]


def matrix(rows, columns, dtype=torch.float32):
    return torch.rand(rows, columns, device="cuda", dtype=dtype) - 0.5


def vector(columns):
    return matrix(1, columns)[0]


def chain4(x, y):
    return torch.relu((x + y) * 0.5 - 1)


def chain16(x):
    for _ in range(4):
        x = torch.sigmoid(x * 1.1) + torch.tanh(x)
    return x


def gru(weights, h, *xs):
    input_weight, state_weight, input_bias, state_bias = weights
    outputs = []
    for x in xs:
        xz, xr, xn = (x @ input_weight + input_bias).chunk(3, 1)
        hz, hr, hn = (h @ state_weight + state_bias).chunk(3, 1)
        update, reset = torch.sigmoid(xz + hz), torch.sigmoid(xr + hr)
        h = (1 - update) * torch.tanh(xn + reset * hn) + update * h
        outputs.append(x + h)
    return outputs + [h]


def gru_residual(features, batch):
    weights = [matrix(features, 3 * features), matrix(features, 3 * features), vector(3 * features), vector(3 * features)]
    return lambda h, *xs: gru(weights, h, *xs), [matrix(batch, features) for _ in range(3)]


def attention(batch, length, dtype, causal=False):
    heads = [torch.rand(batch, 12, length, 64, device="cuda", dtype=dtype) - 0.5 for _ in range(3)]
    return lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=causal), heads


def in_precision(model, precision):
    allowed = precision != "float32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    model = model.eval().cuda()
    return model.half() if precision == "float16" else model


def resnet50(precision, batch):
    import torchvision
    model = in_precision(torchvision.models.resnet50(), precision).to(memory_format=torch.channels_last)
    images = torch.rand(batch, 3, 224, 224, device="cuda", dtype=next(model.parameters()).dtype)
    return model, [images.to(memory_format=torch.channels_last)]


def bert_base(precision, batch):
    import transformers
    model = in_precision(transformers.BertModel(transformers.BertConfig()), precision)
    ids = torch.randint(0, 30000, (batch, 128), device="cuda")
    mask = torch.ones_like(ids)
    return lambda ids, mask: model(input_ids=ids, attention_mask=mask, return_dict=False), [ids, mask]


WORKS = {
    "chain4": lambda: (chain4, [matrix(8192, 8192), matrix(8192, 8192)]),
    "chain16": lambda: (chain16, [matrix(8192, 8192)]),
    "chain4_f16": lambda: (chain4, [matrix(8192, 8192, torch.float16), matrix(8192, 8192, torch.float16)]),
    "transpose": lambda: (lambda x: torch.relu(x.t()).contiguous(), [matrix(8192, 8192)]),
    "columns": lambda: (lambda x: x.sum(0), [matrix(8192, 4096)]),
}
for rows, columns in (16384, 768), (8192, 4096), (4096, 32768):
    WORKS["softmax_%d" % columns] = lambda rows=rows, columns=columns: (
        lambda x: torch.softmax(x, -1), [matrix(rows, columns)])
    WORKS["layer_norm_%d" % columns] = lambda rows=rows, columns=columns: (
        lambda x, y, w, b: functional.layer_norm(x + y, (columns,), w, b),
        [matrix(rows, columns), matrix(rows, columns), vector(columns), vector(columns)])
    WORKS["bias_gelu_%d" % columns] = lambda rows=rows, columns=columns: (
        lambda x, b: functional.gelu(x + b), [matrix(rows, columns), vector(columns)])
for dtype in torch.float32, torch.float16:
    for batch in 1, 32:
        WORKS["attention_%d_%s" % (batch, str(dtype)[6:])] = lambda batch=batch, dtype=dtype: attention(batch, 128, dtype)
WORKS["attention_4096_float16"] = lambda: attention(1, 4096, torch.float16)
WORKS["attention_4096_causal_float16"] = lambda: attention(1, 4096, torch.float16, True)
WORKS["gru_residual"] = lambda: gru_residual(50, 10)
WORKS["gru_residual_500"] = lambda: gru_residual(500, 100)
for precision in "float32", "tf32", "float16":
    for batch in 1, 32, 128:
        WORKS["resnet50_%s_%d" % (precision, batch)] = lambda precision=precision, batch=batch: resnet50(precision, batch)
    for batch in 1, 32:
        WORKS["bert_base_%s_%d" % (precision, batch)] = lambda precision=precision, batch=batch: bert_base(precision, batch)


def time_work(name, eager_too):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    function, inputs = WORKS[name]()
    eager = measure(function, *inputs) if eager_too else 0.0
    compiled = measure(torch.compile(function, mode="reduce-overhead"), *inputs)
    return eager, compiled


with torch.inference_mode():
    if "--warm" in sys.argv:
        time_work(sys.argv[-1], False)
        sys.exit(0)
    def warm(name):
        subprocess.run([sys.executable, __file__, "1", "--warm", name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env=dict(os.environ, TORCHINDUCTOR_COMPILE_THREADS="1"), check=False)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(warm, WORKS))
    print("%-32s %12s %12s" % ("PyTorch " + torch.__version__, "eager us", "compiled us"))
    for name in WORKS:
        torch.compiler.reset()
        try:
            print("%-32s %12.2f %12.2f" % ((name,) + time_work(name, True)), flush=True)
        except Exception as error:  # what is not installed, or does not fit
            print("%-32s %s" % (name, str(error).splitlines()[0][:100]), flush=True)
        torch.cuda.empty_cache()

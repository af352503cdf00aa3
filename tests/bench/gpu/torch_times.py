# SPDX-License-Identifier: Apache-2.0
# The kernels of workloads.lua in PyTorch, eager and compiled with CUDA graphs: microseconds per run.
import sys

import torch

RUNS = int(sys.argv[1])
BATCHES = 9


def measure(function, *inputs):
    for _ in range(3):
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


def chain16(x):
    for _ in range(4):
        x = torch.sigmoid(x * 1.1) + torch.tanh(x)
    return x


def matrix(rows, columns, dtype=torch.float32):
    return torch.rand(rows, columns, device="cuda", dtype=dtype) - 0.5


def heads(batch, length, dtype):
    return torch.rand(batch, 12, length, 64, device="cuda", dtype=dtype) - 0.5


def attention(name, batch, length, dtype, causal=False):
    return (name, lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=causal),
            [heads(batch, length, dtype) for _ in range(3)])


functional = torch.nn.functional
WORKS = [
    ("chain4", lambda x, y: torch.relu((x + y) * 0.5 - 1), [matrix(8192, 8192), matrix(8192, 8192)]),
    ("chain16", chain16, [matrix(8192, 8192)]),
    ("softmax_768", lambda x: torch.softmax(x, -1), [matrix(16384, 768)]),
    ("softmax_4096", lambda x: torch.softmax(x, -1), [matrix(8192, 4096)]),
    ("layer_norm_4096", lambda x, y, w, b: functional.layer_norm(x + y, (4096,), w, b),
     [matrix(8192, 4096), matrix(8192, 4096), matrix(1, 4096)[0], matrix(1, 4096)[0]]),
    ("bias_gelu_4096", lambda x, b: functional.gelu(x + b), [matrix(8192, 4096), matrix(1, 4096)[0]]),
    attention("attention_1_float32", 1, 128, torch.float32),
    attention("attention_32_float32", 32, 128, torch.float32),
    attention("attention_1_float16", 1, 128, torch.float16),
    attention("attention_32_float16", 32, 128, torch.float16),
    attention("attention_4096_float16", 1, 4096, torch.float16),
    attention("attention_4096_causal_float16", 1, 4096, torch.float16, causal=True),
]
print("%-32s %12s %12s" % ("PyTorch " + torch.__version__, "eager us", "compiled us"))
for name, function, inputs in WORKS:
    eager = measure(function, *inputs)
    compiled = measure(torch.compile(function, mode="reduce-overhead"), *inputs)
    print("%-32s %12.2f %12.2f" % (name, eager, compiled))

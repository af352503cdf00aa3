#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Times training steps, forward, backward and update, of cleave and of PyTorch on the same networks.

    train.py PROGRAM [STEPS [THREADS]]

ResNet-50 (batch 8, cross entropy, momentum) and BERT-base (batch 8, 128 tokens, squared differences of the pooled output,
AdamW), float32, random samples. Medians of STEPS steps (default 5) after one that does not count; cleave with rules, also
with --precision bfloat16 (float32 where the processor has no AVX512_BF16), and without rules. Needs Debian's python3-torch and python3-torchvision.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

warnings.filterwarnings("ignore")
import numpy
import torch
import torchvision

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "models"))
from export import Bert

BATCH, LENGTH = 8, 128


class Pooled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = Bert()

    def forward(self, *inputs):
        return self.bert(*inputs)[1]


def resnet50(count):
    arrays = {"image": numpy.random.randn(count, 3, 224, 224).astype("f4"), "labels": numpy.random.randint(0, 1000, count)}
    options = ["--set", f"batch={BATCH}", "--loss", "cross_entropy", "--optimizer", "momentum"]
    return torchvision.models.resnet50, ["image"], arrays, options


def bert_base(count):
    arrays = {"ids": numpy.random.randint(0, 30000, (count, LENGTH)), "mask": numpy.ones((count, LENGTH), "i8"),
              "segments": numpy.zeros((count, LENGTH), "i8"), "targets": numpy.random.randn(count, 768).astype("f4")}
    options = ["--set", f"batch={BATCH}", "--set", f"T={LENGTH}", "--loss", "mse", "--scores", "pooled",
               "--optimizer", "adamw"]
    return Pooled, ["ids", "mask", "segments"], arrays, options


def time_torch(make, inputs, arrays, steps):
    model = make().train()
    rest = [name for name in arrays if name not in inputs]
    if rest == ["labels"]:
        loss, optimizer = torch.nn.functional.cross_entropy, torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    else:
        loss, optimizer = torch.nn.functional.mse_loss, torch.optim.AdamW(model.parameters(), lr=1e-3)
    values = {name: torch.from_numpy(array[:BATCH]) for name, array in arrays.items()}
    times = []
    for _ in range(steps + 1):
        start = time.perf_counter()
        optimizer.zero_grad()
        loss(model(*(values[name] for name in inputs)), values[rest[0]]).backward()
        optimizer.step()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[1:])


def time_cleave(program, script, folder, options, rules, steps, threads):
    """The samples are one minibatch, so that an epoch is a step, and is reported with its time."""
    command = [program, "train", f"{ROOT}/examples/models/{script}.lua", "--data", folder, "--rate", "1e-3", "--batch",
               str(BATCH), "--keep-order", "--threads", str(threads), "--json", "--epochs", str(steps + 1)] + options
    for rule in rules:
        command += ["--rules", rule]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(run.stderr)
    epochs = [json.loads(line) for line in run.stdout.splitlines() if '"event":"epoch"' in line]
    return statistics.median(line["step_ms"] for line in epochs[1:])


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if arguments else 2)
    steps = int(arguments[1]) if len(arguments) > 1 else 5
    threads = int(arguments[2]) if len(arguments) > 2 else 2
    torch.set_num_threads(threads)
    print(f"{'':12} {'PyTorch':>10} {'cleave':>10} {'ratio':>6} {'bfloat16':>10} {'no rules':>10}   ms, medians of {steps} steps, "
          f"{threads} threads, PyTorch {torch.__version__}")
    for script, make_case in (("resnet50", resnet50), ("bert_base", bert_base)):
        make, inputs, arrays, options = make_case(BATCH)
        with tempfile.TemporaryDirectory() as folder:
            for name, array in arrays.items():
                numpy.save(f"{folder}/{name}.npy", array)
            theirs = time_torch(make, inputs, arrays, steps)
            ours = time_cleave(arguments[0], script, folder, options, ["onednn", "pointwise"], steps, threads)
            low = time_cleave(arguments[0], script, folder, options + ["--precision", "bfloat16"], ["onednn", "pointwise"],
                              steps, threads)
            plain = time_cleave(arguments[0], script, folder, options, [], 1, threads)
        print(f"{script:12} {theirs:10.0f} {ours:10.0f} {theirs / ours:6.2f} {low:10.0f} {plain:10.0f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

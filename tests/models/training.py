#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `cleave train` with PyTorch: losses, gradient norms and weights after some steps.

    training.py PROGRAM FOLDER

A case is a model in float64 in training mode, its samples, and an optimizer with its options. Models are exported into
FOLDER and trained there by both, on the same minibatches in the same order. Ends with `N passed, M failed`.
"""
import json
import os
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")
import numpy
import onnx
import torch
from onnx import numpy_helper

from export import Bert, randomise, side_by_side, vision

STEPS = 4
BATCH = 4
# Weights after the steps, relative to the largest of each; what is printed has six digits.
WEIGHTS, PRINTED = 1e-7, 2e-5


class Small(torch.nn.Module):
    """BERT's pooled output, of a size that float64 on one thread does not mind."""

    def __init__(self):
        super().__init__()
        self.bert = Bert(layers=2, width=48, heads=4, hidden=96, words=100, places=16)

    def forward(self, ids, mask, kinds):
        return self.bert(ids, mask, kinds)[1]


def images():
    torch.manual_seed(1)
    count = STEPS * BATCH
    return {"input": torch.randn(count, 3, 64, 64).double()}, torch.randint(0, 1000, (count,))


def tokens():
    torch.manual_seed(2)
    shape = (STEPS * BATCH, 12)
    mask = (torch.rand(shape) > 0.2).long()
    inputs = {"ids": torch.randint(0, 100, shape), "mask": mask, "kinds": torch.randint(0, 2, shape)}
    return inputs, torch.randn(shape[0], 48).double()


SGD, ADAM, ADAMW = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW
# name: model, samples, loss, optimizer of PyTorch and its options, those of cleave, norm to clip at
CASES = {
    "resnet18_sgd": (lambda: vision("resnet18")[0](), images, "cross_entropy", SGD, {"lr": 0.02, "weight_decay": 0.01},
                     "--optimizer sgd --rate 0.02 --decay 0.01", None),
    "resnet18_momentum": (lambda: vision("resnet18")[0](), images, "cross_entropy", SGD,
                          {"lr": 0.02, "momentum": 0.9, "nesterov": True},
                          "--optimizer momentum --nesterov --rate 0.02", 0.5),
    "resnet18_adam": (lambda: vision("resnet18")[0](), images, "cross_entropy", ADAM,
                      {"lr": 0.001, "weight_decay": 0.1}, "--optimizer adam --rate 0.001 --decay 0.1", None),
    "bert_adamw": (Small, tokens, "mse", ADAMW, {"lr": 0.01, "weight_decay": 0.1, "betas": (0.8, 0.99)},
                   "--optimizer adamw --rate 0.01 --decay 0.1 --beta1 0.8 --beta2 0.99", 0.1),
}


def prepare(folder, case):
    """The model, exported, and its samples as arrays."""
    make, samples, loss = CASES[case][:3]
    torch.manual_seed(0)
    model = randomise(make()).double().train()
    for parameter in model.parameters():  # equal ones would be exported as one
        parameter.data += 0.01 * torch.randn(parameter.shape).double()
    inputs, wanted = samples()
    os.makedirs(f"{folder}/{case}/data", exist_ok=True)
    for name, value in inputs.items():
        numpy.save(f"{folder}/{case}/data/{name}.npy", value.numpy())
    numpy.save(f"{folder}/{case}/data/{'labels' if loss == 'cross_entropy' else 'targets'}.npy", wanted.numpy())
    first = tuple(value[:BATCH] for value in inputs.values())
    state = {key: value.clone() for key, value in model.state_dict().items()}
    torch.onnx.export(model, first, f"{folder}/{case}/model.onnx", opset_version=17, input_names=list(inputs),
                      output_names=["scores"], do_constant_folding=False,
                      training=torch.onnx.TrainingMode.TRAINING)
    model.load_state_dict(state)  # exporting ran it
    return model.train(), inputs, wanted


def train(model, inputs, wanted, case):
    _, _, loss, optimizer, options, _, clip = CASES[case]
    optimizer = optimizer(model.parameters(), **options)
    lines = []
    for step in range(STEPS):
        part = slice(step * BATCH, (step + 1) * BATCH)
        scores = model(*(value[part] for value in inputs.values()))
        function = torch.nn.functional.cross_entropy if loss == "cross_entropy" else torch.nn.functional.mse_loss
        value = function(scores, wanted[part])
        optimizer.zero_grad()
        value.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip or 1e30)
        optimizer.step()
        lines.append((value.item(), norm.item()))
    return lines


def compare(program, folder, case):
    """What differs, as texts."""
    model, inputs, wanted = prepare(folder, case)
    expected = train(model, inputs, wanted, case)
    _, _, loss, _, _, options, clip = CASES[case]
    target = f"{folder}/{case}"
    command = [program, "train", f"{target}/model.onnx", "--data", f"{target}/data", "--loss", loss, "--batch", str(BATCH),
               "--keep-order", "--json", "--each-step", "-o", f"{target}/trained.onnx"] + options.split()
    command += ["--clip", str(clip)] if clip else []
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        return [run.stderr.strip()]
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    found = [(line["loss"], line["gradient_norm"]) for line in lines if line["event"] == "step"]
    wrong = []
    for step, (one, other) in enumerate(zip(found, expected)):
        for what, a, b in zip(("loss", "norm"), one, other):
            if not abs(a - b) <= PRINTED * abs(b):
                wrong.append(f"step {step}: {what} {a}, expected {b}")
    weights = {item.name: numpy_helper.to_array(item)
               for item in onnx.load(f"{target}/trained.onnx").graph.initializer}
    for name, parameter in model.named_parameters():
        expected_weight = parameter.detach().numpy()
        if name not in weights:
            continue  # a transposed one has another name: the losses of later steps tell
        error = numpy.abs(weights[name] - expected_weight).max() / numpy.abs(expected_weight).max()
        if not error <= WEIGHTS:
            wrong.append(f"{name}: differs by {error:.2e}")
    if sum(name in weights for name, _ in model.named_parameters()) < 3:
        wrong.append("no weights to compare")
    return wrong if len(found) == STEPS else wrong + [f"{len(found)} steps"]


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    failed = 0
    for case, wrong in zip(CASES, side_by_side(compare, [(*arguments, case) for case in CASES])):
        failed += bool(wrong)
        for line in wrong[:4]:
            print(f"{case}: {line}")
    print(f"{len(CASES) - failed} passed, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main(sys.argv[1:])

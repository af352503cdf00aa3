#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes models with a loss, and PyTorch's gradients of all their parameters.

    gradients.py FOLDER NAME[+double|+train]...

Each becomes FOLDER/NAME/model.onnx, whose one output is the loss, with test_data_set_0/{input,output}_N.pb: the loss,
then the gradients in the order of FOLDER/NAME/wrt, the names of the parameters on one line with commas. Models are
those of export.py; +double: in float64, because the rounding of float32 can move a value over the kink of a Relu or
to another maximum of a pool, which changes gradients by more than rounding; +train: in float64 and in training mode,
so that batch norms use the statistics of the batch. The loss is the mean of each output times the cosine of its
number, so that no output and no place goes unnoticed. A model that is there is not written again.
"""
import os
import sys
import warnings

warnings.filterwarnings("ignore")
import numpy
import torch
from torch import nn

from export import MODELS, randomise, side_by_side, vision, write_tensors

BATCH = 2  # of images


class WithLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *inputs):
        outputs = self.model(*inputs)
        parts = []
        for output in outputs if isinstance(outputs, tuple) else (outputs,):
            number = numpy.arange(output.numel()).reshape(output.shape)
            weight = torch.from_numpy(100.0 * numpy.cos(number)).to(output.dtype)
            parts.append((output * weight).mean())
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]  # no Python numbers: they become float32


def export(folder, item):
    name, _, mode = item.partition("+")
    target = f"{folder}/{item}"
    if os.path.exists(f"{target}/model.onnx"):
        return
    make, inputs, input_names, _, _ = MODELS[name] if name in MODELS else vision(name)
    torch.manual_seed(0)
    model, values = WithLoss(randomise(make())), inputs()
    for parameter in model.parameters():  # equal ones would be exported as one
        parameter.data += 0.01 * torch.randn(parameter.shape)
    if values[0].dim() == 4:
        values = (torch.randn(BATCH, 3, 96, 96),)
    if mode:
        model, values = model.double(), tuple(value.double() for value in values)
    if mode == "train":
        model.train()
    loss = model(*values)
    loss.backward()
    used = [(key, value.grad) for key, value in model.named_parameters() if value.grad is not None]
    data = f"{target}/test_data_set_0"
    os.makedirs(data, exist_ok=True)
    write_tensors(data, "input", values, input_names)
    write_tensors(data, "output", [loss] + [grad for _, grad in used],
                  ["loss"] + [f"grad({key})" for key, _ in used])
    with open(f"{target}/wrt", "w") as file:
        file.write(",".join(key for key, _ in used) + "\n")
    training = torch.onnx.TrainingMode.TRAINING if mode == "train" else torch.onnx.TrainingMode.PRESERVE
    torch.onnx.export(model, values, f"{target}/model.tmp", opset_version=17, input_names=input_names,
                      output_names=["loss"], do_constant_folding=False, training=training)
    os.rename(f"{target}/model.tmp", f"{target}/model.onnx")
    print(f"{target}/model.onnx", flush=True)


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__)
    side_by_side(export, [(arguments[0], item) for item in arguments[1:]])


if __name__ == "__main__":
    main(sys.argv[1:])

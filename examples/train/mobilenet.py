#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Exports torchvision's mobilenet_v3_small (Debian: python3-torchvision, python3-onnx) for `cleave train`.

    mobilenet.py OUT.onnx [WEIGHTS.pth]

In training mode, so that batch norms and dropout stay nodes: an export for inference has them folded into the convolutions.
Images are float32[N, 3, 64, 64], for 10 classes. WEIGHTS.pth is a state dict to begin with (of 1000 classes: all but the last
layer is taken); without it, weights are drawn from a fixed seed.
"""
import functools
import sys
import warnings

warnings.filterwarnings("ignore")
import torch
from torchvision.models import mobilenet_v3_small


def main(arguments):
    if len(arguments) not in (1, 2):
        sys.exit(__doc__)
    torch.manual_seed(0)
    # Running statistics that follow in tens of steps; torchvision's own, for long runs, need hundreds.
    norm = functools.partial(torch.nn.BatchNorm2d, eps=0.001, momentum=0.1)
    model = mobilenet_v3_small(num_classes=10, norm_layer=norm).train()
    if len(arguments) == 2:
        state = torch.load(arguments[1])
        own = model.state_dict()
        model.load_state_dict({key: value for key, value in state.items() if own[key].shape == value.shape}, strict=False)
    torch.onnx.export(model, torch.randn(2, 3, 64, 64), arguments[0], opset_version=17, input_names=["image"],
                      output_names=["scores"], dynamic_axes={"image": {0: "N"}, "scores": {0: "N"}},
                      do_constant_folding=False, training=torch.onnx.TrainingMode.TRAINING)


if __name__ == "__main__":
    main(sys.argv[1:])

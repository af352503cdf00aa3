#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the 1797 handwritten digits of scikit-learn (Debian: python3-sklearn) as arrays for `cleave train`.

    digits.py FOLDER [SIZE COUNT]

FOLDER/train and FOLDER/held_out get image.npy, float32[n, 1, 8, 8] from 0 to 1, and labels.npy, int64[n]. A fifth of
the digits, drawn by a fixed seed, is held out. With SIZE (a multiple of 8), the images are enlarged to it, of three equal
channels, float32[n, 3, SIZE, SIZE]: for networks that take photographs; COUNT digits are taken.
"""
import os
import sys

import numpy
from sklearn.datasets import load_digits


def main(arguments):
    if len(arguments) not in (1, 3):
        sys.exit(__doc__)
    digits = load_digits()
    order = numpy.random.RandomState(0).permutation(len(digits.target))
    images = (digits.images / 16.0).astype(numpy.float32)[order, None]
    labels = digits.target.astype(numpy.int64)[order]
    if len(arguments) == 3:
        times, count = int(arguments[1]) // 8, int(arguments[2])
        images = images[:count].repeat(times, 2).repeat(times, 3).repeat(3, 1)
        labels = labels[:count]
    held_out = len(labels) // 5
    for name, part in (("train", slice(held_out, None)), ("held_out", slice(0, held_out))):
        folder = os.path.join(arguments[0], name)
        os.makedirs(folder, exist_ok=True)
        numpy.save(os.path.join(folder, "image.npy"), images[part])
        numpy.save(os.path.join(folder, "labels.npy"), labels[part])


if __name__ == "__main__":
    main(sys.argv[1:])

// SPDX-License-Identifier: Apache-2.0
/* Inside of the samples of cleave/train.h. */
#ifndef CLEAVE_TRAIN_SAMPLES_H
#define CLEAVE_TRAIN_SAMPLES_H

#include "base/text.h"
#include "cleave/train.h"
#include "tensor/npz.h"

struct cleave_samples {
  char *path;          /* for messages */
  cleave_npz_t arrays; /* tensors are those of the files: whole, also of a slice */
  int64_t first;       /* of the rows that belong to it */
  int64_t count;
};

/* NULL: there is none of this name. */
const cleave_tensor_t *cleave_samples_find(const cleave_samples_t *samples, const char *name);

/* Appends "'a' float32[5, 3], 'b' int64[5]". */
void cleave_samples_print(const cleave_samples_t *samples, cleave_text_t *text);

#endif /* CLEAVE_TRAIN_SAMPLES_H */

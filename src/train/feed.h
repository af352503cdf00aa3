// SPDX-License-Identifier: Apache-2.0
/* Minibatches: rows of arrays, brought together in the dtype of an input. */
#ifndef CLEAVE_TRAIN_FEED_H
#define CLEAVE_TRAIN_FEED_H

#include "train/nodes/loss.h"
#include "train/samples.h"

/* One input of the step. Its first dimension is the batch. */
typedef struct cleave_train_feed {
  const char *name; /* of the array */
  uint32_t input;   /* of the step's graph */
  const cleave_tensor_t *array;
  cleave_tensor_view_t type; /* of a minibatch; without data */
  int64_t dims[CLEAVE_MAX_RANK];
  int64_t row; /* elements of a sample */
  size_t bytes;
} cleave_train_feed_t;

/* Which array belongs to which input of the model, and to the loss. */
typedef struct cleave_train_feeds {
  cleave_train_feed_t *items; /* the inputs of the model in order, then that of the loss if it has one */
  uint32_t count;
  uint32_t input_count;
} cleave_train_feeds_t;

/* `loss_array` may be NULL. Must be deinitialised also when this fails. */
CLEAVE_MUST_USE cleave_status_t cleave_train_feeds_init(cleave_train_feeds_t *feeds,
                                                        const cleave_model_t *model,
                                                        const cleave_samples_t *samples,
                                                        const char *loss_array, int64_t batch,
                                                        cleave_error_t *error);
void cleave_train_feeds_deinit(cleave_train_feeds_t *feeds);

/* Feeds for other samples, which must have the same shapes and dtypes; `other` shares nothing. */
CLEAVE_MUST_USE cleave_status_t cleave_train_feeds_for(const cleave_train_feeds_t *feeds,
                                                       const cleave_samples_t *samples,
                                                       cleave_train_feeds_t *other, cleave_error_t *error);

/* The dtype of the loss's input, once it is known. CLEAVE_ERROR_SHAPE: the array is of a type that does not
 * become this one. */
CLEAVE_MUST_USE cleave_status_t cleave_train_feed_set_type(cleave_train_feed_t *feed, cleave_dtype_t dtype,
                                                           const cleave_samples_t *samples,
                                                           cleave_error_t *error);

/* Every label is a class, or does not count. Looks at all of them. */
CLEAVE_MUST_USE cleave_status_t cleave_train_check_labels(const cleave_train_feed_t *feed,
                                                          const cleave_samples_t *samples, int64_t classes,
                                                          cleave_error_t *error);

/* Writes the samples `rows` (numbers in the array), one after the other. */
void cleave_train_feed_fill(const cleave_train_feed_t *feed, const int64_t *rows, int64_t count, void *to);

#endif /* CLEAVE_TRAIN_FEED_H */

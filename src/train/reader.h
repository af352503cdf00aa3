// SPDX-License-Identifier: Apache-2.0
/* Reads ahead: while a step computes, a thread brings the next minibatch together. What a minibatch is
 * depends on the seed and the number of the step alone. */
#ifndef CLEAVE_TRAIN_READER_H
#define CLEAVE_TRAIN_READER_H

#include "train/feed.h"

/* A mask of a Dropout: as many bools as its data has elements. */
typedef struct cleave_train_drop {
  int64_t count;
  double ratio;
} cleave_train_drop_t;

typedef struct cleave_train_plan {
  const cleave_train_feeds_t *feeds;
  const cleave_samples_t *samples;
  const cleave_train_drop_t *drops;
  uint32_t drop_count;
  int64_t batch; /* of this process: its part of `ranks` that a step takes together */
  int32_t rank;
  int32_t ranks;
  const cleave_train_feed_t *labels; /* of the feeds: counted; or NULL */
  uint64_t seed;
  bool keep_order;
} cleave_train_plan_t;

typedef struct cleave_train_reader cleave_train_reader_t;

/* The plan must outlive the reader. */
CLEAVE_MUST_USE cleave_status_t cleave_train_reader_create(const cleave_train_plan_t *plan,
                                                           cleave_train_reader_t **out_reader,
                                                           cleave_error_t *error);
void cleave_train_reader_destroy(cleave_train_reader_t *reader);

/* The data of step `step`, from 0, by feed and then by drop: valid until the next call. Steps that follow
 * each other are there without waiting; any other step is read anew. *out_labels: how many labels of the
 * whole minibatch, that of all processes, count. */
void *const *cleave_train_reader_take(cleave_train_reader_t *reader, int64_t step, int64_t *out_labels);

#endif /* CLEAVE_TRAIN_READER_H */

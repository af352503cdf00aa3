// SPDX-License-Identifier: Apache-2.0
/* The loss of a model: a value that it has, or one that is added behind its scores. */
#ifndef CLEAVE_TRAIN_NODES_LOSS_H
#define CLEAVE_TRAIN_NODES_LOSS_H

#include "cleave/train.h"
#include "graph/graph.h"

typedef enum cleave_train_loss_kind {
  CLEAVE_TRAIN_LOSS_VALUE, /* of the model */
  CLEAVE_TRAIN_LOSS_CROSS_ENTROPY,
  CLEAVE_TRAIN_LOSS_MSE
} cleave_train_loss_kind_t;

typedef struct cleave_train_loss {
  cleave_train_loss_kind_t kind;
  const char *array;     /* of the samples that it is against: "labels", "targets"; NULL: none */
  cleave_value_t value;  /* the loss: one number; with `by_element`, one for each label or difference */
  cleave_value_t scores; /* NONE: of a value of the model */
  cleave_value_t input;  /* of the graph, for `array`; NONE: none */
  cleave_value_t share;  /* a number, float64, an input: what the loss is multiplied by; NONE: by nothing */
  cleave_value_t scale;  /* the same, after the share: of gradients in float16 */
  int64_t class_axis;    /* of the scores; cross entropy */
  int64_t classes;
} cleave_train_loss_t;

/* Labels that do not count, as PyTorch has it. */
#define CLEAVE_TRAIN_IGNORED INT64_C(-100)

/* The kind that the options ask for, with the array that it needs. */
cleave_train_loss_t cleave_train_loss_of(const cleave_train_options_t *options);

/* Adds what computes the loss to a graph all of whose shapes are known, after its other inputs. With a
 * communicator in the options (and not by element), `value` is the part of the loss that this process has of
 * all: the sum of a cross entropy, or else the mean, times `share`. In float16 (and not by element) it is
 * multiplied by `scale`. `target` is the array, with the batch in
 * the place of its samples (NULL if there is none). CLEAVE_ERROR_SHAPE: it does not fit the scores.
 * CLEAVE_ERROR_INVALID_ARGUMENT: no such value, or not of one number. */
CLEAVE_MUST_USE cleave_status_t cleave_train_add_loss(cleave_graph_t *graph,
                                                      const cleave_train_options_t *options,
                                                      const cleave_tensor_view_t *target, bool by_element,
                                                      cleave_train_loss_t *loss, cleave_error_t *error);

#endif /* CLEAVE_TRAIN_NODES_LOSS_H */

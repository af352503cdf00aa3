// SPDX-License-Identifier: Apache-2.0
/* The two forms of a model's graph. In inference, BatchNormalization has the statistics that it was given and
 * Dropout passes everything on; in training, statistics are those of the batch, and Dropout drops. */
#ifndef CLEAVE_TRAIN_NODES_FORM_H
#define CLEAVE_TRAIN_NODES_FORM_H

#include "base/containers/array.h"
#include "graph/graph.h"

/* A running mean or variance: a constant of the model that training replaces. */
typedef struct cleave_train_norm {
  cleave_value_t now;  /* an input, of the name of the constant */
  cleave_value_t next; /* what the step makes of it */
} cleave_train_norm_t;

/* A mask that says which elements Dropout keeps: an input of bools. */
typedef struct cleave_train_mask {
  cleave_value_t input;
  double ratio; /* share that is dropped */
} cleave_train_mask_t;

typedef struct cleave_train_form {
  CLEAVE_ARRAY(cleave_train_norm_t) norms;
  CLEAVE_ARRAY(cleave_train_mask_t) masks;
} cleave_train_form_t;

/* Makes the graph one of inference, in place: training_mode 0 everywhere. CLEAVE_ERROR_UNSUPPORTED: the model
 * itself reads the running statistics that BatchNormalization makes in training. */
CLEAVE_MUST_USE cleave_status_t cleave_train_to_inference(cleave_graph_t *graph, cleave_error_t *error);

/* Makes a graph in inference one of training, in place. All shapes are known. The form must be deinitialised
 * also when this fails. CLEAVE_ERROR_UNSUPPORTED: the statistics of a BatchNormalization are no constants, or
 * belong to several. */
CLEAVE_MUST_USE cleave_status_t cleave_train_to_training(cleave_graph_t *graph, bool norms, bool dropout,
                                                         cleave_train_form_t *out_form,
                                                         cleave_error_t *error);
void cleave_train_form_deinit(cleave_train_form_t *form);

/* A constant becomes an input of its name, dtype and shape, after the inputs that there are. */
CLEAVE_MUST_USE cleave_status_t cleave_train_open_constant(cleave_graph_t *graph, cleave_value_t constant,
                                                           cleave_value_t *out_input, cleave_error_t *error);

#endif /* CLEAVE_TRAIN_NODES_FORM_H */

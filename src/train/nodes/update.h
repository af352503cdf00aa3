// SPDX-License-Identifier: Apache-2.0
/* The optimizer's update as nodes: from weights, gradients and state to the next weights and state. */
#ifndef CLEAVE_TRAIN_NODES_UPDATE_H
#define CLEAVE_TRAIN_NODES_UPDATE_H

#include "cleave/train.h"
#include "partition/rewrite/editor.h"

/* Tensors of a weight's shape that an optimizer keeps for it, at most. */
enum { CLEAVE_TRAIN_STATES = 2 };

/* Numbers of a step, float64 scalars, which are inputs of the graph. */
typedef enum cleave_train_scalar {
  CLEAVE_TRAIN_RATE,    /* what the change is multiplied by; Adam: rate / (1 - beta1^t) */
  CLEAVE_TRAIN_ROOT,    /* Adam: 1 / sqrt(1 - beta2^t) */
  CLEAVE_TRAIN_KEEP,    /* AdamW: 1 - rate weight_decay */
  CLEAVE_TRAIN_UNSCALE, /* float16: 1 / the scale of the loss */
  CLEAVE_TRAIN_SCALARS
} cleave_train_scalar_t;

typedef struct cleave_train_weight {
  cleave_value_t value;                      /* the weight, an input of the graph; float32 or float64 */
  cleave_value_t gradient;                   /* of its dtype and shape */
  cleave_value_t state[CLEAVE_TRAIN_STATES]; /* inputs; zero before the first step */
  /* made here: */
  cleave_value_t next;
  cleave_value_t next_state[CLEAVE_TRAIN_STATES];
} cleave_train_weight_t;

/* How many states a weight has. */
uint32_t cleave_train_state_count(cleave_optimizer_t optimizer);

/* The numbers of a step, before which there were `updates`. */
void cleave_train_scalars(const cleave_train_options_t *options, int64_t updates, double rate, double scale,
                          double out_scalars[CLEAVE_TRAIN_SCALARS]);

/* Adds the updates of all weights. Gradients of a loss that is scaled become those of the loss, in the place
 * of the others in `weights`. *out_norm: the norm of all gradients together, before they are cut; of the
 * dtype of the first weight. */
CLEAVE_MUST_USE cleave_status_t cleave_train_add_updates(cleave_editor_t *editor,
                                                         const cleave_train_options_t *options,
                                                         const cleave_value_t *scalars,
                                                         cleave_train_weight_t *weights, size_t count,
                                                         cleave_value_t *out_norm, cleave_error_t *error);

#endif /* CLEAVE_TRAIN_NODES_UPDATE_H */

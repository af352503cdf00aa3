// SPDX-License-Identifier: Apache-2.0
/* Inside of a trainer, for the files that make it, run it and save it. */
#ifndef CLEAVE_TRAIN_TRAINER_INTERNAL_H
#define CLEAVE_TRAIN_TRAINER_INTERNAL_H

#include "base/array.h"
#include "train/options.h"
#include "train/reader.h"
#include "train/update.h"

/* What a step reads in one buffer and writes, changed, to another: weights, their state, running statistics.
 */
typedef enum cleave_train_role {
  CLEAVE_TRAIN_WEIGHT,
  CLEAVE_TRAIN_NORM,
  CLEAVE_TRAIN_STATE /* + 0, 1 */
} cleave_train_role_t;

typedef struct cleave_train_carried {
  const char *name; /* of the constant */
  int role;         /* cleave_train_role_t */
  uint32_t input;   /* of the step's model */
  uint32_t output;
  cleave_tensor_t *buffers[2];
} cleave_train_carried_t;

/* A graph that is compiled. */
typedef struct cleave_train_program {
  cleave_model_t *model;
  cleave_plan_t *plan;
  cleave_session_t *session;
} cleave_train_program_t;

typedef struct cleave_train_record {
  double loss;
  double norm;
  double rate;
} cleave_train_record_t;

struct cleave_trainer {
  cleave_arena_t arena; /* names, options */
  cleave_train_options_t options;
  cleave_session_options_t session_options;
  cleave_rule_files_t *rules;
  cleave_model_t *base;  /* the model in inference, with the weights before training */
  cleave_model_t *bound; /* the same for the minibatch */
  const cleave_samples_t *samples;
  cleave_train_feeds_t feeds;
  cleave_train_loss_t loss;
  /* the step; outputs: loss, norm, carried */
  cleave_train_program_t step;
  CLEAVE_ARRAY(cleave_train_carried_t) carried;
  CLEAVE_ARRAY(cleave_train_drop_t) drops;
  uint32_t first_mask; /* input */
  uint32_t first_scalar;
  double scalars[CLEAVE_TRAIN_SCALARS];
  uint32_t now; /* which of the buffers has the values of now */
  /* evaluation; outputs: loss, scores */
  cleave_train_program_t evaluation;
  void **evaluation_data; /* by feed */
  /* the run */
  cleave_train_plan_t plan;
  cleave_train_reader_t *reader;
  int64_t steps_per_epoch;
  int64_t steps_done;
  CLEAVE_ARRAY(cleave_train_record_t) history;
};

/* Of a graph, which it takes over: model, plan, session. `origin` as for cleave_model_create_sharing_take. */
CLEAVE_MUST_USE cleave_status_t cleave_train_compile_take(cleave_trainer_t *trainer, cleave_graph_t *graph,
                                                          cleave_model_t *origin,
                                                          cleave_train_program_t *out_program,
                                                          cleave_error_t *error);
void cleave_train_program_deinit(cleave_train_program_t *program);

/* The graph of the bound model, with types, and the loss behind it. */
CLEAVE_MUST_USE cleave_status_t cleave_train_start_graph(cleave_trainer_t *trainer, bool by_element,
                                                         cleave_train_loss_t *out_loss,
                                                         cleave_graph_t **out_graph, cleave_error_t *error);

/* step.c: the step's program, and what it carries, with the buffers filled. */
CLEAVE_MUST_USE cleave_status_t cleave_train_make_step(cleave_trainer_t *trainer, cleave_error_t *error);
/* Makes the session read the buffers of now and write the others. */
CLEAVE_MUST_USE cleave_status_t cleave_train_point(cleave_trainer_t *trainer, cleave_error_t *error);

/* graphs.c: a graph of the same nodes with other outputs; `graph` is destroyed, whatever happens. */
CLEAVE_MUST_USE cleave_status_t cleave_train_take_outputs(cleave_graph_t *graph,
                                                          const cleave_value_t *outputs, size_t count,
                                                          cleave_graph_t **out_graph, cleave_error_t *error);

#endif /* CLEAVE_TRAIN_TRAINER_INTERNAL_H */

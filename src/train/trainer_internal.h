// SPDX-License-Identifier: Apache-2.0
/* Inside of a trainer, for the files that make it, run it and save it. */
#ifndef CLEAVE_TRAIN_TRAINER_INTERNAL_H
#define CLEAVE_TRAIN_TRAINER_INTERNAL_H

#include "base/containers/array.h"
#include "distributed/exchange.h"
#include "runtime/model/model_gradient.h"
#include "train/nodes/sums.h"
#include "train/options.h"
#include "train/reader.h"

/* Tensors that a step reads in one buffer and writes, changed, to another: weights, their state, running
 * statistics. */
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

/* The first outputs of a step: loss and norm. */
enum { CLEAVE_TRAIN_LOSS, CLEAVE_TRAIN_GRADIENT_NORM, CLEAVE_TRAIN_RESULTS };

/* A graph that is compiled. */
typedef struct cleave_train_program {
  cleave_model_t *model;
  cleave_plan_t *plan;
  cleave_session_t *session;
} cleave_train_program_t;

/* A part of a step. Inputs and outputs are views of the trainer's, which say where their values are now. */
typedef struct cleave_train_part {
  cleave_train_program_t program;
  const cleave_tensor_view_t **inputs; /* of the program, in order */
  const cleave_tensor_view_t **outputs;
  uint32_t input_count;
  uint32_t output_count;
  CLEAVE_ARRAY(uint32_t) waits; /* buckets whose sums it reads */
  bool exists;                  /* it has nodes */
} cleave_train_part_t;

/* The graph of a whole step, and where it is cut. */
typedef struct cleave_train_cut {
  const cleave_graph_t *graph;
  cleave_model_t *origin;         /* as for cleave_model_create_sharing_take */
  const cleave_value_t *outputs;  /* loss, norm, carried */
  const uint32_t *buckets;        /* by output: that it is updated with; CLEAVE_INDEX_NONE: the last */
  const cleave_train_sum_t *sums; /* in the order of the exchange's items */
  uint32_t output_count;
} cleave_train_cut_t;

typedef struct cleave_train_record {
  double loss;
  double norm;
  double rate;
  double scale; /* of the loss; not in checkpoints, since it follows from the norms before */
} cleave_train_record_t;

struct cleave_trainer {
  cleave_arena_t arena; /* names, options */
  cleave_train_options_t options;
  cleave_session_options_t session_options;
  cleave_rule_files_t *rules;
  cleave_model_t *base;  /* the model in inference, with the weights before training */
  cleave_model_t *bound; /* the same for the minibatch */
  const cleave_samples_t *samples;
  cleave_recompute_report_t recompute;
  cleave_train_backward_report_t backward;
  cleave_train_feeds_t feeds;
  cleave_train_loss_t loss;
  int32_t rank; /* among those that train together */
  int32_t ranks;
  int64_t batch; /* samples of a step in this process */
  /* the step; its outputs: loss, norm, carried */
  CLEAVE_ARRAY(cleave_train_part_t) parts;
  cleave_tensor_view_t *input_views; /* by input of the whole step */
  cleave_tensor_view_t *output_views;
  CLEAVE_ARRAY(cleave_tensor_t *) between; /* values that parts leave to later ones, and results */
  cleave_exchange_t exchange;              /* without buckets if this process trains alone */
  int64_t exchange_steps;
  CLEAVE_ARRAY(cleave_train_carried_t) carried;
  CLEAVE_ARRAY(cleave_train_drop_t) drops;
  uint32_t first_mask; /* input */
  uint32_t first_scalar;
  uint32_t share_input; /* CLEAVE_INDEX_NONE: this process trains alone */
  double share;         /* what the loss of this process is multiplied by */
  uint32_t scale_input; /* CLEAVE_INDEX_NONE: the loss is not scaled */
  cleave_train_scaling_t scaling;
  const char *precision_missing; /* why rules were not asked for the precision; NULL: they were */
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

/* precision.c: loads the rule files, which are asked for the precision. */
CLEAVE_MUST_USE cleave_status_t cleave_train_load_rules(cleave_trainer_t *trainer, cleave_context_t *context,
                                                        const cleave_partition_request_t *request,
                                                        cleave_error_t *error);

/* The scale of each step of the history, and of the next one. */
void cleave_train_replay_scaling(cleave_trainer_t *trainer);

/* Makes model, plan and session of a graph, which it takes over. `origin` is that of
 * cleave_model_create_sharing_take. */
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
/* Makes the step read the buffers of now and write the others. */
void cleave_train_point(cleave_trainer_t *trainer);

/* parts.c: makes the parts of a step, and runs them: sums of buckets start behind the parts that complete
 * them. */
CLEAVE_MUST_USE cleave_status_t cleave_train_make_parts(cleave_trainer_t *trainer,
                                                        const cleave_train_cut_t *cut, cleave_error_t *error);
CLEAVE_MUST_USE cleave_status_t cleave_train_run_parts(cleave_trainer_t *trainer, cleave_error_t *error);
void cleave_train_parts_deinit(cleave_trainer_t *trainer);

/* together.c, with other processes. All have made a trainer, or one failed, and then all fail: so also if
 * what they made is not the same. */
CLEAVE_MUST_USE cleave_status_t cleave_train_agree(const cleave_trainer_t *trainer, cleave_status_t status,
                                                   cleave_error_t *error);
/* All get the history and what is carried from the first one, whose status it is. */
CLEAVE_MUST_USE cleave_status_t cleave_train_share_state(cleave_trainer_t *trainer, cleave_status_t status,
                                                         cleave_error_t *error);

/* graphs.c: a graph of the same nodes with other outputs; `graph` is destroyed, whatever happens. */
CLEAVE_MUST_USE cleave_status_t cleave_train_take_outputs(cleave_graph_t *graph,
                                                          const cleave_value_t *outputs, size_t count,
                                                          cleave_graph_t **out_graph, cleave_error_t *error);

#endif /* CLEAVE_TRAIN_TRAINER_INTERNAL_H */

// SPDX-License-Identifier: Apache-2.0
/*
 * One stage of a plan as a model with a plan of its own, for the process that runs it. Stage k is that of
 * process k. Requests go from stage to stage, so that each process works on another one; process 0 gets the
 * outputs.
 */
#ifndef CLEAVE_DISTRIBUTED_STAGE_H
#define CLEAVE_DISTRIBUTED_STAGE_H

#include "base/arena.h"
#include "base/containers/array.h"
#include "distributed/communicator.h"
#include "partition/plan/plan.h"

typedef struct cleave_stage_target {
  int32_t peer;
  int32_t tag; /* number among the peer's inputs, or among the outputs of the model */
} cleave_stage_target_t;

/* A value that comes from another process, or goes to others. Of its buffers some are under way while the
 * session uses another one. */
typedef struct cleave_stage_link {
  cleave_transfer_kind_t kind;
  uint32_t port;             /* input or output of the stage, or output of the model */
  cleave_tensor_view_t view; /* its type */
  size_t bytes;
  cleave_stage_target_t *targets; /* a RECEIVE has one */
  uint32_t target_count;
  size_t slot_count;
  unsigned char **slots;
  uint64_t *numbers; /* of transfers: by slot, and in it by target */
  bool *is_going;    /* by slot */
} cleave_stage_link_t;

typedef struct cleave_stage_links {
  CLEAVE_ARRAY(cleave_stage_link_t) list;
} cleave_stage_links_t;

typedef struct cleave_stage {
  const cleave_communicator_t *communicator;
  cleave_arena_t arena;
  cleave_model_t *model;
  cleave_plan_t *plan; /* its texts are those of the whole plan */
  uint32_t input_count;
  uint32_t *model_inputs;       /* by input: which one of the whole plan's; NONE: another process sends it */
  cleave_tensor_view_t *inputs; /* by input: the type, without data */
  cleave_stage_links_t receives;
  cleave_stage_links_t sends;
  cleave_stage_links_t results;  /* process 0: outputs of the model that others make */
  uint32_t output_count;         /* process 0: of the model; others: 0 */
  uint32_t *own_outputs;         /* by output of the model: which one of the stage; NONE: another makes it */
  cleave_tensor_view_t *outputs; /* of the last request */
  double compute_ms;             /* of the last cleave_stage_run: in the session */
  double waited_ms;              /* the same: for transfers, and so for other processes */
} cleave_stage_t;

typedef struct cleave_stage_source {
  cleave_model_t *model;
  const cleave_plan_t *plan;
  const cleave_tensor_view_t *const *inputs; /* of the plan's graph: sizes that it leaves open */
  size_t input_count;
  int64_t concurrency; /* requests at most that are under way at once, 1 or more */
} cleave_stage_source_t;

/* Makes the stage of this process. All processes call it; `status` says how each fares, and if one failed,
 * all fail with its error. So they do if their plans differ, if there are not as many stages as processes
 * (CLEAVE_ERROR_INVALID_ARGUMENT), or if a value between stages has a size that is known only at run time, or
 * is of strings (CLEAVE_ERROR_UNSUPPORTED). Model and plan must outlive the stage. */
CLEAVE_STATUS cleave_stage_create(const cleave_communicator_t *communicator,
                                  const cleave_stage_source_t *source, cleave_status_t status,
                                  cleave_stage_t **out_stage, cleave_error_t *error);
/* NULL is a no-op. */
void cleave_stage_destroy(cleave_stage_t *stage);

typedef struct cleave_stage_load {
  int64_t count;       /* requests; what process 0 has counts */
  int64_t concurrency; /* under way at once; what process 0 has counts */
  double *times;       /* process 0: by request, milliseconds until all outputs are there */
  double seconds;      /* process 0: from the first begin to the last end */
} cleave_stage_load_t;

/* Runs requests on a session of the stage's model and plan, in which the inputs of the whole model are set.
 * All processes call it. If one fails, others may wait for it: end them all (`abort` of the communicator). */
CLEAVE_STATUS cleave_stage_run(cleave_stage_t *stage, cleave_session_t *session, cleave_stage_load_t *load,
                               cleave_error_t *error);

#endif /* CLEAVE_DISTRIBUTED_STAGE_H */

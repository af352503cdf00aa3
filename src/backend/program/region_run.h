// SPDX-License-Identifier: Apache-2.0
/* A view compiled, run once, and gone: for constant folding and for checks of single regions. Tensors are in
 * host memory, wherever the backend works. */
#ifndef CLEAVE_BACKEND_PROGRAM_REGION_RUN_H
#define CLEAVE_BACKEND_PROGRAM_REGION_RUN_H

#include "backend/region/view.h"
#include "backend/registry/registry.h"

typedef struct cleave_region_run {
  const cleave_backend_handle_t *handle;
  const cleave_view_t *view;
  const cleave_tensor_view_t *inputs;      /* as view->region.inputs, all shapes known */
  int32_t threads;                         /* 0: one per usable processor */
  const cleave_session_options_t *session; /* backend options and blobs are taken from it; NULL: none */
  size_t most_bytes; /* of an output whose shape is known only from the run; 0: no limit */
} cleave_region_run_t;

/* `outputs` has room for view->region.output_count tensors, which the caller releases; all NULL if it
 * fails. The status is the backend's own, and its reason is in `message`. */
CLEAVE_STATUS cleave_region_run(const cleave_region_run_t *request, cleave_tensor_t **outputs,
                                cleave_message_t *message);

#endif /* CLEAVE_BACKEND_PROGRAM_REGION_RUN_H */

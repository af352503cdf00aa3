// SPDX-License-Identifier: Apache-2.0
// Single operators: executors of an isolated library, and operators that it adds. Both run as programs. Types
// that the process infers are handed on as they are: the caller checks them like those of a library in this
// process.
#include <string.h>

#include "backend/isolate/isolate_program.h"

/* ---- inference ---- */

static void read_types(cleave_wire_in_t *reply, uint32_t count, cleave_tensor_view_t *outputs,
                       int64_t (*dims)[CLEAVE_MAX_RANK]) {
  for (uint32_t k = 0; k < count && !reply->failed; k++) {
    outputs[k].dtype = (cleave_dtype_t)(int32_t)cleave_wire_u32(reply);
    outputs[k].rank = (int32_t)cleave_wire_u32(reply);
    const int64_t *sizes = cleave_wire_take(reply, CLEAVE_MAX_RANK, sizeof *sizes, sizeof *sizes);
    if (sizes != NULL) {
      memcpy(dims[k], sizes, sizeof dims[k]);
    }
  }
}

static cleave_status_t infer(void *self, const cleave_region_view_t *node, cleave_tensor_view_t *outputs,
                             int64_t (*dims)[CLEAVE_MAX_RANK], cleave_message_t *message) {
  const cleave_isolated_operator_t *op = self;
  cleave_worker_t *worker = cleave_isolate_worker(op->isolate);
  cleave_worker_call_t call = cleave_isolate_call(op->isolate, CLEAVE_FRAME_INFER, op->name);
  cleave_wire_in_t reply;
  cleave_status_t status = cleave_isolate_ask(worker, &call, &op->number, 1, node, &reply, message);
  if (status == CLEAVE_OK) {
    read_types(&reply, node->output_count, outputs, dims);
    status = cleave_isolate_check_reply(worker, &call, &reply, message);
    cleave_worker_end(worker);
  }
  cleave_worker_release(worker);
  return status;
}

/* ---- kernels ---- */

static cleave_status_t create(void *self, const cleave_region_view_t *node,
                              const cleave_compile_options_t *options, void **out_executor,
                              cleave_message_t *message) {
  const cleave_isolated_operator_t *op = self;
  cleave_isolate_request_t request = {
      .way = CLEAVE_WAY_KERNEL, .number = op->number, .name = op->name, .region = node, .options = options};
  return cleave_isolate_make(op->isolate, &request, out_executor, message);
}

void cleave_isolate_fill_operator(cleave_isolated_operator_t *op, uint32_t has) {
  cleave_custom_operator_t *own = &op->definition;
  own->self = op;
  own->infer = has & CLEAVE_OPERATOR_HAS_INFER ? infer : NULL;
  own->create = has & CLEAVE_OPERATOR_HAS_CREATE ? create : NULL;
  own->destroy = has & CLEAVE_OPERATOR_HAS_DESTROY ? cleave_isolate_unload : NULL;
  own->execute = has & CLEAVE_OPERATOR_HAS_EXECUTE ? cleave_isolate_run : NULL;
}

/* ---- executors ---- */

static cleave_status_t get_executor(void *state, const cleave_region_view_t *node,
                                    const cleave_compile_options_t *options, void **out_executor,
                                    cleave_message_t *message) {
  const char *op = node->node_count > 0 ? node->nodes[0].op : "";
  cleave_isolate_request_t request = {
      .way = CLEAVE_WAY_EXECUTOR, .name = op, .region = node, .options = options};
  return cleave_isolate_make(state, &request, out_executor, message);
}

const cleave_backend_imperative_t cleave_isolate_imperative = {.size = sizeof cleave_isolate_imperative,
                                                               .get_executor = get_executor,
                                                               .release_executor = cleave_isolate_unload,
                                                               .execute = cleave_isolate_run};

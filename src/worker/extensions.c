// SPDX-License-Identifier: Apache-2.0
// What the library adds to cleave: sent as it filled it in, with the sizes of its structs, so that the parent
// finds the same things wrong that it would find in its own process. Definitions are numbers from then on.
#include "worker/worker.h"

/* ---- telling ---- */

/* How many there are, and how many of them are sent: cleave takes no more. */
static uint32_t put_counts(cleave_wire_out_t *reply, uint32_t count, const void *list, uint32_t most) {
  uint32_t sent = list == NULL ? 0 : count < most ? count : most;
  cleave_wire_put_u32(reply, count);
  cleave_wire_put_u32(reply, sent);
  return sent;
}

static uint32_t bit(bool is_there, uint32_t value) {
  return is_there ? value : 0;
}

static void put_operator(cleave_wire_out_t *reply, const cleave_custom_operator_t *op) {
  cleave_wire_put_u32(reply, op != NULL);
  if (op == NULL) {
    return;
  }
  cleave_wire_put_u64(reply, op->size);
  if (op->size < sizeof *op) {
    return;
  }
  cleave_wire_put_text(reply, op->domain);
  cleave_wire_put_text(reply, op->name);
  cleave_wire_put_u32(reply, (uint32_t)op->version);
  cleave_wire_put_u32(reply, (uint32_t)op->last_version);
  cleave_wire_put_text(reply, op->inputs);
  cleave_wire_put_text(reply, op->outputs);
  cleave_wire_put_text(reply, op->attributes);
  cleave_wire_put_u32(reply, bit(op->infer != NULL, CLEAVE_OPERATOR_HAS_INFER) |
                                 bit(op->create != NULL, CLEAVE_OPERATOR_HAS_CREATE) |
                                 bit(op->destroy != NULL, CLEAVE_OPERATOR_HAS_DESTROY) |
                                 bit(op->execute != NULL, CLEAVE_OPERATOR_HAS_EXECUTE) |
                                 bit(op->is_commutative, CLEAVE_OPERATOR_IS_COMMUTATIVE) |
                                 bit(op->is_stateful, CLEAVE_OPERATOR_IS_STATEFUL));
}

static void put_partitioner(cleave_wire_out_t *reply, const cleave_custom_partitioner_t *own) {
  cleave_wire_put_u32(reply, own != NULL);
  if (own == NULL) {
    return;
  }
  cleave_wire_put_u64(reply, own->size);
  if (own->size < sizeof *own) {
    return;
  }
  cleave_wire_put_text(reply, own->name);
  cleave_wire_put_text(reply, own->backend);
  cleave_wire_put_u32(reply, bit(own->begin != NULL, CLEAVE_PARTITIONER_HAS_BEGIN) |
                                 bit(own->end != NULL, CLEAVE_PARTITIONER_HAS_END) |
                                 bit(own->supported != NULL, CLEAVE_PARTITIONER_HAS_SUPPORTED) |
                                 bit(own->create_selector != NULL, CLEAVE_PARTITIONER_HAS_CREATE) |
                                 bit(own->destroy_selector != NULL, CLEAVE_PARTITIONER_HAS_DESTROY) |
                                 bit(own->select != NULL, CLEAVE_PARTITIONER_HAS_SELECT) |
                                 bit(own->select_input != NULL, CLEAVE_PARTITIONER_HAS_SELECT_INPUT) |
                                 bit(own->select_output != NULL, CLEAVE_PARTITIONER_HAS_SELECT_OUTPUT) |
                                 bit(own->filter != NULL, CLEAVE_PARTITIONER_HAS_FILTER) |
                                 bit(own->review != NULL, CLEAVE_PARTITIONER_HAS_REVIEW));
}

static void put_pass(cleave_wire_out_t *reply, const cleave_custom_pass_t *pass) {
  cleave_wire_put_u32(reply, pass != NULL);
  if (pass == NULL) {
    return;
  }
  cleave_wire_put_u64(reply, pass->size);
  if (pass->size >= sizeof *pass) {
    cleave_wire_put_text(reply, pass->name);
    cleave_wire_put_u32(reply, bit(pass->run != NULL, CLEAVE_PASS_HAS_RUN));
  }
}

static void put_texts(cleave_wire_out_t *reply, uint32_t count, const char *const *texts, uint32_t most) {
  uint32_t sent = put_counts(reply, count, texts, most);
  for (uint32_t k = 0; k < sent; k++) {
    cleave_wire_put_text(reply, texts[k]);
  }
}

void worker_put_extensions(worker_t *worker) {
  cleave_wire_out_t *reply = &worker->reply;
  const cleave_backend_extensions_t *own = worker->table.extensions;
  cleave_wire_put_u32(reply, own != NULL);
  if (own == NULL) {
    return;
  }
  cleave_wire_put_u64(reply, own->size);
  if (own->size < sizeof *own) {
    worker->table.extensions = NULL;
    return;
  }
  uint32_t sent = put_counts(reply, own->operator_count, own->operators, CLEAVE_MAX_EXTENSIONS);
  for (uint32_t k = 0; k < sent; k++) {
    put_operator(reply, own->operators[k]);
  }
  sent = put_counts(reply, own->partitioner_count, own->partitioners, CLEAVE_MAX_EXTENSIONS);
  for (uint32_t k = 0; k < sent; k++) {
    put_partitioner(reply, own->partitioners[k]);
  }
  sent = put_counts(reply, own->pass_count, own->passes, CLEAVE_MAX_EXTENSIONS);
  for (uint32_t k = 0; k < sent; k++) {
    put_pass(reply, own->passes[k]);
  }
  put_texts(reply, own->rule_file_count, own->rule_files, CLEAVE_MAX_RULE_FILES);
}

void worker_put_option_keys(worker_t *worker) {
  put_texts(&worker->reply, worker->table.option_key_count, worker->table.option_keys,
            CLEAVE_MAX_OPTION_KEYS);
}

/* ---- finding ---- */

const cleave_custom_operator_t *worker_operator(const worker_t *worker, uint32_t number) {
  const cleave_backend_extensions_t *own = worker->table.extensions;
  return own != NULL && number < own->operator_count && own->operators != NULL ? own->operators[number]
                                                                               : NULL;
}

const cleave_custom_partitioner_t *worker_partitioner(const worker_t *worker, uint32_t number) {
  const cleave_backend_extensions_t *own = worker->table.extensions;
  return own != NULL && number < own->partitioner_count && own->partitioners != NULL
             ? own->partitioners[number]
             : NULL;
}

const cleave_custom_pass_t *worker_custom_pass(const worker_t *worker, uint32_t number) {
  const cleave_backend_extensions_t *own = worker->table.extensions;
  return own != NULL && number < own->pass_count && own->passes != NULL ? own->passes[number] : NULL;
}

/* ---- inference ---- */

cleave_status_t worker_infer(worker_t *worker, cleave_wire_in_t *in, cleave_message_t *message) {
  const cleave_custom_operator_t *op = worker_operator(worker, cleave_wire_u32(in));
  cleave_region_view_t region;
  CLEAVE_TRY(worker_read_region(worker, in, &worker->arena, &region, message));
  uint32_t count = region.output_count;
  cleave_tensor_view_t *outputs = cleave_arena_allocate(&worker->arena, count, sizeof *outputs);
  int64_t(*dims)[CLEAVE_MAX_RANK] = cleave_arena_allocate(&worker->arena, count, sizeof *dims);
  if (op == NULL || op->infer == NULL || outputs == NULL || dims == NULL) {
    return worker_fail_request(message);
  }
  for (uint32_t k = 0; k < count; k++) {
    outputs[k] = (cleave_tensor_view_t){.size = sizeof *outputs, .rank = -1, .dims = dims[k]};
    for (int32_t d = 0; d < CLEAVE_MAX_RANK; d++) {
      dims[k][d] = -1;
    }
  }
  CLEAVE_TRY(op->infer(op->self, &region, outputs, dims, message));
  for (uint32_t k = 0; k < count; k++) {
    cleave_wire_put_u32(&worker->reply, (uint32_t)outputs[k].dtype);
    cleave_wire_put_u32(&worker->reply, (uint32_t)outputs[k].rank);
    cleave_wire_put(&worker->reply, dims[k], sizeof dims[k], sizeof dims[k][0]);
  }
  return CLEAVE_OK;
}

// SPDX-License-Identifier: Apache-2.0
// Makes stages: the plan's graph is cut, and what one part makes and another reads becomes a link.
#include "distributed/stage.h"

#include <string.h>

#include "distributed/cut.h"
#include "partition/plan/plan_read.h"
#include "runtime/model/bind.h"
#include "runtime/model/model.h"
#include "system/digest.h"
#include "tensor/tensor.h"

enum { SLOTS = 2, TAGS = 32768 };

typedef struct making {
  cleave_stage_t *stage;
  const cleave_stage_source_t *source;
  const cleave_graph_t *graph; /* of the plan */
  const cleave_graph_t *sized; /* the same with the sizes of the inputs */
  cleave_cut_part_t *parts;
  uint32_t number;
  uint32_t *first_target; /* by value: an entry of `targets`; NONE: no other process reads it */
  uint32_t *input_of;     /* by value: number among the inputs of the plan's graph; NONE */
  struct {
    CLEAVE_ARRAY(struct target_entry) list;
  } targets;
} making_t;

struct target_entry {
  cleave_stage_target_t target;
  uint32_t next; /* of the same value */
};

// ---- links ----

static cleave_status_t check_size(const making_t *making, cleave_value_t value, bool is_known,
                                  cleave_error_t *error) {
  return is_known ? CLEAVE_OK
                  : cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                                     "value '%.100s' goes from one stage to another: expected numbers whose "
                                     "size is known before the run; let its readers be in the stage that "
                                     "makes it",
                                     cleave_value_name(making->graph, value));
}

static cleave_status_t view_value(const making_t *making, cleave_value_t value,
                                  cleave_tensor_view_t *out_view, size_t *out_bytes, cleave_error_t *error) {
  const cleave_value_record_t *record = cleave_graph_value(making->sized, value);
  int64_t count = 0;
  bool is_known = record->rank >= 0 && cleave_shape_element_count(record->rank, record->dims, &count) &&
                  record->dtype != CLEAVE_DTYPE_STRING && record->dtype != CLEAVE_DTYPE_UNKNOWN;
  CLEAVE_TRY(check_size(making, value, is_known, error));
  int64_t *dims = cleave_arena_allocate(&making->stage->arena, (size_t)record->rank + 1, sizeof *dims);
  if (dims == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (int32_t d = 0; d < record->rank; d++) {
    dims[d] = record->dims[d];
  }
  *out_view = (cleave_tensor_view_t){
      .size = sizeof *out_view, .dtype = (cleave_dtype_t)record->dtype, .rank = record->rank, .dims = dims};
  return check_size(making, value, cleave_tensor_view_bytes(out_view, out_bytes), error);
}

static cleave_status_t add_link(const making_t *making, cleave_stage_links_t *links, cleave_value_t value,
                                const cleave_stage_link_t *model, cleave_error_t *error) {
  cleave_arena_t *arena = &making->stage->arena;
  cleave_stage_link_t link = *model;
  CLEAVE_TRY(cleave_array_reserve(&links->list, 1, error));
  CLEAVE_TRY(view_value(making, value, &link.view, &link.bytes, error));
  link.targets = cleave_arena_copy(arena, model->targets, model->target_count * sizeof *model->targets);
  link.slots = cleave_arena_allocate(arena, link.slot_count, sizeof *link.slots);
  link.numbers = cleave_arena_allocate(arena, link.slot_count * link.target_count, sizeof *link.numbers);
  link.is_going = cleave_arena_allocate(arena, link.slot_count, sizeof *link.is_going);
  if (link.targets == NULL || link.slots == NULL || link.numbers == NULL || link.is_going == NULL) {
    return cleave_error_out_of_memory(error);
  }
  memset(link.is_going, 0, link.slot_count * sizeof *link.is_going);
  memset((void *)link.slots, 0, link.slot_count * sizeof *link.slots);
  cleave_array_push_reserved(&links->list, link);
  cleave_stage_link_t *added = &links->list.items[links->list.count - 1];
  for (size_t k = 0; k < added->slot_count; k++) {
    added->slots[k] = cleave_allocate_aligned(added->bytes + 1);
    if (added->slots[k] == NULL) {
      return cleave_error_out_of_memory(error);
    }
  }
  return CLEAVE_OK;
}

static uint32_t stage_of(const making_t *making, cleave_value_t value) {
  cleave_node_t node = cleave_value_producer(making->graph, value);
  return cleave_node_exists(node) ? making->source->plan->node_stage[node.index] : CLEAVE_INDEX_NONE;
}

static cleave_status_t add_target(making_t *making, cleave_value_t value, int32_t peer, uint32_t tag,
                                  cleave_error_t *error) {
  const struct target_entry entry = {.target = {.peer = peer, .tag = (int32_t)tag},
                                     .next = making->first_target[value.index]};
  if (tag >= TAGS) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "stages exchange more than %d values", TAGS);
  }
  making->first_target[value.index] = (uint32_t)making->targets.list.count;
  CLEAVE_ARRAY_PUSH(&making->targets.list, entry, error);
  return CLEAVE_OK;
}

/* Who reads what this stage makes: later stages, and process 0 outputs of the model. */
static cleave_status_t find_targets(making_t *making, cleave_error_t *error) {
  const cleave_cut_part_t *own = &making->parts[making->number];
  for (uint32_t p = making->number + 1; p < making->source->plan->stage_count; p++) {
    for (uint32_t k = 0; k < making->parts[p].inputs.count; k++) {
      cleave_value_t value = making->parts[p].inputs.items[k];
      if (stage_of(making, value) == making->number) {
        CLEAVE_TRY(add_target(making, value, (int32_t)p, k, error));
      }
    }
  }
  for (uint32_t k = 0; k < own->outputs.count && making->number > 0; k++) {
    if (own->numbers.items[k] != CLEAVE_INDEX_NONE) {
      CLEAVE_TRY(add_target(making, own->outputs.items[k], 0, own->numbers.items[k], error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t add_sends(making_t *making, cleave_error_t *error) {
  const cleave_cut_part_t *own = &making->parts[making->number];
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY(find_targets(making, error));
  cleave_stage_target_t *targets = cleave_allocate(making->targets.list.count, sizeof *targets);
  if (targets == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (uint32_t k = 0; k < own->outputs.count && status == CLEAVE_OK; k++) {
    cleave_value_t value = own->outputs.items[k];
    cleave_stage_link_t link = {
        .kind = CLEAVE_TRANSFER_SEND, .port = k, .targets = targets, .slot_count = SLOTS};
    for (uint32_t t = making->first_target[value.index]; t != CLEAVE_INDEX_NONE;
         t = making->targets.list.items[t].next) {
      targets[link.target_count++] = making->targets.list.items[t].target;
    }
    making->first_target[value.index] = CLEAVE_INDEX_NONE; /* a value may be an output twice */
    status = link.target_count > 0 ? add_link(making, &making->stage->sends, value, &link, error) : CLEAVE_OK;
  }
  cleave_free(targets);
  return status;
}

/* Without the data. */
static cleave_status_t copy_type(const making_t *making, const cleave_tensor_view_t *given,
                                 cleave_tensor_view_t *out_view, cleave_error_t *error) {
  int64_t *dims = cleave_arena_allocate(&making->stage->arena, (size_t)given->rank + 1, sizeof *dims);
  if (dims == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (int32_t d = 0; d < given->rank; d++) {
    dims[d] = given->dims[d];
  }
  *out_view = *given;
  out_view->dims = dims;
  out_view->data = NULL;
  return CLEAVE_OK;
}

static cleave_status_t add_inputs(making_t *making, cleave_error_t *error) {
  cleave_stage_t *stage = making->stage;
  const cleave_cut_part_t *own = &making->parts[making->number];
  stage->input_count = (uint32_t)own->inputs.count;
  stage->inputs = cleave_arena_allocate(&stage->arena, own->inputs.count + 1, sizeof *stage->inputs);
  stage->model_inputs =
      cleave_arena_allocate(&stage->arena, own->inputs.count + 1, sizeof *stage->model_inputs);
  if (stage->inputs == NULL || stage->model_inputs == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (uint32_t k = 0; k < stage->input_count; k++) {
    cleave_value_t value = own->inputs.items[k];
    uint32_t from = stage_of(making, value);
    size_t bytes = 0;
    stage->model_inputs[k] = making->input_of[value.index];
    if (from == CLEAVE_INDEX_NONE) {
      CLEAVE_TRY(copy_type(making, making->source->inputs[stage->model_inputs[k]], &stage->inputs[k], error));
      continue;
    }
    cleave_stage_target_t target = {.peer = (int32_t)from, .tag = (int32_t)k};
    const cleave_stage_link_t link = {.kind = CLEAVE_TRANSFER_RECEIVE,
                                      .port = k,
                                      .targets = &target,
                                      .target_count = 1,
                                      .slot_count = SLOTS};
    CLEAVE_TRY(view_value(making, value, &stage->inputs[k], &bytes, error));
    CLEAVE_TRY(add_link(making, &stage->receives, value, &link, error));
  }
  return CLEAVE_OK;
}

/* Process 0: where outputs come from. */
static cleave_status_t add_results(making_t *making, cleave_error_t *error) {
  cleave_stage_t *stage = making->stage;
  const cleave_graph_t *graph = making->graph;
  stage->output_count = (uint32_t)graph->outputs.count;
  stage->outputs = cleave_arena_allocate(&stage->arena, graph->outputs.count + 1, sizeof *stage->outputs);
  stage->own_outputs =
      cleave_arena_allocate(&stage->arena, graph->outputs.count + 1, sizeof *stage->own_outputs);
  if (stage->outputs == NULL || stage->own_outputs == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (uint32_t p = 0; p < making->source->plan->stage_count; p++) {
    const cleave_cut_part_t *part = &making->parts[p];
    for (uint32_t k = 0; k < part->outputs.count; k++) {
      uint32_t number = part->numbers.items[k];
      if (number == CLEAVE_INDEX_NONE) {
        continue;
      }
      stage->own_outputs[number] = p == 0 ? k : CLEAVE_INDEX_NONE;
      cleave_stage_target_t target = {.peer = (int32_t)p, .tag = (int32_t)number};
      const cleave_stage_link_t link = {.kind = CLEAVE_TRANSFER_RECEIVE,
                                        .port = number,
                                        .targets = &target,
                                        .target_count = 1,
                                        .slot_count = (size_t)making->source->concurrency};
      if (p > 0) {
        CLEAVE_TRY(add_link(making, &stage->results, part->outputs.items[k], &link, error));
      }
    }
  }
  return CLEAVE_OK;
}

// ---- the stage's model and plan ----

static cleave_status_t make_model(making_t *making, cleave_error_t *error) {
  cleave_stage_t *stage = making->stage;
  cleave_cut_part_t *own = &making->parts[making->number];
  cleave_plan_document_t *document = NULL;
  cleave_graph_t *graph = own->graph;
  own->graph = NULL;
  CLEAVE_TRY(cleave_model_create_sharing_take(graph, making->source->model, &stage->model, error));
  const cleave_stage_graph_t request = {.plan = making->source->plan,
                                        .number = making->number,
                                        .graph = cleave_model_graph(stage->model),
                                        .inputs = own->inputs.items,
                                        .input_count = (uint32_t)own->inputs.count};
  CLEAVE_TRY(cleave_plan_document_take_stage(&request, &document, error));
  cleave_status_t status = cleave_plan_rebuild(document, request.graph, &stage->plan, error);
  cleave_plan_document_destroy(document);
  return status;
}

static cleave_status_t cut(making_t *making, cleave_error_t *error) {
  const cleave_plan_t *plan = making->source->plan;
  uint32_t count = (uint32_t)making->graph->outputs.count;
  cleave_value_t *outputs = cleave_allocate((size_t)count + 1, sizeof *outputs);
  if (outputs == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (uint32_t k = 0; k < count; k++) {
    outputs[k] = cleave_graph_output(making->graph, k);
  }
  const cleave_cut_request_t request = {
      .parts = plan->node_stage, .part_count = plan->stage_count, .outputs = outputs, .output_count = count};
  cleave_status_t status = cleave_cut(making->graph, &request, making->parts, error);
  cleave_free(outputs);
  return status;
}

static cleave_status_t make_links(making_t *making, cleave_error_t *error) {
  size_t values = (size_t)cleave_graph_value_bound(making->graph) + 1;
  making->first_target = cleave_allocate(values, sizeof *making->first_target);
  making->input_of = cleave_allocate(values, sizeof *making->input_of);
  if (making->first_target == NULL || making->input_of == NULL) {
    return cleave_error_out_of_memory(error);
  }
  memset(making->first_target, 0xff, values * sizeof *making->first_target);
  memset(making->input_of, 0xff, values * sizeof *making->input_of);
  for (uint32_t k = 0; k < making->graph->inputs.count; k++) {
    making->input_of[making->graph->inputs.items[k].index] = k;
  }
  CLEAVE_TRY(add_inputs(making, error));
  CLEAVE_TRY(add_sends(making, error));
  return making->number == 0 ? add_results(making, error) : CLEAVE_OK;
}

static cleave_status_t make(making_t *making, cleave_error_t *error) {
  const cleave_stage_source_t *source = making->source;
  cleave_graph_t *bound = NULL;
  making->graph = source->plan->graph;
  making->parts = cleave_allocate_zeroed(source->plan->stage_count, sizeof *making->parts);
  if (making->parts == NULL) {
    return cleave_error_out_of_memory(error);
  }
  CLEAVE_TRY(cut(making, error));
  CLEAVE_TRY(cleave_graph_bind(making->graph, source->inputs, source->input_count, NULL, &bound, error));
  making->sized = bound != NULL ? bound : making->graph;
  cleave_status_t status = make_links(making, error);
  cleave_graph_destroy(bound);
  return status == CLEAVE_OK ? make_model(making, error) : status;
}

// ---- all processes ----

static cleave_status_t check_count(const cleave_communicator_t *communicator, const cleave_plan_t *plan,
                                   cleave_error_t *error) {
  uint32_t count = plan->stage_count > 0 ? plan->stage_count : 1;
  return count == (uint32_t)communicator->count
             ? CLEAVE_OK
             : cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                "the plan has %u stage%s, and there %s %d process%s: expected a process for "
                                "each stage, which a stage rule makes ('--rules stages --set stages=%d')",
                                (unsigned)count, CLEAVE_PLURAL(count),
                                CLEAVE_BY_COUNT(communicator->count, "is", "are"), (int)communicator->count,
                                CLEAVE_BY_COUNT(communicator->count, "", "es"), (int)communicator->count);
}

/* All processes cut the same plan, or they would wait for what nobody sends. */
static cleave_status_t compare_plans(const cleave_communicator_t *communicator, const cleave_plan_t *plan,
                                     cleave_error_t *error) {
  cleave_digest_state_t state;
  cleave_text_t text = {0};
  cleave_digest_start(&state);
  cleave_status_t status = cleave_plan_print_json(plan, &text, error);
  cleave_digest_add(&state, cleave_text_get(&text), text.length);
  cleave_text_deinit(&text);
  cleave_digest_t mine = cleave_digest_end(&state);
  cleave_digest_t first = mine;
  CLEAVE_TRY(cleave_communicator_agree(communicator, status, error));
  CLEAVE_TRY(cleave_communicator_broadcast(communicator, 0, &first, sizeof first, error));
  status = cleave_digest_equal(mine, first)
               ? CLEAVE_OK
               : cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                  "its plan differs from that of process 0: all need the same model, sizes, "
                                  "rules and settings");
  return cleave_communicator_agree(communicator, status, error);
}

cleave_status_t cleave_stage_create(const cleave_communicator_t *communicator,
                                    const cleave_stage_source_t *source, cleave_status_t status,
                                    cleave_stage_t **out_stage, cleave_error_t *error) {
  *out_stage = NULL;
  CLEAVE_TRY(cleave_communicator_agree(communicator, status, error));
  CLEAVE_TRY(compare_plans(communicator, source->plan, error));
  CLEAVE_TRY(check_count(communicator, source->plan, error));
  cleave_stage_t *stage = cleave_allocate_zeroed(1, sizeof *stage);
  making_t making = {.stage = stage, .source = source, .number = (uint32_t)communicator->rank};
  if (stage == NULL) {
    status = cleave_error_out_of_memory(error);
  } else {
    stage->communicator = communicator;
    status = make(&making, error);
  }
  for (uint32_t p = 0; making.parts != NULL && p < source->plan->stage_count; p++) {
    cleave_cut_part_deinit(&making.parts[p]);
  }
  cleave_free(making.parts);
  cleave_free(making.first_target);
  cleave_free(making.input_of);
  cleave_array_free(&making.targets.list);
  status = cleave_communicator_agree(communicator, status, error);
  CLEAVE_TRY_OR(status, cleave_stage_destroy(stage));
  *out_stage = stage;
  return CLEAVE_OK;
}

static void free_links(cleave_stage_links_t *links) {
  for (size_t k = 0; k < links->list.count; k++) {
    for (size_t s = 0; s < links->list.items[k].slot_count; s++) {
      if (!links->list.items[k].is_going[s]) { /* else a transfer that failed may still use it */
        cleave_free(links->list.items[k].slots[s]);
      }
    }
  }
  cleave_array_free(&links->list);
}

void cleave_stage_destroy(cleave_stage_t *stage) {
  if (stage == NULL) {
    return;
  }
  free_links(&stage->receives);
  free_links(&stage->sends);
  free_links(&stage->results);
  cleave_plan_destroy(stage->plan);
  cleave_model_release(stage->model);
  cleave_arena_deinit(&stage->arena);
  cleave_free(stage);
}

// SPDX-License-Identifier: Apache-2.0
// A step in parts. For each bucket of gradients there are two: forward and backward as far as these gradients
// need it, and the updates by their sums. Parts run in this order, all of the first kind before the second;
// the sum of a bucket goes on from the end of its first part to the start of its second. Alone, a step is one
// part.
#include <string.h>

#include "distributed/cut.h"
#include "runtime/model/model.h"
#include "train/trainer_internal.h"

typedef struct building {
  cleave_trainer_t *trainer;
  const cleave_train_cut_t *cut;
  uint32_t bucket_count;
  uint32_t part_count;
  uint32_t *node_parts;
  cleave_cut_part_t *parts;
  const cleave_tensor_view_t **views; /* by value: where it is */
  uint32_t *value_buckets;            /* by value: bucket of which it is a sum; NONE */
} building_t;

// ---- which node is in which part ----

static void seed(building_t *building, cleave_value_t value, uint32_t part) {
  cleave_node_t node = cleave_value_producer(building->cut->graph, value);
  if (cleave_node_exists(node) && building->node_parts[node.index] != CLEAVE_CUT_GIVEN &&
      building->node_parts[node.index] > part) {
    building->node_parts[node.index] = part;
  }
}

static cleave_status_t assign(building_t *building, cleave_error_t *error) {
  const cleave_train_cut_t *cut = building->cut;
  const cleave_exchange_t *exchange = &building->trainer->exchange;
  uint32_t buckets = building->bucket_count;
  for (uint32_t k = 0; k < cleave_graph_node_bound(cut->graph); k++) {
    building->node_parts[k] = CLEAVE_CUT_NONE;
  }
  for (size_t k = 0; k < exchange->items.count; k++) {
    building->node_parts[cleave_value_producer(cut->graph, cut->sums[k].after).index] = CLEAVE_CUT_GIVEN;
    seed(building, cut->sums[k].before, exchange->items.items[k].bucket);
  }
  for (uint32_t k = 0; k < cut->output_count; k++) {
    bool is_last = cut->buckets[k] == CLEAVE_INDEX_NONE;
    seed(building, cut->outputs[k],
         is_last || buckets == 0 ? building->part_count - 1 : buckets + cut->buckets[k]);
  }
  return cleave_cut_assign(cut->graph, building->node_parts, error);
}

// ---- where values are ----

static cleave_status_t fill_view(cleave_trainer_t *trainer, const cleave_graph_t *graph, cleave_value_t value,
                                 cleave_tensor_view_t *view, cleave_error_t *error) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  int64_t count = 0;
  if (record->rank < 0 || !cleave_shape_element_count(record->rank, record->dims, &count)) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                            "value '%.100s' of a step has a size that is known only at run time",
                            cleave_value_name(graph, value));
  }
  int64_t *dims = cleave_arena_allocate(&trainer->arena, (size_t)record->rank + 1, sizeof *dims);
  CLEAVE_TRY_MEMORY(dims, error);
  for (int32_t d = 0; d < record->rank; d++) {
    dims[d] = record->dims[d];
  }
  *view = (cleave_tensor_view_t){
      .size = sizeof *view, .dtype = (cleave_dtype_t)record->dtype, .rank = record->rank, .dims = dims};
  return CLEAVE_OK;
}

/* Memory of its own for a value. */
static cleave_status_t add_memory(cleave_trainer_t *trainer, cleave_tensor_view_t *view,
                                  cleave_error_t *error) {
  cleave_tensor_t *tensor = NULL;
  CLEAVE_TRY(cleave_array_reserve(&trainer->between, 1, error));
  CLEAVE_TRY(cleave_tensor_create(view->dtype, view->rank, view->dims, &tensor, error));
  cleave_array_push_reserved(&trainer->between, tensor);
  *view = cleave_tensor_view(tensor);
  return CLEAVE_OK;
}

static cleave_status_t view_inputs(building_t *building, cleave_error_t *error) {
  const cleave_graph_t *graph = building->cut->graph;
  cleave_trainer_t *trainer = building->trainer;
  uint32_t count = (uint32_t)graph->inputs.count;
  trainer->input_views = cleave_allocate_zeroed((size_t)count + 1, sizeof *trainer->input_views);
  CLEAVE_TRY_MEMORY(trainer->input_views, error);
  for (uint32_t k = 0; k < count; k++) {
    cleave_value_t value = graph->inputs.items[k];
    CLEAVE_TRY(fill_view(trainer, graph, value, &trainer->input_views[k], error));
    building->views[value.index] = &trainer->input_views[k];
  }
  return CLEAVE_OK;
}

/* Loss and norm have memory of their own; what is carried gets that of the step. */
static cleave_status_t view_outputs(building_t *building, cleave_error_t *error) {
  const cleave_train_cut_t *cut = building->cut;
  cleave_trainer_t *trainer = building->trainer;
  trainer->output_views =
      cleave_allocate_zeroed((size_t)cut->output_count + 1, sizeof *trainer->output_views);
  CLEAVE_TRY_MEMORY(trainer->output_views, error);
  for (uint32_t k = 0; k < cut->output_count; k++) {
    cleave_value_t value = cut->outputs[k];
    CLEAVE_TRY(fill_view(trainer, cut->graph, value, &trainer->output_views[k], error));
    if (k < CLEAVE_TRAIN_RESULTS) {
      CLEAVE_TRY(add_memory(trainer, &trainer->output_views[k], error));
    }
    if (building->views[value.index] == NULL) {
      building->views[value.index] = &trainer->output_views[k];
    }
  }
  return CLEAVE_OK;
}

static void view_sums(building_t *building) {
  const cleave_exchange_t *exchange = &building->trainer->exchange;
  for (size_t k = 0; k < exchange->items.count; k++) {
    const cleave_train_sum_t *sum = &building->cut->sums[k];
    building->views[sum->before.index] = &exchange->items.items[k].view;
    building->views[sum->after.index] = &exchange->items.items[k].view;
    building->value_buckets[sum->after.index] = exchange->items.items[k].bucket;
  }
}

static cleave_status_t view_between(building_t *building, cleave_value_t value, cleave_error_t *error) {
  cleave_trainer_t *trainer = building->trainer;
  cleave_tensor_view_t *view = cleave_arena_allocate(&trainer->arena, 1, sizeof *view);
  CLEAVE_TRY_MEMORY(view, error);
  CLEAVE_TRY(fill_view(trainer, building->cut->graph, value, view, error));
  building->views[value.index] = view;
  return add_memory(trainer, view, error);
}

// ---- parts ----

static cleave_status_t connect(building_t *building, const cleave_cut_part_t *from, cleave_train_part_t *part,
                               cleave_error_t *error) {
  cleave_arena_t *arena = &building->trainer->arena;
  part->inputs = cleave_arena_allocate(arena, from->inputs.count + 1, sizeof *part->inputs);
  part->outputs = cleave_arena_allocate(arena, from->outputs.count + 1, sizeof *part->outputs);
  part->input_count = (uint32_t)from->inputs.count;
  part->output_count = (uint32_t)from->outputs.count;
  CLEAVE_TRY_MEMORY(part->inputs != NULL && part->outputs != NULL, error);
  uint32_t last = CLEAVE_INDEX_NONE;
  for (uint32_t k = 0; k < part->input_count; k++) {
    uint32_t index = from->inputs.items[k].index;
    part->inputs[k] = building->views[index];
    if (building->value_buckets[index] != CLEAVE_INDEX_NONE && building->value_buckets[index] != last) {
      last = building->value_buckets[index];
      CLEAVE_ARRAY_PUSH(&part->waits, last, error);
    }
  }
  for (uint32_t k = 0; k < part->output_count; k++) {
    uint32_t number = from->numbers.items[k];
    if (number == CLEAVE_INDEX_NONE && building->views[from->outputs.items[k].index] == NULL) {
      CLEAVE_TRY(view_between(building, from->outputs.items[k], error));
    }
    part->outputs[k] = number == CLEAVE_INDEX_NONE ? building->views[from->outputs.items[k].index]
                                                   : &building->trainer->output_views[number];
  }
  return CLEAVE_OK;
}

static cleave_status_t make_parts(building_t *building, cleave_error_t *error) {
  cleave_trainer_t *trainer = building->trainer;
  const cleave_cut_request_t request = {.parts = building->node_parts,
                                        .part_count = building->part_count,
                                        .outputs = building->cut->outputs,
                                        .output_count = building->cut->output_count};
  CLEAVE_TRY(assign(building, error));
  CLEAVE_TRY(cleave_cut(building->cut->graph, &request, building->parts, error));
  CLEAVE_TRY(view_inputs(building, error));
  view_sums(building);
  CLEAVE_TRY(view_outputs(building, error));
  CLEAVE_TRY(cleave_array_reserve(&trainer->parts, building->part_count, error));
  for (uint32_t p = 0; p < building->part_count; p++) {
    cleave_cut_part_t *from = &building->parts[p];
    cleave_train_part_t *part = &trainer->parts.items[trainer->parts.count++];
    *part = (cleave_train_part_t){.exists = from->graph != NULL};
    CLEAVE_TRY(connect(building, from, part, error));
    cleave_graph_t *graph = from->graph;
    from->graph = NULL;
    if (graph != NULL) {
      CLEAVE_TRY(cleave_train_compile_take(trainer, graph, building->cut->origin, &part->program, error));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_train_make_parts(cleave_trainer_t *trainer, const cleave_train_cut_t *cut,
                                        cleave_error_t *error) {
  size_t values = (size_t)cleave_graph_value_bound(cut->graph) + 1;
  building_t building = {
      .trainer = trainer, .cut = cut, .bucket_count = (uint32_t)trainer->exchange.buckets.count};
  building.part_count = building.bucket_count == 0 ? 1 : 2 * building.bucket_count;
  building.node_parts =
      cleave_allocate((size_t)cleave_graph_node_bound(cut->graph) + 1, sizeof *building.node_parts);
  building.parts = cleave_allocate_zeroed(building.part_count, sizeof *building.parts);
  building.views = cleave_allocate_zeroed(values, sizeof *building.views);
  building.value_buckets = cleave_allocate(values, sizeof *building.value_buckets);
  bool good = building.node_parts != NULL && building.parts != NULL && building.views != NULL &&
              building.value_buckets != NULL;
  for (size_t k = 0; good && k < values; k++) {
    building.value_buckets[k] = CLEAVE_INDEX_NONE;
  }
  cleave_status_t status = good ? make_parts(&building, error) : cleave_error_out_of_memory(error);
  for (uint32_t p = 0; building.parts != NULL && p < building.part_count; p++) {
    cleave_cut_part_deinit(&building.parts[p]);
  }
  cleave_free(building.node_parts);
  cleave_free(building.parts);
  cleave_free((void *)building.views);
  cleave_free(building.value_buckets);
  return status;
}

void cleave_train_parts_deinit(cleave_trainer_t *trainer) {
  for (size_t p = 0; p < trainer->parts.count; p++) {
    cleave_train_program_deinit(&trainer->parts.items[p].program);
    cleave_array_free(&trainer->parts.items[p].waits);
  }
  for (size_t k = 0; k < trainer->between.count; k++) {
    cleave_tensor_release(trainer->between.items[k]);
  }
  cleave_array_free(&trainer->parts);
  cleave_array_free(&trainer->between);
  cleave_free(trainer->input_views);
  cleave_free(trainer->output_views);
  cleave_exchange_deinit(&trainer->exchange);
}

// ---- running ----

static cleave_status_t run_part(cleave_trainer_t *trainer, const cleave_train_part_t *part,
                                cleave_error_t *error) {
  cleave_session_t *session = part->program.session;
  for (size_t k = 0; k < part->waits.count; k++) {
    CLEAVE_TRY(cleave_exchange_wait(&trainer->exchange, part->waits.items[k], error));
  }
  for (uint32_t k = 0; k < part->input_count; k++) {
    CLEAVE_TRY(cleave_session_set_input(session, k, part->inputs[k], error));
  }
  for (uint32_t k = 0; k < part->output_count; k++) {
    CLEAVE_TRY(cleave_session_set_output(session, k, part->outputs[k], CLEAVE_REQUEST_WRITE, error));
  }
  return cleave_session_run(session, error);
}

cleave_status_t cleave_train_run_parts(cleave_trainer_t *trainer, cleave_error_t *error) {
  uint32_t buckets = (uint32_t)trainer->exchange.buckets.count;
  for (uint32_t p = 0; p < trainer->parts.count; p++) {
    if (trainer->parts.items[p].exists) {
      CLEAVE_TRY(run_part(trainer, &trainer->parts.items[p], error));
    }
    if (p < buckets) {
      CLEAVE_TRY(cleave_exchange_start(&trainer->exchange, p, error));
    }
  }
  for (uint32_t k = 0; k < buckets; k++) {
    CLEAVE_TRY(cleave_exchange_wait(&trainer->exchange, k, error));
  }
  trainer->exchange_steps++;
  return CLEAVE_OK;
}

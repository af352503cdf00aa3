// SPDX-License-Identifier: Apache-2.0
// From a plan and a bound graph to steps: regions are compiled on their backends, all other nodes on `cpu`.
// A region that cannot be compiled as a whole (a shape that is known only at run time, a backend that fails)
// runs node by node on `cpu`, with a note that says so. Nodes come out in the plan's order, so every value is
// computed before it is read.
#include <stdio.h>
#include <string.h>

#include "graph/order.h"
#include "runtime/session_internal.h"

typedef struct build {
  cleave_session_t *session;
  const cleave_graph_t *graph;
  cleave_view_builder_t views;
  cleave_arena_t arena; /* of the view at hand */
} build_t;

/* ---- slots ---- */

static bool is_known(const cleave_graph_t *graph, cleave_value_t value) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  int64_t count = 0;
  return record->dtype != CLEAVE_DTYPE_UNKNOWN &&
         cleave_shape_element_count(record->rank, record->dims, &count);
}

static cleave_status_t add_slot(build_t *build, cleave_value_t value, cleave_slot_kind_t kind,
                                uint32_t *out_slot, cleave_error_t *error) {
  cleave_session_t *session = build->session;
  const cleave_value_record_t *record = cleave_graph_value(build->graph, value);
  uint32_t index = (uint32_t)session->slots.count;
  cleave_slot_t slot = {.kind = kind, .value = value, .root = index, .block = CLEAVE_INDEX_NONE};
  slot.view = (cleave_tensor_view_t){
      .size = sizeof slot.view, .dtype = (cleave_dtype_t)record->dtype, .rank = record->rank};
  for (int32_t d = 0; d < record->rank; d++) {
    slot.dims[d] = record->dims[d];
  }
  int64_t count = 0;
  if (cleave_shape_element_count(record->rank, record->dims, &count) &&
      (!cleave_size_multiply((size_t)count, cleave_dtype_size(slot.view.dtype), &slot.bytes) ||
       slot.bytes > SIZE_MAX / 4)) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "value '%s': %lld elements are too many",
                            cleave_value_name(build->graph, value), (long long)count);
  }
  if (record->tensor != NULL) {
    slot.view.data = record->tensor->data;
    slot.view.version = record->tensor->version;
  }
  CLEAVE_ARRAY_PUSH(&session->slots, slot, error);
  session->value_slot[value.index] = index;
  *out_slot = index;
  return CLEAVE_OK;
}

/* The slot of a value that a step reads. */
static cleave_status_t get_input_slot(build_t *build, cleave_value_t value, uint32_t *out_slot,
                                      cleave_error_t *error) {
  *out_slot = build->session->value_slot[value.index];
  if (*out_slot != CLEAVE_INDEX_NONE) {
    return CLEAVE_OK;
  }
  const cleave_value_record_t *record = cleave_graph_value(build->graph, value);
  if (record->tensor != NULL) {
    return add_slot(build, value, CLEAVE_SLOT_CONSTANT, out_slot, error);
  }
  if (record->is_input) {
    return add_slot(build, value, CLEAVE_SLOT_USER, out_slot, error);
  }
  return cleave_error_set(error, CLEAVE_ERROR_INTERNAL, "value '%s' is read before it is computed",
                          cleave_value_name(build->graph, value));
}

static cleave_status_t add_output_slot(build_t *build, cleave_value_t value, uint32_t *out_slot,
                                       cleave_error_t *error) {
  cleave_slot_kind_t kind = is_known(build->graph, value) ? CLEAVE_SLOT_BLOCK : CLEAVE_SLOT_OWNED;
  return add_slot(build, value, kind, out_slot, error);
}

static cleave_status_t add_note(build_t *build, cleave_error_t *error, const char *region,
                                const char *backend, const char *reason) {
  const char *note = cleave_arena_format(&build->session->arena,
                                         "region '%s': its nodes run one by one on cpu, not on %s: %s",
                                         region, backend, reason);
  if (note == NULL) {
    return cleave_error_out_of_memory(error);
  }
  CLEAVE_ARRAY_PUSH(&build->session->notes, note, error);
  return CLEAVE_OK;
}

/* ---- programs ---- */

cleave_status_t cleave_session_fail_node(const cleave_graph_t *graph, cleave_node_t node,
                                         cleave_status_t status, const cleave_message_t *message,
                                         cleave_error_t *error) {
  char label[128];
  const char *op = cleave_node_op(graph, node)->name;
  const char *text = message->text;
  size_t length = strlen(op);
  if (strncmp(text, op, length) == 0 && text[length] == ':' && text[length + 1] == ' ') {
    text += length + 2;
  }
  (void)cleave_node_label(graph, node, label, sizeof label);
  if (status == CLEAVE_ERROR_UNSUPPORTED) {
    return cleave_error_set(error, status, "operator '%s' (node '%s') is not supported by cpu: %s", op, label,
                            text[0] == '\0' ? "no reason given" : text);
  }
  char place[224];
  (void)snprintf(place, sizeof place, "operator '%.64s' (node '%s')", op, label);
  cleave_message_t rest;
  (void)snprintf(rest.text, sizeof rest.text, "%s", text);
  return cleave_registry_fail(error, status, place, &rest);
}

/* The program of a view: one that this session or, where there is a cache, another one has compiled for an
 * equal one, or a new one. `node` is the name of a single node, "" for regions. `message` has the reason of a
 * failure that is the backend's. */
static cleave_status_t get_program(build_t *build, const cleave_backend_handle_t *handle,
                                   const cleave_view_t *view, const char *node,
                                   cleave_program_t **out_program, cleave_message_t *message,
                                   cleave_error_t *error) {
  cleave_session_t *session = build->session;
  cleave_program_request_t request = {.handle = handle,
                                      .view = view,
                                      .options = &session->compile_options,
                                      .name = node,
                                      .blobs = session->blobs};
  for (size_t k = 0; node[0] == '\0' && k < session->programs.count; k++) {
    if (cleave_program_fits(session->programs.items[k], &request)) {
      *out_program = session->programs.items[k];
      return CLEAVE_OK;
    }
  }
  CLEAVE_TRY(cleave_array_reserve(&session->programs, 1, error));
  bool is_reused = false;
  cleave_status_t status = session->cache != NULL ? cleave_program_cache_get(session->cache, &request,
                                                                             out_program, &is_reused, message)
                                                  : cleave_program_compile(&request, out_program, message);
  if (status != CLEAVE_OK) {
    return status;
  }
  session->reused_count += is_reused ? 1 : 0;
  session->loaded_count += !is_reused && (*out_program)->is_loaded ? 1 : 0;
  cleave_array_push_reserved(&session->programs, *out_program);
  return CLEAVE_OK;
}

/* ---- steps ---- */

/* A step over a compiled view: its slots. Views and pointers are filled in when memory is planned. */
static cleave_status_t add_step(build_t *build, const cleave_view_t *view, cleave_step_t step,
                                cleave_error_t *error) {
  cleave_session_t *session = build->session;
  const cleave_region_view_t *region = &view->region;
  uint32_t *input_slots = cleave_arena_allocate(&session->arena, region->input_count, sizeof *input_slots);
  uint32_t *output_slots = cleave_arena_allocate(&session->arena, region->output_count, sizeof *output_slots);
  step.nodes = cleave_arena_copy(&session->arena, view->nodes, region->node_count * sizeof *view->nodes);
  step.name = cleave_arena_copy_text(&session->arena, region->name, strlen(region->name));
  if (input_slots == NULL || output_slots == NULL || step.nodes == NULL || step.name == NULL) {
    return cleave_error_out_of_memory(error);
  }
  step.node_count = region->node_count;
  step.input_count = region->input_count;
  step.output_count = region->output_count;
  step.input_slots = input_slots;
  step.output_slots = output_slots;
  for (uint32_t k = 0; k < region->input_count; k++) {
    CLEAVE_TRY(get_input_slot(build, view->values[region->inputs[k]], &input_slots[k], error));
  }
  for (uint32_t k = 0; k < region->output_count; k++) {
    CLEAVE_TRY(add_output_slot(build, view->values[region->outputs[k]], &output_slots[k], error));
  }
  CLEAVE_ARRAY_PUSH(&session->steps, step, error);
  return CLEAVE_OK;
}

static bool node_is_static(const cleave_graph_t *graph, cleave_node_t node) {
  for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
    cleave_value_t value = cleave_node_input(graph, node, k);
    if (cleave_value_exists(value) && !is_known(graph, value)) {
      return false;
    }
  }
  for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
    cleave_value_t value = cleave_node_output(graph, node, k);
    if (cleave_graph_value(graph, value)->use_count > 0 && !is_known(graph, value)) {
      return false;
    }
  }
  return true;
}

static bool node_is_needed(const cleave_graph_t *graph, cleave_node_t node) {
  for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
    if (cleave_graph_value(graph, cleave_node_output(graph, node, k))->use_count > 0) {
      return true;
    }
  }
  return false;
}

/* A view operator (Reshape) needs no step where its output can be the memory of its input: computed values
 * of known size, or a user's buffer that is not handed out as an output. */
static cleave_status_t try_alias(build_t *build, cleave_node_t node, bool *out_done, cleave_error_t *error) {
  const cleave_graph_t *graph = build->graph;
  cleave_session_t *session = build->session;
  *out_done = false;
  if ((cleave_node_op(graph, node)->flags & CLEAVE_OP_VIEW) == 0 ||
      !cleave_value_exists(cleave_node_input(graph, node, 0))) {
    return CLEAVE_OK;
  }
  cleave_value_t input = cleave_node_input(graph, node, 0);
  cleave_value_t output = cleave_node_output(graph, node, 0);
  for (uint32_t k = 1; k < cleave_node_output_count(graph, node); k++) {
    if (cleave_graph_value(graph, cleave_node_output(graph, node, k))->use_count > 0) {
      return CLEAVE_OK;
    }
  }
  uint32_t from = CLEAVE_INDEX_NONE;
  CLEAVE_TRY(get_input_slot(build, input, &from, error));
  const cleave_slot_t *root = &session->slots.items[session->slots.items[from].root];
  bool is_output = cleave_value_is_output(graph, output);
  if ((root->kind != CLEAVE_SLOT_BLOCK && (root->kind != CLEAVE_SLOT_USER || is_output)) ||
      cleave_graph_value(graph, input)->dtype != cleave_graph_value(graph, output)->dtype) {
    return CLEAVE_OK;
  }
  int64_t count = 0;
  int64_t root_count = 0;
  const cleave_value_record_t *record = cleave_graph_value(graph, output);
  const cleave_value_record_t *source = cleave_graph_value(graph, input);
  if (!cleave_shape_element_count(record->rank, record->dims, &count) ||
      !cleave_shape_element_count(source->rank, source->dims, &root_count) || count != root_count) {
    return CLEAVE_OK;
  }
  uint32_t root_index = root->root;
  uint32_t slot = CLEAVE_INDEX_NONE;
  CLEAVE_TRY(add_slot(build, output, CLEAVE_SLOT_ALIAS, &slot, error));
  session->slots.items[slot].root = root_index;
  *out_done = true;
  return CLEAVE_OK;
}

static cleave_status_t add_dynamic_step(build_t *build, cleave_node_t node, const cleave_view_t *view,
                                        cleave_step_t step, cleave_error_t *error) {
  cleave_session_t *session = build->session;
  const cleave_graph_t *graph = build->graph;
  CLEAVE_TRY(add_step(build, view, step, error));
  cleave_step_t *added = &session->steps.items[session->steps.count - 1];
  uint32_t input_count = cleave_node_input_count(graph, node);
  uint32_t output_count = cleave_node_output_count(graph, node);
  uint32_t *ports = cleave_arena_allocate(&session->arena, (size_t)input_count + output_count, sizeof *ports);
  added->programs = cleave_arena_allocate(&session->arena, CLEAVE_DYNAMIC_PROGRAMS, sizeof *added->programs);
  added->port_slots = ports;
  if (ports == NULL || added->programs == NULL) {
    added->programs = NULL;
    return cleave_error_out_of_memory(error);
  }
  for (uint32_t k = 0; k < input_count; k++) {
    cleave_value_t value = cleave_node_input(graph, node, k);
    ports[k] = CLEAVE_INDEX_NONE;
    if (cleave_value_exists(value)) {
      CLEAVE_TRY(get_input_slot(build, value, &ports[k], error));
    }
  }
  for (uint32_t k = 0; k < output_count; k++) {
    ports[input_count + k] = session->value_slot[cleave_node_output(graph, node, k).index];
  }
  return CLEAVE_OK;
}

static cleave_status_t build_node(build_t *build, cleave_node_t node, cleave_error_t *error) {
  const cleave_graph_t *graph = build->graph;
  cleave_session_t *session = build->session;
  if (!node_is_needed(graph, node)) {
    return CLEAVE_OK;
  }
  bool is_static = node_is_static(graph, node);
  bool is_done = false;
  if (is_static) {
    CLEAVE_TRY(try_alias(build, node, &is_done, error));
  }
  if (is_done) {
    return CLEAVE_OK;
  }
  char label[128];
  cleave_view_t view;
  cleave_view_request_t request = {
      .name = cleave_node_label(graph, node, label, sizeof label), .nodes = &node, .node_count = 1};
  CLEAVE_TRY(cleave_view_build(&build->views, &request, &build->arena, &view, error));
  cleave_step_t step = {
      .op = cleave_node_op(graph, node)->name, .backend = "cpu", .region = CLEAVE_INDEX_NONE, .node = node};
  cleave_message_t message = {.text = ""};
  const cleave_backend_handle_t *cpu = session->cpu;
  if (!is_static) {
    cleave_status_t status = cpu->backend->supports(cpu->state, &view.region, &message);
    message.text[sizeof message.text - 1] = '\0';
    if (status != CLEAVE_OK) {
      return cleave_session_fail_node(graph, node, status, &message, error);
    }
    return add_dynamic_step(build, node, &view, step, error);
  }
  cleave_status_t status = get_program(build, cpu, &view, view.region.name, &step.program, &message, error);
  if (status != CLEAVE_OK) {
    return cleave_session_fail_node(graph, node, status, &message, error);
  }
  return add_step(build, &view, step, error);
}

/* ---- regions ---- */

/* The live nodes of a region, and its fusions that are still whole. */
typedef struct region_set {
  cleave_node_t *nodes;
  uint32_t node_count;
  cleave_view_fusion_t *fusions;
  uint32_t fusion_count;
} region_set_t;

static cleave_status_t collect_region(build_t *build, const cleave_plan_region_t *region, region_set_t *set,
                                      cleave_error_t *error) {
  const cleave_plan_t *plan = build->session->plan;
  set->nodes = cleave_arena_allocate(&build->arena, region->node_count, sizeof *set->nodes);
  set->fusions = cleave_arena_allocate(&build->arena, region->fusion_count, sizeof *set->fusions);
  if (set->nodes == NULL || set->fusions == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (uint32_t k = 0; k < region->node_count; k++) {
    if (cleave_node_is_live(build->graph, region->nodes[k])) {
      set->nodes[set->node_count++] = region->nodes[k];
    }
  }
  for (uint32_t k = 0; k < region->fusion_count; k++) {
    const cleave_plan_fusion_t *fusion = &plan->fusions[region->fusions[k]];
    bool is_whole = true;
    for (uint32_t n = 0; n < fusion->node_count; n++) {
      is_whole = is_whole && cleave_node_is_live(build->graph, fusion->nodes[n]);
    }
    if (is_whole) {
      set->fusions[set->fusion_count++] = (cleave_view_fusion_t){.rule = plan->rules[fusion->rule].name,
                                                                 .nodes = fusion->nodes,
                                                                 .labels = fusion->labels,
                                                                 .node_count = fusion->node_count,
                                                                 .attributes = fusion->attributes,
                                                                 .attribute_count = fusion->attribute_count};
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t build_one_by_one(build_t *build, const region_set_t *set, cleave_error_t *error) {
  for (uint32_t k = 0; k < set->node_count; k++) {
    CLEAVE_TRY(build_node(build, set->nodes[k], error));
  }
  return CLEAVE_OK;
}

static cleave_status_t build_region(build_t *build, uint32_t region_index, cleave_error_t *error) {
  cleave_session_t *session = build->session;
  const cleave_plan_region_t *region = &session->plan->regions[region_index];
  region_set_t set = {0};
  CLEAVE_TRY(collect_region(build, region, &set, error));
  if (set.node_count == 0) {
    return CLEAVE_OK;
  }
  for (uint32_t k = 0; k < set.node_count; k++) {
    if (!node_is_static(build->graph, set.nodes[k])) {
      char label[128];
      cleave_message_t reason;
      (void)snprintf(reason.text, sizeof reason.text, "shapes of node '%s' are known only at run time",
                     cleave_node_label(build->graph, set.nodes[k], label, sizeof label));
      CLEAVE_TRY(add_note(build, error, region->name, region->backend, reason.text));
      return build_one_by_one(build, &set, error);
    }
  }
  const cleave_backend_handle_t *handle = NULL;
  CLEAVE_TRY(cleave_registry_find(region->backend, &handle, error));
  cleave_view_t view;
  cleave_view_request_t request = {.name = region->name,
                                   .rule = session->plan->rules[region->rule].name,
                                   .nodes = set.nodes,
                                   .node_count = set.node_count,
                                   .fusions = set.fusions,
                                   .fusion_count = set.fusion_count,
                                   .attributes = region->attributes,
                                   .attribute_count = region->attribute_count,
                                   .takes_sparse = handle->backend->takes_sparse};
  CLEAVE_TRY(cleave_view_build(&build->views, &request, &build->arena, &view, error));
  if (view.region.output_count == 0) {
    return CLEAVE_OK;
  }
  cleave_step_t step = {
      .op = "", .backend = handle->backend->name, .region = region_index, .node = CLEAVE_NODE_NONE};
  cleave_message_t message = {.text = ""};
  cleave_status_t status = get_program(build, handle, &view, "", &step.program, &message, error);
  if (status == CLEAVE_ERROR_OUT_OF_MEMORY) {
    return cleave_error_out_of_memory(error);
  }
  if (status != CLEAVE_OK && session->strict) {
    char place[224];
    (void)snprintf(place, sizeof place, "region '%.128s' on %.64s", region->name, region->backend);
    return cleave_registry_fail(error, status, place, &message);
  }
  if (status != CLEAVE_OK) {
    CLEAVE_TRY(add_note(build, error, region->name, region->backend,
                        message.text[0] == '\0' ? "no reason given" : message.text));
    return build_one_by_one(build, &set, error);
  }
  return add_step(build, &view, step, error);
}

/* ---- the whole ---- */

static cleave_status_t build_steps(build_t *build, cleave_error_t *error) {
  const cleave_plan_t *plan = build->session->plan;
  if (plan != NULL) {
    for (uint32_t k = 0; k < plan->step_count; k++) {
      const cleave_plan_step_t *step = &plan->steps[k];
      if (step->region != CLEAVE_INDEX_NONE) {
        CLEAVE_TRY(build_region(build, step->region, error));
      } else if (cleave_node_is_live(build->graph, step->node)) {
        CLEAVE_TRY(build_node(build, step->node, error));
      }
      cleave_arena_reset(&build->arena);
    }
    return CLEAVE_OK;
  }
  size_t count = build->graph->live_node_count;
  cleave_node_t *order = cleave_allocate(count, sizeof *order);
  if (order == NULL) {
    return cleave_error_out_of_memory(error);
  }
  cleave_status_t status = cleave_graph_topological_order(build->graph, order, NULL, error);
  for (size_t k = 0; k < count && status == CLEAVE_OK; k++) {
    status = build_node(build, order[k], error);
    cleave_arena_reset(&build->arena);
  }
  cleave_free(order);
  return status;
}

static cleave_status_t build_ports(build_t *build, cleave_error_t *error) {
  cleave_session_t *session = build->session;
  const cleave_graph_t *graph = build->graph;
  session->input_count = (uint32_t)graph->inputs.count;
  session->output_count = (uint32_t)graph->outputs.count;
  session->input_slots =
      cleave_arena_allocate(&session->arena, session->input_count, sizeof *session->input_slots);
  session->output_slots =
      cleave_arena_allocate(&session->arena, session->output_count, sizeof *session->output_slots);
  if (session->input_slots == NULL || session->output_slots == NULL) {
    return cleave_error_out_of_memory(error);
  }
  for (uint32_t k = 0; k < session->input_count; k++) {
    CLEAVE_TRY(get_input_slot(build, graph->inputs.items[k], &session->input_slots[k], error));
  }
  for (uint32_t k = 0; k < session->output_count; k++) {
    cleave_value_t value = cleave_graph_output(graph, k);
    CLEAVE_TRY(get_input_slot(build, value, &session->output_slots[k], error));
    cleave_slot_t *slots = session->slots.items;
    slots[session->output_slots[k]].is_output = true;
    slots[slots[session->output_slots[k]].root].is_output = true;
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_session_build(cleave_session_t *session, cleave_error_t *error) {
  build_t build = {.session = session, .graph = session->graph};
  cleave_view_builder_init(&build.views, session->graph);
  uint32_t bound = cleave_graph_value_bound(session->graph);
  cleave_status_t status = CLEAVE_OK;
  session->value_slot = cleave_allocate(bound, sizeof *session->value_slot);
  if (session->value_slot == NULL) {
    CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
  }
  for (uint32_t k = 0; k < bound; k++) {
    session->value_slot[k] = CLEAVE_INDEX_NONE;
  }
  CLEAVE_TRY_CLEANUP(build_steps(&build, error));
  CLEAVE_TRY_CLEANUP(build_ports(&build, error));
cleanup:
  cleave_free(session->value_slot);
  session->value_slot = NULL;
  cleave_view_builder_deinit(&build.views);
  cleave_arena_deinit(&build.arena);
  return status;
}

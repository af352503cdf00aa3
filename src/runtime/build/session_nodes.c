// SPDX-License-Identifier: Apache-2.0
// Steps of one node: those that no region took, on `cpu`; those of regions that are not run as a whole, on
// the region's own backend if it can, through an executor or as a region of one node. Nodes whose shapes
// are known only at run time become dynamic steps, whose programs are compiled when shapes are known.
#include <stdio.h>
#include <string.h>

#include "backend/registry/extensions.h"
#include "runtime/build/session_build.h"

bool cleave_build_node_is_static(const cleave_graph_t *graph, cleave_node_t node) {
  for (uint32_t k = 0; k < cleave_node_input_count(graph, node); k++) {
    cleave_value_t value = cleave_node_input(graph, node, k);
    if (cleave_value_exists(value) && !cleave_build_is_known(graph, value)) {
      return false;
    }
  }
  for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
    cleave_value_t value = cleave_node_output(graph, node, k);
    if (cleave_graph_value(graph, value)->use_count > 0 && !cleave_build_is_known(graph, value)) {
      return false;
    }
  }
  return true;
}

/* Somebody reads what it computes. */
static bool is_needed(const cleave_graph_t *graph, cleave_node_t node) {
  for (uint32_t k = 0; k < cleave_node_output_count(graph, node); k++) {
    if (cleave_graph_value(graph, cleave_node_output(graph, node, k))->use_count > 0) {
      return true;
    }
  }
  return false;
}

/* A view operator (Reshape) needs no step if its output can be the memory of its input: computed values
 * of known size, or a user's buffer that is not handed out as an output. */
static cleave_status_t try_alias(cleave_build_t *build, cleave_node_t node, bool *out_done,
                                 cleave_error_t *error) {
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
  CLEAVE_TRY(cleave_build_input_slot(build, input, &from, error));
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
  uint32_t place = root->place;
  uint32_t slot = CLEAVE_INDEX_NONE;
  CLEAVE_TRY(cleave_build_add_slot(build, output, CLEAVE_SLOT_ALIAS, place, &slot, error));
  session->slots.items[slot].root = root_index;
  *out_done = true;
  return CLEAVE_OK;
}

/* ---- without a region ---- */

/* Finds what runs a node outside of regions: `cpu`, or the kernel of a library's operator. */
static cleave_status_t node_target(const cleave_build_t *build, cleave_node_t node, uint32_t *out_target,
                                   cleave_error_t *error) {
  cleave_session_t *session = build->session;
  const cleave_backend_handle_t *host = NULL;
  *out_target = 0;
  CLEAVE_TRY(cleave_extensions_host(build->graph, node, session->cpu, &host, error));
  return host == session->cpu ? CLEAVE_OK : cleave_session_target(session, host, 0, out_target, error);
}

/* ---- dynamic steps ---- */

static cleave_status_t add_dynamic_step(cleave_build_t *build, const cleave_view_t *view, cleave_step_t step,
                                        cleave_error_t *error) {
  cleave_session_t *session = build->session;
  const cleave_graph_t *graph = build->graph;
  cleave_node_t node = step.node;
  step.kind = CLEAVE_STEP_DYNAMIC;
  // An operator without a kernel may still run if its region is; if not, `cpu` says that it is unknown.
  if (node_target(build, node, &step.alone, NULL) == CLEAVE_ERROR_OUT_OF_MEMORY) {
    return cleave_error_out_of_memory(error);
  }
  CLEAVE_TRY(cleave_build_add_step(build, view, step, error));
  cleave_step_t *added = &session->steps.items[session->steps.count - 1];
  uint32_t input_count = cleave_node_input_count(graph, node);
  uint32_t output_count = cleave_node_output_count(graph, node);
  uint32_t *ports = cleave_arena_allocate(&session->arena, (size_t)input_count + output_count, sizeof *ports);
  added->programs = cleave_arena_allocate(&session->arena, CLEAVE_DYNAMIC_PROGRAMS, sizeof *added->programs);
  added->port_slots = ports;
  added->port_count = input_count + output_count;
  if (ports == NULL || added->programs == NULL) {
    added->programs = NULL;
    return cleave_error_out_of_memory(error);
  }
  for (uint32_t k = 0; k < input_count; k++) {
    cleave_value_t value = cleave_node_input(graph, node, k);
    ports[k] = CLEAVE_INDEX_NONE;
    if (cleave_value_exists(value)) {
      CLEAVE_TRY(cleave_build_input_slot(build, value, &ports[k], error));
    }
  }
  for (uint32_t k = 0; k < output_count; k++) {
    ports[input_count + k] = build->value_slot[cleave_node_output(graph, node, k).index];
  }
  return CLEAVE_OK;
}

/* ---- nodes ---- */

static cleave_status_t make_view(cleave_build_t *build, const cleave_build_node_t *request,
                                 const cleave_backend_t *backend, bool is_executor, cleave_view_t *out_view,
                                 cleave_error_t *error) {
  char label[128];
  const cleave_plan_region_t *region = request->region;
  cleave_view_request_t wanted = {.name = cleave_node_label(build->graph, request->node, label, sizeof label),
                                  .nodes = &request->node,
                                  .node_count = 1,
                                  .takes_sparse = backend->takes_sparse && !is_executor,
                                  .has_constant_inputs = is_executor};
  if (region != NULL) {
    wanted.rule = build->session->plan->rules[region->rule].name;
    wanted.attributes = region->attributes;
    wanted.attribute_count = region->attribute_count;
  }
  CLEAVE_TRY(cleave_view_build(&build->views, &wanted, &build->arena, out_view, error));
  const char *name = cleave_arena_copy_text(&build->arena, wanted.name, strlen(wanted.name));
  CLEAVE_TRY_MEMORY(name, error);
  out_view->region.name = name;
  return CLEAVE_OK;
}

/* Tries the node on its target in one way. If that is refused, *out_status is not CLEAVE_OK, and `message`
 * says why. */
static cleave_status_t try_node(cleave_build_t *build, const cleave_build_node_t *request, bool is_executor,
                                cleave_status_t *out_status, cleave_message_t *message,
                                cleave_error_t *error) {
  cleave_session_t *session = build->session;
  uint32_t target = request->target;
  const cleave_backend_handle_t *handle = session->targets.items[target].handle;
  cleave_view_t view;
  cleave_step_t step = {.op = cleave_node_op(build->graph, request->node)->name,
                        .target = target,
                        .region = request->region == NULL ? CLEAVE_INDEX_NONE : request->region_index,
                        .node = request->node};
  *out_status = CLEAVE_OK;
  message->text[0] = '\0';
  CLEAVE_TRY(make_view(build, request, handle->backend, is_executor, &view, error));
  bool is_static = cleave_build_node_is_static(build->graph, request->node);
  if (is_static) {
    cleave_build_program_t wanted = {
        .target = target, .view = &view, .node = view.region.name, .is_executor = is_executor};
    *out_status = cleave_build_get_program(build, &wanted, &step.program, message, error);
  } else if (!is_executor) {
    *out_status = handle->backend->supports(handle->state, &view.region, message);
  }
  message->text[sizeof message->text - 1] = '\0';
  if (*out_status != CLEAVE_OK) {
    /* A full device says so; then there may be room on the host. */
    bool may_fall_back = session->fallback && message->text[0] != '\0';
    return *out_status == CLEAVE_ERROR_OUT_OF_MEMORY && !may_fall_back
               ? cleave_session_fail_node(build->graph, request->node, session->targets.items[target].label,
                                          *out_status, message, error)
               : CLEAVE_OK;
  }
  return is_static ? cleave_build_add_step(build, &view, step, error)
                   : add_dynamic_step(build, &view, step, error);
}

enum { MAX_LISTED = 8 };

static bool runs_alone(cleave_build_t *build, cleave_node_t node) {
  cleave_build_node_t own = {.node = node, .region_index = CLEAVE_INDEX_NONE};
  cleave_message_t message = {.text = ""};
  cleave_view_t view;
  if (node_target(build, node, &own.target, NULL) != CLEAVE_OK) {
    return false;
  }
  const cleave_backend_handle_t *handle = build->session->targets.items[own.target].handle;
  return make_view(build, &own, handle->backend, false, &view, NULL) == CLEAVE_OK &&
         handle->backend->supports(handle->state, &view.region, &message) == CLEAVE_OK;
}

/* Appends the other operators that nothing runs, each once, so that nobody finds them one by one. */
static void list_others(cleave_build_t *build, cleave_node_t node, cleave_message_t *message) {
  const cleave_op_t *seen[MAX_LISTED] = {cleave_node_op(build->graph, node)};
  uint32_t count = 1;
  for (uint32_t k = 0; k < build->order_count && count < MAX_LISTED; k++) {
    const cleave_plan_step_t *step = &build->order[k];
    bool is_alone = step->region == CLEAVE_INDEX_NONE && cleave_node_is_live(build->graph, step->node) &&
                    is_needed(build->graph, step->node);
    const cleave_op_t *op = is_alone ? cleave_node_op(build->graph, step->node) : seen[0];
    bool is_new = true;
    for (uint32_t s = 0; s < count; s++) {
      is_new = is_new && seen[s] != op;
    }
    if (is_new && !runs_alone(build, step->node)) {
      size_t used = strlen(message->text);
      (void)snprintf(message->text + used, sizeof message->text - used, "%s%s%s%s",
                     count == 1 ? "; neither are: " : ", ", op->domain, op->domain[0] == '\0' ? "" : ".",
                     op->name);
      seen[count++] = op;
    }
  }
}

/* A node that no region runs, or that its region's backend does not. */
static cleave_status_t add_alone(cleave_build_t *build, const cleave_build_node_t *request,
                                 cleave_error_t *error) {
  cleave_build_node_t own = *request;
  cleave_message_t message = {.text = ""};
  cleave_status_t status = CLEAVE_OK;
  own.region = NULL;
  CLEAVE_TRY(node_target(build, own.node, &own.target, error));
  CLEAVE_TRY(try_node(build, &own, false, &status, &message, error));
  if (status == CLEAVE_OK) {
    return CLEAVE_OK;
  }
  if (status == CLEAVE_ERROR_UNSUPPORTED) {
    list_others(build, own.node, &message);
  }
  return cleave_session_fail_node(build->graph, own.node, build->session->targets.items[own.target].label,
                                  status, &message, error);
}

cleave_status_t cleave_build_add_node(cleave_build_t *build, const cleave_build_node_t *request,
                                      cleave_message_t *reason, cleave_error_t *error) {
  cleave_session_t *session = build->session;
  reason->text[0] = '\0';
  if (!is_needed(build->graph, request->node)) {
    return CLEAVE_OK;
  }
  bool is_done = false;
  if (!request->keeps_views && cleave_build_node_is_static(build->graph, request->node)) {
    CLEAVE_TRY(try_alias(build, request->node, &is_done, error));
  }
  if (is_done) {
    return CLEAVE_OK;
  }
  if (request->region == NULL || request->target == 0) {
    return add_alone(build, request, error);
  }
  bool has_executors = session->targets.items[request->target].handle->backend->imperative != NULL;
  cleave_status_t status = CLEAVE_ERROR_UNSUPPORTED;
  for (int way = has_executors ? 0 : 1; way < 2 && status != CLEAVE_OK; way++) {
    CLEAVE_TRY(try_node(build, request, way == 0, &status, reason, error));
  }
  if (status == CLEAVE_OK) {
    reason->text[0] = '\0';
    return CLEAVE_OK;
  }
  if (session->strict || cleave_session_is_lost(session, request->target)) {
    return cleave_session_fail_node(build->graph, request->node,
                                    session->targets.items[request->target].label, status, reason, error);
  }
  if (reason->text[0] == '\0') {
    (void)snprintf(reason->text, sizeof reason->text, "no reason given");
  }
  return add_alone(build, request, error);
}

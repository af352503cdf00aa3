// SPDX-License-Identifier: Apache-2.0
// From a plan and a bound graph to steps: regions are compiled on their backends, all other nodes on `cpu`.
// A region that cannot be compiled as a whole (a shape that is known only at run time, a backend that fails)
// runs node by node, with a note that says where and why; in imperative mode all of them do. Nodes come out
// in the plan's order, so every value is computed before it is read.
#include <stdio.h>
#include <string.h>

#include "graph/order.h"
#include "runtime/build/session_build.h"

/* ---- regions ---- */

/* The live nodes of a region, and its fusions that are still whole. */
typedef struct region_set {
  const cleave_plan_region_t *region;
  uint32_t index;
  uint32_t target;
  cleave_node_t *nodes;
  uint32_t node_count;
  cleave_view_fusion_t *fusions;
  uint32_t fusion_count;
} region_set_t;

static cleave_status_t collect_region(cleave_build_t *build, region_set_t *set, cleave_error_t *error) {
  const cleave_plan_t *plan = build->session->plan;
  const cleave_plan_region_t *region = set->region;
  set->nodes = cleave_arena_allocate(&build->arena, region->node_count, sizeof *set->nodes);
  set->fusions = cleave_arena_allocate(&build->arena, region->fusion_count, sizeof *set->fusions);
  CLEAVE_TRY_MEMORY(set->nodes != NULL && set->fusions != NULL, error);
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
      set->fusions[set->fusion_count++] = cleave_view_fusion(plan, fusion);
    }
  }
  return CLEAVE_OK;
}

/* Says how a region ran, if not as the plan has it: `reason` is why not as a whole ("": it was not to be),
 * `first` why the first of `moved` of its `count` nodes went to cpu. */
static cleave_status_t note_nodes(cleave_build_t *build, const region_set_t *set, const char *reason,
                                  uint32_t count, uint32_t moved, const char *first, cleave_error_t *error) {
  char note[1024];
  const cleave_plan_region_t *region = set->region;
  const char *label = build->session->targets.items[set->target].label;
  if (moved == 0 && reason[0] == '\0') {
    return CLEAVE_OK;
  }
  if (moved == 0) {
    (void)snprintf(note, sizeof note, "region '%s': its nodes run one by one on %s, not as a whole: %s",
                   region->name, label, reason);
  } else if (reason[0] == '\0') {
    (void)snprintf(note, sizeof note, "region '%s': %u of its %u node%s %s on cpu, not on %s: %s",
                   region->name, (unsigned)moved, (unsigned)count, CLEAVE_PLURAL(count),
                   CLEAVE_BY_COUNT(moved, "runs", "run"), label, first);
  } else if (moved == count) {
    (void)snprintf(note, sizeof note, "region '%s': its nodes run one by one on cpu, not on %s: %s",
                   region->name, label, reason);
  } else {
    (void)snprintf(note, sizeof note,
                   "region '%s': its nodes run one by one, %u of %u on cpu, not on %s: %s; %s", region->name,
                   (unsigned)moved, (unsigned)count, label, reason, first);
  }
  return cleave_session_add_note(build->session, note, error);
}

/* `reason`: why the region does not run as a whole; "" in imperative mode. */
static cleave_status_t build_one_by_one(cleave_build_t *build, const region_set_t *set, const char *reason,
                                        cleave_error_t *error) {
  uint32_t count = 0;
  uint32_t moved = 0;
  char first[384] = "";
  for (uint32_t k = 0; k < set->node_count; k++) {
    cleave_message_t why;
    cleave_build_node_t node = {.node = set->nodes[k],
                                .region = set->region,
                                .region_index = set->index,
                                .target = set->target,
                                .keeps_views = build->session->imperative};
    size_t before = build->session->steps.count;
    CLEAVE_TRY(cleave_build_add_node(build, &node, &why, error));
    count += build->session->steps.count > before ? 1 : 0;
    if (why.text[0] != '\0' && moved++ == 0) {
      char label[128];
      (void)snprintf(first, sizeof first, "node '%s': %s",
                     cleave_node_label(build->graph, set->nodes[k], label, sizeof label), why.text);
    }
  }
  return note_nodes(build, set, reason, count, moved, first, error);
}

static cleave_status_t build_view(cleave_build_t *build, const region_set_t *set, cleave_view_t *out_view,
                                  cleave_error_t *error) {
  const cleave_session_t *session = build->session;
  const cleave_plan_region_t *region = set->region;
  cleave_view_request_t request = {
      .name = region->name,
      .rule = session->plan->rules[region->rule].name,
      .nodes = set->nodes,
      .node_count = set->node_count,
      .fusions = set->fusions,
      .fusion_count = set->fusion_count,
      .attributes = region->attributes,
      .attribute_count = region->attribute_count,
      .takes_sparse = session->targets.items[set->target].handle->backend->takes_sparse};
  return cleave_view_build(&build->views, &request, &build->arena, out_view, error);
}

cleave_status_t cleave_build_region_view(cleave_build_t *build, const cleave_step_t *step,
                                         cleave_view_t *out_view, cleave_error_t *error) {
  region_set_t set = {
      .region = &build->session->plan->regions[step->region], .index = step->region, .target = step->target};
  CLEAVE_TRY(collect_region(build, &set, error));
  return build_view(build, &set, out_view, error);
}

/* Notes what the backend says about the program, if anything. */
static cleave_status_t note_program(cleave_session_t *session, const cleave_plan_region_t *region,
                                    const cleave_program_t *program, cleave_error_t *error) {
  const cleave_program_info_t *info = program->info;
  char note[512];
  if (info->size < offsetof(cleave_program_info_t, note) + sizeof info->note || info->note == NULL) {
    return CLEAVE_OK;
  }
  (void)snprintf(note, sizeof note, "region '%s': %s", region->name, info->note);
  return cleave_session_add_note(session, note, error);
}

/* The region as one step. `reason` has a text if its backend does not compile it. */
static cleave_status_t build_whole(cleave_build_t *build, const region_set_t *set, cleave_message_t *reason,
                                   cleave_error_t *error) {
  cleave_session_t *session = build->session;
  const cleave_plan_region_t *region = set->region;
  cleave_view_t view;
  CLEAVE_TRY(build_view(build, set, &view, error));
  if (view.region.output_count == 0) {
    return CLEAVE_OK;
  }
  cleave_step_t step = {.op = "", .target = set->target, .region = set->index, .node = CLEAVE_NODE_NONE};
  cleave_build_program_t wanted = {.target = set->target, .view = &view, .node = ""};
  cleave_status_t status = cleave_build_get_program(build, &wanted, &step.program, reason, error);
  if (status == CLEAVE_OK) {
    reason->text[0] = '\0';
    CLEAVE_TRY(note_program(session, region, step.program, error));
    return cleave_build_add_step(build, &view, step, error);
  }
  /* A full device says so; then there may be room on the host. */
  bool is_full = status == CLEAVE_ERROR_OUT_OF_MEMORY && (!session->fallback || reason->text[0] == '\0');
  if (is_full || session->strict || cleave_session_is_lost(session, set->target)) {
    char place[224];
    (void)snprintf(place, sizeof place, "region '%.128s' on %.64s", region->name, region->backend);
    return cleave_registry_fail(error, status, place, reason);
  }
  if (reason->text[0] == '\0') {
    (void)snprintf(reason->text, sizeof reason->text, "no reason given");
  }
  return CLEAVE_OK;
}

static cleave_status_t build_region(cleave_build_t *build, uint32_t region_index, cleave_error_t *error) {
  cleave_session_t *session = build->session;
  region_set_t set = {.region = &session->plan->regions[region_index], .index = region_index};
  CLEAVE_TRY(collect_region(build, &set, error));
  if (set.node_count == 0) {
    return CLEAVE_OK;
  }
  for (uint32_t k = 0; k < session->without->count; k++) {
    if (strcmp(session->without->handles[k]->backend->name, set.region->backend) == 0) {
      return build_one_by_one(build, &set, session->without->reasons[k].message, error); /* on cpu */
    }
  }
  CLEAVE_TRY(cleave_session_region_target(session, set.region, &set.target, error));
  if (session->imperative) {
    return build_one_by_one(build, &set, "", error);
  }
  cleave_message_t reason = {.text = ""};
  for (uint32_t k = 0; k < set.node_count && reason.text[0] == '\0'; k++) {
    char label[128];
    if (!cleave_build_node_is_static(build->graph, set.nodes[k])) {
      (void)snprintf(reason.text, sizeof reason.text, "shapes of node '%s' are known only at run time",
                     cleave_node_label(build->graph, set.nodes[k], label, sizeof label));
    }
  }
  if (reason.text[0] == '\0') {
    CLEAVE_TRY(build_whole(build, &set, &reason, error));
  }
  return reason.text[0] == '\0' ? CLEAVE_OK : build_one_by_one(build, &set, reason.text, error);
}

/* ---- the whole ---- */

static cleave_status_t build_node(cleave_build_t *build, cleave_node_t node, cleave_error_t *error) {
  cleave_message_t reason;
  cleave_build_node_t request = {.node = node, .region_index = CLEAVE_INDEX_NONE};
  return cleave_build_add_node(build, &request, &reason, error);
}

static cleave_status_t build_steps(cleave_build_t *build, cleave_error_t *error) {
  for (uint32_t k = 0; k < build->order_count; k++) {
    const cleave_plan_step_t *step = &build->order[k];
    build->unit = build->units == NULL ? NULL : &build->units[k];
    if (step->region != CLEAVE_INDEX_NONE) {
      CLEAVE_TRY(build_region(build, step->region, error));
    } else if (cleave_node_is_live(build->graph, step->node)) {
      CLEAVE_TRY(build_node(build, step->node, error));
    }
    cleave_arena_reset(&build->arena);
  }
  return CLEAVE_OK;
}

/* Finds what is computed, and in which order: as the plan says, or every node by itself. */
static cleave_status_t find_order(cleave_build_t *build, cleave_error_t *error) {
  const cleave_plan_t *plan = build->session->plan;
  if (plan != NULL) {
    build->order = plan->steps;
    build->order_count = plan->step_count;
    return CLEAVE_OK;
  }
  size_t count = build->graph->live_node_count;
  cleave_plan_step_t *steps = cleave_arena_allocate(&build->session->arena, count, sizeof *steps);
  cleave_node_t *order = cleave_allocate(count, sizeof *order);
  cleave_status_t status = steps == NULL || order == NULL
                               ? cleave_error_out_of_memory(error)
                               : cleave_graph_topological_order(build->graph, order, NULL, error);
  for (size_t k = 0; k < count && status == CLEAVE_OK; k++) {
    steps[k] = (cleave_plan_step_t){.region = CLEAVE_INDEX_NONE, .node = order[k]};
  }
  cleave_free(order);
  build->order = steps;
  build->order_count = (uint32_t)count;
  return status;
}

static cleave_status_t build_ports(cleave_build_t *build, cleave_error_t *error) {
  cleave_session_t *session = build->session;
  const cleave_graph_t *graph = build->graph;
  session->input_count = (uint32_t)graph->inputs.count;
  session->output_count = (uint32_t)graph->outputs.count;
  session->input_slots =
      cleave_arena_allocate(&session->arena, session->input_count, sizeof *session->input_slots);
  session->outputs = cleave_arena_allocate(&session->arena, session->output_count, sizeof *session->outputs);
  CLEAVE_TRY_MEMORY(session->input_slots != NULL && session->outputs != NULL, error);
  for (uint32_t k = 0; k < session->input_count; k++) {
    CLEAVE_TRY(cleave_build_input_slot(build, graph->inputs.items[k], &session->input_slots[k], error));
  }
  for (uint32_t k = 0; k < session->output_count; k++) {
    CLEAVE_TRY(
        cleave_build_input_slot(build, cleave_graph_output(graph, k), &session->outputs[k].slot, error));
  }
  return CLEAVE_OK;
}

/* Once outputs are where the user reads them. */
static void mark_outputs(cleave_session_t *session) {
  cleave_slot_t *slots = session->slots.items;
  for (uint32_t k = 0; k < session->output_count; k++) {
    cleave_slot_t *slot = &slots[session->outputs[k].slot];
    slot->is_output = true;
    slots[slot->root].is_output = true;
  }
}

cleave_status_t cleave_session_build(cleave_session_t *session, cleave_error_t *error) {
  cleave_build_t build = {.session = session, .graph = session->graph};
  cleave_view_builder_init(&build.views, session->graph);
  uint32_t bound = cleave_graph_value_bound(session->graph);
  uint32_t cpu = 0;
  cleave_status_t status = CLEAVE_OK;
  build.value_slot = cleave_allocate(bound, sizeof *build.value_slot);
  CLEAVE_TRY_MEMORY_CLEANUP(build.value_slot, error);
  for (uint32_t k = 0; k < bound; k++) {
    build.value_slot[k] = CLEAVE_INDEX_NONE;
  }
  CLEAVE_TRY_CLEANUP(cleave_session_target(session, session->cpu, 0, &cpu, error));
  CLEAVE_TRY_CLEANUP(find_order(&build, error));
  CLEAVE_TRY_CLEANUP(cleave_build_schedule(&build, error));
  CLEAVE_TRY_CLEANUP(build_steps(&build, error));
  CLEAVE_TRY_CLEANUP(build_ports(&build, error));
  CLEAVE_TRY_CLEANUP(cleave_session_add_copies(session, error));
  mark_outputs(session);
cleanup:
  cleave_free(build.value_slot);
  cleave_view_builder_deinit(&build.views);
  cleave_arena_deinit(&build.arena);
  return status;
}

// SPDX-License-Identifier: Apache-2.0
// Reading times out of a session. A step of a program is named by the fusion rule it belongs to, else by the
// operator of its node, else by what the backend calls it.
#include "tools/profile/profile.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct part {
  const char *label;
  const char *detail; /* the backend's own label */
  const char *node;   /* name, or "" */
} part_t;

static part_t describe_part(const cleave_session_t *session, const cleave_plan_t *plan,
                            const cleave_session_step_t *step, const cleave_step_time_t *time) {
  const cleave_graph_t *graph = cleave_session_graph(session);
  part_t part = {.label = time->label == NULL ? "step" : time->label, .node = ""};
  part.detail = part.label;
  if (time->node >= step->node_count) {
    return part;
  }
  cleave_node_t node = step->nodes[time->node];
  part.node = cleave_node_name(graph, node);
  uint32_t fusion =
      plan == NULL || time->fusion == CLEAVE_INDEX_NONE ? CLEAVE_INDEX_NONE : plan->node_fusion[node.index];
  part.label = fusion != CLEAVE_INDEX_NONE ? plan->rules[plan->fusions[fusion].rule].name
                                           : cleave_node_op(graph, node)->name;
  return part;
}

/* A region as one step: not a node of it, not a copy. */
static bool is_whole_region(const cleave_session_step_t *step) {
  return step->region != CLEAVE_INDEX_NONE && !cleave_node_exists(step->node);
}

/* ---- sums ---- */

/* Adds one more of `added` to the line of its label and backend. */
static cleave_status_t add_line(cleave_profile_t *profile, bool is_region, const cleave_profile_line_t *added,
                                cleave_error_t *error) {
  const char *label = added->label;
  const char *region = added->region;
  const char *backend = added->backend;
  cleave_profile_line_t *found = NULL;
  size_t count = is_region ? profile->regions.count : profile->lines.count;
  cleave_profile_line_t *lines = is_region ? profile->regions.items : profile->lines.items;
  for (size_t k = 0; k < count && found == NULL; k++) {
    bool same = strcmp(lines[k].label, label) == 0 && strcmp(lines[k].backend, backend) == 0;
    found = same ? &lines[k] : NULL;
  }
  if (found == NULL) {
    cleave_profile_line_t line = {
        .label = cleave_arena_copy_text(&profile->arena, label, strlen(label)),
        .region = cleave_arena_copy_text(&profile->arena, region, strlen(region)),
        .backend = cleave_arena_copy_text(&profile->arena, backend, strlen(backend))};
    CLEAVE_TRY_MEMORY(line.label != NULL && line.region != NULL && line.backend != NULL, error);
    if (is_region) {
      CLEAVE_ARRAY_PUSH(&profile->regions, line, error);
      found = &profile->regions.items[count];
    } else {
      CLEAVE_ARRAY_PUSH(&profile->lines, line, error);
      found = &profile->lines.items[count];
    }
  }
  found->count++;
  found->bytes += added->bytes;
  found->total_ms += added->total_ms;
  return CLEAVE_OK;
}

static double elapsed_ms(uint64_t start, uint64_t end) {
  return end > start ? (double)(end - start) * 1e-6 : 0.0;
}

cleave_status_t cleave_profile_add(cleave_profile_t *profile, const cleave_session_t *session,
                                   const cleave_plan_t *plan, cleave_error_t *error) {
  profile->run_count++;
  for (uint32_t s = 0; s < cleave_session_step_count(session); s++) {
    cleave_session_step_t step = cleave_session_step(session, s);
    double whole = elapsed_ms(step.start_ns, step.end_ns);
    bool is_region = is_whole_region(&step);
    const char *place = step.is_copy                                       ? "(copies)"
                        : is_region                                        ? step.name
                        : step.region != CLEAVE_INDEX_NONE && plan != NULL ? plan->regions[step.region].name
                                                                           : "(nodes outside of regions)";
    cleave_profile_line_t line = {
        .label = place, .region = "", .backend = step.backend, .bytes = step.copied_bytes, .total_ms = whole};
    CLEAVE_TRY(add_line(profile, true, &line, error));
    if (!is_region) {
      line.label = step.op;
      CLEAVE_TRY(add_line(profile, false, &line, error));
      continue;
    }
    line.region = step.name;
    line.bytes = 0;
    for (uint32_t k = 0; k < step.part_count; k++) {
      part_t part = describe_part(session, plan, &step, &step.parts[k]);
      line.label = part.label;
      line.total_ms = elapsed_ms(step.parts[k].start_ns, step.parts[k].end_ns);
      CLEAVE_TRY(add_line(profile, false, &line, error));
    }
    if (step.part_count == 0) {
      line.label = step.name;
      CLEAVE_TRY(add_line(profile, false, &line, error));
    }
  }
  return CLEAVE_OK;
}

static int compare_lines(const void *a, const void *b) {
  const cleave_profile_line_t *left = a;
  const cleave_profile_line_t *right = b;
  if (left->total_ms > right->total_ms || left->total_ms < right->total_ms) {
    return left->total_ms > right->total_ms ? -1 : 1;
  }
  return strcmp(left->label, right->label);
}

static void finish_lines(cleave_profile_line_t *lines, size_t count, uint32_t run_count) {
  for (size_t k = 0; k < count && run_count > 0; k++) {
    lines[k].total_ms /= run_count;
    lines[k].count /= run_count;
    lines[k].bytes /= run_count;
  }
  if (count > 1) {
    qsort(lines, count, sizeof *lines, compare_lines);
  }
}

void cleave_profile_finish(cleave_profile_t *profile) {
  finish_lines(profile->lines.items, profile->lines.count, profile->run_count);
  finish_lines(profile->regions.items, profile->regions.count, profile->run_count);
}

void cleave_profile_deinit(cleave_profile_t *profile) {
  cleave_array_free(&profile->lines);
  cleave_array_free(&profile->regions);
  cleave_arena_deinit(&profile->arena);
}

/* ---- trace ---- */

/* A complete event ("ph": "X"); times in microseconds from `origin`. */
// Wide: the members of one JSON object.
static void add_event(json_t *events, const char *name, const char *category, int line, uint64_t origin,
                      uint64_t start, uint64_t end, json_t *details) {
  (void)json_array_append_new(
      events, json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:o}", "name", name, "cat", category, "ph", "X",
                        "pid", 1, "tid", line, "ts", elapsed_ms(origin, start) * 1e3, "dur",
                        elapsed_ms(start, end) * 1e3, "args", details));
}

static void add_thread_name(json_t *events, int line, const char *name) {
  (void)json_array_append_new(events, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", "thread_name", "ph",
                                                "M", "pid", 1, "tid", line, "args", "name", name));
}

static json_t *make_trace(const cleave_session_t *session, const cleave_plan_t *plan) {
  json_t *events = json_array();
  uint32_t count = cleave_session_step_count(session);
  uint64_t origin = count == 0 ? 0 : cleave_session_step(session, 0).start_ns;
  add_thread_name(events, 1, "regions and nodes");
  add_thread_name(events, 2, "inside regions");
  for (uint32_t s = 0; s < count; s++) {
    cleave_session_step_t step = cleave_session_step(session, s);
    bool is_region = is_whole_region(&step);
    json_t *details = is_region
                          ? json_pack("{s:s, s:i}", "backend", step.target, "nodes", (int)step.node_count)
                      : step.is_copy ? json_pack("{s:s, s:s*, s:I}", "backend", step.target, "value",
                                                 step.name, "bytes", (json_int_t)step.copied_bytes)
                                     : json_pack("{s:s, s:s*}", "backend", step.target, "node", step.name);
    add_event(events, is_region ? step.name : step.op,
              is_region      ? "region"
              : step.is_copy ? "copy"
                             : "node",
              1, origin, step.start_ns, step.end_ns, details);
    for (uint32_t k = 0; is_region && k < step.part_count; k++) {
      const cleave_step_time_t *time = &step.parts[k];
      part_t part = describe_part(session, plan, &step, time);
      add_event(events, part.label, time->fusion == CLEAVE_INDEX_NONE ? "operator" : "fusion", 2, origin,
                time->start_ns, time->end_ns,
                json_pack("{s:s*, s:s*}", "detail", part.detail, "node", part.node));
    }
  }
  return json_pack("{s:o, s:s}", "traceEvents", events, "displayTimeUnit", "ms");
}

cleave_status_t cleave_profile_write_trace(const char *path, const cleave_session_t *session,
                                           const cleave_plan_t *plan, cleave_error_t *error) {
  json_t *trace = make_trace(session, plan);
  char *text = trace == NULL ? NULL : json_dumps(trace, JSON_INDENT(1));
  json_decref(trace);
  CLEAVE_TRY_MEMORY(text, error);
  cleave_status_t status = cleave_file_write(path, text, strlen(text), error);
  free(text);
  return status;
}

// SPDX-License-Identifier: Apache-2.0
// Finds which node of one graph is which of the other. In equal graphs, positions correspond. Otherwise nodes
// correspond by operator and name, if the name is unique in both graphs; the nodes between them correspond by
// operator and order, within a short distance of the node before.

#include <string.h>

#include "base/strings.h"
#include "partition/plan_diff/plan_diff.h"

enum { WINDOW = 32 };
#define AMBIGUOUS (CLEAVE_INDEX_NONE - 1)

typedef struct matching {
  cleave_plan_diff_t *diff;
  const cleave_document_node_t **nodes[2]; /* by position */
  uint32_t *after_of;
  uint32_t *before_of;
} matching_t;

static cleave_status_t list_nodes(cleave_arena_t *arena, const cleave_plan_document_t *document,
                                  const cleave_document_node_t ***out_nodes, cleave_error_t *error) {
  const cleave_document_node_t **nodes = cleave_arena_allocate(arena, document->node_count, sizeof *nodes);
  *out_nodes = nodes;
  CLEAVE_TRY_MEMORY(nodes, error);
  cleave_plan_document_list(document, nodes);
  return CLEAVE_OK;
}

static void pair(matching_t *m, uint32_t before, uint32_t after) {
  m->after_of[before] = after;
  m->before_of[after] = before;
  m->diff->matched_count++;
}

/* Per name of an operator: the position of the one node that has it, or AMBIGUOUS. */
static cleave_status_t index_names(const cleave_document_node_t *const *nodes, uint32_t count,
                                   cleave_strings_t *strings, uint32_t *positions, cleave_error_t *error) {
  cleave_text_t key = {0};
  cleave_status_t status = CLEAVE_OK;
  for (uint32_t k = 0; k < count && status == CLEAVE_OK; k++) {
    cleave_string_t id = CLEAVE_STRING_NONE;
    if (nodes[k]->name[0] == '\0') {
      continue;
    }
    key.length = 0;
    cleave_text_format(&key, "%s\x1f%s", nodes[k]->op, nodes[k]->name);
    status = cleave_text_check(&key, error);
    CLEAVE_THEN(status, cleave_strings_add(strings, cleave_text_get(&key), key.length, &id, error));
    if (status == CLEAVE_OK) {
      positions[id.index] = positions[id.index] == CLEAVE_INDEX_NONE ? k : AMBIGUOUS;
    }
  }
  cleave_text_deinit(&key);
  return status;
}

static cleave_status_t match_names(matching_t *m, cleave_error_t *error) {
  uint32_t counts[2] = {m->diff->before->node_count, m->diff->after->node_count};
  size_t most = (size_t)counts[0] + counts[1] + 1;
  cleave_strings_t strings = {0};
  cleave_status_t status = CLEAVE_OK;
  uint32_t *positions[2] = {cleave_allocate(most, sizeof(uint32_t)), cleave_allocate(most, sizeof(uint32_t))};
  CLEAVE_TRY_MEMORY_CLEANUP(positions[0] != NULL && positions[1] != NULL, error);
  for (int side = 0; side < 2; side++) {
    memset(positions[side], 0xff, most * sizeof(uint32_t));
    CLEAVE_TRY_CLEANUP(index_names(m->nodes[side], counts[side], &strings, positions[side], error));
  }
  for (uint32_t id = 0; id < strings.count; id++) {
    if (positions[0][id] < AMBIGUOUS && positions[1][id] < AMBIGUOUS) {
      pair(m, positions[0][id], positions[1][id]);
    }
  }
  m->diff->by_name_count = m->diff->matched_count;
cleanup:
  cleave_strings_deinit(&strings);
  cleave_free(positions[0]);
  cleave_free(positions[1]);
  return status;
}

static void match_rest(matching_t *m) {
  uint32_t cursor = 0;
  for (uint32_t k = 0; k < m->diff->before->node_count; k++) {
    if (m->after_of[k] != CLEAVE_INDEX_NONE) {
      cursor = m->after_of[k] + 1;
      continue;
    }
    for (uint32_t at = cursor; at < m->diff->after->node_count && at - cursor < WINDOW; at++) {
      if (m->before_of[at] == CLEAVE_INDEX_NONE && strcmp(m->nodes[0][k]->op, m->nodes[1][at]->op) == 0) {
        pair(m, k, at);
        cursor = at + 1;
        break;
      }
    }
  }
}

/* Nodes of one graph only are listed after those that moved, which the caller counts first. */
cleave_status_t cleave_plan_diff_match(cleave_plan_diff_t *diff, uint32_t **out_after_of,
                                       uint32_t **out_before_of, cleave_error_t *error) {
  matching_t m = {.diff = diff};
  uint32_t before = diff->before->node_count;
  uint32_t after = diff->after->node_count;
  m.after_of = cleave_arena_allocate(&diff->arena, before, sizeof *m.after_of);
  m.before_of = cleave_arena_allocate(&diff->arena, after, sizeof *m.before_of);
  CLEAVE_TRY_MEMORY(m.after_of != NULL && m.before_of != NULL, error);
  CLEAVE_TRY(list_nodes(&diff->arena, diff->before, &m.nodes[0], error));
  CLEAVE_TRY(list_nodes(&diff->arena, diff->after, &m.nodes[1], error));
  memset(m.after_of, 0xff, before * sizeof *m.after_of);
  memset(m.before_of, 0xff, after * sizeof *m.before_of);
  diff->same_graph = diff->before->graph_hash == diff->after->graph_hash && before == after;
  for (uint32_t k = 0; k < before && diff->same_graph; k++) {
    diff->same_graph = strcmp(m.nodes[0][k]->op, m.nodes[1][k]->op) == 0;
  }
  for (uint32_t k = 0; k < before && diff->same_graph; k++) {
    pair(&m, k, k);
  }
  if (!diff->same_graph) {
    CLEAVE_TRY(match_names(&m, error));
    match_rest(&m);
  }
  *out_after_of = m.after_of;
  *out_before_of = m.before_of;
  return CLEAVE_OK;
}

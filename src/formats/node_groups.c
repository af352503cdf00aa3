// SPDX-License-Identifier: Apache-2.0
/*
 * Levels of grouped nodes. At each level the items are sorted by Kahn's algorithm, the item with the earliest
 * node first, so that the order is the one of the graph wherever groups allow it.
 */
#include "formats/node_groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/containers/numbers.h"
#include "graph/order.h"

static cleave_status_t set_owners(cleave_groups_t *groups, cleave_error_t *error) {
  for (uint32_t g = 0; g < groups->count; g++) {
    const cleave_group_t *group = &groups->groups[g];
    if (group->parent != CLEAVE_INDEX_NONE && group->parent >= g) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "group '%s' comes before the group that holds it", group->name);
    }
    for (uint32_t k = 0; k < group->node_count; k++) {
      cleave_node_t node = group->nodes[k];
      if (!cleave_node_is_live(groups->graph, node)) {
        return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                "group '%s' has a node that is not live", group->name);
      }
      if (groups->owner[node.index] != group->parent) {
        char label[64];
        return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                "group '%s': node '%s' is in another group, or not in the group that holds "
                                "this one",
                                group->name, cleave_node_label(groups->graph, node, label, sizeof label));
      }
      groups->owner[node.index] = g;
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_groups_init(cleave_groups_t *groups, const cleave_graph_t *graph,
                                   const cleave_group_t *list, uint32_t count, cleave_error_t *error) {
  *groups = (cleave_groups_t){.graph = graph, .groups = list, .count = count};
  size_t node_bound = (size_t)cleave_graph_node_bound(graph) + 1;
  size_t value_bound = (size_t)cleave_graph_value_bound(graph) + 1;
  groups->order = cleave_allocate(graph->live_node_count + 1, sizeof *groups->order);
  groups->position = cleave_allocate(node_bound, sizeof *groups->position);
  groups->owner = cleave_allocate(node_bound, sizeof *groups->owner);
  groups->item_of = cleave_allocate(node_bound, sizeof *groups->item_of);
  groups->level_of = cleave_allocate_zeroed(node_bound, sizeof *groups->level_of);
  groups->item_of_group = cleave_allocate((size_t)count + 1, sizeof *groups->item_of_group);
  groups->level_of_group = cleave_allocate_zeroed((size_t)count + 1, sizeof *groups->level_of_group);
  groups->seen_value = cleave_allocate_zeroed(value_bound, sizeof *groups->seen_value);
  CLEAVE_TRY_MEMORY(groups->item_of_group != NULL && groups->level_of_group != NULL &&
                        groups->order != NULL && groups->position != NULL && groups->owner != NULL &&
                        groups->item_of != NULL && groups->level_of != NULL && groups->seen_value != NULL,
                    error);
  memset(groups->owner, 0xff, node_bound * sizeof *groups->owner);
  CLEAVE_TRY(cleave_graph_topological_order(graph, groups->order, groups->position, error));
  return set_owners(groups, error);
}

void cleave_groups_deinit(cleave_groups_t *groups) {
  cleave_free(groups->order);
  cleave_free(groups->position);
  cleave_free(groups->owner);
  cleave_free(groups->item_of);
  cleave_free(groups->level_of);
  cleave_free(groups->item_of_group);
  cleave_free(groups->level_of_group);
  cleave_free(groups->seen_value);
  *groups = (cleave_groups_t){0};
}

/* One level while it is sorted. `nodes` are the positions of its nodes, ascending. */
typedef struct level {
  cleave_groups_t *groups;
  uint32_t group;
  uint32_t *nodes;
  uint32_t node_count;
  uint32_t item_count;
  uint32_t *first;   /* per item: position of its first node */
  uint32_t *waiting; /* per item: edges from items that are not listed yet */
  uint32_t *next;    /* per entry of `nodes`: the next of the same item, or NONE */
  uint32_t *head;    /* per item: its first entry in `nodes` */
  uint32_t *tail;    /* per item: its last */
  uint32_t *heap;    /* items that are ready, the one with the earliest node on top */
  uint32_t heap_count;
} level_t;

static void push_ready(level_t *level, uint32_t item) {
  uint32_t at = level->heap_count++;
  while (at > 0 && level->first[level->heap[(at - 1) / 2]] > level->first[item]) {
    level->heap[at] = level->heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  level->heap[at] = item;
}

static uint32_t pop_ready(level_t *level) {
  uint32_t top = level->heap[0];
  uint32_t item = level->heap[--level->heap_count];
  uint32_t at = 0;
  for (uint32_t child = 1; child < level->heap_count; child = 2 * at + 1) {
    if (child + 1 < level->heap_count &&
        level->first[level->heap[child + 1]] < level->first[level->heap[child]]) {
      child++;
    }
    if (level->first[level->heap[child]] >= level->first[item]) {
      break;
    }
    level->heap[at] = level->heap[child];
    at = child;
  }
  if (level->heap_count > 0) {
    level->heap[at] = item;
  }
  return top;
}

/* The group directly inside of the level's group that holds the node, or NONE. */
static uint32_t inner_group(const level_t *level, uint32_t node) {
  uint32_t owner = level->groups->owner[node];
  uint32_t inner = CLEAVE_INDEX_NONE;
  while (owner != level->group && owner != CLEAVE_INDEX_NONE) {
    inner = owner;
    owner = level->groups->groups[owner].parent;
  }
  return inner;
}

static void make_items(level_t *level) {
  cleave_groups_t *groups = level->groups;
  uint32_t stamp = ++groups->listing;
  for (uint32_t k = 0; k < level->node_count; k++) {
    uint32_t node = groups->order[level->nodes[k]].index;
    uint32_t inner = inner_group(level, node);
    bool is_known = inner != CLEAVE_INDEX_NONE && groups->level_of_group[inner] == stamp;
    uint32_t item = is_known ? groups->item_of_group[inner] : CLEAVE_INDEX_NONE;
    level->next[k] = CLEAVE_INDEX_NONE;
    if (item == CLEAVE_INDEX_NONE) {
      item = level->item_count++;
      level->first[item] = level->nodes[k];
      level->head[item] = k;
      if (inner != CLEAVE_INDEX_NONE) {
        groups->item_of_group[inner] = item;
        groups->level_of_group[inner] = stamp;
      }
    } else {
      level->next[level->tail[item]] = k;
    }
    level->tail[item] = k;
    groups->item_of[node] = item;
    groups->level_of[node] = stamp;
  }
}

static void count_edges(level_t *level) {
  const cleave_groups_t *groups = level->groups;
  for (uint32_t k = 0; k < level->node_count; k++) {
    cleave_node_t node = groups->order[level->nodes[k]];
    uint32_t item = groups->item_of[node.index];
    for (uint32_t i = 0; i < cleave_node_input_count(groups->graph, node); i++) {
      cleave_value_t value = cleave_node_input(groups->graph, node, i);
      uint32_t producer =
          cleave_value_exists(value) ? cleave_value_producer(groups->graph, value).index : CLEAVE_INDEX_NONE;
      level->waiting[item] += producer != CLEAVE_INDEX_NONE &&
                              groups->level_of[producer] == groups->listing &&
                              groups->item_of[producer] != item;
    }
  }
}

static void release_users(level_t *level, uint32_t item) {
  const cleave_groups_t *groups = level->groups;
  for (uint32_t k = level->head[item]; k != CLEAVE_INDEX_NONE; k = level->next[k]) {
    cleave_node_t node = groups->order[level->nodes[k]];
    for (uint32_t o = 0; o < cleave_node_output_count(groups->graph, node); o++) {
      cleave_use_t use = cleave_value_first_use(groups->graph, cleave_node_output(groups->graph, node, o));
      for (; cleave_use_exists(use); use = cleave_use_next(groups->graph, use)) {
        uint32_t user = cleave_use_node(groups->graph, use).index;
        if (user == CLEAVE_INDEX_NONE || groups->level_of[user] != groups->listing ||
            groups->item_of[user] == item) {
          continue;
        }
        if (--level->waiting[groups->item_of[user]] == 0) {
          push_ready(level, groups->item_of[user]);
        }
      }
    }
  }
}

static cleave_group_item_t item_at(const level_t *level, uint32_t item) {
  uint32_t node = level->groups->order[level->first[item]].index;
  uint32_t inner = inner_group(level, node);
  return inner != CLEAVE_INDEX_NONE ? (cleave_group_item_t){true, inner} : (cleave_group_item_t){false, node};
}

static cleave_status_t sort_items(level_t *level, cleave_group_items_t *out_items, cleave_error_t *error) {
  make_items(level);
  count_edges(level);
  CLEAVE_TRY(cleave_array_reserve(out_items, level->item_count, error));
  for (uint32_t item = 0; item < level->item_count; item++) {
    if (level->waiting[item] == 0) {
      push_ready(level, item);
    }
  }
  while (level->heap_count > 0) {
    uint32_t item = pop_ready(level);
    cleave_array_push_reserved(out_items, item_at(level, item));
    release_users(level, item);
  }
  for (uint32_t item = 0; item < level->item_count; item++) {
    if (level->waiting[item] > 0 && item_at(level, item).is_group) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "group '%s' closes a cycle",
                              level->groups->groups[item_at(level, item).index].name);
    }
  }
  return CLEAVE_OK;
}

/* Positions of the nodes of a group (or of all), ascending. */
static void list_nodes(const cleave_groups_t *groups, uint32_t group, uint32_t *nodes, uint32_t count) {
  for (uint32_t k = 0; k < count; k++) {
    nodes[k] = group == CLEAVE_INDEX_NONE ? k : groups->position[groups->groups[group].nodes[k].index];
  }
  if (group != CLEAVE_INDEX_NONE) {
    qsort(nodes, count, sizeof *nodes, cleave_compare_u32);
  }
}

static uint32_t count_nodes(const cleave_groups_t *groups, uint32_t group) {
  return group == CLEAVE_INDEX_NONE ? (uint32_t)groups->graph->live_node_count
                                    : groups->groups[group].node_count;
}

cleave_status_t cleave_groups_items(cleave_groups_t *groups, uint32_t group, cleave_group_items_t *out_items,
                                    cleave_error_t *error) {
  level_t level = {.groups = groups, .group = group, .node_count = count_nodes(groups, group)};
  size_t count = level.node_count;
  out_items->count = 0;
  uint32_t *memory = cleave_allocate_zeroed(count * 7 + 1, sizeof *memory);
  CLEAVE_TRY_MEMORY(memory, error);
  level.nodes = memory;
  level.first = memory + count;
  level.waiting = memory + 2 * count;
  level.next = memory + 3 * count;
  level.head = memory + 4 * count;
  level.tail = memory + 5 * count;
  level.heap = memory + 6 * count;
  list_nodes(groups, group, level.nodes, level.node_count);
  cleave_status_t status = sort_items(&level, out_items, error);
  cleave_free(memory);
  return status;
}

static bool is_inside(const cleave_groups_t *groups, uint32_t node, uint32_t group) {
  uint32_t owner = node != CLEAVE_INDEX_NONE ? groups->owner[node] : CLEAVE_INDEX_NONE;
  while (owner != CLEAVE_INDEX_NONE && owner != group) {
    owner = groups->groups[owner].parent;
  }
  return owner == group;
}

static cleave_status_t add_inputs(cleave_groups_t *groups, uint32_t group, cleave_node_t node, bool constants,
                                  cleave_group_values_t *out_inputs, cleave_error_t *error) {
  for (uint32_t i = 0; i < cleave_node_input_count(groups->graph, node); i++) {
    cleave_value_t value = cleave_node_input(groups->graph, node, i);
    if (!cleave_value_exists(value) || groups->seen_value[value.index] == groups->listing ||
        cleave_value_is_constant(groups->graph, value) != constants ||
        is_inside(groups, cleave_value_producer(groups->graph, value).index, group)) {
      continue;
    }
    groups->seen_value[value.index] = groups->listing;
    CLEAVE_ARRAY_PUSH(out_inputs, value, error);
  }
  return CLEAVE_OK;
}

static bool is_used_outside(const cleave_groups_t *groups, cleave_value_t value, uint32_t group) {
  cleave_use_t use = cleave_value_first_use(groups->graph, value);
  for (; cleave_use_exists(use); use = cleave_use_next(groups->graph, use)) {
    if (!is_inside(groups, cleave_use_node(groups->graph, use).index, group)) {
      return true;
    }
  }
  return false;
}

static cleave_status_t add_outputs(const cleave_groups_t *groups, uint32_t group, cleave_node_t node,
                                   cleave_group_values_t *out_outputs, cleave_error_t *error) {
  for (uint32_t o = 0; o < cleave_node_output_count(groups->graph, node); o++) {
    cleave_value_t value = cleave_node_output(groups->graph, node, o);
    if (is_used_outside(groups, value, group)) {
      CLEAVE_ARRAY_PUSH(out_outputs, value, error);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_groups_ports(cleave_groups_t *groups, uint32_t group,
                                    cleave_group_values_t *out_inputs, cleave_group_values_t *out_outputs,
                                    cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  uint32_t count = count_nodes(groups, group);
  uint32_t *nodes = cleave_allocate((size_t)count + 1, sizeof *nodes);
  out_inputs->count = 0;
  out_outputs->count = 0;
  CLEAVE_TRY_MEMORY(nodes, error);
  list_nodes(groups, group, nodes, count);
  groups->listing++;
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t k = 0; k < count; k++) {
      CLEAVE_TRY_CLEANUP(add_inputs(groups, group, groups->order[nodes[k]], pass == 1, out_inputs, error));
    }
  }
  for (uint32_t k = 0; k < count; k++) {
    CLEAVE_TRY_CLEANUP(add_outputs(groups, group, groups->order[nodes[k]], out_outputs, error));
  }
cleanup:
  cleave_free(nodes);
  return status;
}

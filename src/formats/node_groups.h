// SPDX-License-Identifier: Apache-2.0
/*
 * Groups of nodes, as a partition makes them: regions, and fusions inside of regions. The ONNX writer makes a
 * model-local function of each, the dot printer a cluster. Plain data, so that formats need to know nothing
 * of plans.
 */
#ifndef CLEAVE_FORMATS_NODE_GROUPS_H
#define CLEAVE_FORMATS_NODE_GROUPS_H

#include "graph/graph.h"

/* The nodes of inner groups are nodes of the outer one, too. Groups are disjoint otherwise. With all groups
 * contracted the graph must be acyclic. */
typedef struct cleave_group {
  const char *domain; /* "cleave.region", "cleave.fusion" */
  const char *name;   /* unique in its domain */
  const char *doc;    /* rule, backend: for people; may be NULL */
  uint32_t parent;    /* the group that holds it, earlier in the list; or CLEAVE_INDEX_NONE */
  uint32_t node_count;
  const cleave_node_t *nodes; /* in any order */
} cleave_group_t;

/* An item of one level: a node, or a group that has a level of its own. */
typedef struct cleave_group_item {
  bool is_group;
  uint32_t index; /* of the node, or the group */
} cleave_group_item_t;

typedef CLEAVE_ARRAY(cleave_group_item_t) cleave_group_items_t;
typedef CLEAVE_ARRAY(cleave_value_t) cleave_group_values_t;

/* Groups checked against their graph. Borrows both. */
typedef struct cleave_groups {
  const cleave_graph_t *graph;
  const cleave_group_t *groups;
  uint32_t count;
  cleave_node_t *order;    /* of all live nodes */
  uint32_t *position;      /* by node index: place in `order` */
  uint32_t *owner;         /* by node index: innermost group, or NONE */
  uint32_t *item_of;       /* by node index: item at the level that is being listed */
  uint32_t *level_of;      /* by node index: which level that was */
  uint32_t *item_of_group; /* the same by group */
  uint32_t *level_of_group;
  uint32_t *seen_value; /* by value index: which listing of ports saw it last */
  uint32_t listing;
} cleave_groups_t;

/* CLEAVE_ERROR_INVALID_ARGUMENT: groups overlap, or one is not inside of its parent. Deinit after failures
 * too. */
CLEAVE_STATUS cleave_groups_init(cleave_groups_t *groups, const cleave_graph_t *graph,
                                 const cleave_group_t *list, uint32_t count, cleave_error_t *error);
void cleave_groups_deinit(cleave_groups_t *groups);

/* The items of a group, or of the whole graph (CLEAVE_INDEX_NONE), in topological order. Clears `out_items`
 * first. CLEAVE_ERROR_INVALID_ARGUMENT if groups close a cycle. */
CLEAVE_STATUS cleave_groups_items(cleave_groups_t *groups, uint32_t group, cleave_group_items_t *out_items,
                                  cleave_error_t *error);

/* Values that a group reads from outside, each once in order of first use: those made at run time first, then
 * constants; and values of the group that are used outside, in order of the nodes. Clears both lists first.
 */
CLEAVE_STATUS cleave_groups_ports(cleave_groups_t *groups, uint32_t group, cleave_group_values_t *out_inputs,
                                  cleave_group_values_t *out_outputs, cleave_error_t *error);

#endif /* CLEAVE_FORMATS_NODE_GROUPS_H */

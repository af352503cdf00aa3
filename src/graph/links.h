// SPDX-License-Identifier: Apache-2.0
/* The lists of uses: linking and unlinking. Private to this folder. */
#ifndef CLEAVE_GRAPH_LINKS_H
#define CLEAVE_GRAPH_LINKS_H

#include "graph/graph.h"

/* Appends an unlinked use to the uses of `value` (NONE: stays unlinked). */
static inline void cleave_use_link(cleave_graph_t *graph, uint32_t use, uint32_t value) {
  cleave_use_record_t *record = &graph->uses.items[use];
  record->value = value;
  record->next = CLEAVE_INDEX_NONE;
  record->previous = CLEAVE_INDEX_NONE;
  if (value == CLEAVE_INDEX_NONE) {
    return;
  }
  cleave_value_record_t *owner = &graph->values.items[value];
  record->previous = owner->last_use;
  if (owner->last_use == CLEAVE_INDEX_NONE) {
    owner->first_use = use;
  } else {
    graph->uses.items[owner->last_use].next = use;
  }
  owner->last_use = use;
  owner->use_count++;
}

static inline void cleave_use_unlink(cleave_graph_t *graph, uint32_t use) {
  cleave_use_record_t *record = &graph->uses.items[use];
  if (record->value == CLEAVE_INDEX_NONE) {
    return;
  }
  cleave_value_record_t *owner = &graph->values.items[record->value];
  if (record->previous == CLEAVE_INDEX_NONE) {
    owner->first_use = record->next;
  } else {
    graph->uses.items[record->previous].next = record->next;
  }
  if (record->next == CLEAVE_INDEX_NONE) {
    owner->last_use = record->previous;
  } else {
    graph->uses.items[record->next].previous = record->previous;
  }
  owner->use_count--;
  record->value = CLEAVE_INDEX_NONE;
  record->next = CLEAVE_INDEX_NONE;
  record->previous = CLEAVE_INDEX_NONE;
}

#endif /* CLEAVE_GRAPH_LINKS_H */

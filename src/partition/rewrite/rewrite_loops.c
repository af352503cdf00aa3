// SPDX-License-Identifier: Apache-2.0
// Detects rules that would never terminate, in three ways:
//   a place (a value of the graph as it was given, or what took its place) that is about to be changed and
//   looks exactly as it did before, three times over: the rules undo each other;
//   a rule whose matches consist of what it made itself, more of it each time: it matches its substitute;
//   more changes, at one place or in all, than a graph of this size can need.
#include <stdio.h>

#include "base/hash.h"
#include "partition/rewrite/rewrite_state.h"

enum { MAX_GROWTH = 1000000000 };
enum { MAX_RETURNS = 2, MAX_GENERATIONS = 64, MAX_CHANGES_AT_ONE_PLACE = 10000 };
enum { CHANGES_FREE = 10000, CHANGES_PER_NODE = 64, NODES_FREE = 100000, NODES_PER_NODE = 10 };

/* How a node was made. */
typedef struct origin {
  uint32_t maker;      /* number of the rule + 1; 0: it was there */
  uint32_t generation; /* consecutive applications that took only nodes which this rule had made */
  int32_t growth;      /* nodes that those added, in total */
} origin_t;

typedef struct seen {
  uint64_t key; /* 0: free */
  uint32_t times;
  uint32_t run; /* number of the rule that changed it then */
} seen_t;

struct cleave_rewrite_loops {
  CLEAVE_ARRAY(origin_t) origins; /* per node index */
  CLEAVE_ARRAY(uint32_t) places;  /* per value index: the original value that it replaces */
  CLEAVE_ARRAY(uint32_t) times;   /* per value index: changes at this place that did not make it smaller */
  seen_t *seen;                   /* open addressing */
  size_t seen_count;
  size_t slot_count;
  size_t changes;
  size_t most_changes;
  size_t most_nodes;
};

cleave_status_t cleave_rewrite_loops_create(const cleave_graph_t *graph, cleave_rewrite_loops_t **out_loops,
                                            cleave_error_t *error) {
  *out_loops = cleave_allocate_zeroed(1, sizeof **out_loops);
  CLEAVE_TRY_MEMORY(*out_loops, error);
  (*out_loops)->most_changes = CHANGES_FREE + (size_t)CHANGES_PER_NODE * graph->live_node_count;
  (*out_loops)->most_nodes = NODES_FREE + (size_t)NODES_PER_NODE * graph->live_node_count;
  return CLEAVE_OK;
}

void cleave_rewrite_loops_destroy(cleave_rewrite_loops_t *loops) {
  if (loops == NULL) {
    return;
  }
  cleave_array_free(&loops->origins);
  cleave_array_free(&loops->places);
  cleave_array_free(&loops->times);
  cleave_free(loops->seen);
  cleave_free(loops);
}

cleave_status_t cleave_rewrite_fail(const cleave_rule_run_t *run, cleave_status_t status,
                                    const cleave_error_t *cause, cleave_error_t *error) {
  if (status == CLEAVE_ERROR_OUT_OF_MEMORY) {
    return cleave_error_out_of_memory(error);
  }
  bool is_first = error != NULL && error->status == CLEAVE_OK;
  (void)cleave_error_set_at(error, CLEAVE_ERROR_RULE, run->file, run->rule->line, "%s '%s': %s",
                            cleave_rule_kind_name(run->rule->kind), run->rule->name, cause->message);
  if (is_first) {
    (void)snprintf(error->rule, sizeof error->rule, "%s", run->rule->name);
  }
  return CLEAVE_ERROR_RULE;
}

static cleave_status_t fail(const cleave_rule_run_t *run, const char *message, cleave_error_t *error) {
  cleave_error_t cause = CLEAVE_ERROR_INIT;
  (void)cleave_error_set(&cause, CLEAVE_ERROR_RULE, "%s", message);
  return cleave_rewrite_fail(run, CLEAVE_ERROR_RULE, &cause, error);
}

uint32_t cleave_rewrite_place(const cleave_rewrite_loops_t *loops, uint32_t value) {
  return value < loops->places.count && loops->places.items[value] != CLEAVE_INDEX_NONE
             ? loops->places.items[value]
             : value;
}

// ---- places that come back ----

static seen_t *find_slot(seen_t *slots, size_t slot_count, uint64_t key) {
  size_t k = (size_t)key & (slot_count - 1);
  while (slots[k].key != 0 && slots[k].key != key) {
    k = (k + 1) & (slot_count - 1);
  }
  return &slots[k];
}

static cleave_status_t remember(cleave_rewrite_loops_t *loops, uint64_t key, seen_t **out_seen,
                                cleave_error_t *error) {
  if (loops->seen_count * 2 >= loops->slot_count) {
    size_t slot_count = loops->slot_count == 0 ? 64 : loops->slot_count * 2;
    seen_t *slots = cleave_allocate_zeroed(slot_count, sizeof *slots);
    CLEAVE_TRY_MEMORY(slots, error);
    for (size_t k = 0; k < loops->slot_count; k++) {
      if (loops->seen[k].key != 0) {
        *find_slot(slots, slot_count, loops->seen[k].key) = loops->seen[k];
      }
    }
    cleave_free(loops->seen);
    loops->seen = slots;
    loops->slot_count = slot_count;
  }
  *out_seen = find_slot(loops->seen, loops->slot_count, key);
  if ((*out_seen)->key == 0) {
    (*out_seen)->key = key;
    loops->seen_count++;
  }
  return CLEAVE_OK;
}

static const cleave_rule_run_t *find_turn(const cleave_rewriter_t *rewriter, uint32_t number) {
  for (uint32_t k = 0; k < rewriter->run_count; k++) {
    if (rewriter->runs[k].number == number) {
      return &rewriter->runs[k];
    }
  }
  return NULL;
}

/* The rule that made a node of the match, or the one in hand. */
static const cleave_rule_run_t *find_maker(const cleave_rewriter_t *rewriter, const cleave_rule_run_t *run) {
  const cleave_rewrite_loops_t *loops = rewriter->loops;
  for (size_t k = rewriter->nodes.count; k > 0; k--) {
    uint32_t node = rewriter->nodes.items[k - 1].index;
    if (node < loops->origins.count && loops->origins.items[node].maker != 0) {
      const cleave_rule_run_t *maker = find_turn(rewriter, loops->origins.items[node].maker - 1);
      if (maker != NULL && maker != run) {
        return maker;
      }
    }
  }
  return run;
}

cleave_status_t cleave_rewrite_check_return(cleave_rewriter_t *rewriter, const cleave_rule_run_t *run,
                                            cleave_error_t *error) {
  const cleave_graph_t *graph = rewriter->editor->graph;
  cleave_rewrite_loops_t *loops = rewriter->loops;
  uint64_t key = cleave_hash_combine(CLEAVE_HASH_SEED, run->number);
  for (size_t k = 0; k < rewriter->outputs.count; k++) {
    cleave_value_t value = rewriter->outputs.items[k];
    uint32_t local = rewriter->local.items[cleave_value_producer(graph, value).index];
    uint64_t part =
        cleave_hash_combine(rewriter->hashes.items[local], cleave_graph_value(graph, value)->output_index);
    key += cleave_hash_combine(part, cleave_rewrite_place(loops, value.index));
  }
  seen_t *seen = NULL;
  CLEAVE_TRY(remember(loops, key == 0 ? 1 : key, &seen, error));
  seen->run = run->number;
  if (seen->times++ < MAX_RETURNS) {
    return CLEAVE_OK;
  }
  char label[128];
  char message[640];
  const cleave_rule_run_t *maker = find_maker(rewriter, run);
  (void)cleave_node_label(graph, rewriter->nodes.items[rewriter->nodes.count - 1], label, sizeof label);
  if (maker == run) {
    (void)snprintf(message, sizeof message, "loops at '%s': its result is rewritten back to what it was",
                   label);
  } else {
    (void)snprintf(
        message, sizeof message, "loops at '%s' with %s '%s' (%.150s:%d), which undoes what it makes", label,
        cleave_rule_kind_name(maker->rule->kind), maker->rule->name, maker->file, (int)maker->rule->line);
  }
  return fail(run, message, error);
}

// ---- growth ----

static cleave_status_t make_room(const cleave_graph_t *graph, cleave_rewrite_loops_t *loops,
                                 cleave_error_t *error) {
  while (loops->origins.count < cleave_graph_node_bound(graph)) {
    CLEAVE_ARRAY_PUSH(&loops->origins, ((origin_t){0, 0, 0}), error);
  }
  while (loops->places.count < cleave_graph_value_bound(graph)) {
    CLEAVE_ARRAY_PUSH(&loops->places, CLEAVE_INDEX_NONE, error);
  }
  while (loops->times.count < cleave_graph_value_bound(graph)) {
    CLEAVE_ARRAY_PUSH(&loops->times, 0, error);
  }
  return CLEAVE_OK;
}

/* The origin of the new nodes: that of the nodes taken, if this rule made all of them. */
static origin_t descend(const cleave_rewriter_t *rewriter, const cleave_rule_run_t *run,
                        uint32_t made_count) {
  const cleave_editor_t *editor = rewriter->editor;
  origin_t result = {run->number + 1, 0, 0};
  uint32_t taken = 0;
  bool own = true;
  for (size_t k = 0; k < editor->removed.count; k++) {
    uint32_t node = editor->removed.items[k];
    if (node >= editor->first_node) {
      continue;  // made and dropped in the same application
    }
    origin_t origin = rewriter->loops->origins.items[node];
    taken++;
    own = own && origin.maker == run->number + 1;
    result.generation = origin.generation > result.generation ? origin.generation : result.generation;
    result.growth = origin.growth > result.growth ? origin.growth : result.growth;
  }
  if (!own || taken == 0) {
    result.generation = 0;
    result.growth = 0;
  }
  result.generation++;
  int64_t growth = (int64_t)result.growth + made_count - taken;
  growth = growth > MAX_GROWTH ? MAX_GROWTH : growth < -MAX_GROWTH ? -MAX_GROWTH : growth;
  result.growth = (int32_t)growth;
  return result;
}

static void set_places(cleave_rewriter_t *rewriter, const cleave_substitute_t *substitute) {
  const cleave_editor_t *editor = rewriter->editor;
  cleave_rewrite_loops_t *loops = rewriter->loops;
  for (size_t k = 0; k < substitute->to.count; k++) {
    cleave_value_t to = substitute->to.items[k];
    cleave_node_t producer = cleave_value_producer(editor->graph, to);
    if (cleave_node_exists(producer) && producer.index >= editor->first_node) {
      loops->places.items[to.index] = cleave_rewrite_place(loops, substitute->from.items[k].index);
    }
  }
}

cleave_status_t cleave_rewrite_check_growth(cleave_rewriter_t *rewriter, const cleave_rule_run_t *run,
                                            const cleave_substitute_t *substitute, cleave_error_t *error) {
  const cleave_editor_t *editor = rewriter->editor;
  const cleave_graph_t *graph = editor->graph;
  cleave_rewrite_loops_t *loops = rewriter->loops;
  uint32_t made = 0;
  CLEAVE_TRY(make_room(graph, loops, error));
  for (uint32_t node = editor->first_node; node < cleave_graph_node_bound(graph); node++) {
    made += cleave_node_is_live(graph, (cleave_node_t){node});
  }
  origin_t origin = descend(rewriter, run, made);
  for (uint32_t node = editor->first_node; node < cleave_graph_node_bound(graph); node++) {
    loops->origins.items[node] = origin;
  }
  set_places(rewriter, substitute);
  if (origin.generation > MAX_GENERATIONS && origin.growth > MAX_GENERATIONS) {
    return fail(run, "matches its own substitute, and makes more of it each time", error);
  }
  if (made >= editor->removed.count) {
    uint32_t place = cleave_rewrite_place(loops, substitute->from.items[0].index);
    if (++loops->times.items[place] > MAX_CHANGES_AT_ONE_PLACE) {
      return fail(run, "does not terminate: it has changed one place more than 10000 times", error);
    }
  }
  char message[160];
  if (++loops->changes > loops->most_changes) {
    (void)snprintf(message, sizeof message,
                   "does not terminate: %zu change%s by rewrites in a graph that had %zu node%s",
                   loops->changes, CLEAVE_PLURAL(loops->changes),
                   (loops->most_changes - CHANGES_FREE) / CHANGES_PER_NODE,
                   CLEAVE_PLURAL((loops->most_changes - CHANGES_FREE) / CHANGES_PER_NODE));
    return fail(run, message, error);
  }
  if (graph->live_node_count > loops->most_nodes) {
    (void)snprintf(message, sizeof message, "does not terminate: the graph has grown to %zu node%s",
                   graph->live_node_count, CLEAVE_PLURAL(graph->live_node_count));
    return fail(run, message, error);
  }
  return CLEAVE_OK;
}

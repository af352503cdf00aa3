// SPDX-License-Identifier: Apache-2.0
// Finds the constraints that are not met at an anchor. A trial starts with the anchor's operator alone, adds
// one part after the other, and then all other constraints on these parts; a constraint with which it no
// longer matches is dropped, and is at fault. Invariant: the trial matches after every step.

#include "partition/explain/explain_state.h"

enum { MAX_OPENINGS = 24, MAX_ROOTS = 64 };

// ---- trials ----

static cleave_status_t probe(cleave_explainer_t *x, trial_t *trial, uint32_t anchor, bool *out_fits,
                             cleave_error_t *error) {
  cleave_match_answer_t answer;
  CLEAVE_TRY(cleave_explainer_build(x, trial, false, error));
  CLEAVE_TRY(cleave_explainer_probe(x, anchor, &answer, error));
  *out_fits = answer.match != NULL;
  return CLEAVE_OK;
}

/* The part that takes the anchor, under the choices of a trial; a ONEOF if the choice is still open. */
static uint32_t anchor_part(const cleave_explainer_t *x, const trial_t *trial) {
  uint32_t part = x->pattern->root;
  for (;;) {
    part = cleave_explainer_resolve(x, trial, part);
    const cleave_pattern_node_t *node = &x->pattern->nodes[part];
    switch (node->kind) {
      case CLEAVE_PATTERN_SEQUENCE: {
        bool is_value = cleave_pattern_is_value(&x->pattern->nodes[node->children[0]]);
        part = node->children[is_value && node->child_count > 1 ? 1 : 0];
        break;
      }
      case CLEAVE_PATTERN_GROUP:
      case CLEAVE_PATTERN_REPEATED:
      case CLEAVE_PATTERN_OUTPUT: part = node->children[0]; break;
      default: return part;
    }
  }
}

/* The operator by which an edge enters its part, or NONE. *out_unit: a ONEOF on the way whose choice is still
 * open. */
static uint32_t entry_part(const cleave_explainer_t *x, const trial_t *trial, uint32_t constraint,
                           uint32_t *out_unit) {
  const constraint_t *d = &x->constraints[constraint];
  const cleave_pattern_node_t *owner = &x->pattern->nodes[d->part];
  uint32_t part = d->kind == CONSTRAINT_CHILD ? owner->children[d->index] : owner->inputs[d->index].pattern;
  bool backwards = d->kind == CONSTRAINT_INPUT || (trial->edges[constraint] & EDGE_BACKWARDS) != 0;
  *out_unit = CLEAVE_INDEX_NONE;
  for (;;) {
    part = cleave_explainer_resolve(x, trial, part);
    const cleave_pattern_node_t *node = &x->pattern->nodes[part];
    switch (node->kind) {
      case CLEAVE_PATTERN_OP: return part;
      case CLEAVE_PATTERN_SEQUENCE: part = node->children[backwards ? node->child_count - 1 : 0]; break;
      case CLEAVE_PATTERN_GROUP:
      case CLEAVE_PATTERN_REPEATED:
      case CLEAVE_PATTERN_VARIADIC:
      case CLEAVE_PATTERN_OUTPUT: part = node->children[0]; break;
      case CLEAVE_PATTERN_ONEOF: *out_unit = part; return CLEAVE_INDEX_NONE;
      case CLEAVE_PATTERN_VALUE:
      case CLEAVE_PATTERN_CONSTANT:
      case CLEAVE_PATTERN_ABSENT:
      case CLEAVE_PATTERN_MAYBE: return CLEAVE_INDEX_NONE;
    }
  }
}

static tally_t tally(cleave_explainer_t *x, trial_t *trial) {
  tally_t result = {0};
  cleave_explainer_walk(x, trial);
  result.mismatches = trial->states[cleave_explainer_edges_constraint(x)] == CONSTRAINT_DROPPED;
  for (uint32_t p = 0; p < x->pattern->node_count; p++) {
    bool counts = x->seen[p] != 0 && x->pattern->nodes[p].kind == CLEAVE_PATTERN_OP;
    bool fits = true;
    for (uint32_t d = x->constraint_starts[p]; x->seen[p] != 0 && d < x->constraint_starts[p + 1]; d++) {
      uint8_t state = trial->states[d];
      bool missed = state == CONSTRAINT_DROPPED || state == CONSTRAINT_PASSED;
      bool is_edge = x->constraints[d].kind == CONSTRAINT_CHILD || x->constraints[d].kind == CONSTRAINT_INPUT;
      result.mismatches += missed;
      fits = fits && (is_edge || !missed);
    }
    result.total += counts;
    result.matched += counts && fits;
  }
  // Counts operators behind missing parts, and those inside of units, which are as required.
  uint32_t before = 0;
  for (uint32_t p = 0; p < x->pattern->node_count; p++) {
    before += x->seen[p] != 0 && x->pattern->nodes[p].kind == CLEAVE_PATTERN_OP;
  }
  uint8_t *seen = x->seen;
  for (uint32_t k = 0; k < x->skeleton_count; k++) {
    const constraint_t *d = &x->constraints[x->skeleton[k]];
    const cleave_pattern_node_t *owner = &x->pattern->nodes[d->part];
    uint32_t target =
        d->kind == CONSTRAINT_CHILD ? owner->children[d->index] : owner->inputs[d->index].pattern;
    target = cleave_explainer_resolve(x, trial, target);
    bool is_missing = trial->states[x->skeleton[k]] == CONSTRAINT_DROPPED;
    if (is_missing || x->pattern->nodes[target].kind == CLEAVE_PATTERN_ONEOF) {
      seen[target] = 0;
      uint32_t count = cleave_explainer_least_ops(x, trial, target);
      result.total += count;
      result.matched += is_missing ? 0 : count;
    }
  }
  return result;
}

/* Is trial `a` a better explanation than `b`? */
static bool is_better(const tally_t *a, const tally_t *b) {
  uint64_t left = (uint64_t)a->matched * (b->total == 0 ? 1 : b->total);
  uint64_t right = (uint64_t)b->matched * (a->total == 0 ? 1 : a->total);
  if (left != right) {
    return left > right;
  }
  return a->mismatches < b->mismatches;
}

static void keep_better(cleave_explainer_t *x, trial_t *trial, trial_t *best, tally_t *best_tally,
                        bool *found) {
  tally_t now = tally(x, trial);
  if (!*found || is_better(&now, best_tally)) {
    *best = *trial;
    *best_tally = now;
    *found = true;
  }
}

// ---- growing ----

typedef struct growth {
  cleave_explainer_t *x;
  uint32_t anchor;
  cleave_explain_depth_t depth;
  uint32_t openings; /* of alternatives, left for this anchor */
} growth_t;

static cleave_status_t grow(growth_t *growth, trial_t *trial, bool may_look_ahead, cleave_error_t *error);

/* A way to satisfy an edge, or to drop it. */
typedef struct way {
  constraint_state_t state;
  uint32_t dropped; /* another constraint, or NONE */
} way_t;

enum { MAX_WAYS = 6 };

/* Possible explanations of an edge that does not match. */
typedef struct ways {
  uint32_t count;
  uint32_t own; /* with the pattern's own operators: these come first */
  way_t items[MAX_WAYS];
} ways_t;

/* Does the trial match with one edge (or NONE) satisfied in this way and all others required? */
static cleave_status_t fits_with_rest(growth_t *growth, const trial_t *trial, uint32_t constraint, way_t way,
                                      trial_t *out_trial, bool *out_fits, cleave_error_t *error) {
  cleave_explainer_t *x = growth->x;
  CLEAVE_TRY(cleave_explainer_trial_copy(x, trial, out_trial, error));
  if (constraint != CLEAVE_INDEX_NONE) {
    out_trial->states[constraint] = (uint8_t)way.state;
  }
  if (way.dropped != CLEAVE_INDEX_NONE) {
    out_trial->states[way.dropped] = CONSTRAINT_DROPPED;
  }
  cleave_explainer_walk(x, out_trial);
  for (uint32_t k = 0; k < x->skeleton_count; k++) {
    uint8_t *open = &out_trial->states[x->skeleton[k]];
    *open = *open == CONSTRAINT_OPEN ? CONSTRAINT_KEPT : *open;
  }
  return probe(x, out_trial, growth->anchor, out_fits, error);
}

/* The best trial with one alternative of a unit opened. */
static cleave_status_t open_unit(growth_t *growth, trial_t *trial, uint32_t unit, bool *out_found,
                                 cleave_error_t *error) {
  cleave_explainer_t *x = growth->x;
  const cleave_pattern_node_t *node = &x->pattern->nodes[unit];
  tally_t best_tally = {0};
  trial_t best = {0};
  *out_found = false;
  for (uint32_t k = 0; k < node->child_count && growth->openings > 0; k++) {
    trial_t opened;
    growth->openings--;
    CLEAVE_TRY(cleave_explainer_trial_copy(x, trial, &opened, error));
    opened.choices[unit] = (uint16_t)k;
    CLEAVE_TRY(grow(growth, &opened, true, error));
    keep_better(x, &opened, &best, &best_tally, out_found);
  }
  if (*out_found) {
    *trial = best;
  }
  return CLEAVE_OK;
}

/* The part that makes the value of an edge, if it is one operator; or NONE. */
static uint32_t producing_part(const cleave_explainer_t *x, const trial_t *trial, uint32_t constraint,
                               uint32_t entry) {
  const constraint_t *d = &x->constraints[constraint];
  bool forwards = d->kind == CONSTRAINT_CHILD && (trial->edges[constraint] & EDGE_BACKWARDS) == 0;
  if (!forwards) {
    return entry;
  }
  if (d->index == 0) {
    return CLEAVE_INDEX_NONE;
  }
  uint32_t part = cleave_explainer_resolve(x, trial, x->pattern->nodes[d->part].children[d->index - 1]);
  while (x->pattern->nodes[part].kind == CLEAVE_PATTERN_REPEATED ||
         x->pattern->nodes[part].kind == CLEAVE_PATTERN_OUTPUT) {
    part = cleave_explainer_resolve(x, trial, x->pattern->nodes[part].children[0]);
  }
  return x->pattern->nodes[part].kind == CLEAVE_PATTERN_OP ? part : CLEAVE_INDEX_NONE;
}

static void add_way_without(const trial_t *trial, uint32_t constraint, ways_t *ways) {
  if (constraint != CLEAVE_INDEX_NONE && trial->states[constraint] == CONSTRAINT_KEPT) {
    ways->items[ways->count++] = (way_t){CONSTRAINT_KEPT, constraint};
  }
}

static void add_way(const cleave_explainer_t *x, const trial_t *trial, uint32_t part, constraint_kind_t kind,
                    ways_t *ways) {
  uint32_t constraint = part == CLEAVE_INDEX_NONE ? part : cleave_explainer_constraint(x, part, kind, 0);
  add_way_without(trial, constraint, ways);
}

static ways_t list_ways(const cleave_explainer_t *x, const trial_t *trial, uint32_t constraint,
                        uint32_t entry) {
  const constraint_t *d = &x->constraints[constraint];
  ways_t ways = {.count = 0};
  add_way(x, trial, producing_part(x, trial, constraint, entry), CONSTRAINT_UNSHARED, &ways);
  if (d->kind == CONSTRAINT_CHILD && d->index > 0) {
    uint32_t before = cleave_explainer_resolve(x, trial, x->pattern->nodes[d->part].children[d->index - 1]);
    add_way(x, trial, before, CONSTRAINT_MAX_COUNT, &ways);
  }
  add_way_without(trial, cleave_explainer_edges_constraint(x), &ways);
  ways.own = ways.count;
  add_way(x, trial, entry, CONSTRAINT_OPS, &ways);
  if (entry != CLEAVE_INDEX_NONE) {
    ways.items[ways.count++] = (way_t){CONSTRAINT_PASSED, CLEAVE_INDEX_NONE};
  }
  ways.items[ways.count++] = (way_t){CONSTRAINT_DROPPED, CLEAVE_INDEX_NONE};
  return ways;
}

/* Finds a way with which the whole rest of the pattern matches, if there is one. */
static cleave_status_t find_whole_way(growth_t *growth, trial_t *trial, uint32_t constraint,
                                      const ways_t *ways, bool *out_found, cleave_error_t *error) {
  tally_t best_tally = {0};
  trial_t best = {0};
  *out_found = false;
  for (uint32_t k = 0; k < ways->count && (k != ways->own || !*out_found); k++) {
    trial_t whole;
    bool fits = false;
    CLEAVE_TRY(fits_with_rest(growth, trial, constraint, ways->items[k], &whole, &fits, error));
    if (fits) {
      keep_better(growth->x, &whole, &best, &best_tally, out_found);
    }
  }
  if (*out_found) {
    *trial = best;
  }
  return CLEAVE_OK;
}

/* Explains an edge that does not match: its value has other users, or a user inside the match that the
 * pattern does not name; another operator is present, one more node is in between, or nothing. The
 * explanation with which most of the rest of the pattern matches wins. */
static cleave_status_t settle_edge(growth_t *growth, trial_t *trial, uint32_t constraint, bool may_look_ahead,
                                   cleave_error_t *error) {
  cleave_explainer_t *x = growth->x;
  bool found = false;
  uint32_t unit = CLEAVE_INDEX_NONE;
  uint32_t entry = entry_part(x, trial, constraint, &unit);
  if (unit != CLEAVE_INDEX_NONE && growth->openings > 0) {
    trial_t opened = *trial;
    trial->states[constraint] = CONSTRAINT_OPEN;
    CLEAVE_TRY(open_unit(growth, &opened, unit, &found, error));
    if (found) {
      *trial = opened;
      return CLEAVE_OK;
    }
  }
  ways_t ways = list_ways(x, trial, constraint, entry);
  if (may_look_ahead) {
    CLEAVE_TRY(find_whole_way(growth, trial, constraint, &ways, &found, error));
    if (found) {
      return CLEAVE_OK;
    }
  }
  tally_t best_tally = {0};
  trial_t best = {0};
  for (uint32_t k = 0; k < ways.count && (may_look_ahead || !found); k++) {
    trial_t partial;
    way_t way = ways.items[k];
    bool fits = way.state == CONSTRAINT_DROPPED;
    CLEAVE_TRY(cleave_explainer_trial_copy(x, trial, &partial, error));
    partial.states[constraint] = (uint8_t)way.state;
    if (way.dropped != CLEAVE_INDEX_NONE) {
      partial.states[way.dropped] = CONSTRAINT_DROPPED;
    }
    if (!fits) {
      CLEAVE_TRY(probe(x, &partial, growth->anchor, &fits, error));
    }
    if (fits && may_look_ahead) {
      CLEAVE_TRY(grow(growth, &partial, false, error));
    }
    if (fits) {
      keep_better(x, &partial, &best, &best_tally, &found);
    }
  }
  if (found) {
    *trial = best;
  }
  return CLEAVE_OK;
}

/* Adds the open parts of the skeleton, one after the other. */
static cleave_status_t grow(growth_t *growth, trial_t *trial, bool may_look_ahead, cleave_error_t *error) {
  cleave_explainer_t *x = growth->x;
  trial_t whole;
  bool fits = false;
  way_t none = {CONSTRAINT_KEPT, CLEAVE_INDEX_NONE};
  CLEAVE_TRY(fits_with_rest(growth, trial, CLEAVE_INDEX_NONE, none, &whole, &fits, error));
  if (fits) {
    *trial = whole;
    return CLEAVE_OK;
  }
  for (;;) {
    uint32_t constraint = CLEAVE_INDEX_NONE;
    cleave_explainer_walk(x, trial);
    for (uint32_t k = 0; k < x->skeleton_count && constraint == CLEAVE_INDEX_NONE; k++) {
      constraint = trial->states[x->skeleton[k]] == CONSTRAINT_OPEN ? x->skeleton[k] : constraint;
    }
    if (constraint == CLEAVE_INDEX_NONE) {
      return CLEAVE_OK;
    }
    trial->states[constraint] = CONSTRAINT_KEPT;
    CLEAVE_TRY(probe(x, trial, growth->anchor, &fits, error));
    if (!fits) {
      CLEAVE_TRY(settle_edge(growth, trial, constraint, may_look_ahead, error));
    }
  }
}

/* Adds the other constraints on the parts that are present. */
static cleave_status_t refine(growth_t *growth, trial_t *trial, cleave_error_t *error) {
  cleave_explainer_t *x = growth->x;
  bool fits = false;
  trial_t whole;
  cleave_explainer_walk(x, trial);
  CLEAVE_TRY(cleave_explainer_trial_copy(x, trial, &whole, error));
  for (uint32_t k = 0; k < x->detail_count; k++) {
    uint8_t *open = &whole.states[x->details[k]];
    *open = *open == CONSTRAINT_OPEN ? CONSTRAINT_KEPT : *open;
  }
  CLEAVE_TRY(probe(x, &whole, growth->anchor, &fits, error));
  if (fits) {
    *trial = whole;
    return CLEAVE_OK;
  }
  for (uint32_t k = 0; k < x->detail_count; k++) {
    uint8_t *state = &trial->states[x->details[k]];
    if (*state == CONSTRAINT_OPEN) {
      *state = CONSTRAINT_KEPT;
      CLEAVE_TRY(probe(x, trial, growth->anchor, &fits, error));
      *state = fits ? CONSTRAINT_KEPT : CONSTRAINT_DROPPED;
    }
  }
  return CLEAVE_OK;
}

/* Makes the choices with which a part is required. */
static void focus_on(const cleave_explainer_t *x, trial_t *trial, uint32_t focus) {
  for (uint32_t part = focus; part != CLEAVE_INDEX_NONE && x->parents[part] != CLEAVE_INDEX_NONE;) {
    uint32_t parent = x->parents[part];
    const cleave_pattern_node_t *node = &x->pattern->nodes[parent];
    bool is_choice = node->kind == CLEAVE_PATTERN_ONEOF || node->kind == CLEAVE_PATTERN_MAYBE;
    for (uint32_t k = 0; is_choice && k < node->child_count; k++) {
      if (node->children[k] == part) {
        trial->choices[parent] = (uint16_t)k;
      }
    }
    part = parent;
  }
}

/* One way to begin: a set of choices on the way to the anchor. */
static cleave_status_t explain_root(growth_t *growth, trial_t *trial, bool *out_fits, cleave_error_t *error) {
  cleave_explainer_t *x = growth->x;
  uint32_t part = anchor_part(x, trial);
  cleave_explainer_walk(x, trial);
  CLEAVE_TRY(probe(x, trial, growth->anchor, out_fits, error));
  uint32_t shared = cleave_explainer_constraint(x, part, CONSTRAINT_UNSHARED, 0);
  if (!*out_fits && shared != CLEAVE_INDEX_NONE && trial->states[shared] == CONSTRAINT_KEPT) {
    // With the operator alone, only an output that the pattern does not name can prevent a match.
    trial->states[shared] = CONSTRAINT_DROPPED;
    CLEAVE_TRY(probe(x, trial, growth->anchor, out_fits, error));
    trial->states[shared] = *out_fits ? CONSTRAINT_DROPPED : CONSTRAINT_KEPT;
  }
  if (!*out_fits) {
    uint32_t ops = cleave_explainer_constraint(x, part, CONSTRAINT_OPS, 0);
    if (ops == CLEAVE_INDEX_NONE) {
      return CLEAVE_OK;
    }
    trial->states[ops] = CONSTRAINT_DROPPED;
    if (growth->depth != CLEAVE_EXPLAIN_DETAILS) {
      CLEAVE_TRY(probe(x, trial, growth->anchor, out_fits, error));
    }
    if (!*out_fits) {
      return CLEAVE_OK;
    }
  }
  if (growth->depth != CLEAVE_EXPLAIN_ALL) {
    trial_t whole;
    way_t none = {CONSTRAINT_KEPT, CLEAVE_INDEX_NONE};
    CLEAVE_TRY(fits_with_rest(growth, trial, CLEAVE_INDEX_NONE, none, &whole, out_fits, error));
    *trial = whole;
    for (uint32_t k = 0; growth->depth == CLEAVE_EXPLAIN_ANCHOR && *out_fits && k < x->detail_count; k++) {
      trial->states[x->details[k]] = CONSTRAINT_KEPT;
    }
    if (growth->depth == CLEAVE_EXPLAIN_ANCHOR && *out_fits) {
      return probe(x, trial, growth->anchor, out_fits, error);
    }
    return *out_fits ? refine(growth, trial, error) : CLEAVE_OK;
  }
  CLEAVE_TRY(grow(growth, trial, true, error));
  return refine(growth, trial, error);
}

/* Tries all alternatives on the way to the anchor; the best trial wins. */
static cleave_status_t explain_roots(growth_t *growth, const trial_t *trial, uint32_t *roots, trial_t *best,
                                     tally_t *best_tally, bool *found, cleave_error_t *error) {
  cleave_explainer_t *x = growth->x;
  uint32_t part = anchor_part(x, trial);
  const cleave_pattern_node_t *node = &x->pattern->nodes[part];
  if (node->kind == CLEAVE_PATTERN_ONEOF) {
    for (uint32_t k = 0; k < node->child_count; k++) {
      trial_t chosen;
      CLEAVE_TRY(cleave_explainer_trial_copy(x, trial, &chosen, error));
      chosen.choices[part] = (uint16_t)k;
      CLEAVE_TRY(explain_roots(growth, &chosen, roots, best, best_tally, found, error));
    }
    return CLEAVE_OK;
  }
  if (node->kind != CLEAVE_PATTERN_OP || *roots == 0) {
    return CLEAVE_OK;
  }
  --*roots;
  bool fits = false;
  trial_t grown;
  growth->openings = MAX_OPENINGS;
  CLEAVE_TRY(cleave_explainer_trial_copy(x, trial, &grown, error));
  CLEAVE_TRY(explain_root(growth, &grown, &fits, error));
  if (fits) {
    keep_better(x, &grown, best, best_tally, found);
  }
  return CLEAVE_OK;
}

// Wide: a place to explain, and the three parts of one result.
cleave_status_t cleave_explainer_grow(cleave_explainer_t *x, uint32_t anchor, uint32_t focus,
                                      cleave_explain_depth_t depth, trial_t *out_trial, tally_t *out_tally,
                                      bool *out_found, cleave_error_t *error) {
  growth_t growth = {.x = x, .anchor = anchor, .depth = depth};
  trial_t start;
  uint32_t roots = MAX_ROOTS;
  *out_trial = (trial_t){0};
  *out_tally = (tally_t){0};
  *out_found = false;
  CLEAVE_TRY(cleave_explainer_trial_create(x, &start, error));
  focus_on(x, &start, focus);
  return explain_roots(&growth, &start, &roots, out_trial, out_tally, out_found, error);
}

// SPDX-License-Identifier: Apache-2.0
// The matcher against one that tries everything: random graphs, random patterns of operators, values and
// constants with shared parts, equal labels, commutative inputs, choices, parts that may be missing,
// sequences that inputs end in, and operators that name all of their inputs. Every anchor must have a match
// for both or for none, and a match that is found must be one of all.

#include "partition/match/match.h"
#include "plan_case.h"
#include "random_case.h"
#include "unit.h"

enum { NODES = 14, MAX_PARTS = 96, LARGE = 48, MAX_STEPS = 4, MAX_INPUTS = 3, ROUNDS = 8000 };

static const cleave_op_id_t OPS[] = {CLEAVE_OP_Add, CLEAVE_OP_Mul, CLEAVE_OP_Sub, CLEAVE_OP_Relu,
                                     CLEAVE_OP_Sum};
enum { OP_KINDS = sizeof OPS / sizeof OPS[0] };

// ---- graphs ----

static cleave_graph_t *random_graph(void) {
  cleave_graph_t *graph = NULL;
  cleave_value_t values[NODES + 3];
  cleave_tensor_t *tensor = NULL;
  uint32_t count = 0;
  const cleave_dim_t dims[1] = {2};
  unit_ok(cleave_graph_create(&graph, e));
  unit_ok(cleave_graph_add_input(graph, "x", CLEAVE_DTYPE_F32, 1, dims, &values[count++], e));
  unit_ok(cleave_graph_add_input(graph, "y", CLEAVE_DTYPE_F32, 1, dims, &values[count++], e));
  unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, 1, dims, &tensor, e));
  unit_ok(cleave_graph_add_constant(graph, "c", tensor, &values[count++], e));
  cleave_tensor_release(tensor);
  for (uint32_t k = 0; k < NODES; k++) {
    cleave_op_id_t id = OPS[random_below(OP_KINDS)];
    uint32_t inputs = id == CLEAVE_OP_Relu ? 1 : id == CLEAVE_OP_Sum ? 1 + random_below(3) : 2;
    cleave_value_t chosen[MAX_INPUTS];
    cleave_node_t node;
    for (uint32_t i = 0; i < inputs; i++) {
      uint32_t recent =
          count > 4 && random_below(100) < 70 ? count - 4 + random_below(4) : random_below(count);
      chosen[i] = values[recent];
    }
    unit_ok(cleave_graph_add_node(graph, cleave_op_get(id), NULL, chosen, inputs, 1, &node, e));
    values[count++] = cleave_node_output(graph, node, 0);
  }
  unit_ok(cleave_graph_add_output(graph, "o", values[count - 1], e));
  if (random_below(2) == 0) {
    unit_ok(cleave_graph_add_output(graph, "p", values[3 + random_below(NODES)], e));
  }
  return graph;
}

// ---- patterns ----

static cleave_pattern_node_t parts[MAX_PARTS];
static cleave_pattern_input_t inputs_of[MAX_PARTS][MAX_INPUTS];
static const cleave_op_t *ops_of[MAX_PARTS][2];
static uint32_t children_of[MAX_PARTS][MAX_STEPS];
static uint32_t
    before_of[MAX_PARTS]; /* per part: the operator before it in a sequence below an input, or NONE */
static uint32_t rest_of[MAX_PARTS]; /* per part: what all inputs match that are not given, or NONE */
static uint32_t part_count;
static const char *const LABELS[] = {"p", "q"};

/* Values may share labels with each other and with one operator. */
static const char *random_label(cleave_pattern_kind_t kind) {
  const char *label = random_below(100) < 20 ? LABELS[random_below(2)] : NULL;
  for (uint32_t k = 0; k < part_count && label != NULL && kind == CLEAVE_PATTERN_OP; k++) {
    bool is_same = parts[k].label != NULL && strcmp(parts[k].label, label) == 0;
    label = is_same && parts[k].kind == CLEAVE_PATTERN_OP ? NULL : label;
  }
  return cleave_pattern_has_children(&(cleave_pattern_node_t){.kind = kind}) ? NULL : label;
}

static uint32_t add_part(cleave_pattern_kind_t kind) {
  uint32_t index = part_count++;
  ck_assert_uint_lt(index, MAX_PARTS);
  before_of[index] = rest_of[index] = CLEAVE_INDEX_NONE;
  parts[index] = (cleave_pattern_node_t){.kind = kind,
                                         .type.rank = -1,
                                         .ops = ops_of[index],
                                         .inputs = inputs_of[index],
                                         .children = children_of[index],
                                         .label = random_label(kind)};
  return index;
}

static uint32_t random_op(uint32_t depth);
static uint32_t random_chain(uint32_t depth);

/* All inputs that are not given are values, or constants. */
static void add_rest(uint32_t index) {
  uint32_t value = add_part(random_below(4) == 0 ? CLEAVE_PATTERN_CONSTANT : CLEAVE_PATTERN_VALUE);
  uint32_t every = add_part(CLEAVE_PATTERN_VARIADIC);
  parts[value].label = NULL;
  parts[value].line = 2;
  parts[every].child_count = 1;
  parts[every].min = random_below(2);
  parts[every].max = parts[every].min + random_below(3);
  children_of[every][0] = value;
  rest_of[index] = every;
  inputs_of[index][parts[index].input_count++] =
      (cleave_pattern_input_t){CLEAVE_PATTERN_PORT_VARIADIC, every};
}

/* An operator or one of two, whatever it reads. */
static uint32_t plain_op(void) {
  uint32_t index = add_part(CLEAVE_PATTERN_OP);
  ops_of[index][0] = cleave_op_get(OPS[random_below(OP_KINDS)]);
  ops_of[index][1] = cleave_op_get(OPS[random_below(OP_KINDS)]);
  parts[index].op_count = 2;
  return index;
}

/* a >> b, as what an input ends in. Neither is used elsewhere, nor has a name: such an edge could be named
 * twice. Often b is a Sum, and all that is left of its inputs are values. */
static uint32_t random_chain(uint32_t depth) {
  bool is_sum = random_below(3) > 0;
  uint32_t first = is_sum ? plain_op() : random_op(depth + 1);
  parts[first].line = 0;
  uint32_t last = is_sum ? add_part(CLEAVE_PATTERN_OP) : random_op(depth + 1);
  parts[last].line = 0;
  if (is_sum) {
    ops_of[last][parts[last].op_count++] = cleave_op_get(CLEAVE_OP_Sum);
    add_rest(last);
  }
  parts[first].label = parts[last].label = NULL;
  uint32_t chain = add_part(CLEAVE_PATTERN_SEQUENCE);
  parts[chain].child_count = 2;
  children_of[chain][0] = first;
  children_of[chain][1] = last;
  before_of[last] = first;
  return chain;
}

static uint32_t random_input(uint32_t depth) {
  uint32_t dice = random_below(100);
  if (dice < 15 && part_count > 1) {
    uint32_t again = random_below(part_count);
    // A part that is complete: not one above this one, nor what each of many inputs is.
    if ((cleave_pattern_is_value(&parts[again]) && parts[again].line == 0) ||
        (parts[again].kind == CLEAVE_PATTERN_OP && parts[again].line == 1)) {
      return again;
    }
  }
  if (dice < 25 && depth < 3 && part_count + 20 < LARGE) {
    return random_chain(depth + 1);
  }
  if (dice < 55 && depth < 3 && part_count + 10 < LARGE) {
    return random_op(depth + 1);
  }
  return add_part(dice < 80 ? CLEAVE_PATTERN_VALUE : CLEAVE_PATTERN_CONSTANT);
}

static uint32_t random_op(uint32_t depth) {
  uint32_t index = add_part(CLEAVE_PATTERN_OP);
  cleave_pattern_node_t *part = &parts[index];
  cleave_op_id_t id = OPS[random_below(OP_KINDS)];
  ops_of[index][part->op_count++] = cleave_op_get(id);
  if (random_below(3) == 0) {
    ops_of[index][part->op_count++] = cleave_op_get(OPS[random_below(OP_KINDS)]);
  }
  part->shared = part->label == NULL && random_below(8) == 0;
  uint32_t most = id == CLEAVE_OP_Relu ? 1 : id == CLEAVE_OP_Sum ? 3 : 2;
  bool is_any = random_below(2) == 0 || id == CLEAVE_OP_Sum;
  uint32_t wanted = random_below(most + 1);
  for (uint32_t k = 0; k < wanted && part_count + 6 < LARGE; k++) {
    uint32_t pattern = random_input(depth);
    inputs_of[index][part->input_count++] =
        (cleave_pattern_input_t){is_any ? CLEAVE_PATTERN_PORT_ANY : k, pattern};
  }
  if (part->input_count < MAX_INPUTS && random_below(3) == 0 && part_count + 6 < LARGE) {
    add_rest(index);
  }
  part->line = 1;
  return index;
}

/* A sequence of operators, some of which may be missing, or are one of two. */
static uint32_t random_pattern(void) {
  part_count = 0;
  uint32_t steps[MAX_STEPS];
  uint32_t count = 1 + random_below(4);
  for (uint32_t k = 0; k < count; k++) {
    steps[k] = random_op(k == 0 ? 0 : 1);
    uint32_t dice = random_below(100);
    if (dice < 25 && part_count + 8 < LARGE) {
      uint32_t other = random_op(2);
      uint32_t choice = add_part(CLEAVE_PATTERN_ONEOF);
      parts[choice].child_count = 2;
      children_of[choice][0] = steps[k];
      children_of[choice][1] = other;
      steps[k] = choice;
    } else if (dice < 50) {
      uint32_t maybe = add_part(CLEAVE_PATTERN_MAYBE);
      parts[maybe].child_count = 1;
      children_of[maybe][0] = steps[k];
      steps[k] = maybe;
    }
  }
  uint32_t root = add_part(CLEAVE_PATTERN_SEQUENCE);
  parts[root].child_count = count;
  memcpy(children_of[root], steps, count * sizeof *steps);
  return root;
}

// ---- trying everything ----

typedef struct trial {
  const cleave_graph_t *graph;
  uint32_t chain[MAX_STEPS]; /* operators of one variant, in order */
  uint32_t chain_count;
  uint32_t values[MAX_PARTS];        /* per part: value, or NONE */
  uint32_t named[NODES][MAX_INPUTS]; /* per node and input: part that names it, or NONE */
  uint32_t owners[NODES];            /* per node: part, or NONE */
  uint32_t queue[MAX_PARTS];         /* operators that have a node, in order */
  uint32_t queue_count;
  uint64_t found[512]; /* sets of nodes */
  uint32_t found_count;
  uint32_t anchor;
  size_t steps;
} trial_t;

static bool label_fits(const trial_t *t, uint32_t part, uint32_t value) {
  for (uint32_t k = 0; k < part_count; k++) {
    if (parts[part].label != NULL && parts[k].label != NULL &&
        strcmp(parts[k].label, parts[part].label) == 0 && t->values[k] != CLEAVE_INDEX_NONE &&
        t->values[k] != value) {
      return false;
    }
  }
  return true;
}

static bool is_op_named(const trial_t *t, uint32_t part) {
  if (parts[part].kind == CLEAVE_PATTERN_OP) {
    return true;
  }
  for (uint32_t k = 0; parts[part].label != NULL && k < part_count; k++) {
    if (parts[k].kind == CLEAVE_PATTERN_OP && parts[k].label != NULL && t->values[k] != CLEAVE_INDEX_NONE &&
        strcmp(parts[k].label, parts[part].label) == 0) {
      return true;
    }
  }
  return false;
}

static void check_whole(trial_t *t) {
  const cleave_graph_t *graph = t->graph;
  uint64_t set = 0;
  cleave_value_t first = {t->values[t->chain[0]]};
  if (cleave_value_producer(graph, first).index != t->anchor) {
    return;
  }
  for (uint32_t n = 0; n < NODES; n++) {
    if (t->owners[n] == CLEAVE_INDEX_NONE) {
      continue;
    }
    set |= UINT64_C(1) << n;
    cleave_value_t output = cleave_node_output(graph, (cleave_node_t){n}, 0);
    uint32_t inside = 0;
    uint32_t outside = 0;
    for (cleave_use_t use = cleave_value_first_use(graph, output); cleave_use_exists(use);
         use = cleave_use_next(graph, use)) {
      cleave_node_t user = cleave_use_node(graph, use);
      bool is_inside = cleave_node_exists(user) && t->owners[user.index] != CLEAVE_INDEX_NONE;
      inside += is_inside;
      outside += !is_inside;
    }
    if (inside > 0 && outside > 0 && !parts[t->owners[n]].shared) {
      return;
    }
    for (uint32_t i = 0; i < cleave_node_input_count(graph, (cleave_node_t){n}); i++) {
      cleave_node_t producer = cleave_value_producer(graph, cleave_node_input(graph, (cleave_node_t){n}, i));
      if (cleave_node_exists(producer) && t->owners[producer.index] != CLEAVE_INDEX_NONE &&
          (t->named[n][i] == CLEAVE_INDEX_NONE || !is_op_named(t, t->named[n][i]))) {
        return;
      }
    }
  }
  if (t->found_count < sizeof t->found / sizeof t->found[0]) {
    t->found[t->found_count++] = set;
  }
}

static bool has_op(uint32_t part, const cleave_op_t *op) {
  return parts[part].ops[0] == op || (parts[part].op_count > 1 && parts[part].ops[1] == op);
}

static void try_op(trial_t *t, uint32_t at);
static void try_input(trial_t *t, uint32_t at, uint32_t input, bool swapped);

/* Binds a part to a value, goes on, and takes it back. `at`, `input`: where to go on. */
static void bind(trial_t *t, uint32_t part, uint32_t value, uint32_t at, uint32_t input, bool swapped) {
  if (t->values[part] != CLEAVE_INDEX_NONE) {
    if (t->values[part] == value) {
      try_input(t, at, input, swapped);
    }
    return;
  }
  if (!label_fits(t, part, value)) {
    return;
  }
  uint32_t node = CLEAVE_INDEX_NONE;
  uint32_t before = CLEAVE_INDEX_NONE;
  if (parts[part].kind == CLEAVE_PATTERN_OP) {
    node = cleave_value_producer(t->graph, (cleave_value_t){value}).index;
    if (node == CLEAVE_INDEX_NONE || !has_op(part, cleave_node_op(t->graph, (cleave_node_t){node}))) {
      return;
    }
    before = t->owners[node];
    if (before != CLEAVE_INDEX_NONE && (parts[part].label == NULL || parts[before].label == NULL ||
                                        strcmp(parts[part].label, parts[before].label) != 0)) {
      return;
    }
    t->owners[node] = before == CLEAVE_INDEX_NONE ? part : before;
    t->queue[t->queue_count++] = part;
  } else if (parts[part].kind == CLEAVE_PATTERN_CONSTANT &&
             !cleave_value_is_constant(t->graph, (cleave_value_t){value})) {
    return;
  }
  t->values[part] = value;
  try_input(t, at, input, swapped);
  t->values[part] = CLEAVE_INDEX_NONE;
  if (node != CLEAVE_INDEX_NONE) {
    t->owners[node] = before;
    t->queue_count--;
  }
}

/* All inputs that are left. */
static void try_rest(trial_t *t, uint32_t at) {
  uint32_t part = t->queue[at];
  uint32_t every = rest_of[part];
  if (every == CLEAVE_INDEX_NONE) {
    try_op(t, at + 1);
    return;
  }
  uint32_t child = children_of[every][0];
  cleave_node_t node = cleave_value_producer(t->graph, (cleave_value_t){t->values[part]});
  uint32_t mine[MAX_INPUTS] = {0};
  uint32_t count = 0;
  bool fits = true;
  for (uint32_t port = 0; port < cleave_node_input_count(t->graph, node); port++) {
    if (t->named[node.index][port] == CLEAVE_INDEX_NONE) {
      mine[port] = 1;
      count++;
      fits = fits && (parts[child].kind != CLEAVE_PATTERN_CONSTANT ||
                      cleave_value_is_constant(t->graph, cleave_node_input(t->graph, node, port)));
    }
  }
  if (!fits || count < parts[every].min || count > parts[every].max) {
    return;
  }
  for (uint32_t port = 0; port < MAX_INPUTS; port++) {
    t->named[node.index][port] = mine[port] ? child : t->named[node.index][port];
  }
  try_op(t, at + 1);
  for (uint32_t port = 0; port < MAX_INPUTS; port++) {
    t->named[node.index][port] = mine[port] ? CLEAVE_INDEX_NONE : t->named[node.index][port];
  }
}

/* Input pattern `input` of operator number `at` of the queue; after its own comes the operator before it. */
static void try_input(trial_t *t, uint32_t at, uint32_t input, bool swapped) {
  uint32_t part = t->queue[at];
  uint32_t node = cleave_value_producer(t->graph, (cleave_value_t){t->values[part]}).index;
  uint32_t link = 0;
  while (link < t->chain_count && t->chain[link] != part) {
    link++;
  }
  uint32_t before = link > 0 && link < t->chain_count ? t->chain[link - 1] : before_of[part];
  uint32_t given = parts[part].input_count - (rest_of[part] != CLEAVE_INDEX_NONE);
  t->steps++;
  if (input == given + (before != CLEAVE_INDEX_NONE)) {
    try_rest(t, at);
    return;
  }
  bool is_flow = input == given;
  uint32_t child = is_flow ? before : inputs_of[part][input].pattern;
  child = parts[child].kind == CLEAVE_PATTERN_SEQUENCE ? children_of[child][1] : child;
  uint32_t wanted = is_flow ? CLEAVE_PATTERN_PORT_ANY : inputs_of[part][input].port;
  if (wanted < 2 && swapped) {
    wanted ^= 1;
  }
  for (uint32_t port = 0; port < cleave_node_input_count(t->graph, (cleave_node_t){node}); port++) {
    if ((wanted != CLEAVE_PATTERN_PORT_ANY && wanted != port) || t->named[node][port] != CLEAVE_INDEX_NONE) {
      continue;
    }
    t->named[node][port] = child;
    bind(t, child, cleave_node_input(t->graph, (cleave_node_t){node}, port).index, at, input + 1, swapped);
    t->named[node][port] = CLEAVE_INDEX_NONE;
  }
}

static void try_op(trial_t *t, uint32_t at) {
  if (at == t->queue_count) {
    check_whole(t);
    return;
  }
  uint32_t part = t->queue[at];
  uint32_t node = cleave_value_producer(t->graph, (cleave_value_t){t->values[part]}).index;
  bool is_commutative = (cleave_node_op(t->graph, (cleave_node_t){node})->flags & CLEAVE_OP_COMMUTATIVE) != 0;
  try_input(t, at, 0, false);
  if (is_commutative) {
    try_input(t, at, 0, true);
  }
}

/* All matches over all variants of the sequence. */
static void try_variants(trial_t *t, uint32_t root, uint32_t step) {
  if (step < parts[root].child_count) {
    uint32_t child = parts[root].children[step];
    cleave_pattern_kind_t kind = parts[child].kind;
    for (uint32_t k = 0; k < (kind == CLEAVE_PATTERN_ONEOF ? 2u : 1u); k++) {
      t->chain[t->chain_count++] = kind == CLEAVE_PATTERN_OP ? child : parts[child].children[k];
      try_variants(t, root, step + 1);
      t->chain_count--;
    }
    if (kind == CLEAVE_PATTERN_MAYBE) {
      try_variants(t, root, step + 1);
    }
    return;
  }
  for (uint32_t n = 0; n < NODES && t->chain_count > 0; n++) {
    uint32_t last = t->chain[t->chain_count - 1];
    if (has_op(last, cleave_node_op(t->graph, (cleave_node_t){n}))) {
      t->values[last] = cleave_node_output(t->graph, (cleave_node_t){n}, 0).index;
      t->owners[n] = last;
      t->queue[0] = last;
      t->queue_count = 1;
      try_op(t, 0);
      t->values[last] = CLEAVE_INDEX_NONE;
      t->owners[n] = CLEAVE_INDEX_NONE;
    }
  }
}

// ---- both ----

typedef struct totals {
  uint32_t patterns, anchors, matches;
} totals_t;

static void compare(const cleave_graph_t *graph, const cleave_pattern_t *pattern, uint32_t round,
                    totals_t *totals) {
  cleave_contraction_t *contraction = NULL;
  cleave_matcher_t *matcher = NULL;
  unit_ok(cleave_contraction_create(graph, &contraction, e));
  unit_ok(cleave_matcher_create(contraction, &matcher, e));
  unit_ok(cleave_matcher_set_pattern(matcher, pattern, e));
  totals->patterns++;
  for (uint32_t n = 0; n < NODES; n++) {
    static trial_t trial;
    memset(&trial, 0xff, sizeof trial);
    trial.graph = graph;
    trial.anchor = n;
    trial.chain_count = trial.queue_count = trial.found_count = 0;
    trial.steps = 0;
    try_variants(&trial, pattern->root, 0);
    cleave_match_request_t request = {.anchor = contraction->positions[n], .step_limit = 1000000};
    cleave_match_answer_t answer;
    unit_ok(cleave_matcher_match(matcher, &request, &answer, e));
    ck_assert_msg(!answer.limit, "round %u, anchor %u: given up", round, n);
    ck_assert_msg((answer.match != NULL) == (trial.found_count > 0),
                  "round %u, anchor %u: the matcher finds %s, there are %u matches", round, n,
                  answer.match != NULL ? "one" : "none", trial.found_count);
    uint64_t set = 0;
    for (uint32_t k = 0; answer.match != NULL && k < answer.match->node_count; k++) {
      set |= UINT64_C(1) << answer.match->nodes[k].index;
    }
    bool is_known = answer.match == NULL || trial.found_count == sizeof trial.found / sizeof trial.found[0];
    for (uint32_t k = 0; k < trial.found_count; k++) {
      is_known = is_known || trial.found[k] == set;
    }
    ck_assert_msg(is_known, "round %u, anchor %u: a match that is none", round, n);
    totals->anchors++;
    totals->matches += answer.match != NULL;
  }
  cleave_matcher_destroy(matcher);
  cleave_contraction_destroy(contraction);
}

UNIT_TEST(the_matcher_finds_what_trying_everything_finds) {
  totals_t totals = {0};
  for (uint32_t round = 0; round < ROUNDS; round++) {
    cleave_graph_t *graph = random_graph();
    cleave_pattern_t pattern = {parts, 0, random_pattern(), LABELS, 2, NULL};
    pattern.node_count = part_count;
    if (cleave_pattern_check(&pattern, "test.lua", "test", NULL) == CLEAVE_OK) {
      compare(graph, &pattern, round, &totals);
    }
    cleave_graph_destroy(graph);
  }
  ck_assert_uint_gt(totals.patterns, ROUNDS / 2);
  ck_assert_uint_gt(totals.matches, totals.anchors / 50);
}

UNIT_SUITE("match_random")

// SPDX-License-Identifier: Apache-2.0
// Writes messages about faults: "operator is Gelu, wanted Relu or Clip". Only `detail` has names of nodes and
// values, so that equal faults in many places read the same.

#include "partition/explain/explain_find.h"
#include "partition/explain/explain_history.h"

enum { MAX_ALTERNATIVES = 4, MAX_USERS = 3 };

typedef struct words {
  const char *kind;
  cleave_text_t subject;
  cleave_text_t expected;
  cleave_text_t found;
  cleave_text_t detail; /* with names */
} words_t;

/* Writes what is expected at the end of an edge. */
static void expect_target(const cleave_explainer_t *x, const trial_t *trial, uint32_t target,
                          cleave_text_t *text) {
  target = cleave_explainer_resolve(x, trial, target);
  const cleave_pattern_node_t *node = &x->pattern->nodes[target];
  switch (node->kind) {
    case CLEAVE_PATTERN_OP: cleave_explain_ops(node, ", ", " or ", text); break;
    case CLEAVE_PATTERN_VALUE: cleave_text_add(text, "a value"); break;
    case CLEAVE_PATTERN_CONSTANT: cleave_text_add(text, "a constant"); break;
    case CLEAVE_PATTERN_ABSENT: cleave_text_add(text, "nothing"); break;
    case CLEAVE_PATTERN_SEQUENCE: expect_target(x, trial, node->children[node->child_count - 1], text); break;
    case CLEAVE_PATTERN_ONEOF:
      for (uint32_t k = 0; k < node->child_count && k < MAX_ALTERNATIVES; k++) {
        cleave_text_add(text, k == 0 ? "" : " | ");
        expect_target(x, trial, node->children[k], text);
      }
      break;
    case CLEAVE_PATTERN_MAYBE:
    case CLEAVE_PATTERN_REPEATED:
    case CLEAVE_PATTERN_OUTPUT:
    case CLEAVE_PATTERN_VARIADIC:
    case CLEAVE_PATTERN_GROUP: expect_target(x, trial, node->children[0], text); break;
  }
}

static void add_users(const finder_t *finder, cleave_value_t value, cleave_text_t *text) {
  const cleave_graph_t *graph = finder->x->graph;
  uint32_t named = 0;
  for (cleave_use_t use = cleave_value_first_use(graph, value); cleave_use_exists(use);
       use = cleave_use_next(graph, use)) {
    cleave_node_t user = cleave_use_node(graph, use);
    if (cleave_finder_has(finder, user)) {
      continue;
    }
    if (named++ == MAX_USERS) {
      cleave_text_add(text, ", ...");
      return;
    }
    cleave_text_add(text, named == 1 ? "" : ", ");
    if (cleave_node_exists(user)) {
      cleave_explain_node(graph, user, text);
      cleave_history_print_maker(finder->x->history, user, text);
    } else {
      cleave_text_add(text, "the caller, as an output of the model");
    }
  }
}

/* A node that no part of the pattern is stands beside the part `target`. */
static void say_extra(const finder_t *finder, const fault_t *fault, uint32_t target, words_t *words) {
  const cleave_explainer_t *x = finder->x;
  const constraint_t *d = &x->constraints[fault->constraint];
  uint8_t edges = finder->trial->edges[fault->constraint];
  words->kind = "extra";
  cleave_text_add(&words->subject, (edges & EDGE_BACKWARDS) != 0 || d->kind == CONSTRAINT_INPUT
                                       ? "what stands behind "
                                       : "what stands before ");
  cleave_explain_part(x, cleave_explainer_resolve(x, finder->trial, target), &words->subject);
  cleave_text_add(&words->expected, "nothing");
  if (cleave_node_exists(fault->node)) {
    cleave_text_add(&words->found, cleave_node_op(x->graph, fault->node)->name);
  }
}

/* The right node is read, at another output than the pattern says. */
static void say_output(const finder_t *finder, const fault_t *fault, words_t *words) {
  const cleave_explainer_t *x = finder->x;
  const constraint_t *d = &x->constraints[fault->constraint];
  const cleave_op_t *op = cleave_node_op(x->graph, cleave_value_producer(x->graph, fault->value));
  words->kind = "output";
  cleave_text_format(&words->subject, "output of %s that ", op->name);
  if (d->kind == CONSTRAINT_INPUT) {
    cleave_explain_part(x, d->part, &words->subject);
  } else {
    cleave_text_add(&words->subject, cleave_node_op(x->graph, fault->node)->name);
  }
  cleave_text_add(&words->subject, " reads");
  cleave_explain_output(op, cleave_graph_value(x->graph, fault->value)->output_index, "", &words->found);
  cleave_explain_output(op, fault->output, "", &words->expected);
}

/* "output Indices of ", if a part means one certain output of its operator. */
static void add_output(const cleave_explainer_t *x, uint32_t part, cleave_text_t *text) {
  const cleave_pattern_node_t *node = &x->pattern->nodes[part];
  bool is_output = node->kind == CLEAVE_PATTERN_OUTPUT;
  const cleave_pattern_node_t *taker = is_output ? &x->pattern->nodes[node->children[0]] : node;
  if ((is_output || (node->kind == CLEAVE_PATTERN_OP && node->output > 0)) && taker->op_count > 0) {
    cleave_text_add(text, "output ");
    cleave_explain_output(taker->ops[0], node->output, "", text);
    cleave_text_add(text, " of ");
  }
}

/* The input of a node that is the value, behind input `twin` if there is that one. */
static uint32_t find_input_of(const finder_t *finder, cleave_node_t user, const fault_t *fault) {
  const cleave_graph_t *graph = finder->x->graph;
  uint32_t k = fault->twin == CLEAVE_INDEX_NONE ? 0 : fault->twin + 1;
  while (k < cleave_node_input_count(graph, user) &&
         cleave_node_input(graph, user, k).index != fault->value.index) {
    k++;
  }
  return k;
}

/* A variadic part does not match: one of the inputs that it stands for, or two that one node makes. */
static void say_variadic(const finder_t *finder, const fault_t *fault, uint32_t target, words_t *words) {
  const cleave_explainer_t *x = finder->x;
  uint32_t part = x->constraints[fault->constraint].part;
  uint32_t input = find_input_of(finder, finder->bindings[part].node, fault) + 1;
  if (fault->twin != CLEAVE_INDEX_NONE) {
    words->kind = "same";
    cleave_text_format(&words->subject, "what makes inputs %u and %u of ", (unsigned)fault->twin + 1,
                       (unsigned)input);
    cleave_text_add(&words->found, "one ");
    cleave_text_add(&words->expected, "one for each");
  } else {
    cleave_text_format(&words->subject, "input %u of ", (unsigned)input);
    expect_target(x, finder->trial, target, &words->expected);
  }
  cleave_explain_part(x, part, &words->subject);
  cleave_explain_origin(x->graph, fault->value, &words->found);
}

/* An input pattern does not match. `same`: its part was met before. */
static void say_input(const finder_t *finder, const fault_t *fault, uint32_t target, bool same,
                      words_t *words) {
  const cleave_explainer_t *x = finder->x;
  const constraint_t *d = &x->constraints[fault->constraint];
  const cleave_pattern_node_t *owner = &x->pattern->nodes[d->part];
  if (owner->inputs[d->index].port == CLEAVE_PATTERN_PORT_VARIADIC && cleave_value_exists(fault->value)) {
    say_variadic(finder, fault, target, words);
    return;
  }
  cleave_text_add(&words->subject, "input ");
  cleave_explain_port(owner, d->index, &words->subject);
  cleave_text_add(&words->subject, " of ");
  cleave_explain_part(x, d->part, &words->subject);
  if (fault->input != CLEAVE_INDEX_NONE) {
    words->kind = "same";
    cleave_text_add(&words->expected, "another ");
    expect_target(x, finder->trial, target, &words->expected);
    cleave_text_add(&words->found, "the one that ");
    cleave_explain_part(x, cleave_finder_part(finder, cleave_value_producer(x->graph, fault->value)),
                        &words->found);
    cleave_text_add(&words->found, " stands for");
    return;
  }
  if (same) {
    cleave_text_add(&words->expected, "the same as ");
    cleave_explain_part(x, cleave_explainer_resolve(x, finder->trial, target), &words->expected);
  } else {
    expect_target(x, finder->trial, target, &words->expected);
  }
  cleave_explain_origin(x->graph, fault->value, &words->found);
}

static void say_edge(const finder_t *finder, const fault_t *fault, words_t *words) {
  const cleave_explainer_t *x = finder->x;
  const constraint_t *d = &x->constraints[fault->constraint];
  const cleave_pattern_node_t *owner = &x->pattern->nodes[d->part];
  uint8_t edges = finder->trial->edges[fault->constraint];
  uint32_t target = d->kind == CONSTRAINT_CHILD ? owner->children[d->index] : owner->inputs[d->index].pattern;
  if (finder->trial->states[fault->constraint] == CONSTRAINT_PASSED) {
    say_extra(finder, fault, target, words);
    return;
  }
  if (fault->output != CLEAVE_INDEX_NONE) {
    say_output(finder, fault, words);
    return;
  }
  bool same = (edges & EDGE_SAME) != 0;
  words->kind = same ? "same" : "missing";
  if (d->kind == CONSTRAINT_INPUT) {
    say_input(finder, fault, target, same, words);
    return;
  }
  bool backwards = (edges & EDGE_BACKWARDS) != 0;
  bool is_group = owner->kind == CLEAVE_PATTERN_GROUP;
  uint32_t beside = backwards ? d->index + 1 : d->index - (d->index > 0);
  cleave_text_add(&words->subject, is_group    ? "what stands beside "
                                   : backwards ? "what is read by "
                                               : "what reads ");
  beside = cleave_explainer_resolve(x, finder->trial, owner->children[beside]);
  if (!is_group && !backwards) {
    add_output(x, beside, &words->subject);
  }
  cleave_explain_part(x, beside, &words->subject);
  expect_target(x, finder->trial, target, &words->expected);
  if (cleave_node_exists(fault->node)) {
    cleave_text_add(&words->found, cleave_node_op(x->graph, fault->node)->name);
  } else if (backwards) {
    cleave_explain_origin(x->graph, fault->value, &words->found);
  } else {
    bool is_output = cleave_value_exists(fault->value) && cleave_value_is_output(x->graph, fault->value);
    cleave_text_add(&words->found, is_output ? "nothing: it is an output of the model" : "nothing");
  }
}

static void say_attribute(const finder_t *finder, const fault_t *fault, words_t *words) {
  const cleave_explainer_t *x = finder->x;
  const constraint_t *d = &x->constraints[fault->constraint];
  const cleave_attribute_test_t *test = &x->pattern->nodes[d->part].attributes[d->index];
  cleave_attribute_t attribute;
  words->kind = "attribute";
  cleave_text_format(&words->subject, "attribute %s", test->name);
  if (!cleave_node_exists(fault->node) ||
      !cleave_op_effective_attribute(x->graph, fault->node, test->name, &attribute)) {
    cleave_text_add(&words->found, "absent");
  } else {
    (void)cleave_explain_attribute(&attribute, &words->found);
  }
  switch (test->kind) {
    case CLEAVE_ATTRIBUTE_TEST_ABSENT: cleave_text_add(&words->expected, "absent"); break;
    case CLEAVE_ATTRIBUTE_TEST_RANGE:
      cleave_text_add(&words->expected, "a number from ");
      cleave_explain_number(test->low, &words->expected);
      cleave_text_add(&words->expected, " to ");
      cleave_explain_number(test->high, &words->expected);
      break;
    case CLEAVE_ATTRIBUTE_TEST_EQUAL:
      cleave_text_add(&words->expected, test->or_absent ? "absent or " : "");
      for (uint32_t k = 0; k < test->value_count; k++) {
        cleave_text_add(&words->expected, k == 0 ? "" : k + 1 == test->value_count ? " or " : ", ");
        cleave_explain_literal(&test->values[k], &words->expected);
      }
      break;
  }
}

static void add_dim(const finder_t *finder, cleave_dim_t dim, cleave_text_t *text) {
  if (dim == CLEAVE_DIM_UNKNOWN) {
    cleave_text_add(text, "not known");
  } else {
    cleave_dim_print(finder->x->graph->dims, dim, text);
  }
}

static void say_dim(const finder_t *finder, const fault_t *fault, words_t *words) {
  const cleave_explainer_t *x = finder->x;
  const constraint_t *d = &x->constraints[fault->constraint];
  const cleave_dim_test_t *test = &x->pattern->nodes[d->part].type.dims[d->index];
  cleave_text_format(&words->subject, "dimension %u", (unsigned)d->index + 1);
  if (test->size >= 0) {
    cleave_text_format(&words->expected, "%lld", (long long)test->size);
  } else if (test->expression != NULL) {
    cleave_text_add(&words->expected, test->expression->text);
  } else {
    cleave_text_format(&words->expected, "%s, which is ", test->symbol);
    add_dim(finder, cleave_finder_symbol(finder, test->symbol), &words->expected);
  }
  const cleave_value_record_t *record =
      cleave_value_exists(fault->value) ? cleave_graph_value(x->graph, fault->value) : NULL;
  if (record != NULL && record->rank > (int32_t)d->index) {
    add_dim(finder, record->dims[d->index], &words->found);
  } else {
    cleave_text_add(&words->found, "not known");
  }
}

static void say_type(const finder_t *finder, const fault_t *fault, words_t *words) {
  const cleave_explainer_t *x = finder->x;
  const constraint_t *d = &x->constraints[fault->constraint];
  const cleave_type_test_t *type = &x->pattern->nodes[d->part].type;
  const cleave_value_record_t *record =
      cleave_value_exists(fault->value) ? cleave_graph_value(x->graph, fault->value) : NULL;
  if (d->kind == CONSTRAINT_DTYPE) {
    words->kind = "dtype";
    cleave_text_add(&words->subject, "dtype");
    bool first = true;
    for (uint32_t bit = 0; bit < 32; bit++) {
      if ((type->dtypes >> bit & 1u) != 0) {
        cleave_text_format(&words->expected, "%s%s", first ? "" : " or ",
                           cleave_dtype_name((cleave_dtype_t)bit));
        first = false;
      }
    }
    cleave_text_add(&words->found,
                    record == NULL ? "not known" : cleave_dtype_name((cleave_dtype_t)record->dtype));
  } else if (d->kind == CONSTRAINT_RANK) {
    words->kind = "rank";
    cleave_text_add(&words->subject, "rank");
    cleave_text_format(&words->expected, "%d", (int)type->rank);
    if (record == NULL || record->rank < 0) {
      cleave_text_add(&words->found, "not known");
    } else {
      cleave_text_format(&words->found, "%d", (int)record->rank);
    }
  } else {
    words->kind = "shape";
    say_dim(finder, fault, words);
  }
}

static void say_constant(const finder_t *finder, const fault_t *fault, words_t *words) {
  const cleave_explainer_t *x = finder->x;
  const constraint_t *d = &x->constraints[fault->constraint];
  const cleave_constant_test_t *test = &x->pattern->nodes[d->part].constant;
  const cleave_tensor_t *tensor =
      cleave_value_exists(fault->value) ? cleave_graph_value(x->graph, fault->value)->tensor : NULL;
  words->kind = d->kind == CONSTRAINT_CONSTANT ? "constant" : "value";
  cleave_explain_part(x, d->part, &words->subject);
  if (d->kind == CONSTRAINT_CONSTANT) {
    cleave_text_add(&words->expected, "a constant");
    cleave_explain_origin(x->graph, fault->value, &words->found);
    return;
  }
  if (tensor == NULL) {
    cleave_text_add(&words->found, "no constant");
  } else if (d->kind == CONSTRAINT_SCALAR) {
    cleave_text_format(&words->found, "%lld element%s", (long long)tensor->count,
                       CLEAVE_PLURAL(tensor->count));
  } else if (tensor->count == 0 || tensor->dtype == CLEAVE_DTYPE_STRING) {
    cleave_text_add(&words->found, tensor->count == 0 ? "empty" : "a string");
  } else {
    int64_t element = cleave_finder_wrong_element(test, tensor);
    cleave_explain_number(cleave_tensor_get_float(tensor, element), &words->found);
    if (tensor->count > 1) {
      cleave_text_format(&words->detail, "element %lld of %lld", (long long)element + 1,
                         (long long)tensor->count);
    }
  }
  if (d->kind == CONSTRAINT_SCALAR) {
    cleave_text_add(&words->expected, "1 element");
    if (test->has_value) {
      cleave_text_add(&words->expected, ", ");
      cleave_explain_number(test->value, &words->expected);
    }
  } else if (d->kind == CONSTRAINT_ALL_EQUAL) {
    cleave_text_add(&words->expected, "all elements equal");
  } else {
    cleave_explain_content(test, &words->expected);
  }
}

static void say_condition(const finder_t *finder, const fault_t *fault, words_t *words) {
  const cleave_explainer_t *x = finder->x;
  const constraint_t *d = &x->constraints[fault->constraint];
  const cleave_expression_t *where =
      d->kind == CONSTRAINT_WHERE_ALL ? x->pattern->where : x->pattern->nodes[d->part].where;
  words->kind = "condition";
  cleave_text_add(&words->subject, "condition");
  cleave_text_add(&words->expected, where->text);
  for (uint32_t k = 0; k < where->symbol_count; k++) {
    cleave_text_format(&words->found, "%s%s = ", k == 0 ? "" : ", ", where->symbols[k]);
    add_dim(finder, cleave_finder_symbol(finder, where->symbols[k]), &words->found);
  }
}

static void say_shared(const finder_t *finder, const fault_t *fault, words_t *words) {
  const cleave_explainer_t *x = finder->x;
  words->kind = "shared";
  cleave_text_add(&words->subject, "what ");
  cleave_explain_part(x, x->constraints[fault->constraint].part, &words->subject);
  cleave_text_add(&words->subject, " makes");
  cleave_text_add(&words->found, "read outside of the match");
  cleave_text_add(&words->expected, "read inside only");
  for (uint32_t k = 0; cleave_node_exists(fault->node) && k < cleave_node_output_count(x->graph, fault->node);
       k++) {
    cleave_value_t value = cleave_node_output(x->graph, fault->node, k);
    if (cleave_use_exists(cleave_finder_outside_use(finder, value))) {
      cleave_text_add(&words->detail, words->detail.length == 0 ? "by " : ", ");
      add_users(finder, value, &words->detail);
    }
  }
}

/* An edge inside the match that the pattern does not name. */
static void say_unnamed(const finder_t *finder, const fault_t *fault, words_t *words) {
  const cleave_explainer_t *x = finder->x;
  const cleave_op_t *op = cleave_node_op(x->graph, fault->node);
  words->kind = "edge";
  cleave_text_add(&words->subject, "input ");
  cleave_explain_input(op, fault->input, &words->subject);
  cleave_text_format(&words->subject, " of %s", op->name);
  cleave_explain_origin(x->graph, fault->value, &words->found);
  cleave_text_add(&words->found, " of the same match");
  cleave_text_add(&words->expected, "one that the pattern names");
}

static void say_count(const finder_t *finder, const fault_t *fault, words_t *words) {
  const constraint_t *d = &finder->x->constraints[fault->constraint];
  const cleave_pattern_node_t *part = &finder->x->pattern->nodes[d->part];
  bool least = d->kind == CONSTRAINT_MIN_COUNT;
  words->kind = "count";
  cleave_text_add(&words->subject,
                  part->kind == CLEAVE_PATTERN_VARIADIC ? "number of inputs" : "repetitions");
  cleave_text_format(&words->expected, "%s %u", least ? "at least" : "at most",
                     (unsigned)(least ? part->min : part->max));
  cleave_text_add(&words->found, least ? "fewer" : "more");
}

static void say(const finder_t *finder, const fault_t *fault, words_t *words) {
  const cleave_explainer_t *x = finder->x;
  const constraint_t *d = &x->constraints[fault->constraint];
  switch ((constraint_kind_t)d->kind) {
    case CONSTRAINT_CHILD:
    case CONSTRAINT_INPUT: say_edge(finder, fault, words); break;
    case CONSTRAINT_OPS:
      words->kind = "operator";
      cleave_text_add(&words->subject, "operator");
      cleave_explain_ops(&x->pattern->nodes[d->part], ", ", " or ", &words->expected);
      if (cleave_node_exists(fault->node)) {
        cleave_text_add(&words->found, cleave_node_op(x->graph, fault->node)->name);
      }
      break;
    case CONSTRAINT_ATTRIBUTE: say_attribute(finder, fault, words); break;
    case CONSTRAINT_DTYPE:
    case CONSTRAINT_RANK:
    case CONSTRAINT_DIM: say_type(finder, fault, words); break;
    case CONSTRAINT_CONSTANT:
    case CONSTRAINT_SCALAR:
    case CONSTRAINT_ALL_EQUAL:
    case CONSTRAINT_CONTENT: say_constant(finder, fault, words); break;
    case CONSTRAINT_LABEL:
      words->kind = "same";
      cleave_text_add(&words->subject, "value");
      cleave_text_format(&words->expected, "the same '%s' everywhere", x->pattern->nodes[d->part].label);
      cleave_text_add(&words->found, "another one");
      break;
    case CONSTRAINT_UNSHARED: say_shared(finder, fault, words); break;
    case CONSTRAINT_MIN_COUNT:
    case CONSTRAINT_MAX_COUNT: say_count(finder, fault, words); break;
    case CONSTRAINT_EDGES: say_unnamed(finder, fault, words); break;
    case CONSTRAINT_WHERE:
    case CONSTRAINT_WHERE_ALL: say_condition(finder, fault, words); break;
  }
}

static const char *keep(const finder_t *finder, const cleave_text_t *text) {
  return text->failed ? NULL : cleave_arena_copy_text(finder->arena, cleave_text_get(text), text->length);
}

/* The part that a fault is about: for an edge, the missing part; NONE for the pattern as a whole. */
static uint32_t subject_part(const finder_t *finder, const fault_t *fault) {
  const cleave_explainer_t *x = finder->x;
  const constraint_t *d = &x->constraints[fault->constraint];
  if (d->kind == CONSTRAINT_EDGES) {
    uint32_t reader = cleave_finder_part(finder, fault->node);
    return reader == CLEAVE_INDEX_NONE ? x->pattern->root : reader;
  }
  if (d->kind != CONSTRAINT_CHILD && d->kind != CONSTRAINT_INPUT) {
    return d->part;
  }
  const cleave_pattern_node_t *owner = &x->pattern->nodes[d->part];
  uint32_t target = d->kind == CONSTRAINT_CHILD ? owner->children[d->index] : owner->inputs[d->index].pattern;
  return cleave_explainer_resolve(x, finder->trial, target);
}

cleave_status_t cleave_explain_words(const finder_t *finder, const fault_t *fault,
                                     cleave_mismatch_t *mismatch, cleave_error_t *error) {
  const cleave_explainer_t *x = finder->x;
  words_t words = {.kind = ""};
  cleave_text_t path = {0};
  uint32_t part = subject_part(finder, fault);
  say(finder, fault, &words);
  if (part != CLEAVE_INDEX_NONE) {
    cleave_explain_path(x, finder->trial, part, &path);
  }
  *mismatch = (cleave_mismatch_t){
      .kind = words.kind,
      .part = part,
      .line = part == CLEAVE_INDEX_NONE ? x->pattern->where->line : x->pattern->nodes[part].line,
      .file = part == CLEAVE_INDEX_NONE ? NULL : x->pattern->nodes[part].file,
      .path = keep(finder, &path),
      .subject = keep(finder, &words.subject),
      .expected = keep(finder, &words.expected),
      .found = keep(finder, &words.found),
      .detail = keep(finder, &words.detail),
      .node = fault->node,
      .value = fault->value};
  cleave_text_deinit(&path);
  cleave_text_deinit(&words.subject);
  cleave_text_deinit(&words.expected);
  cleave_text_deinit(&words.found);
  cleave_text_deinit(&words.detail);
  bool kept = mismatch->path != NULL && mismatch->subject != NULL && mismatch->expected != NULL &&
              mismatch->found != NULL && mismatch->detail != NULL;
  return kept ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

// SPDX-License-Identifier: Apache-2.0
// The smallest edit of a rule for each fault, applied to a copy of the pattern and written as Lua.
// explain_try.c tries if it helps.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partition/explain/explain_find.h"

enum { MAX_OPS = 4 }; /* if a list has more, it is abbreviated */

// ---- what to write ----

static void write_ops(const cleave_pattern_node_t *part, const char *more, cleave_text_t *text) {
  cleave_text_add(text, "{ ");
  for (uint32_t k = 0; k < part->op_count; k++) {
    if (k == MAX_OPS && part->op_count > MAX_OPS + 1) {
      cleave_text_add(text, "..., ");
      break;
    }
    cleave_text_format(text, "\"%s\", ", part->ops[k]->name);
  }
  cleave_text_format(text, "\"%s\" }", more);
}

/* Writes a part as Lua: its label, which usually is its variable, or its operators. */
static void write_part(const finder_t *finder, uint32_t part, cleave_text_t *text) {
  const cleave_explainer_t *x = finder->x;
  part = cleave_explainer_resolve(x, finder->trial, part);
  const cleave_pattern_node_t *node = &x->pattern->nodes[part];
  if (node->label != NULL && node->kind == CLEAVE_PATTERN_OP) {
    cleave_text_add(text, node->label);
  } else if (node->kind == CLEAVE_PATTERN_OP && node->op_count == 1) {
    cleave_text_format(text, "op \"%s\"", node->ops[0]->name);
  } else if (node->kind == CLEAVE_PATTERN_OP && node->op_count > 1) {
    cleave_text_format(text, "op { { \"%s\", ... } }", node->ops[0]->name);
  } else if (node->kind == CLEAVE_PATTERN_VALUE || node->kind == CLEAVE_PATTERN_CONSTANT) {
    const char *word = node->kind == CLEAVE_PATTERN_VALUE ? "any" : "constant";
    if (node->label != NULL) {
      cleave_text_format(text, "%s \"%s\"", word, node->label);
    } else if (node->constant.has_value) {
      cleave_text_format(text, "%s(%.9g)", word, node->constant.value);
    } else {
      cleave_text_format(text, "%s()", word);
    }
  } else if (cleave_pattern_has_children(node)) {
    uint32_t child =
        node->kind == CLEAVE_PATTERN_SEQUENCE ? node->children[node->child_count - 1] : node->children[0];
    write_part(finder, child, text);
  } else {
    cleave_text_add(text, "absent");
  }
}

static void write_dims(const cleave_type_test_t *type, uint32_t index, cleave_text_t *text) {
  cleave_text_add(text, "shape = { ");
  for (int32_t k = 0; k < type->rank; k++) {
    const cleave_dim_test_t *dim = &type->dims[k];
    cleave_text_add(text, k == 0 ? "" : ", ");
    if ((uint32_t)k == index || (dim->size < 0 && dim->symbol == NULL && dim->expression == NULL)) {
      cleave_text_add(text, "\"?\"");
    } else if (dim->size >= 0) {
      cleave_text_format(text, "%lld", (long long)dim->size);
    } else {
      cleave_text_format(text, "\"%s\"", dim->expression != NULL ? dim->expression->text : dim->symbol);
    }
  }
  cleave_text_add(text, " }");
}

// ---- attributes ----

/* The attribute as a literal of the rule language; false if it has none. */
static bool make_literal(cleave_explainer_t *x, const cleave_attribute_t *attribute,
                         cleave_pattern_literal_t *literal) {
  uint32_t count = cleave_attribute_item_count(attribute);
  *literal = (cleave_pattern_literal_t){.count = count, .is_list = cleave_attribute_is_list(attribute)};
  if (attribute->kind == CLEAVE_ATTRIBUTE_STRING) {
    literal->text = cleave_arena_copy_text(&x->build_arena, attribute->s, attribute->count);
    return literal->text != NULL && strlen(literal->text) == attribute->count;
  }
  if (attribute->kind == CLEAVE_ATTRIBUTE_STRINGS || attribute->kind == CLEAVE_ATTRIBUTE_TENSOR) {
    return false;
  }
  double *numbers = cleave_arena_allocate(&x->build_arena, (size_t)count + 1, sizeof *numbers);
  literal->numbers = numbers;
  for (uint32_t k = 0; numbers != NULL && k < count; k++) {
    cleave_attribute_t item = cleave_attribute_item(attribute, k);
    numbers[k] = item.kind == CLEAVE_ATTRIBUTE_INT ? (double)item.i : item.f;
  }
  return numbers != NULL;
}

/* Removes the test of that name, or replaces it by `test`. */
static bool replace_attribute(cleave_explainer_t *x, uint32_t part, uint32_t index,
                              const cleave_attribute_test_t *test) {
  cleave_pattern_node_t *node = &x->built[part];
  cleave_attribute_test_t *own = cleave_arena_allocate(&x->build_arena, node->attribute_count, sizeof *own);
  if (own == NULL) {
    return false;
  }
  memcpy(own, node->attributes, node->attribute_count * sizeof *own);
  if (test != NULL) {
    own[index] = *test;
  } else {
    // A test without a name accepts anything; its place stays until all edits are made.
    own[index].kind = CLEAVE_ATTRIBUTE_TEST_RANGE;
    own[index].name = NULL;
  }
  node->attributes = own;
  return true;
}

static bool fix_attribute(const finder_t *finder, const fault_t *fault, cleave_text_t *text) {
  cleave_explainer_t *x = finder->x;
  const constraint_t *d = &x->constraints[fault->constraint];
  const cleave_attribute_test_t *test = &x->pattern->nodes[d->part].attributes[d->index];
  cleave_attribute_t found;
  const cleave_attribute_t *attribute = NULL;
  if (cleave_node_exists(fault->node) &&
      cleave_op_effective_attribute(x->graph, fault->node, test->name, &found)) {
    attribute = &found;
  }
  cleave_attribute_test_t wider = *test;
  cleave_pattern_literal_t literal;
  bool is_number = attribute != NULL &&
                   (attribute->kind == CLEAVE_ATTRIBUTE_INT || attribute->kind == CLEAVE_ATTRIBUTE_FLOAT);
  if (test->kind == CLEAVE_ATTRIBUTE_TEST_RANGE && is_number) {
    double number = attribute->kind == CLEAVE_ATTRIBUTE_INT ? (double)attribute->i : attribute->f;
    wider.low = number < test->low ? number : test->low;
    wider.high = number > test->high ? number : test->high;
    cleave_text_format(text, "attrs = { %s = range { ", test->name);
    if (isfinite(wider.low)) {
      cleave_text_format(text, "min = %.9g%s", wider.low, isfinite(wider.high) ? ", " : " ");
    }
    if (isfinite(wider.high)) {
      cleave_text_format(text, "max = %.9g ", wider.high);
    }
    cleave_text_add(text, "} }");
    return replace_attribute(x, d->part, d->index, &wider);
  }
  if (test->kind == CLEAVE_ATTRIBUTE_TEST_EQUAL && attribute != NULL &&
      make_literal(x, attribute, &literal)) {
    cleave_pattern_literal_t *values =
        cleave_arena_allocate(&x->build_arena, (size_t)test->value_count + 1, sizeof *values);
    if (values == NULL) {
      return false;
    }
    memcpy(values, test->values, test->value_count * sizeof *values);
    values[test->value_count] = literal;
    wider.values = values;
    wider.value_count++;
    cleave_text_format(text, "attrs = { %s = one_of { ", test->name);
    cleave_text_add(text, test->or_absent ? "absent, " : "");
    for (uint32_t k = 0; k < wider.value_count; k++) {
      cleave_text_add(text, k == 0 ? "" : ", ");
      cleave_explain_literal(&values[k], text);
    }
    cleave_text_add(text, " } }");
    return replace_attribute(x, d->part, d->index, &wider);
  }
  cleave_text_format(text, "-- without the test of attrs.%s", test->name);
  return replace_attribute(x, d->part, d->index, NULL);
}

/* Removes the tests without a name. */
void cleave_explain_fix_end(cleave_explainer_t *x) {
  for (uint32_t p = 0; p < x->pattern->node_count; p++) {
    cleave_pattern_node_t *node = &x->built[p];
    uint32_t kept = 0;
    // Only lists that fix_attribute made its own have entries without a name.
    for (uint32_t k = 0; k < node->attribute_count; k++) {
      kept += node->attributes[k].name != NULL;
    }
    if (kept == node->attribute_count) {
      continue;
    }
    cleave_attribute_test_t *own = (cleave_attribute_test_t *)(uintptr_t)node->attributes;
    uint32_t count = 0;
    for (uint32_t k = 0; k < node->attribute_count; k++) {
      if (own[k].name != NULL) {
        own[count++] = own[k];
      }
    }
    node->attribute_count = count;
  }
}

// ---- the other constraints ----

static bool fix_ops(const finder_t *finder, const fault_t *fault, cleave_text_t *text) {
  cleave_explainer_t *x = finder->x;
  cleave_pattern_node_t *node = &x->built[x->constraints[fault->constraint].part];
  const cleave_op_t **ops = cleave_arena_allocate(&x->build_arena, (size_t)node->op_count + 1, sizeof *ops);
  if (ops == NULL || !cleave_node_exists(fault->node)) {
    return false;
  }
  memcpy(ops, node->ops, node->op_count * sizeof *ops);
  ops[node->op_count] = cleave_node_op(x->graph, fault->node);
  cleave_text_add(text, "op { ");
  write_ops(node, ops[node->op_count]->name, text);
  if (node->label != NULL) {
    cleave_text_format(text, ", as = \"%s\"", node->label);
  }
  cleave_text_add(text, node->input_count + node->attribute_count > 0 ? ", ... }" : " }");
  node->ops = ops;
  node->op_count++;
  return true;
}

static bool fix_dtype(const finder_t *finder, const fault_t *fault, cleave_text_t *text) {
  cleave_explainer_t *x = finder->x;
  cleave_type_test_t *type = &x->built[x->constraints[fault->constraint].part].type;
  uint32_t dtype = cleave_value_exists(fault->value) ? cleave_graph_value(x->graph, fault->value)->dtype : 0;
  if (dtype == CLEAVE_DTYPE_UNKNOWN || dtype >= 32) {
    type->dtypes = 0;
    cleave_text_add(text, "-- without dtype");
    return true;
  }
  type->dtypes |= UINT32_C(1) << dtype;
  cleave_text_add(text, "dtype = { ");
  for (uint32_t bit = 0, count = 0; bit < 32; bit++) {
    if ((type->dtypes >> bit & 1u) != 0) {
      cleave_text_format(text, "%s\"%s\"", count++ == 0 ? "" : ", ", cleave_dtype_name((cleave_dtype_t)bit));
    }
  }
  cleave_text_add(text, " }");
  return true;
}

static bool fix_dim(const finder_t *finder, const fault_t *fault, cleave_text_t *text) {
  cleave_explainer_t *x = finder->x;
  const constraint_t *d = &x->constraints[fault->constraint];
  cleave_type_test_t *type = &x->built[d->part].type;
  if (type->dims == NULL) {
    return true;
  }
  cleave_dim_test_t *own = cleave_arena_allocate(&x->build_arena, (size_t)type->rank, sizeof *own);
  if (own == NULL) {
    return false;
  }
  memcpy(own, type->dims, (size_t)type->rank * sizeof *own);
  own[d->index] = (cleave_dim_test_t){.size = -1};
  type->dims = own;
  write_dims(type, d->index, text);
  return true;
}

static bool fix_content(const finder_t *finder, const fault_t *fault, cleave_text_t *text) {
  cleave_explainer_t *x = finder->x;
  cleave_constant_test_t *test = &x->built[x->constraints[fault->constraint].part].constant;
  const cleave_tensor_t *tensor =
      cleave_value_exists(fault->value) ? cleave_graph_value(x->graph, fault->value)->tensor : NULL;
  bool has_number = tensor != NULL && tensor->count > 0 && tensor->dtype != CLEAVE_DTYPE_STRING;
  if (test->has_value && has_number && test->values == NULL && !test->has_range) {
    double element = cleave_tensor_get_float(tensor, cleave_finder_wrong_element(test, tensor));
    double distance = fabs(element - test->value);
    if (distance <= 0.01 * fabs(test->value)) {
      char number[32];
      (void)snprintf(number, sizeof number, "%.2g", distance * 1.1);
      test->tolerance = strtod(number, NULL);
      cleave_text_format(text, "value = %.9g, tolerance = %s", test->value, number);
      return true;
    }
  }
  test->has_value = test->has_range = test->is_list = false;
  test->values = NULL;
  test->value_count = 0;
  cleave_text_add(text, "constant()");
  return true;
}

/* The constant should be a scalar and has many elements; other tests of its content are dropped as well. */
static bool fix_scalar(const finder_t *finder, const fault_t *fault, cleave_text_t *text) {
  cleave_explainer_t *x = finder->x;
  uint32_t part = x->constraints[fault->constraint].part;
  cleave_constant_test_t *test = &x->built[part].constant;
  static const constraint_kind_t KINDS[] = {CONSTRAINT_CONTENT, CONSTRAINT_ALL_EQUAL};
  bool with_content = false;
  test->scalar = false;
  for (uint32_t k = 0; k < 2; k++) {
    uint32_t constraint = cleave_explainer_constraint(x, part, KINDS[k], 0);
    with_content = with_content || (constraint != CLEAVE_INDEX_NONE &&
                                    finder->trial->states[constraint] == CONSTRAINT_DROPPED);
  }
  if (with_content) {
    *test = (cleave_constant_test_t){.scalar = false};
  }
  cleave_text_add(text, with_content ? "constant()" : "-- without scalar = true");
  return true;
}

static bool fix_count(const finder_t *finder, const fault_t *fault, cleave_text_t *text) {
  cleave_explainer_t *x = finder->x;
  const constraint_t *d = &x->constraints[fault->constraint];
  cleave_pattern_node_t *node = &x->built[d->part];
  uint32_t child = node->children[0];
  uint32_t count = finder->bindings[child].count;
  if (d->kind == CONSTRAINT_MIN_COUNT) {
    node->min = count > 0 && count < node->min ? count : node->kind == CLEAVE_PATTERN_VARIADIC ? 0 : 1;
    cleave_text_format(text, "min = %u", (unsigned)node->min);
  } else {
    node->max = count > node->max ? count : UINT32_MAX;
    cleave_text_format(text, count > 0 ? "max = %u" : "-- without max", (unsigned)node->max);
  }
  return true;
}

/* The part `target` with the node that stands in between as an optional one, `before` it or behind. NONE:
 * there is no such node, or no memory. */
static uint32_t allow_between(const finder_t *finder, const fault_t *fault, uint32_t target, bool before,
                              cleave_text_t *text) {
  cleave_explainer_t *x = finder->x;
  if (!cleave_node_exists(fault->node)) {
    return CLEAVE_INDEX_NONE;
  }
  const cleave_op_t *op = cleave_node_op(x->graph, fault->node);
  const cleave_op_t **ops = cleave_arena_allocate(&x->build_arena, 1, sizeof *ops);
  uint32_t *children = cleave_arena_allocate(&x->build_arena, 1, sizeof *children);
  if (ops == NULL || children == NULL) {
    return CLEAVE_INDEX_NONE;
  }
  ops[0] = op;
  children[0] = cleave_explainer_add_part(
      x, (cleave_pattern_node_t){.kind = CLEAVE_PATTERN_OP, .type.rank = -1, .ops = ops, .op_count = 1});
  uint32_t maybe = cleave_explainer_add_part(
      x, (cleave_pattern_node_t){
             .kind = CLEAVE_PATTERN_MAYBE, .type.rank = -1, .children = children, .child_count = 1});
  if (before) {
    cleave_text_format(text, ">> maybe(op \"%s\") >> ", op->name);
    write_part(finder, target, text);
    return cleave_explainer_add_group(x, CLEAVE_PATTERN_SEQUENCE, maybe, target);
  } else {
    write_part(finder, target, text);
    cleave_text_format(text, " >> maybe(op \"%s\")", op->name);
    return cleave_explainer_add_group(x, CLEAVE_PATTERN_SEQUENCE, target, maybe);
  }
}

/* The part that means an output: the one of an input pattern, or what stands before a child; or NONE. */
static uint32_t output_part(const finder_t *finder, const constraint_t *constraint) {
  const cleave_explainer_t *x = finder->x;
  const cleave_pattern_node_t *owner = &x->pattern->nodes[constraint->part];
  uint32_t part = constraint->kind == CONSTRAINT_INPUT ? owner->inputs[constraint->index].pattern
                  : constraint->index > 0              ? owner->children[constraint->index - 1]
                                                       : constraint->part;
  part = cleave_explainer_resolve(x, finder->trial, part);
  cleave_pattern_kind_t kind = x->pattern->nodes[part].kind;
  return kind == CLEAVE_PATTERN_OP || kind == CLEAVE_PATTERN_OUTPUT ? part : CLEAVE_INDEX_NONE;
}

/* Another output is read than the pattern means: it means that one. */
static bool fix_output(const finder_t *finder, const fault_t *fault, cleave_text_t *text) {
  cleave_explainer_t *x = finder->x;
  uint32_t part = output_part(finder, &x->constraints[fault->constraint]);
  if (part == CLEAVE_INDEX_NONE) {
    return false;
  }
  const cleave_op_t *op = cleave_node_op(x->graph, cleave_value_producer(x->graph, fault->value));
  cleave_pattern_node_t *node = &x->built[part];
  bool is_output = node->kind == CLEAVE_PATTERN_OUTPUT;
  node->output = cleave_graph_value(x->graph, fault->value)->output_index;
  if (is_output) {
    cleave_text_add(text, "output(");
    write_part(finder, part, text);
  }
  cleave_text_add(text, is_output ? ", " : "output = ");
  cleave_explain_output(op, node->output, "\"", text);
  cleave_text_add(text, is_output ? ")" : "");
  return true;
}

/* An edge: a missing part becomes optional, or a node in between is allowed. */
static bool fix_edge(const finder_t *finder, const fault_t *fault, cleave_text_t *text) {
  cleave_explainer_t *x = finder->x;
  const constraint_t *d = &x->constraints[fault->constraint];
  bool is_child = d->kind == CONSTRAINT_CHILD;
  const cleave_pattern_node_t *owner = &x->pattern->nodes[d->part];
  uint32_t target = is_child ? owner->children[d->index] : owner->inputs[d->index].pattern;
  uint32_t changed = CLEAVE_INDEX_NONE;
  if (finder->trial->states[fault->constraint] == CONSTRAINT_PASSED) {
    bool before = is_child && (finder->trial->edges[fault->constraint] & EDGE_BACKWARDS) == 0;
    changed = allow_between(finder, fault, target, before, text);
  } else if (is_child) {
    uint32_t *children = cleave_arena_allocate(&x->build_arena, 1, sizeof *children);
    if (children == NULL || owner->kind == CLEAVE_PATTERN_GROUP) {
      return false;
    }
    children[0] = target;
    changed = cleave_explainer_add_part(
        x, (cleave_pattern_node_t){
               .kind = CLEAVE_PATTERN_MAYBE, .type.rank = -1, .children = children, .child_count = 1});
    cleave_text_add(text, "maybe(");
    write_part(finder, target, text);
    cleave_text_add(text, ")");
  } else if (!cleave_value_exists(fault->value)) {
    uint32_t absent =
        cleave_explainer_add_part(x, (cleave_pattern_node_t){.kind = CLEAVE_PATTERN_ABSENT, .type.rank = -1});
    changed = cleave_explainer_add_group(x, CLEAVE_PATTERN_ONEOF, target, absent);
    cleave_text_add(text, "oneof { ");
    write_part(finder, target, text);
    cleave_text_add(text, ", absent }");
  } else {
    bool is_variadic = x->pattern->nodes[target].kind == CLEAVE_PATTERN_VARIADIC;
    changed = cleave_explainer_add_choice(x, is_variadic ? x->pattern->nodes[target].children[0] : target);
    cleave_text_add(text, is_variadic ? "variadic(oneof { " : "oneof { ");
    write_part(finder, target, text);
    cleave_text_add(text, is_variadic ? ", any() })" : ", any() }");
    if (is_variadic && changed != CLEAVE_INDEX_NONE) {
      uint32_t *children = cleave_explainer_own_children(x, target, 0);
      if (children != NULL) {
        children[0] = changed;
      }
      return children != NULL;
    }
  }
  if (changed == CLEAVE_INDEX_NONE) {
    return false;
  }
  if (is_child) {
    uint32_t *children = cleave_explainer_own_children(x, d->part, 0);
    if (children != NULL) {
      children[d->index] = changed;
    }
    return children != NULL;
  }
  cleave_pattern_input_t *inputs = cleave_explainer_own_inputs(x, d->part, 0);
  if (inputs != NULL) {
    inputs[d->index].pattern = changed;
  }
  return inputs != NULL;
}

bool cleave_explain_fix_one(const finder_t *finder, const fault_t *fault, cleave_text_t *text) {
  cleave_explainer_t *x = finder->x;
  const constraint_t *d = &x->constraints[fault->constraint];
  if (fault->input != CLEAVE_INDEX_NONE) {
    return cleave_explain_fix_unnamed(finder, fault, text);
  }
  if (fault->output != CLEAVE_INDEX_NONE) {
    return fix_output(finder, fault, text);
  }
  if (d->kind == CONSTRAINT_WHERE_ALL) {
    x->trial_pattern.where = NULL;
    cleave_text_format(text, "-- without the condition \"%s\"", x->pattern->where->text);
    return true;
  }
  cleave_pattern_node_t *node = &x->built[d->part];
  switch ((constraint_kind_t)d->kind) {
    case CONSTRAINT_CHILD:
    case CONSTRAINT_INPUT: return fix_edge(finder, fault, text);
    case CONSTRAINT_OPS: return fix_ops(finder, fault, text);
    case CONSTRAINT_ATTRIBUTE: return fix_attribute(finder, fault, text);
    case CONSTRAINT_DTYPE: return fix_dtype(finder, fault, text);
    case CONSTRAINT_RANK:
      cleave_text_add(text, node->type.dims == NULL ? "-- without rank" : "-- without shape");
      node->type.rank = -1;
      node->type.dims = NULL;
      return true;
    case CONSTRAINT_DIM: return fix_dim(finder, fault, text);
    case CONSTRAINT_CONSTANT:
      node->kind = CLEAVE_PATTERN_VALUE;
      cleave_text_add(text, node->label == NULL ? "any()" : "any \"");
      cleave_text_add(text, node->label == NULL ? "" : node->label);
      cleave_text_add(text, node->label == NULL ? "" : "\"");
      return true;
    case CONSTRAINT_SCALAR: return fix_scalar(finder, fault, text);
    case CONSTRAINT_ALL_EQUAL:
      node->constant.all_equal = false;
      cleave_text_add(text, "-- without all_equal = true");
      return true;
    case CONSTRAINT_CONTENT: return fix_content(finder, fault, text);
    case CONSTRAINT_LABEL:
      cleave_text_format(text, "as = \"%s_2\"", node->label);
      node->label = NULL;
      return true;
    case CONSTRAINT_UNSHARED:
      node->shared = true;
      cleave_text_add(text, "shared = true");
      return true;
    case CONSTRAINT_MIN_COUNT:
    case CONSTRAINT_MAX_COUNT: return fix_count(finder, fault, text);
    case CONSTRAINT_WHERE:
      cleave_text_format(text, "-- without where = \"%s\"", node->where->text);
      node->where = NULL;
      return true;
    case CONSTRAINT_EDGES:
    case CONSTRAINT_WHERE_ALL: break;
  }
  return false;
}

// SPDX-License-Identifier: Apache-2.0
// Reads graphs out of short texts, and writes plans as short texts. For tests: any failure fails the test.

#include "plan_case.h"

#include <ctype.h>

#include "unit.h"

enum { MAX_NAMES = 4096, MAX_ITEMS = 64, LONGEST_NAME = 64, MAX_KEPT = 65536 };

/* What stays until the test process ends, so that it is no leak. */
static void *kept[MAX_KEPT];
static uint32_t kept_count;

void *plan_case_keep(void *memory) {
  ck_assert_uint_lt(kept_count, MAX_KEPT);
  kept[kept_count++] = memory;
  return memory;
}

typedef struct reader {
  const char *next;
  cleave_graph_t *graph;
  char names[MAX_NAMES][LONGEST_NAME];
  cleave_value_t values[MAX_NAMES];
  uint32_t count;
} reader_t;

static void skip_space(reader_t *reader) {
  while (isspace((unsigned char)*reader->next)) {
    reader->next++;
  }
}

static bool take(reader_t *reader, const char *mark) {
  skip_space(reader);
  size_t length = strlen(mark);
  bool found = strncmp(reader->next, mark, length) == 0;
  reader->next += found ? length : 0;
  return found;
}

static void expect(reader_t *reader, const char *mark) {
  ck_assert_msg(take(reader, mark), "graph text: '%s' expected at '%.20s'", mark, reader->next);
}

static void read_word(reader_t *reader, char *word) {
  skip_space(reader);
  size_t length = 0;
  while (isalnum((unsigned char)*reader->next) || strchr("_.#$-", *reader->next) != NULL) {
    if (*reader->next == '\0' || (reader->next[0] == '-' && reader->next[1] == '>')) {
      break;
    }
    ck_assert(length + 1 < LONGEST_NAME);
    word[length++] = *reader->next++;
  }
  word[length] = '\0';
  ck_assert_msg(length > 0, "graph text: a name expected at '%.20s'", reader->next);
}

static void define(reader_t *reader, const char *name, cleave_value_t value) {
  ck_assert_uint_lt(reader->count, MAX_NAMES);
  strcpy(reader->names[reader->count], name);
  reader->values[reader->count++] = value;
}

static cleave_value_t add_constant(reader_t *reader, const char *word) {
  cleave_tensor_t *tensor = NULL;
  cleave_value_t value;
  if (word[0] == '#') {
    unit_ok(cleave_tensor_create_float((float)atof(word + 1), &tensor, e));
  } else {
    unit_ok(cleave_tensor_create(CLEAVE_DTYPE_F32, 2, (int64_t[]){2, 2}, &tensor, e));
    cleave_tensor_fill_normal(tensor, 1, 0.0, 1.0);
  }
  unit_ok(cleave_graph_add_constant(reader->graph, word + 1, tensor, &value, e));
  cleave_tensor_release(tensor);
  return value;
}

static cleave_value_t read_argument(reader_t *reader) {
  char word[LONGEST_NAME];
  cleave_value_t value;
  read_word(reader, word);
  if (strcmp(word, "_") == 0) {
    return CLEAVE_VALUE_NONE;
  }
  for (uint32_t k = reader->count; k-- > 0;) {
    if (strcmp(reader->names[k], word) == 0) {
      return reader->values[k];
    }
  }
  if (word[0] == '#' || word[0] == '$') {
    value = add_constant(reader, word);
  } else {
    cleave_dim_t dims[2] = {2, 2};
    unit_ok(cleave_graph_add_input(reader->graph, word, CLEAVE_DTYPE_F32, 2, dims, &value, e));
  }
  define(reader, word, value);
  return value;
}

static void read_attributes(reader_t *reader, cleave_node_t node) {
  do {
    char name[LONGEST_NAME];
    char value[LONGEST_NAME];
    read_word(reader, name);
    expect(reader, "=");
    if (take(reader, "[")) {
      int64_t list[MAX_ITEMS];
      size_t count = 0;
      do {
        read_word(reader, value);
        list[count++] = atoll(value);
      } while (take(reader, ","));
      expect(reader, "]");
      unit_ok(cleave_graph_set_ints(reader->graph, node, name, list, count, e));
      continue;
    }
    read_word(reader, value);
    if (isalpha((unsigned char)value[0])) {
      unit_ok(cleave_graph_set_text(reader->graph, node, name, value, e));
    } else if (strchr(value, '.') != NULL) {
      unit_ok(cleave_graph_set_float(reader->graph, node, name, atof(value), e));
    } else {
      unit_ok(cleave_graph_set_int(reader->graph, node, name, atoll(value), e));
    }
  } while (take(reader, ","));
  expect(reader, "}");
}

static void read_statement(reader_t *reader) {
  char outputs[MAX_ITEMS][LONGEST_NAME];
  char op_name[LONGEST_NAME];
  cleave_value_t inputs[MAX_ITEMS];
  size_t output_count = 0;
  size_t input_count = 0;
  do {
    read_word(reader, outputs[output_count++]);
  } while (take(reader, ","));
  expect(reader, "=");
  read_word(reader, op_name);
  const cleave_op_t *op = cleave_op_find("", op_name);
  if (op == NULL) {
    unit_ok(cleave_graph_custom_op(reader->graph, "test", op_name, 1, &op, e));
  }
  const char *attributes = NULL;
  if (take(reader, "{")) {
    attributes = reader->next;
    reader->next = strchr(reader->next, '}') + 1;
  }
  expect(reader, "(");
  if (!take(reader, ")")) {
    do {
      inputs[input_count++] = read_argument(reader);
    } while (take(reader, ","));
    expect(reader, ")");
  }
  cleave_node_t node;
  unit_ok(cleave_graph_add_node(reader->graph, op, outputs[0], inputs, input_count, output_count, &node, e));
  for (uint32_t k = 0; k < output_count; k++) {
    cleave_value_t value = cleave_node_output(reader->graph, node, k);
    unit_ok(cleave_graph_set_value_name(reader->graph, value, outputs[k], e));
    unit_ok(cleave_graph_set_type(reader->graph, value, CLEAVE_DTYPE_F32, 2, (cleave_dim_t[]){2, 2}, e));
    define(reader, outputs[k], value);
  }
  if (attributes != NULL) {
    const char *after = reader->next;
    reader->next = attributes;
    read_attributes(reader, node);
    reader->next = after;
  }
}

cleave_graph_t *plan_case_graph(const char *text) {
  reader_t *reader = calloc(1, sizeof *reader);
  ck_assert_ptr_nonnull(reader);
  reader->next = text;
  unit_ok(cleave_graph_create(&reader->graph, e));
  while (!take(reader, "->")) {
    skip_space(reader);
    ck_assert_msg(*reader->next != '\0', "graph text: no '->'");
    read_statement(reader);
    (void)take(reader, ";");
  }
  do {
    cleave_value_t value = read_argument(reader);
    unit_ok(cleave_graph_add_output(reader->graph, cleave_value_name(reader->graph, value), value, e));
  } while (take(reader, ","));
  cleave_graph_t *graph = reader->graph;
  free(reader);
  return plan_case_keep(graph);
}

cleave_node_t plan_case_node(const cleave_graph_t *graph, const char *name) {
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    cleave_node_t producer = cleave_value_producer(graph, (cleave_value_t){k});
    if (cleave_node_exists(producer) && strcmp(cleave_value_name(graph, (cleave_value_t){k}), name) == 0) {
      return producer;
    }
  }
  ck_abort_msg("no node makes '%s'", name);
  return CLEAVE_NODE_NONE;
}

// ---- rules ----

const cleave_op_t *const *plan_case_op_list(const char *names, uint32_t *out_count) {
  const cleave_op_t **list = plan_case_keep(calloc(strlen(names) + 1, sizeof *list));
  *out_count = 0;
  while (*names != '\0') {
    char name[LONGEST_NAME];
    size_t length = strcspn(names, ",");
    ck_assert_uint_lt(length, sizeof name);
    memcpy(name, names, length);
    name[length] = '\0';
    list[*out_count] = cleave_op_find("", name);
    list[*out_count] = list[*out_count] != NULL ? list[*out_count] : cleave_op_find("cleave", name);
    ck_assert_msg(list[(*out_count)++] != NULL, "no operator '%s'", name);
    names += length + (names[length] == ',');
  }
  return list;
}

cleave_rule_t plan_case_rule(cleave_rule_kind_t kind, const char *name) {
  static int line = 0;
  return (cleave_rule_t){.kind = kind, .name = name, .doc = "", .file = "test.lua", .line = ++line};
}

const cleave_ruleset_t *plan_case_ruleset(const char *name, const cleave_rule_t *rules, uint32_t count) {
  cleave_ruleset_t *ruleset = plan_case_keep(calloc(1, sizeof *ruleset));
  cleave_rule_t *copy = plan_case_keep(calloc(count + 1, sizeof *copy));
  memcpy(copy, rules, count * sizeof *copy);
  *ruleset = (cleave_ruleset_t){
      .name = name, .backend = "test", .file = "test.lua", .rules = copy, .rule_count = count};
  return ruleset;
}

const cleave_ruleset_t *plan_case_ops(const char *ops) {
  cleave_rule_t rule = plan_case_rule(CLEAVE_RULE_REGION, "island");
  rule.mode = CLEAVE_REGION_OPS;
  rule.ops = plan_case_op_list(ops, &rule.op_count);
  return plan_case_ruleset("ops", &rule, 1);
}

cleave_plan_t *plan_case_run(const cleave_graph_t *graph, const cleave_ruleset_t *const *rulesets,
                             uint32_t count, const cleave_partition_options_t *options) {
  cleave_plan_t *plan = NULL;
  unit_ok(cleave_partition(graph, rulesets, count, options, &plan, e));
  unit_ok(cleave_plan_check(plan, e));
  return plan_case_keep(plan);
}

// ---- plans as text ----

static const char *node_name(const cleave_plan_t *plan, cleave_node_t node) {
  return cleave_value_name(plan->graph, cleave_node_output(plan->graph, node, 0));
}

static const char *finish(cleave_text_t *text) {
  unit_ok(cleave_text_check(text, e));
  return text->data == NULL ? "" : plan_case_keep(text->data);
}

const char *plan_case_regions(const cleave_plan_t *plan) {
  cleave_text_t text = {0};
  for (uint32_t r = 0; r < plan->region_count; r++) {
    const cleave_plan_region_t *region = &plan->regions[r];
    bool first = true;
    cleave_text_add(&text, r == 0 ? "{" : " {");
    for (uint32_t k = 0; k < region->node_count; k++) {
      uint32_t f = plan->node_fusion[region->nodes[k].index];
      const cleave_plan_fusion_t *fusion = f == CLEAVE_INDEX_NONE ? NULL : &plan->fusions[f];
      if (fusion != NULL && fusion->nodes[0].index != region->nodes[k].index) {
        continue;
      }
      cleave_text_add(&text, first ? "" : " ");
      first = false;
      if (fusion == NULL) {
        cleave_text_add(&text, node_name(plan, region->nodes[k]));
        continue;
      }
      for (uint32_t m = 0; m < fusion->node_count; m++) {
        cleave_text_format(&text, "%s%s", m == 0 ? "[" : " ", node_name(plan, fusion->nodes[m]));
      }
      cleave_text_add(&text, "]");
    }
    cleave_text_add(&text, "}");
  }
  return finish(&text);
}

const char *plan_case_boundary(const cleave_plan_t *plan, uint32_t index) {
  cleave_text_t text = {0};
  const cleave_plan_region_t *region = &plan->regions[index];
  for (uint32_t k = 0; k < region->input_count; k++) {
    cleave_text_format(&text, "%s%s", k == 0 ? "" : ", ", cleave_value_name(plan->graph, region->inputs[k]));
  }
  cleave_text_add(&text, " -> ");
  for (uint32_t k = 0; k < region->output_count; k++) {
    cleave_text_format(&text, "%s%s", k == 0 ? "" : ", ", cleave_value_name(plan->graph, region->outputs[k]));
  }
  return finish(&text);
}

const char *plan_case_notes(const cleave_plan_t *plan, cleave_plan_note_kind_t kind) {
  cleave_text_t text = {0};
  for (uint32_t k = 0; k < plan->note_count; k++) {
    if (plan->notes[k].kind == kind) {
      cleave_text_format(&text, "%s: %s\n", node_name(plan, plan->notes[k].node), plan->notes[k].reason);
    }
  }
  return finish(&text);
}

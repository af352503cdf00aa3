// SPDX-License-Identifier: Apache-2.0
// Plans as JSON: those that rules make for the sample, and those of the corpus. What is read compares and
// prints; what fits the sample stands the check, prints, and gives the sample's values.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "damage.h"
#include "fuzz.h"
#include "partition/plan/plan_read.h"
#include "partition/plan_diff/plan_diff.h"
#include "runtime/model/model.h"
#include "runtime/plans/plan_load.h"

static const unsigned STATUSES = FUZZ_STATUS(FORMAT) | FUZZ_STATUS(MISMATCH) | FUZZ_STATUS(LIMIT) |
                                 FUZZ_STATUS(UNSUPPORTED) | FUZZ_STATUS(SHAPE);

static const char *const RULES[] = {
    "return ruleset { name = 'a', region 'part' { ops = { 'Conv', 'Relu', 'Add' } } }",
    "return ruleset { name = 'b',\n"
    "  fuse 'sum' { pattern = op { 'Add', as = 's' } >> op 'Relu', attributes = { level = 2, name = 'x' } "
    "},\n"
    "  region 'part' { ops = { 'Conv', 'BatchNormalization', 'Add', 'Relu', 'MatMul' } },\n"
    "  region 'rest' { ops = { 'Mul', 'Erf', 'Div', 'Softmax' } } }",
    "return ruleset { name = 'c', fuse 'a' { pattern = op 'Mul' >> op 'Mul' },\n"
    "  region 'all' { supported = function(node) return node.op ~= 'Softmax', 'no softmax' end } }",
    "return ruleset { name = 'd', rewrite 'twice' { pattern = op { 'Relu', inputs = { any 'x' } },\n"
    "  replace = function(m, g) return g.Abs(g.Max(m.x, g.zeros { 1 })) end },\n"
    "  region 'part' { ops = { 'Max', 'MatMul' } } }"};
enum { RULE_COUNT = sizeof RULES / sizeof RULES[0] };

static const cleave_text_t *plan_of(size_t index) {
  static cleave_text_t plans[RULE_COUNT];
  if (plans[index].length == 0) {
    const cleave_graph_t *graph = cleave_model_graph(fuzz_sample());
    const cleave_rule_source_t source = {
        .path = "r.lua", .text = RULES[index], .length = strlen(RULES[index])};
    cleave_plan_t *plan = NULL;
    fuzz_ok(cleave_graph_partition(
        graph,
        &(cleave_partition_request_t){
            .size = sizeof(cleave_partition_request_t), .sources = &source, .source_count = 1},
        NULL, &plan, NULL, e));
    fuzz_ok(cleave_plan_print_json(plan, &plans[index], e));
    cleave_plan_destroy(plan);
  }
  return &plans[index];
}

static void draw(cleave_text_t *out) {
  size_t index = damage_random(RULE_COUNT + 2);
  if (index < RULE_COUNT) {
    const cleave_text_t *plan = plan_of(index);
    cleave_text_append(out, plan->data, plan->length);
  } else {
    fuzz_text_t file = fuzz_draw_corpus("plans");
    cleave_text_append(out, file.data, file.size);
  }
}

static size_t damage(char *data, size_t size, size_t room) {
  return damage_json(data, size, room);
}

/* The plan that others are compared with. */
static const cleave_plan_document_t *original(void) {
  static cleave_plan_document_t *document;
  if (document == NULL) {
    const cleave_text_t *plan = plan_of(1);
    fuzz_ok(cleave_plan_document_read("p.json", plan->data, plan->length, &document, e));
  }
  return document;
}

/* Comparing must work for whatever could be read. */
static void compare(const cleave_plan_document_t *before, const cleave_plan_document_t *after) {
  cleave_plan_diff_t *diff = NULL;
  cleave_text_t text = {0};
  fuzz_ok(cleave_plan_diff_create(before, after, &diff, e));
  fuzz_ok(cleave_plan_diff_print_text(diff, &text, e));
  fuzz_ok(cleave_plan_diff_print_json(diff, &text, e));
  cleave_text_deinit(&text);
  cleave_plan_diff_destroy(diff);
}

/* Numbers that the sample gives, by a plan or without one. */
static void check_values(const cleave_plan_t *plan) {
  static cleave_text_t expected;
  cleave_text_t found = {0};
  if (expected.length == 0) {
    fuzz_expect(fuzz_run_model(fuzz_sample(), NULL, &expected), "the sample");
  }
  bool ran = fuzz_run_model(fuzz_sample(), plan, &found);
  fuzz_expect(ran && found.length == expected.length, "%zu bytes, expected %zu", found.length,
              expected.length);
  for (size_t k = 0; k < found.length; k += sizeof(float)) {
    float a = 0;
    float b = 0;
    memcpy(&a, found.data + k, sizeof a);
    memcpy(&b, expected.data + k, sizeof b);
    fuzz_expect(fabsf(a - b) <= 1e-4f * (1.0f + fabsf(b)), "element %zu is %g, expected %g",
                k / sizeof(float), (double)a, (double)b);
  }
  cleave_text_deinit(&found);
}

static fuzz_outcome_t use_document(cleave_plan_document_t *document) {
  cleave_plan_t *plan = NULL;
  cleave_text_t text = {0};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  compare(original(), document);
  compare(document, original());
  fuzz_ok(cleave_plan_document_print(document, &text, e));
  text.length = 0;
  cleave_status_t status = cleave_plan_load_for(document, fuzz_sample(), false, &plan, &error);
  fuzz_check(status, &error, STATUSES);
  if (status == CLEAVE_OK) {
    fuzz_ok(cleave_plan_check(plan, e));
    fuzz_ok(cleave_plan_print_text(plan, &text, e));
    check_values(plan);
  }
  cleave_text_deinit(&text);
  cleave_plan_destroy(plan);
  return status == CLEAVE_OK ? FUZZ_USED : FUZZ_READ;
}

static fuzz_outcome_t run(const void *data, size_t size) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_plan_document_t *document = NULL;
  char *copy = fuzz_copy(data, size);
  cleave_status_t status = cleave_plan_document_read("p.json", copy, size, &document, &error);
  free(copy);
  fuzz_check(status, &error, STATUSES);
  if (status != CLEAVE_OK) {
    fuzz_expect(document == NULL, "%s", error.message);
    return FUZZ_REFUSED;
  }
  fuzz_outcome_t outcome = use_document(document);
  cleave_plan_document_destroy(document);
  return outcome;
}

const fuzz_kind_t fuzz_plans = {draw, damage, run};

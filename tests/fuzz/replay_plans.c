// SPDX-License-Identifier: Apache-2.0
/*
 * Broken and senseless plans: those of the corpus, and those of the graph below, with bytes changed, removed
 * and inserted, numbers replaced, and whole lines moved about. The outcome must be a plan that stands the
 * check and prints to what was read, or one line that says what is wrong. What is read is compared with what
 * it was made of as well. The generator is seeded, so that a failure comes again; the time is bounded.
 */
#include <dirent.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "damage_case.h"
#include "partition/plan_diff.h"
#include "partition/plan_read.h"
#include "plan_case.h"
#include "unit.h"

enum { ROUNDS = 20000, MOST_SEEDS = 32 };
static const double budget_ms = 6000.0;

static const char graph_text[] =
    "c = Conv(x, $w); r = Relu(c); p = MaxPool(r); s = Softmax(p); a = Add(p, s); e = Exp(a); b = Add(e, r); "
    "-> b, s";

typedef struct seed {
  const char *text;
  size_t length;
} seed_t;

static seed_t seeds[MOST_SEEDS];
static size_t seed_count;

static void add_seed(const char *text, size_t length) {
  if (seed_count < MOST_SEEDS) {
    seeds[seed_count++] = (seed_t){text, length};
  }
}

static void add_plan(const cleave_graph_t *graph, const char *ops) {
  cleave_text_t text = {0};
  const cleave_ruleset_t *ruleset = plan_case_ops(ops);
  unit_ok(cleave_plan_print_json(plan_case_run(graph, &ruleset, 1, NULL), &text, e));
  add_seed(plan_case_keep(text.data), text.length);
}

static void add_corpus(void) {
  char path[512];
  const char *folder = CLEAVE_SOURCE_DIR "/tests/fuzz/corpus/plans";
  DIR *entries = opendir(folder);
  ck_assert_ptr_nonnull(entries);
  for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
    cleave_file_t *file = NULL;
    if (entry->d_name[0] == '.') {
      continue;
    }
    (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    unit_ok(cleave_file_open(path, &file, e));
    (void)plan_case_keep(file);
    add_seed((const char *)cleave_file_data(file), cleave_file_size(file));
  }
  (void)closedir(entries);
}

// ---- outcomes ----

static void check_error(cleave_status_t status, const cleave_error_t *error) {
  ck_assert_msg(
      status == CLEAVE_ERROR_FORMAT || status == CLEAVE_ERROR_MISMATCH || status == CLEAVE_ERROR_LIMIT,
      "status %d: %s", (int)status, error->message);
  ck_assert_msg(error->message[0] != '\0' && strchr(error->message, '\n') == NULL, "'%s'", error->message);
}

/* Comparing must work for whatever could be read. */
static void check_difference(const cleave_plan_document_t *before, const cleave_plan_document_t *after) {
  cleave_plan_diff_t *diff = NULL;
  cleave_text_t text = {0};
  unit_ok(cleave_plan_diff_create(before, after, &diff, e));
  unit_ok(cleave_plan_diff_print_text(diff, &text, e));
  unit_ok(cleave_plan_diff_print_json(diff, &text, e));
  cleave_text_deinit(&text);
  cleave_plan_diff_destroy(diff);
}

/* Was it a plan? */
static bool try_plan(const char *text, size_t length, const cleave_plan_document_t *original,
                     const cleave_graph_t *graph, size_t *out_read) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_plan_document_t *document = NULL;
  cleave_plan_t *plan = NULL;
  cleave_status_t status = cleave_plan_document_read("p.json", text, length, &document, &error);
  if (status != CLEAVE_OK) {
    check_error(status, &error);
    ck_assert_ptr_null(document);
    return false;
  }
  *out_read += 1;
  check_difference(original, document);
  check_difference(document, original);
  cleave_text_t first = {0};
  cleave_text_t second = {0};
  unit_ok(cleave_plan_document_print(document, &first, e));
  status = cleave_plan_rebuild(document, graph, &plan, &error);
  if (status != CLEAVE_OK) {
    check_error(status, &error);
  } else {
    unit_ok(cleave_plan_check(plan, e));
    unit_ok(cleave_plan_print_text(plan, &second, e));
  }
  cleave_text_deinit(&first);
  cleave_text_deinit(&second);
  cleave_plan_document_destroy(document);
  cleave_plan_destroy(plan);
  return status == CLEAVE_OK;
}

UNIT_TEST(outlives_plans_that_were_tampered_with) {
  static char text[1 << 16];
  const cleave_graph_t *graph = plan_case_graph(graph_text);
  cleave_plan_document_t *original = NULL;
  size_t read = 0;
  size_t plans = 0;
  uint64_t start = cleave_clock_now();
  add_plan(graph, "Conv,Relu,MaxPool,Add");
  add_plan(graph, "Relu,Exp");
  add_plan(graph, "Conv,Relu,MaxPool,Softmax,Add,Exp");
  add_corpus();
  ck_assert_uint_gt(seed_count, 3);
  unit_ok(cleave_plan_document_read("p.json", seeds[0].text, seeds[0].length, &original, e));
  for (int round = 0; round < ROUNDS && cleave_clock_ms(start, cleave_clock_now()) < budget_ms; round++) {
    const seed_t *seed = &seeds[damage_random(seed_count)];
    size_t length = seed->length < sizeof text / 2 ? seed->length : sizeof text / 2;
    memcpy(text, seed->text, length);
    for (size_t k = damage_random(4); k > 0; k--) {
      length = damage_json(text, length, sizeof text);
    }
    plans += try_plan(text, length, original, graph, &read) ? 1 : 0;
  }
  ck_assert_uint_gt(plans, 0);
  ck_assert_uint_gt(read, plans);
  cleave_plan_document_destroy(original);
}

UNIT_MAIN("fuzz plans")

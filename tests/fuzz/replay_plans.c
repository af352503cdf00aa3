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
#include "partition/plan_diff.h"
#include "partition/plan_read.h"
#include "plan_case.h"
#include "unit.h"

enum { ROUNDS = 20000, MOST_SEEDS = 32 };
static const double budget_ms = 6000.0;

static uint64_t random_state = 88172645463325252U;

static size_t random_below(size_t bound) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return bound == 0 ? 0 : (size_t)(random_state % bound);
}

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

// ---- changes ----

static const char *const WORDS[] = {
    "0",     "-1",    "1",    "4294967295", "4294967296", "9223372036854775807",
    "1e300", "null",  "true", "\"\"",       "[]",         "{}",
    "[[[[",  "\"x\"", "0.5",  "\"ops\"",    "\"cpu\"",    "99999999999999999999"};

static size_t change_byte(char *text, size_t length) {
  if (length > 0) {
    text[random_below(length)] = (char)random_below(256);
  }
  return length;
}

static size_t remove_part(char *text, size_t length) {
  size_t at = random_below(length);
  size_t count = random_below(40);
  count = count > length - at ? length - at : count;
  memmove(text + at, text + at + count, length - at - count);
  return length - count;
}

static size_t insert_word(char *text, size_t length, size_t room, size_t at, size_t removed) {
  const char *word = WORDS[random_below(sizeof WORDS / sizeof WORDS[0])];
  size_t count = strlen(word);
  if (length + count > room) {
    return length;
  }
  memmove(text + at + count, text + at + removed, length - at - removed);
  memcpy(text + at, word, count);
  return length - removed + count;
}

/* A number, text or word after a colon becomes another one. */
static size_t change_value(char *text, size_t length, size_t room) {
  size_t at = random_below(length);
  while (at < length && text[at] != ':') {
    at++;
  }
  at++;
  size_t end = at;
  while (end < length && strchr(",]}\n", text[end]) == NULL) {
    end++;
  }
  return at >= length ? length : insert_word(text, length, room, at, end - at);
}

/* A line is there twice. */
static size_t repeat_line(char *text, size_t length, size_t room) {
  size_t at = random_below(length);
  while (at > 0 && text[at - 1] != '\n') {
    at--;
  }
  size_t end = at;
  while (end < length && text[end] != '\n') {
    end++;
  }
  size_t count = end < length ? end + 1 - at : 0;
  if (count == 0 || length + count > room) {
    return length;
  }
  memmove(text + at + count, text + at, length - at);
  return length + count;
}

static size_t change(char *text, size_t length, size_t room) {
  switch (random_below(6)) {
    case 0: return change_byte(text, length);
    case 1: return remove_part(text, length);
    case 2: return insert_word(text, length, room, random_below(length + 1), 0);
    case 3: return repeat_line(text, length, room);
    default: return change_value(text, length, room);
  }
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
    const seed_t *seed = &seeds[random_below(seed_count)];
    size_t length = seed->length < sizeof text / 2 ? seed->length : sizeof text / 2;
    memcpy(text, seed->text, length);
    for (size_t k = random_below(4); k > 0; k--) {
      length = change(text, length, sizeof text);
    }
    plans += try_plan(text, length, original, graph, &read) ? 1 : 0;
  }
  ck_assert_uint_gt(plans, 0);
  ck_assert_uint_gt(read, plans);
  cleave_plan_document_destroy(original);
}

UNIT_MAIN("fuzz plans")

// SPDX-License-Identifier: Apache-2.0
/*
 * Broken and senseless regions: those of the corpus, with bytes changed, removed and inserted, numbers
 * replaced, and whole lines moved about. The outcome must be a region that prints to a text which reads as
 * itself, and a model or a reason why it is none; or one line that says what is wrong. Hashes are set right
 * now and then, so that damage gets past them.
 */
#include <dirent.h>

#include "backend/region_json.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "damage_case.h"
#include "runtime/model.h"
#include "unit.h"

enum { ROUNDS = 20000, MOST_SEEDS = 16 };
static const double budget_ms = 6000.0;

static cleave_file_t *seeds[MOST_SEEDS];
static size_t seed_count;

static void add_corpus(void) {
  char path[512];
  const char *folder = CLEAVE_SOURCE_DIR "/tests/fuzz/corpus/regions";
  DIR *entries = opendir(folder);
  ck_assert_ptr_nonnull(entries);
  for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
    if (entry->d_name[0] != '.' && seed_count < MOST_SEEDS) {
      (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
      unit_ok(cleave_file_open(path, &seeds[seed_count++], e));
    }
  }
  (void)closedir(entries);
}

static void check_error(cleave_status_t status, const cleave_error_t *error) {
  ck_assert_msg(status == CLEAVE_ERROR_FORMAT || status == CLEAVE_ERROR_LIMIT ||
                    status == CLEAVE_ERROR_SHAPE || status == CLEAVE_ERROR_UNSUPPORTED ||
                    status == CLEAVE_ERROR_MISMATCH || status == CLEAVE_ERROR_OUT_OF_MEMORY ||
                    status == CLEAVE_ERROR_INVALID_ARGUMENT,
                "status %d: %s", (int)status, error->message);
  ck_assert_msg(error->message[0] != '\0' && strchr(error->message, '\n') == NULL, "'%s'", error->message);
}

/* A region that could be read: the same after another turn, and a model or none. */
static void check_region(const cleave_region_file_t *region, size_t *models) {
  cleave_text_t first = {0};
  cleave_text_t second = {0};
  cleave_region_file_t *again = NULL;
  unit_ok(cleave_region_json_print(cleave_region_file_view(region), NULL, &first, e));
  unit_ok(cleave_region_json_read("r.json", first.data, first.length, NULL, &again, e));
  unit_ok(cleave_region_json_print(cleave_region_file_view(again), NULL, &second, e));
  ck_assert_str_eq(first.data, second.data);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_model_t *model = NULL;
  cleave_plan_t *plan = NULL;
  cleave_status_t status = cleave_model_load_memory(NULL, first.data, first.length, "r.json", &model, &error);
  if (status == CLEAVE_OK) {
    *models += 1;
    status = cleave_model_plan_region(model, "cpu", NULL, &plan, &error);
  }
  if (status != CLEAVE_OK) {
    check_error(status, &error);
  } else {
    unit_ok(cleave_plan_check(plan, e));
  }
  cleave_plan_destroy(plan);
  cleave_model_release(model);
  cleave_region_file_destroy(again);
  cleave_text_deinit(&first);
  cleave_text_deinit(&second);
}

/* Where the hash is all that is wrong, the text gets the right one: it is in the message. */
static bool mend_hash(char *text, const cleave_error_t *error) {
  const char *right = strstr(error->message, "its content is ");
  char *hash = strstr(text, "\"hash\": \"");
  if (right == NULL || hash == NULL) {
    return false;
  }
  memcpy(hash + strlen("\"hash\": \""), right + strlen("its content is "), 16);
  return true;
}

UNIT_TEST(outlives_regions_that_were_tampered_with) {
  static char text[1 << 16];
  size_t read = 0;
  size_t models = 0;
  uint64_t start = cleave_clock_now();
  add_corpus();
  ck_assert_uint_gt(seed_count, 1);
  for (int round = 0; round < ROUNDS && cleave_clock_ms(start, cleave_clock_now()) < budget_ms; round++) {
    const cleave_file_t *seed = seeds[damage_random(seed_count)];
    size_t length = cleave_file_size(seed);
    ck_assert_uint_lt(length, sizeof text / 2);
    memcpy(text, cleave_file_data(seed), length);
    for (size_t k = damage_random(3); k > 0; k--) {
      length = damage_json(text, length, sizeof text - 1);
    }
    text[length] = '\0';
    cleave_error_t error = CLEAVE_ERROR_INIT;
    cleave_region_file_t *region = NULL;
    cleave_status_t status = cleave_region_json_read("r.json", text, length, NULL, &region, &error);
    if (status != CLEAVE_OK && mend_hash(text, &error)) {
      cleave_error_clear(&error);
      status = cleave_region_json_read("r.json", text, length, NULL, &region, &error);
    }
    if (status != CLEAVE_OK) {
      check_error(status, &error);
      ck_assert_ptr_null(region);
      continue;
    }
    read++;
    check_region(region, &models);
    cleave_region_file_destroy(region);
  }
  ck_assert_uint_gt(models, 10);
  ck_assert_uint_gt(read, models);
  for (size_t k = 0; k < seed_count; k++) {
    cleave_file_release(seeds[k]);
  }
}

UNIT_MAIN("fuzz regions")

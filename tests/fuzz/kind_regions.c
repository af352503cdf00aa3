// SPDX-License-Identifier: Apache-2.0
// Regions as JSON. What is read prints to a text that reads as itself; what is a model as well is planned and
// run. Where nothing but the hash is wrong, the text gets the right one, so that damage gets past it.
#include <stdlib.h>
#include <string.h>

#include "backend/region/region_file.h"
#include "damage.h"
#include "fuzz.h"
#include "runtime/model/model.h"
#include "runtime/model/region_graph.h"

static const unsigned STATUSES = FUZZ_STATUS(FORMAT) | FUZZ_STATUS(LIMIT) | FUZZ_STATUS(SHAPE) |
                                 FUZZ_STATUS(UNSUPPORTED) | FUZZ_STATUS(MISMATCH) |
                                 FUZZ_STATUS(OUT_OF_MEMORY) | FUZZ_STATUS(INVALID_ARGUMENT);

/* A region of a model that a script built; false if the script is none, or has none. */
static bool draw_built(cleave_text_t *out) {
  static const char RULES[] =
      "return ruleset { name = 'r', backend = 'cpu', region 'all' { supported = function() return true end } "
      "}";
  const cleave_rule_source_t source = {.path = "r.lua", .text = RULES, .length = sizeof RULES - 1};
  const cleave_region_json_options_t options = {.backend = "cpu",
                                                .constants = CLEAVE_REGION_CONSTANTS_INLINE};
  cleave_text_t script = {0};
  cleave_graph_t *graph = NULL;
  cleave_model_t *model = NULL;
  cleave_plan_t *plan = NULL;
  fuzz_draw_script(&script);
  cleave_status_t status = fuzz_build(cleave_text_get(&script), script.length, &graph, NULL);
  status = status == CLEAVE_OK ? cleave_model_create_take(graph, &model, NULL) : status;
  status = status == CLEAVE_OK
               ? cleave_model_partition(
                     model,
                     &(cleave_partition_request_t){
                         .size = sizeof(cleave_partition_request_t), .sources = &source, .source_count = 1},
                     &plan, NULL)
               : status;
  uint32_t count = status == CLEAVE_OK ? cleave_plan_region_count(plan) : 0;
  bool is_drawn = count > 0 && cleave_plan_print_region(plan, (uint32_t)damage_random(count), &options, out,
                                                        NULL) == CLEAVE_OK;
  cleave_plan_destroy(plan);
  cleave_model_release(model);
  cleave_text_deinit(&script);
  return is_drawn;
}

static void draw(cleave_text_t *out) {
  if (damage_random(2) == 0 || !draw_built(out)) {
    fuzz_text_t file = fuzz_draw_corpus("regions");
    out->length = 0;
    cleave_text_append(out, file.data, file.size);
  }
}

static size_t damage(char *data, size_t size, size_t room) {
  return damage_json(data, size, room);
}

/* The right hash is in the message. */
static bool mend_hash(char *text, const cleave_error_t *error) {
  static const char KEY[] = "\"hash\": \"";
  static const char SAYS[] = "its content is ";
  enum { DIGITS = 16 };
  const char *right = strstr(error->message, SAYS);
  char *hash = strstr(text, KEY);
  if (right == NULL || hash == NULL || strlen(hash) < sizeof KEY - 1 + DIGITS) {
    return false;
  }
  memcpy(hash + sizeof KEY - 1, right + sizeof SAYS - 1, DIGITS);
  return true;
}

static fuzz_outcome_t use_region(const cleave_region_file_t *region) {
  cleave_text_t first = {0};
  cleave_text_t second = {0};
  cleave_region_file_t *again = NULL;
  fuzz_ok(cleave_region_json_print(&region->view, NULL, &first, e));
  fuzz_ok(cleave_region_json_read("r.json", first.data, first.length, NULL, &again, e));
  fuzz_ok(cleave_region_json_print(&again->view, NULL, &second, e));
  fuzz_expect(first.length == second.length && memcmp(first.data, second.data, first.length) == 0,
              "%s\nand then\n%s", first.data, second.data);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_model_t *model = NULL;
  cleave_plan_t *plan = NULL;
  cleave_status_t status = cleave_model_load_memory(NULL, first.data, first.length, "r.json", &model, &error);
  fuzz_check(status, &error, STATUSES);
  bool is_model = status == CLEAVE_OK;
  if (is_model) {
    status = cleave_model_plan_region(model, "cpu", NULL, &plan, &error);
    fuzz_check(status, &error, STATUSES);
  }
  if (status == CLEAVE_OK) {
    fuzz_ok(cleave_plan_check(plan, e));
    (void)fuzz_run_model(model, plan, NULL);
  }
  cleave_plan_destroy(plan);
  cleave_model_release(model);
  cleave_region_file_destroy(again);
  cleave_text_deinit(&first);
  cleave_text_deinit(&second);
  return is_model ? FUZZ_USED : FUZZ_READ;
}

static fuzz_outcome_t run(const void *data, size_t size) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_region_file_t *region = NULL;
  char *text = malloc(size + 1);
  fuzz_expect(text != NULL, "%zu bytes", size);
  memcpy(text, size > 0 ? data : "", size);
  text[size] = '\0';
  cleave_status_t status = cleave_region_json_read("r.json", text, size, NULL, &region, &error);
  if (status != CLEAVE_OK && mend_hash(text, &error)) {
    cleave_error_clear(&error);
    status = cleave_region_json_read("r.json", text, size, NULL, &region, &error);
  }
  free(text);
  fuzz_check(status, &error, STATUSES);
  if (status != CLEAVE_OK) {
    fuzz_expect(region == NULL, "%s", error.message);
    return FUZZ_REFUSED;
  }
  fuzz_outcome_t outcome = use_region(region);
  cleave_region_file_destroy(region);
  return outcome;
}

const fuzz_kind_t fuzz_regions = {draw, damage, run};

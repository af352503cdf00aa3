// SPDX-License-Identifier: Apache-2.0
/*
 * From saving a rule file to its new timing: `bench_watch [MODEL RULES [ROUNDS [THREADS]]]`, by default
 * ResNet-50 with rules/conv_bn_relu.lua. A copy of the rule file is edited in several ways, each saved as
 * editors do, half a second after the report of the one before, as the fastest of people would; the time runs
 * from when the file is saved (a busy disk may take longer over that than all the rest) until the report is
 * there. Prints every edit, then median and maximum.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cleave/cleave.h"
#include "system/clock.h"
#include "system/file.h"

enum { MAX_TIMES = 1000, MAX_INPUTS = 16 };

typedef struct edit {
  const char *name;
  const char *from; /* NULL: the file as it is */
  const char *to;
} edit_t;

/* What is not in the file is left out. */
static const edit_t edits[] = {
    {"a comment", "return ruleset {", "-- edited\nreturn ruleset {"},
    {"no activation", " >> maybe(act)", ""},
    {"back", NULL, NULL},
    {"no residual add", "option.boolean(true", "option.boolean(false"},
    {"back", NULL, NULL},
    {"pooling on cpu", "\"MaxPool\", ", ""},
    {"back", NULL, NULL},
    {"no batch norm", " >> maybe(bn)", ""},
    {"no fusing", " >> maybe(bn) >> maybe { sum, when = residual } >> maybe(act)", ""},
    {"all fused again", NULL, NULL}, /* what was scaled and packed for it is no longer remembered */
    {"a mistake", "return ruleset {", "return rulset {"},
    {"back", NULL, NULL},
};

static char path[128];

static void fail(const cleave_error_t *error) {
  (void)fprintf(stderr, "bench_watch: %s\n", error->message);
  (void)unlink(path);
  exit(1);
}

static int compare_times(const void *a, const void *b) {
  double left = *(const double *)a;
  double right = *(const double *)b;
  return (left > right) - (left < right);
}

/* The text with the edit; false where it does not apply. */
static bool apply(const edit_t *edit, const char *text, size_t length, cleave_text_t *out) {
  const char *at = edit->from == NULL ? text : strstr(text, edit->from);
  if (at == NULL) {
    return false;
  }
  size_t skipped = edit->from == NULL ? 0 : strlen(edit->from);
  cleave_text_append(out, text, (size_t)(at - text));
  cleave_text_add(out, edit->to == NULL ? "" : edit->to);
  cleave_text_append(out, at + skipped, length - (size_t)(at - text) - skipped);
  return !out->failed;
}

/* Saves; waits for the report; milliseconds between the two. */
static double save(cleave_rules_watch_t *watch, const cleave_text_t *text,
                   const cleave_reload_t **out_reload) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  (void)nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
  *out_reload = NULL;
  if (cleave_file_write(path, cleave_text_get(text), text->length, &error) != CLEAVE_OK) {
    fail(&error);
  }
  uint64_t start = cleave_clock_now();
  while (*out_reload == NULL) {
    if (cleave_rules_watch_poll(watch, -1, out_reload, &error) != CLEAVE_OK) {
      fail(&error);
    }
  }
  return cleave_clock_ms(start, cleave_clock_now());
}

/* Inputs full of ones, for models whose sizes are known. */
static size_t make_inputs(cleave_model_t *model, cleave_tensor_view_t *views,
                          const cleave_tensor_view_t **pointers) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  size_t count = cleave_model_input_count(model);
  count = count > MAX_INPUTS ? MAX_INPUTS : count;
  for (size_t k = 0; k < count; k++) {
    cleave_port_t port = {.size = sizeof port};
    if (cleave_model_input(model, (uint32_t)k, &port, &error) != CLEAVE_OK) {
      fail(&error);
    }
    int64_t elements = cleave_view_element_count(&port.tensor);
    float *data = elements < 0 ? NULL : cleave_allocate((size_t)elements, sizeof(double));
    if (data == NULL || port.tensor.dtype != CLEAVE_DTYPE_F32) {
      (void)cleave_error_set(&error, CLEAVE_ERROR_UNSUPPORTED, "input '%s' is not float32 of known size",
                             port.name);
      fail(&error);
    }
    for (int64_t n = 0; n < elements; n++) {
      data[n] = 1.0F;
    }
    views[k] = port.tensor;
    views[k].data = data;
    pointers[k] = &views[k];
  }
  return count;
}

static void print_edit(const char *name, double ms, const cleave_reload_t *reload) {
  if (reload->status != CLEAVE_OK) {
    (void)printf("%-16s %7.1f ms  %s\n", name, ms, reload->message);
    return;
  }
  (void)printf(
      "%-16s %7.1f ms  rules %.1f, partition %.1f, compile %.1f, %u runs each; %.2f -> %.2f ms, "
      "difference %.1e\n",
      name, ms, reload->rules_ms, reload->partition_ms, reload->compile_ms, (unsigned)reload->runs,
      reload->before_ms, reload->after_ms, reload->largest_difference);
}

static void measure(cleave_rules_watch_t *watch, const char *text, size_t length, int rounds) {
  static double times[MAX_TIMES];
  size_t count = 0;
  for (int round = 0; round < rounds; round++) {
    for (size_t k = 0; k < sizeof edits / sizeof edits[0] && count < MAX_TIMES; k++) {
      const cleave_reload_t *reload = NULL;
      cleave_text_t edited = {0};
      if (apply(&edits[k], text, length, &edited)) {
        double ms = save(watch, &edited, &reload);
        print_edit(edits[k].name, ms, reload);
        if (reload->status == CLEAVE_OK) {
          times[count++] = ms;
        }
      }
      cleave_text_deinit(&edited);
    }
  }
  qsort(times, count, sizeof times[0], compare_times);
  (void)printf("%zu edits: median %.1f ms, max %.1f ms\n", count, count == 0 ? 0.0 : times[count / 2],
               count == 0 ? 0.0 : times[count - 1]);
}

int main(int argc, char **argv) {
  const char *model_path = argc > 2 ? argv[1] : CLEAVE_SOURCE_DIR "/examples/models/resnet50.lua";
  const char *rules_path = argc > 2 ? argv[2] : CLEAVE_SOURCE_DIR "/rules/conv_bn_relu.lua";
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_model_t *model = NULL;
  cleave_file_t *rules = NULL;
  cleave_rules_watch_t *watch = NULL;
  cleave_tensor_view_t views[MAX_INPUTS];
  const cleave_tensor_view_t *pointers[MAX_INPUTS];
  (void)snprintf(path, sizeof path, "/tmp/cleave_bench_watch_%ld.lua", (long)getpid());
  if (cleave_model_load(NULL, model_path, NULL, &model, &error) != CLEAVE_OK ||
      cleave_file_open(rules_path, &rules, &error) != CLEAVE_OK) {
    fail(&error);
  }
  /* With an end, for strstr. */
  char *text = cleave_copy_text((const char *)cleave_file_data(rules), cleave_file_size(rules));
  if (text == NULL || cleave_file_write(path, text, strlen(text), &error) != CLEAVE_OK) {
    fail(&error);
  }
  size_t count = make_inputs(model, views, pointers);
  cleave_rule_source_t source = {.path = path};
  cleave_session_options_t session = {.size = sizeof session, .threads = argc > 4 ? atoi(argv[4]) : 0};
  cleave_partition_request_t request = {.size = sizeof request, .sources = &source, .source_count = 1};
  cleave_rules_watch_options_t options = {
      .size = sizeof options, .session = &session, .inputs = pointers, .input_count = count};
  if (cleave_rules_watch_create(model, &request, &options, &watch, &error) != CLEAVE_OK) {
    fail(&error);
  }
  measure(watch, text, strlen(text), argc > 3 ? atoi(argv[3]) : 1);
  cleave_rules_watch_destroy(watch);
  for (size_t k = 0; k < count; k++) {
    cleave_free((void *)(uintptr_t)views[k].data);
  }
  cleave_free(text);
  cleave_file_release(rules);
  cleave_model_release(model);
  (void)unlink(path);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// What kinds of input have in common: outcomes, the corpus, the sample, runs of models.
#include "fuzz.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "damage.h"
#include "ops/ops.h"
#include "runtime/model/model.h"
#include "script/model_script.h"
#include "system/clock.h"
#include "system/file.h"

enum { MAX_FILES = 64, MAX_INPUTS = 16, MAX_INPUT_SIZE = 4096, MAX_ELEMENTS = 1 << 15, MAX_FLOPS = 1000000 };

_Noreturn void fuzz_fail(const char *file, int line, const char *condition, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  (void)fprintf(stderr, "%s:%d: not so: %s: ", file, line, condition);
  (void)vfprintf(stderr, format, arguments);
  (void)fputc('\n', stderr);
  va_end(arguments);
  abort();
}

void fuzz_check(cleave_status_t status, const cleave_error_t *error, unsigned statuses) {
  if (status == CLEAVE_OK) {
    return;
  }
  fuzz_expect((statuses >> (unsigned)status & 1u) != 0, "status %d: %s", (int)status, error->message);
  fuzz_expect(error->status == status, "status %d, and %d in the error", (int)status, (int)error->status);
  fuzz_expect(error->message[0] != '\0' && strchr(error->message, '\n') == NULL, "'%s'", error->message);
}

void *fuzz_copy(const void *data, size_t size) {
  void *copy = malloc(size > 0 ? size : 1);
  fuzz_expect(copy != NULL, "%zu bytes", size);
  if (size > 0) {
    memcpy(copy, data, size);
  }
  return copy;
}

size_t fuzz_replay(const fuzz_kind_t *kind, size_t rounds, double milliseconds, size_t most,
                   size_t counts[FUZZ_OUTCOMES]) {
  static char data[1 << 17];
  uint64_t start = cleave_clock_now();
  size_t round = 0;
  memset(counts, 0, FUZZ_OUTCOMES * sizeof counts[0]);
  for (; round < rounds && cleave_clock_ms(start, cleave_clock_now()) < milliseconds; round++) {
    cleave_text_t input = {0};
    kind->draw(&input);
    size_t size = input.length < sizeof data / 2 ? input.length : sizeof data / 2;
    memcpy(data, cleave_text_get(&input), size);
    cleave_text_deinit(&input);
    for (size_t k = damage_random(most + 1); k > 0 && size > 0; k--) {
      size = kind->damage(data, size, sizeof data - 1);
    }
    counts[kind->run(data, size)]++;
  }
  return round;
}

// ---- the corpus ----

typedef struct corpus {
  const char *folder;
  cleave_file_t *files[MAX_FILES];
  size_t count;
} corpus_t;

static int by_path(const void *a, const void *b) {
  return strcmp(cleave_file_path(*(cleave_file_t *const *)a), cleave_file_path(*(cleave_file_t *const *)b));
}

/* In order of their names, so that a draw is the same one on every machine. */
static void open_corpus(corpus_t *corpus, const char *folder) {
  char path[512];
  (void)snprintf(path, sizeof path, "%s/tests/fuzz/corpus/%s", CLEAVE_SOURCE_DIR, folder);
  DIR *listing = opendir(path);
  fuzz_expect(listing != NULL, "%s", path);
  for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
    if (entry->d_name[0] != '.') {
      char name[1024];
      fuzz_expect(corpus->count < MAX_FILES, "%s", path);
      (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
      fuzz_ok(cleave_file_open(name, &corpus->files[corpus->count++], e));
    }
  }
  (void)closedir(listing);
  qsort(corpus->files, corpus->count, sizeof corpus->files[0], by_path);
  corpus->folder = folder;
}

fuzz_text_t fuzz_draw_corpus(const char *folder) {
  static corpus_t corpora[4];
  corpus_t *corpus = corpora;
  while (corpus->folder != NULL && strcmp(corpus->folder, folder) != 0) {
    corpus++;
  }
  if (corpus->folder == NULL) {
    open_corpus(corpus, folder);
  }
  const cleave_file_t *file = corpus->files[damage_random(corpus->count)];
  return (fuzz_text_t){(const char *)cleave_file_data(file), cleave_file_size(file)};
}

// ---- graphs ----

cleave_status_t fuzz_build(const char *text, size_t length, cleave_graph_t **out_graph,
                           cleave_error_t *error) {
  char path[64];
  (void)snprintf(path, sizeof path, "/tmp/cleave_fuzz_%ld.lua", (long)getpid());
  fuzz_ok(cleave_file_write(path, text, length, e));
  cleave_status_t status = cleave_model_script_load(NULL, path, NULL, 0, out_graph, error);
  (void)unlink(path);
  return status;
}

cleave_model_t *fuzz_sample(void) {
  static const char TEXT[] =
      "local x = g.input('x', 'float32', { 1, 4, 8, 8 })\n"
      "local y = g.batch_norm(g.Conv(x, g.weight { 4, 4, 3, 3 }, { pads = { 1, 1, 1, 1 } }))\n"
      "y = g.Relu(y + x)\n"
      "local z = g.MatMul(y, g.weight { 8, 8, fan_in = 8 })\n"
      "return z * 0.5 * (g.Erf(z / 1.41421356) + 1), g.Softmax(y)\n";
  static cleave_model_t *sample;
  if (sample == NULL) {
    cleave_graph_t *graph = NULL;
    fuzz_ok(fuzz_build(TEXT, sizeof TEXT - 1, &graph, e));
    fuzz_ok(cleave_model_create_take(graph, &sample, e));
  }
  return sample;
}

// ---- runs ----

typedef struct input {
  int64_t dims[CLEAVE_MAX_RANK];
  cleave_tensor_view_t view;
} input_t;

/* Data for an input: small numbers of both signs. False for an input that is large or has no known rank. */
static bool make_input(const cleave_port_t *port, input_t *input) {
  static const char *const WORDS[2] = {"a", "B"};
  size_t count = 1;
  if (port->tensor.rank < 0 || port->tensor.rank > CLEAVE_MAX_RANK) {
    return false;
  }
  for (int32_t d = 0; d < port->tensor.rank; d++) {
    input->dims[d] = port->tensor.dims[d] < 0 ? 2 : port->tensor.dims[d];
    if (!cleave_size_multiply(count, (size_t)input->dims[d], &count) || count > MAX_INPUT_SIZE) {
      return false;
    }
  }
  size_t size = cleave_dtype_size(port->tensor.dtype);
  size = port->tensor.dtype == CLEAVE_DTYPE_STRING ? sizeof WORDS[0] : size;
  unsigned char *data = calloc(count + 1, size);
  fuzz_expect(data != NULL, "%zu elements", count);
  for (size_t k = 0; k < count; k++) {
    if (port->tensor.dtype == CLEAVE_DTYPE_F32) {
      ((float *)(void *)data)[k] = (float)(k % 7) * 0.5f - 1.0f;
    } else if (port->tensor.dtype == CLEAVE_DTYPE_STRING) {
      ((const char **)(void *)data)[k] = WORDS[k % 2];
    } else {
      data[k * size] = (unsigned char)(k % (port->tensor.dtype == CLEAVE_DTYPE_BOOL ? 2 : 3));
    }
  }
  input->view = (cleave_tensor_view_t){.size = sizeof input->view,
                                       .dtype = port->tensor.dtype,
                                       .rank = port->tensor.rank,
                                       .dims = input->dims,
                                       .data = data};
  return true;
}

/* All sizes are known, and they and the work are small. */
static bool is_small(const cleave_graph_t *graph) {
  int64_t elements = 0;
  double flops = 0.0;
  for (size_t v = 0; v < graph->values.count; v++) {
    const cleave_value_record_t *record = &graph->values.items[v];
    int64_t count = 1;
    if (record->is_removed) {
      continue;
    }
    for (int32_t d = 0; d < record->rank; d++) {
      if (record->dims[d] < 0 || __builtin_mul_overflow(count, record->dims[d], &count)) {
        return false;
      }
    }
    if (record->rank < 0 || count > MAX_ELEMENTS || (elements += count) > MAX_ELEMENTS) {
      return false;
    }
  }
  for (size_t n = 0; n < graph->nodes.count; n++) {
    flops += graph->nodes.items[n].op == NULL ? 0.0 : cleave_op_flops(graph, (cleave_node_t){(uint32_t)n});
  }
  return flops < MAX_FLOPS;
}

/* Reads all of an output, for sanitizers to see. */
static void look_at(const cleave_session_t *session, uint32_t index, cleave_text_t *out) {
  cleave_tensor_view_t view;
  size_t count = 1;
  fuzz_ok(cleave_session_output(session, index, &view, e));
  for (int32_t d = 0; d < view.rank; d++) {
    fuzz_expect(view.dims[d] >= 0, "output %u", (unsigned)index);
    count *= (size_t)view.dims[d];
  }
  uint64_t sum = 0;
  if (view.dtype == CLEAVE_DTYPE_STRING) {
    for (size_t k = 0; k < count; k++) {
      sum += strlen(((const char *const *)view.data)[k]);
    }
  } else {
    for (size_t k = 0; k < count * cleave_dtype_size(view.dtype); k++) {
      sum += ((const unsigned char *)view.data)[k];
    }
    if (out != NULL) {
      cleave_text_append(out, view.data, count * cleave_dtype_size(view.dtype));
    }
  }
  static volatile uint64_t seen;
  seen = sum;
  (void)seen;
}

static bool run_session(cleave_model_t *model, const cleave_plan_t *plan,
                        const cleave_tensor_view_t *const *inputs, uint32_t count, cleave_text_t *out) {
  const unsigned any = ~FUZZ_STATUS(INTERNAL);
  const cleave_session_options_t options = {.size = sizeof options, .threads = 1};
  cleave_session_t *session = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status = cleave_session_create(model, plan, inputs, count, &options, &session, &error);
  for (uint32_t k = 0; k < count && status == CLEAVE_OK; k++) {
    status = cleave_session_set_input(session, k, inputs[k], &error);
  }
  for (int run = 0; run < 2 && status == CLEAVE_OK; run++) {
    status = cleave_session_run(session, &error);
  }
  fuzz_check(status, &error, any);
  for (uint32_t k = 0; k < cleave_model_output_count(model) && status == CLEAVE_OK; k++) {
    look_at(session, k, out);
  }
  cleave_session_destroy(session);
  return status == CLEAVE_OK;
}

bool fuzz_run_model(cleave_model_t *model, const cleave_plan_t *plan, cleave_text_t *out) {
  input_t inputs[MAX_INPUTS];
  const cleave_tensor_view_t *views[MAX_INPUTS];
  uint32_t count = cleave_model_input_count(model);
  uint32_t made = 0;
  bool ran = false;
  for (; count <= MAX_INPUTS && made < count; made++) {
    cleave_port_t port = {.size = sizeof port};
    fuzz_ok(cleave_model_input(model, made, &port, e));
    if (!make_input(&port, &inputs[made])) {
      break;
    }
    views[made] = &inputs[made].view;
  }
  if (made == count) {
    cleave_model_t *bound = NULL;
    cleave_error_t error = CLEAVE_ERROR_INIT;
    cleave_status_t status = cleave_model_bind(model, views, count, &bound, &error);
    fuzz_check(status, &error, ~FUZZ_STATUS(INTERNAL));
    ran = status == CLEAVE_OK && is_small(cleave_model_graph(bound)) &&
          run_session(model, plan, views, count, out);
    cleave_model_release(bound);
  }
  for (uint32_t k = 0; k < made; k++) {
    free((void *)(uintptr_t)inputs[k].view.data);
  }
  return ran;
}

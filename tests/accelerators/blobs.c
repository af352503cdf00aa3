// SPDX-License-Identifier: Apache-2.0
/*
 * Programs as bytes. Runs one node: Relu, or Add of a constant, all float32. `configure` knows
 *   compiles, loads, saves   for asking: how often
 *   options                  for asking: what the last program was compiled with, "device 1 a=b c=d"
 *   mood                     anything
 *   answers                  what answers are like: "good", "no key", "no value", "no array", "many", "long"
 * It has two devices in host memory. In the environment, CLEAVE_TEST_VERSION is its version;
 * CLEAVE_TEST_SAVE says how it saves, "never", "fails", "nothing", "null", "much", "ignores";
 * CLEAVE_TEST_CHECK and CLEAVE_TEST_LOAD are "refuses" or not there.
 */
#include <pthread.h>

#include "relu.h"

typedef struct blob {
  char magic[8];
  uint64_t elements;
  uint64_t is_add;
} blob_t;

typedef struct program {
  cleave_program_info_t info;
  blob_t blob;
  const void *constant;
} program_t;

enum { COMPILES, LOADS, SAVES, OPTIONS, MOOD, ANSWERS, MAX_KEYS };

static const char *const KEYS[MAX_KEYS] = {"compiles", "loads", "saves", "options", "mood", "answers"};
static int counts[3];
static char values[MAX_KEYS][256] = {"", "", "", "", "fair", "good"};
static cleave_key_value_t answers[MAX_KEYS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the values */

static cleave_status_t initialise(const cleave_host_t *host, void **out_state, cleave_message_t *message) {
  (void)host;
  (void)message;
  *out_state = counts;
  return CLEAVE_OK;
}

static void destroy(void *state) {
  (void)state;
}

/* ---- programs ---- */

/* The bytes that say what the program is, or why there is none. */
static cleave_status_t describe(const cleave_region_view_t *region, blob_t *blob, const void **out_constant,
                                cleave_message_t *message) {
  const cleave_node_view_t *node = &region->nodes[0];
  const cleave_value_view_t *x = cleave_view_input(region, node, 0);
  const cleave_value_view_t *w = cleave_view_input(region, node, 1);
  memset(blob, 0, sizeof *blob);
  memcpy(blob->magic, "addrelu", 8);
  blob->is_add = cleave_view_text_equal(node->op, "Add") ? 1 : 0;
  bool is_relu = cleave_view_text_equal(node->op, "Relu");
  if (region->node_count != 1 || x == NULL || x->tensor.dtype != CLEAVE_DTYPE_F32 ||
      (blob->is_add == 0 && !is_relu) || cleave_view_element_count(&x->tensor) < 0 ||
      (blob->is_add != 0 &&
       (w == NULL || w->tensor.data == NULL ||
        cleave_view_element_count(&w->tensor) != cleave_view_element_count(&x->tensor)))) {
    (void)snprintf(message->text, sizeof message->text, "only Relu, and Add of a constant");
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  blob->elements = (uint64_t)cleave_view_element_count(&x->tensor);
  *out_constant = blob->is_add != 0 ? w->tensor.data : NULL;
  return CLEAVE_OK;
}

static cleave_status_t supports(void *state, const cleave_region_view_t *region, cleave_message_t *reason) {
  blob_t blob;
  const void *constant = NULL;
  (void)state;
  return describe(region, &blob, &constant, reason);
}

static cleave_status_t make(const blob_t *blob, const void *constant, void **out_program) {
  program_t *program = calloc(1, sizeof *program);
  if (program == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  program->info.size = sizeof program->info;
  program->blob = *blob;
  program->constant = constant;
  *out_program = program;
  return CLEAVE_OK;
}

static void note_options(const cleave_compile_options_t *options) {
  (void)pthread_mutex_lock(&lock);
  size_t used =
      (size_t)snprintf(values[OPTIONS], sizeof values[OPTIONS], "device %u", (unsigned)options->device);
  for (uint32_t k = 0; k < options->option_count && used < sizeof values[OPTIONS]; k++) {
    used += (size_t)snprintf(values[OPTIONS] + used, sizeof values[OPTIONS] - used, " %s=%s",
                             options->options[k].key, options->options[k].value);
  }
  (void)pthread_mutex_unlock(&lock);
}

static cleave_status_t compile(void *state, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  blob_t blob;
  const void *constant = NULL;
  (void)state;
  cleave_status_t status = describe(region, &blob, &constant, message);
  if (status != CLEAVE_OK) {
    return status;
  }
  note_options(options);
  (void)__atomic_fetch_add(&counts[COMPILES], 1, __ATOMIC_SEQ_CST);
  return make(&blob, constant, out_program);
}

static const cleave_program_info_t *info(const void *program) {
  return &((const program_t *)program)->info;
}

static cleave_status_t run(void *context, const cleave_run_args_t *args, cleave_message_t *message) {
  const program_t *program = context;
  (void)message;
  for (uint64_t k = 0; k < program->blob.elements; k++) {
    float x = 0.0f;
    float w = 0.0f;
    memcpy(&x, (const char *)args->inputs[0].data + k * sizeof x, sizeof x);
    if (program->blob.is_add != 0) {
      memcpy(&w, (const char *)program->constant + k * sizeof w, sizeof w);
      x += w;
    } else {
      x = x > 0.0f ? x : 0.0f;
    }
    memcpy((char *)(uintptr_t)args->outputs[0].data + k * sizeof x, &x, sizeof x);
  }
  return CLEAVE_OK;
}

/* ---- blobs ---- */

static bool is_mode(const char *variable, const char *mode) {
  const char *value = getenv(variable);
  return value != NULL && cleave_view_text_equal(value, mode);
}

static cleave_status_t save(const void *context, cleave_status_t (*write)(void *, const void *, size_t),
                            void *to, cleave_message_t *message) {
  const program_t *program = context;
  static const char zeros[1 << 16];
  if (is_mode("CLEAVE_TEST_SAVE", "never") || is_mode("CLEAVE_TEST_SAVE", "fails")) {
    (void)snprintf(message->text, sizeof message->text, "not this one");
    return is_mode("CLEAVE_TEST_SAVE", "never") ? CLEAVE_ERROR_UNSUPPORTED : (cleave_status_t)99;
  }
  (void)__atomic_fetch_add(&counts[SAVES], 1, __ATOMIC_SEQ_CST);
  if (is_mode("CLEAVE_TEST_SAVE", "nothing")) {
    return CLEAVE_OK;
  }
  if (is_mode("CLEAVE_TEST_SAVE", "null")) {
    return write(to, NULL, 24);
  }
  if (is_mode("CLEAVE_TEST_SAVE", "ignores")) { /* what writing says */
    (void)write(to, &program->blob, SIZE_MAX);
    (void)write(to, NULL, 1);
  }
  cleave_status_t status = CLEAVE_OK;
  for (int k = 0; is_mode("CLEAVE_TEST_SAVE", "much") && k < 64 && status == CLEAVE_OK; k++) {
    status = write(to, zeros, sizeof zeros);
  }
  for (size_t k = 0; k < sizeof program->blob && status == CLEAVE_OK; k++) { /* byte by byte */
    status = write(to, (const char *)&program->blob + k, 1);
  }
  return status;
}

static cleave_status_t check(void *state, uint32_t device, const void *data, size_t bytes,
                             cleave_message_t *message) {
  (void)state;
  (void)device;
  if (is_mode("CLEAVE_TEST_CHECK", "refuses")) {
    (void)snprintf(message->text, sizeof message->text, "made on a Tuesday");
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  return bytes == sizeof(blob_t) && (uintptr_t)data % 64 == 0 && memcmp(data, "addrelu", 8) == 0
             ? CLEAVE_OK
             : CLEAVE_ERROR_UNSUPPORTED;
}

static cleave_status_t load(void *state, const cleave_region_view_t *region,
                            const cleave_compile_options_t *options, const void *data, size_t bytes,
                            void **out_program, cleave_message_t *message) {
  blob_t blob;
  blob_t wanted;
  const void *constant = NULL;
  (void)state;
  memcpy(&blob, data, sizeof blob);
  if (is_mode("CLEAVE_TEST_LOAD", "refuses") || describe(region, &wanted, &constant, message) != CLEAVE_OK ||
      memcmp(&blob, &wanted, sizeof blob) != 0 || bytes != sizeof blob) {
    return CLEAVE_ERROR_BACKEND;
  }
  note_options(options);
  (void)__atomic_fetch_add(&counts[LOADS], 1, __ATOMIC_SEQ_CST);
  return make(&blob, constant, out_program);
}

static const cleave_backend_blobs_t blobs = {
    .size = sizeof blobs, .save = save, .check = check, .load = load};

/* ---- configure ---- */

static int find_key(const char *name) {
  for (int k = 0; k < MAX_KEYS; k++) {
    if (cleave_view_text_equal(KEYS[k], name)) {
      return k;
    }
  }
  return -1;
}

static bool is_kind(const char *kind) {
  return cleave_view_text_equal(values[ANSWERS], kind);
}

/* Answers each setting with the value it has now. */
static cleave_status_t answer(const cleave_key_value_t *settings, uint32_t setting_count,
                              const cleave_key_value_t **out_answers, uint32_t *out_answer_count,
                              cleave_message_t *message) {
  static char text[2 << 20];
  for (uint32_t k = 0; k < setting_count; k++) {
    int key = find_key(settings[k].key);
    if (key < 0 || k >= MAX_KEYS || (settings[k].value != NULL && key < MOOD)) {
      (void)snprintf(message->text, sizeof message->text, "key '%.64s' is %s", settings[k].key,
                     key < 0 ? "unknown" : "for asking only");
      return CLEAVE_ERROR_UNSUPPORTED;
    }
    if (settings[k].value != NULL) {
      (void)snprintf(values[key], sizeof values[key], "%s", settings[k].value);
    }
    if (key <= SAVES) {
      (void)snprintf(values[key], sizeof values[key], "%d", __atomic_load_n(&counts[key], __ATOMIC_SEQ_CST));
    }
    answers[k] = (cleave_key_value_t){.key = KEYS[key], .value = values[key]};
  }
  *out_answers = answers;
  *out_answer_count = setting_count;
  if (is_kind("no key")) {
    answers[0].key = NULL;
  } else if (is_kind("no value")) {
    answers[0].value = NULL;
  } else if (is_kind("no array")) {
    *out_answers = NULL;
  } else if (is_kind("many")) {
    *out_answer_count = UINT32_MAX;
  } else if (is_kind("long")) {
    memset(text, 'x', sizeof text - 1);
    answers[0].value = text;
  }
  return CLEAVE_OK;
}

static cleave_status_t configure(void *state, const cleave_key_value_t *settings, uint32_t setting_count,
                                 const cleave_key_value_t **out_answers, uint32_t *out_answer_count,
                                 cleave_message_t *message) {
  (void)state;
  (void)pthread_mutex_lock(&lock);
  cleave_status_t status = answer(settings, setting_count, out_answers, out_answer_count, message);
  (void)pthread_mutex_unlock(&lock);
  return status;
}

/* ---- devices ---- */

static uint32_t device_count(void *state) {
  (void)state;
  return 2;
}

static cleave_status_t properties(void *state, uint32_t device, cleave_device_properties_t *out_properties,
                                  cleave_message_t *message) {
  (void)state;
  (void)message;
  (void)snprintf(out_properties->name, sizeof out_properties->name, "abacus %u", (unsigned)device);
  out_properties->shares_host_memory = true;
  return device < 2 ? CLEAVE_OK : CLEAVE_ERROR_INVALID_ARGUMENT;
}

static cleave_status_t allocate(void *state, uint32_t device, size_t bytes, void **out_memory,
                                cleave_message_t *message) {
  (void)state;
  (void)device;
  (void)message;
  *out_memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
  return *out_memory == NULL ? CLEAVE_ERROR_OUT_OF_MEMORY : CLEAVE_OK;
}

static void deallocate(void *state, uint32_t device, void *memory) {
  (void)state;
  (void)device;
  free(memory);
}

static cleave_status_t copy(void *state, uint32_t device, const cleave_tensor_view_t *to,
                            const cleave_tensor_view_t *from, void *stream, cleave_message_t *message) {
  (void)state;
  (void)device;
  (void)stream;
  (void)message;
  memcpy((void *)(uintptr_t)to->data, from->data,
         (size_t)cleave_view_element_count(from) * cleave_dtype_size(from->dtype));
  return CLEAVE_OK;
}

static const cleave_backend_devices_t devices = {.size = sizeof devices,
                                                 .count = device_count,
                                                 .properties = properties,
                                                 .alloc = allocate,
                                                 .free = deallocate,
                                                 .copy_to = copy,
                                                 .copy_from = copy};

const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message) {
  static cleave_backend_t backend = {RELU_BACKEND("blobs")};
  (void)abi_major;
  (void)abi_minor;
  (void)message;
  static const char *const OPTION_KEYS[] = {"a", "b", "level", "level.of", "m", "z"};
  backend.option_keys = OPTION_KEYS;
  backend.option_key_count = sizeof OPTION_KEYS / sizeof OPTION_KEYS[0];
  backend.version = getenv("CLEAVE_TEST_VERSION") != NULL ? getenv("CLEAVE_TEST_VERSION") : "1";
  backend.initialise = initialise;
  backend.destroy = destroy;
  backend.supports = supports;
  backend.compile = compile;
  backend.info = info;
  backend.run = run;
  backend.configure = configure;
  backend.blobs = &blobs;
  backend.devices = &devices;
  return &backend;
}

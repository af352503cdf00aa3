// SPDX-License-Identifier: Apache-2.0
/*
 * Two devices with guarded memory that compute float32 Relu, Neg, Add and Mul of equal shapes, and NonZero.
 * The environment variable CLEAVE_TEST_DEVICE says what it has when it is loaded: "streams", "events" (with
 * streams), "aside" (the host waits beside other calls), "executors", "adds", "shared" (host memory will do),
 * "half" (no copy_from), "picky" (no Mul alone). `configure` says what goes wrong.
 * Long file: each file of this folder is a library.
 */
#include "device.h"

#include <unistd.h>

const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message);

typedef struct program {
  cleave_program_info_t info;
  device_state_t *state;
  uint32_t device;
  bool is_executor;
  char name[64];
  cleave_region_view_t view;  /* a copy, nodes and values too */
  size_t offsets[MAX_BLOCKS]; /* of values in the workspace, behind which constants are */
  unsigned char *constants;
  cleave_inplace_pair_t inplace;
} program_t;

/* ---- starting ---- */

static bool has(const char *word) {
  const char *text = getenv("CLEAVE_TEST_DEVICE");
  return text != NULL && strstr(text, word) != NULL;
}

static cleave_status_t initialise(const cleave_host_t *host, void **out_state, cleave_message_t *message) {
  (void)host;
  (void)message;
  device_state_t *state = calloc(1, sizeof *state);
  if (state == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  for (int d = 0; d < DEVICES; d++) {
    state->pools[d].base = mmap(NULL, POOL_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)pthread_mutex_init(&state->pools[d].lock, NULL);
  }
  *out_state = state;
  return CLEAVE_OK;
}

static void destroy(void *opaque) {
  device_state_t *state = opaque;
  for (int d = 0; d < DEVICES; d++) {
    (void)munmap(state->pools[d].base, POOL_BYTES);
    (void)pthread_mutex_destroy(&state->pools[d].lock);
  }
  free(state);
}

/* ---- devices ---- */

static uint32_t count(void *opaque) {
  device_state_t *state = opaque;
  return state->broken_start == 2 ? 0 : DEVICES;
}

static cleave_status_t properties(void *opaque, uint32_t device, cleave_device_properties_t *out,
                                  cleave_message_t *message) {
  device_state_t *state = opaque;
  if (state->broken_start == 1) {
    (void)snprintf(message->text, sizeof message->text, "the device does not answer");
    return CLEAVE_ERROR_BACKEND;
  }
  memset(out->name, 'x', sizeof out->name); /* not even ended */
  out->memory_bytes = POOL_BYTES;
  out->shares_host_memory = has("shared") && device == 0;
  out->waits_aside = has("aside");
  return CLEAVE_OK;
}

static cleave_status_t allocate(void *opaque, uint32_t device, size_t bytes, void **out_memory,
                                cleave_message_t *message) {
  device_state_t *state = opaque;
  pool_t *pool = &state->pools[device];
  size_t wanted = (bytes + 127) / 64 * 64;
  *out_memory = NULL;
  if ((state->fail_alloc > 0 && --state->fail_alloc == 0) || pool->used + wanted > POOL_BYTES) {
    (void)snprintf(message->text, sizeof message->text, "the device is full");
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  if (state->empty == 0) {
    *out_memory = pool->base + pool->used + (state->misaligned != 0 ? 8 : 0);
    pool->used += wanted;
    state->live++;
  }
  return CLEAVE_OK;
}

static void release(void *opaque, uint32_t device, void *memory) {
  (void)device;
  (void)memory;
  ((device_state_t *)opaque)->live--;
}

static void release_all(void *opaque, uint32_t device) {
  ((device_state_t *)opaque)->pools[device].used = 0;
  ((device_state_t *)opaque)->releases++;
}

typedef struct copy {
  device_state_t *state;
  uint32_t device;
  void *to;
  const void *from;
  size_t bytes;
} copy_t;

static cleave_status_t copy_work(void *context, cleave_message_t *message) {
  copy_t copy;
  memcpy(&copy, context, sizeof copy);
  (void)message;
  (void)usleep((useconds_t)copy.state->latency_us);
  pool_open(&copy.state->pools[copy.device]);
  memcpy(copy.to, copy.from, copy.bytes);
  pool_close(&copy.state->pools[copy.device]);
  return CLEAVE_OK;
}

static cleave_status_t copy(device_state_t *state, uint32_t device, const cleave_tensor_view_t *to,
                            const cleave_tensor_view_t *from, const cleave_tensor_view_t *there, void *stream,
                            cleave_message_t *message) {
  size_t bytes = (size_t)cleave_view_element_count(to) * cleave_dtype_size(to->dtype);
  copy_t task = {state, device, (void *)(uintptr_t)to->data, from->data, bytes};
  if (is_broken(&state->broken_copy, message)) {
    return CLEAVE_ERROR_BACKEND;
  }
  if (state->fail_copy > 0 && --state->fail_copy == 0) {
    (void)snprintf(message->text, sizeof message->text, "the bus is broken");
    return CLEAVE_ERROR_BACKEND;
  }
  if (there->memory != device + 1 || to->memory + from->memory != device + 1 ||
      !pool_holds(&state->pools[device], there->data, bytes)) {
    (void)snprintf(message->text, sizeof message->text, "no copy between this device and the host");
    return CLEAVE_ERROR_INVALID_ARGUMENT;
  }
  return stream == NULL ? copy_work(&task, message)
                        : stream_put(stream, copy_work, &task, sizeof task, false);
}

static cleave_status_t copy_to(void *opaque, uint32_t device, const cleave_tensor_view_t *to,
                               const cleave_tensor_view_t *from, void *stream, cleave_message_t *message) {
  ((device_state_t *)opaque)->copies_to++;
  return copy(opaque, device, to, from, to, stream, message);
}

static cleave_status_t copy_from(void *opaque, uint32_t device, const cleave_tensor_view_t *to,
                                 const cleave_tensor_view_t *from, void *stream, cleave_message_t *message) {
  ((device_state_t *)opaque)->copies_from++;
  return copy(opaque, device, to, from, from, stream, message);
}

/* ---- programs ---- */

static bool knows(const cleave_region_view_t *view, uint32_t index) {
  static const char *const OPS[] = {"Relu", "Neg", "Add", "Mul"};
  const cleave_node_view_t *node = &view->nodes[index];
  const cleave_tensor_view_t *first = &view->values[node->inputs[0]].tensor;
  if (first->dtype != CLEAVE_DTYPE_F32) {
    return false;
  }
  for (size_t k = 0; k < sizeof OPS / sizeof OPS[0]; k++) {
    if (cleave_view_text_equal(node->op, OPS[k])) {
      return true;
    }
  }
  return cleave_view_text_equal(node->op, "NonZero") && view->node_count == 1;
}

static cleave_status_t supports(void *state, const cleave_region_view_t *view, cleave_message_t *reason) {
  (void)state;
  for (uint32_t k = 0; k < view->node_count; k++) {
    if (!knows(view, k)) {
      (void)snprintf(reason->text, sizeof reason->text, "no kernel for %s", view->nodes[k].op);
      return CLEAVE_ERROR_UNSUPPORTED;
    }
  }
  return view->value_count <= MAX_BLOCKS / 2 ? CLEAVE_OK : CLEAVE_ERROR_UNSUPPORTED;
}

static size_t bytes_of(const cleave_tensor_view_t *tensor) {
  int64_t count = cleave_view_element_count(tensor);
  return count < 0 ? 0 : (size_t)count * cleave_dtype_size(tensor->dtype);
}

static void *copy_array(const void *items, size_t bytes) {
  void *copy = malloc(bytes + 1);
  memcpy(copy, items, bytes);
  return copy;
}

static void unload(void *opaque) {
  program_t *program = opaque;
  cleave_region_view_t *view = &program->view;
  for (uint32_t k = 0; k < view->node_count; k++) {
    free((void *)(uintptr_t)view->nodes[k].op);
    free((void *)(uintptr_t)view->nodes[k].inputs);
    free((void *)(uintptr_t)view->nodes[k].outputs);
  }
  free((void *)(uintptr_t)view->nodes);
  free((void *)(uintptr_t)view->values);
  free((void *)(uintptr_t)view->inputs);
  free((void *)(uintptr_t)view->outputs);
  free(program->constants);
  free(program);
}

static void copy_view(program_t *program, const cleave_region_view_t *view) {
  program->view = *view;
  cleave_node_view_t *nodes = copy_array(view->nodes, view->node_count * sizeof *nodes);
  for (uint32_t k = 0; k < view->node_count; k++) {
    nodes[k].op = copy_array(nodes[k].op, strlen(nodes[k].op) + 1);
    nodes[k].inputs = copy_array(nodes[k].inputs, nodes[k].input_count * sizeof *nodes[k].inputs);
    nodes[k].outputs = copy_array(nodes[k].outputs, nodes[k].output_count * sizeof *nodes[k].outputs);
  }
  program->view.nodes = nodes;
  program->view.values = copy_array(view->values, view->value_count * sizeof *view->values);
  program->view.inputs = copy_array(view->inputs, view->input_count * sizeof *view->inputs);
  program->view.outputs = copy_array(view->outputs, view->output_count * sizeof *view->outputs);
}

static cleave_status_t create(void *state, const cleave_region_view_t *region,
                              const cleave_compile_options_t *options, bool is_executor, void **out_program,
                              cleave_message_t *message) {
  const cleave_attribute_view_t *refused = cleave_view_region_attribute(region, "refuse");
  if (supports(state, region, message) != CLEAVE_OK || (refused != NULL && region->node_count > 1)) {
    (void)snprintf(message->text, sizeof message->text, "not this region");
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  if (has("picky") && region->node_count == 1 && cleave_view_text_equal(region->nodes[0].op, "Mul")) {
    (void)snprintf(message->text, sizeof message->text, "no Mul alone");
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  program_t *program = calloc(1, sizeof *program);
  if (program == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  *program = (program_t){.state = state, .device = options->device, .is_executor = is_executor};
  program->info.size = sizeof program->info;
  (void)snprintf(program->name, sizeof program->name, "%s", region->name);
  copy_view(program, region);
  size_t constants = 0;
  for (uint32_t k = 0; k < region->value_count; k++) {
    program->offsets[k] = region->values[k].tensor.data != NULL ? constants : program->info.workspace_bytes;
    *(region->values[k].tensor.data != NULL ? &constants : &program->info.workspace_bytes) +=
        (bytes_of(&region->values[k].tensor) + 63) / 64 * 64;
  }
  program->constants = calloc(1, constants + 1);
  for (uint32_t k = 0; k < region->value_count && !is_executor; k++) {
    if (region->values[k].tensor.data != NULL) {
      memcpy(program->constants + program->offsets[k], region->values[k].tensor.data,
             bytes_of(&region->values[k].tensor));
    }
  }
  program->info.inplace = &program->inplace;
  program->info.inplace_count = region->node_count == 1 && region->output_count == 1 ? 1 : 0;
  *out_program = program;
  return CLEAVE_OK;
}

static cleave_status_t compile(void *state, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  return create(state, region, options, false, out_program, message);
}

static const cleave_program_info_t *info(const void *program) {
  return &((const program_t *)program)->info;
}

/* ---- running ---- */

typedef struct launch {
  program_t *program;
  void *workspace;
  const void *inputs[MAX_BLOCKS / 2];
  void *outputs[MAX_BLOCKS / 2];
  int adds; /* bit per output */
  bool fails;
} launch_t;

static cleave_status_t launch_work(void *context, cleave_message_t *message) {
  launch_t launch;
  memcpy(&launch, context, sizeof launch);
  const program_t *program = launch.program;
  const cleave_region_view_t *view = &program->view;
  void *at[MAX_BLOCKS];
  (void)usleep((useconds_t)program->state->latency_us);
  if (launch.fails) {
    (void)snprintf(message->text, sizeof message->text, "the unit caught fire");
    return CLEAVE_ERROR_BACKEND;
  }
  for (uint32_t k = 0; k < view->value_count; k++) {
    bool is_constant = view->values[k].tensor.data != NULL;
    at[k] = (is_constant ? program->constants : (unsigned char *)launch.workspace) + program->offsets[k];
  }
  for (uint32_t k = 0; k < view->input_count; k++) {
    at[view->inputs[k]] = (void *)(uintptr_t)launch.inputs[k];
  }
  int adding = 0;
  uint32_t added = CLEAVE_INDEX_NONE;
  for (uint32_t k = 0; k < view->output_count; k++) {
    at[view->outputs[k]] = launch.outputs[k] == NULL ? at[view->outputs[k]] : launch.outputs[k];
    adding |= (launch.adds >> k & 1);
    added = (launch.adds >> k & 1) != 0 ? view->outputs[k] : added;
  }
  pool_open(&program->state->pools[program->device]);
  for (uint32_t n = 0; n < view->node_count; n++) {
    const cleave_node_view_t *node = &view->nodes[n];
    if (node->outputs[0] == CLEAVE_INDEX_NONE) {
      continue;
    }
    const float *a = at[node->inputs[0]];
    const float *b = node->input_count > 1 ? at[node->inputs[1]] : a;
    float *y = at[node->outputs[0]];
    size_t elements = bytes_of(&view->values[node->outputs[0]].tensor) / sizeof *y;
    for (size_t k = 0; k < elements; k++) {
      float value = node->op[0] == 'R'   ? (a[k] > 0.0f ? a[k] : 0.0f)
                    : node->op[0] == 'N' ? -a[k]
                    : node->op[0] == 'A' ? a[k] + b[k]
                                         : a[k] * b[k];
      y[k] = adding != 0 && node->outputs[0] == added ? y[k] + value : value;
    }
  }
  pool_close(&program->state->pools[program->device]);
  return CLEAVE_OK;
}

/* Every tensor has to lie where it says that it does, and that has to be here. */
static bool lies_here(const program_t *program, const cleave_tensor_view_t *tensor) {
  if (has("shared") && program->device == 0) {
    return tensor->memory == CLEAVE_MEMORY_HOST;
  }
  return tensor->memory == program->device + 1 &&
         pool_holds(&program->state->pools[program->device], tensor->data, bytes_of(tensor));
}

static cleave_status_t non_zero(const program_t *program, const cleave_run_args_t *args) {
  pool_t *pool = &program->state->pools[program->device];
  size_t elements = bytes_of(&args->inputs[0]) / sizeof(float);
  int64_t dims[2] = {args->inputs[0].rank, 0};
  const float *x = args->inputs[0].data;
  pool_open(pool);
  for (size_t k = 0; k < elements; k++) {
    dims[1] += x[k] != 0.0f ? 1 : 0;
  }
  pool_close(pool);
  cleave_status_t status = args->resize_output(args->session, 0, 2, dims);
  if (status != CLEAVE_OK || dims[0] != 1) {
    return status != CLEAVE_OK ? status : CLEAVE_ERROR_UNSUPPORTED;
  }
  pool_open(pool);
  int64_t *y = (int64_t *)(uintptr_t)args->outputs[0].data;
  for (size_t k = 0; k < elements; k++) {
    if (x[k] != 0.0f) {
      *y++ = (int64_t)k;
    }
  }
  pool_close(pool);
  return CLEAVE_OK;
}

static cleave_status_t launch(program_t *program, const cleave_run_args_t *args, cleave_message_t *message) {
  const cleave_region_view_t *view = &program->view;
  launch_t task = {.program = program, .workspace = args->workspace};
  (program->is_executor ? &program->state->executions : &program->state->runs)[0]++;
  for (uint32_t k = 0; k < view->input_count; k++) {
    task.inputs[k] = args->inputs[k].data;
    if (!lies_here(program, &args->inputs[k])) {
      (void)snprintf(message->text, sizeof message->text, "input %u is elsewhere", (unsigned)k);
      return CLEAVE_ERROR_INVALID_ARGUMENT;
    }
  }
  if (view->nodes[0].op[1] == 'o') {
    return non_zero(program, args);
  }
  for (uint32_t k = 0; k < view->output_count; k++) {
    task.outputs[k] = (void *)(uintptr_t)args->outputs[k].data;
    task.adds |= args->requests != NULL && args->requests[k] == CLEAVE_REQUEST_ADD ? 1 << k : 0;
    if (!lies_here(program, &args->outputs[k])) {
      (void)snprintf(message->text, sizeof message->text, "output %u is elsewhere", (unsigned)k);
      return CLEAVE_ERROR_INVALID_ARGUMENT;
    }
    if (args->requests != NULL && args->requests[k] == CLEAVE_REQUEST_NONE) {
      task.outputs[k] = NULL;
      program->state->nones++;
    }
  }
  program->state->adds += task.adds != 0 ? 1 : 0;
  for (uint32_t k = 0; k < args->option_count; k++) {
    task.fails = task.fails || (cleave_view_text_equal(args->options[k].key, "fail") &&
                                cleave_view_text_equal(args->options[k].value, program->name));
  }
  if (program->state->fail_once > 0) {
    task.fails = --program->state->fail_once == 0;
  }
  return args->stream == NULL ? launch_work(&task, message)
                              : stream_put(args->stream, launch_work, &task, sizeof task, false);
}

static cleave_status_t run(void *program, const cleave_run_args_t *args, cleave_message_t *message) {
  return launch(program, args, message);
}

/* ---- single operators, settings ---- */

/* NonZero has none: it runs as a region of one node. */
static cleave_status_t get_executor(void *state, const cleave_region_view_t *node,
                                    const cleave_compile_options_t *options, void **out_executor,
                                    cleave_message_t *message) {
  if (cleave_view_text_equal(node->nodes[0].op, "NonZero")) {
    (void)snprintf(message->text, sizeof message->text, "no executor for NonZero");
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  return create(state, node, options, true, out_executor, message);
}

static cleave_status_t configure(void *opaque, const cleave_key_value_t *settings, uint32_t setting_count,
                                 const cleave_key_value_t **out_answers, uint32_t *out_answer_count,
                                 cleave_message_t *message) {
  device_state_t *state = opaque;
  const struct {
    const char *key;
    atomic_long *value;
  } KEYS[] = {{"fail_alloc", &state->fail_alloc},
              {"fail_copy", &state->fail_copy},
              {"broken_copy", &state->broken_copy},
              {"broken_event", &state->broken_event},
              {"broken_stream", &state->broken_stream},
              {"broken_start", &state->broken_start},
              {"misaligned", &state->misaligned},
              {"empty", &state->empty},
              {"fail_once", &state->fail_once},
              {"latency_us", &state->latency_us},
              {"live", &state->live},
              {"copies_to", &state->copies_to},
              {"copies_from", &state->copies_from},
              {"runs", &state->runs},
              {"executions", &state->executions},
              {"waits", &state->waits},
              {"event_waits", &state->event_waits},
              {"adds", &state->adds},
              {"nones", &state->nones},
              {"releases", &state->releases}};
  enum { KEY_COUNT = sizeof KEYS / sizeof KEYS[0] };
  static char texts[KEY_COUNT][24];
  static cleave_key_value_t answers[KEY_COUNT];
  (void)message;
  for (uint32_t s = 0; s < setting_count; s++) {
    for (size_t k = 0; k < KEY_COUNT; k++) {
      if (settings[s].value != NULL && cleave_view_text_equal(settings[s].key, KEYS[k].key)) {
        *KEYS[k].value = strtol(settings[s].value, NULL, 10);
      }
    }
  }
  for (size_t k = 0; k < KEY_COUNT; k++) {
    (void)snprintf(texts[k], sizeof texts[k], "%ld", (long)atomic_load(KEYS[k].value));
    answers[k] = (cleave_key_value_t){.key = KEYS[k].key, .value = texts[k]};
  }
  *out_answers = answers;
  *out_answer_count = KEY_COUNT;
  return CLEAVE_OK;
}

/* ---- the table, as the environment wants it ---- */

static cleave_backend_devices_t devices = {.size = sizeof devices,
                                           .count = count,
                                           .properties = properties,
                                           .alloc = allocate,
                                           .free = release,
                                           .release_all = release_all,
                                           .copy_to = copy_to};

static const cleave_backend_imperative_t imperative = {
    .size = sizeof imperative, .get_executor = get_executor, .release_executor = unload, .execute = run};

static const char *const option_keys[] = {"fail", "key", "other"};

static cleave_backend_t backend = {.size = sizeof backend,
                                   .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
                                   .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
                                   .name = "device",
                                   .version = "1",
                                   .description = "a test",
                                   .initialise = initialise,
                                   .destroy = destroy,
                                   .supports = supports,
                                   .compile = compile,
                                   .unload = unload,
                                   .info = info,
                                   .run = run,
                                   .configure = configure,
                                   .devices = &devices,
                                   .option_keys = option_keys,
                                   .option_key_count = 3};

const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message) {
  (void)abi_major;
  (void)abi_minor;
  (void)message;
  devices.copy_from = has("half") ? NULL : copy_from;
  if (has("streams") || has("events")) {
    devices.stream_create = stream_create;
    devices.stream_destroy = stream_destroy;
    devices.stream_wait = stream_wait;
  }
  if (has("events")) {
    devices.event_create = event_create;
    devices.event_destroy = event_destroy;
    devices.event_record = event_record;
    devices.event_wait = event_wait;
  }
  backend.imperative = has("executors") ? &imperative : NULL;
  backend.adds = has("adds");
  return &backend;
}

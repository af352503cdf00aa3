// SPDX-License-Identifier: Apache-2.0
// The mirror library: devices, memory, the guard, copies, regions, requests, settings. What a host does wrong
// is told with its reason.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mirror_case.h"
#include "system/clock.h"
#include "unit.h"

static const float X[4] = {-3.0f, -1.0f, 0.5f, 2.0f};
static const float Y[4] = {0.0f, 0.0f, 1.5f, 3.0f}; /* Relu(x + 1) */
static const float ZERO[4] = {0};

UNIT_TEST(says_what_it_has) {
  mirror_case_t c = mirror_case_open();
  ck_assert_str_eq(c.backend->name, "mirror");
  ck_assert(c.backend->adds);
  ck_assert(c.backend->imperative != NULL && c.backend->blobs != NULL && c.backend->extensions != NULL);
  ck_assert_uint_eq(c.devices->count(c.state), 2);
  cleave_device_properties_t properties;
  mirror_ok(c, c.devices->properties(c.state, 1, &properties, &c.message));
  ck_assert_str_eq(properties.name, "mirror 1");
  ck_assert(!properties.shares_host_memory && properties.memory_bytes > 1 << 20);
  mirror_case_refused(&c, c.devices->properties(c.state, 2, &properties, &c.message),
                      CLEAVE_ERROR_INVALID_ARGUMENT, "device 2: there are 2");
  char path[1024];
  ck_assert(cleave_registry_find_rules(NULL, "mirror", path, sizeof path));
  ck_assert_int_eq(access(path, R_OK), 0);
}

/* ---- memory ---- */

UNIT_TEST(memory_is_given_out_and_taken_back) {
  mirror_case_t c = mirror_case_open();
  void *blocks[100];
  for (size_t k = 0; k < 100; k++) {
    mirror_ok(c, c.devices->alloc(c.state, 0, 100 * k, &blocks[k], &c.message));
    ck_assert_uint_eq((uintptr_t)blocks[k] % 64, 0);
  }
  void *other = NULL;
  mirror_ok(c, c.devices->alloc(c.state, 1, 1 << 20, &other, &c.message));
  ck_assert_int_eq(mirror_case_ask(&c, "live_allocations"), 101);
  for (size_t k = 0; k < 100; k += 2) {
    c.devices->free(c.state, 0, blocks[(k * 37) % 100]);
  }
  ck_assert_int_eq(mirror_case_ask(&c, "live_allocations"), 51);
  c.devices->free(c.state, 0, NULL);
  ck_assert_int_eq(mirror_case_ask(&c, "misuses"), 0);
  c.devices->release_all(c.state, 0);
  ck_assert_int_eq(mirror_case_ask(&c, "live_allocations"), 1);
  ck_assert_int_eq(mirror_case_ask(&c, "live_bytes"), 1 << 20);
  c.devices->free(c.state, 1, other);
  ck_assert_int_eq(mirror_case_ask(&c, "live_bytes"), 0);
}

UNIT_TEST(what_was_not_given_out_is_not_freed) {
  mirror_case_t c = mirror_case_open();
  void *memory = NULL;
  float local = 0.0f;
  mirror_ok(c, c.devices->alloc(c.state, 0, 256, &memory, &c.message));
  c.devices->free(c.state, 0, (unsigned char *)memory + 64);
  c.devices->free(c.state, 1, memory);
  c.devices->free(c.state, 7, memory);
  c.devices->free(c.state, 0, &local);
  ck_assert_int_eq(mirror_case_ask(&c, "live_allocations"), 1);
  c.devices->free(c.state, 0, memory);
  c.devices->free(c.state, 0, memory);
  ck_assert_int_eq(mirror_case_ask(&c, "live_allocations"), 0);
  ck_assert_int_eq(mirror_case_ask(&c, "misuses"), 5);
}

UNIT_TEST(a_full_device_says_so) {
  mirror_case_t c = mirror_case_open();
  ck_assert_int_eq(mirror_case_set(&c, "memory_bytes", "65536"), CLEAVE_OK);
  void *first = NULL;
  void *second = NULL;
  mirror_ok(c, c.devices->alloc(c.state, 0, 65536 - 64, &first, &c.message));
  mirror_case_refused(&c, c.devices->alloc(c.state, 0, 65, &second, &c.message), CLEAVE_ERROR_OUT_OF_MEMORY,
                      "device 0 is full: no 65 bytes");
  ck_assert_int_eq(c.message.code, CLEAVE_REASON_DEVICE);
  ck_assert_ptr_null(second);
  mirror_ok(c, c.devices->alloc(c.state, 0, 64, &second, &c.message));
  mirror_case_refused(&c, c.devices->alloc(c.state, 1, SIZE_MAX, &first, &c.message),
                      CLEAVE_ERROR_OUT_OF_MEMORY, "device 1 is full");
  mirror_case_refused(&c, mirror_case_set(&c, "memory_bytes", "131072"), CLEAVE_ERROR_INVALID_ARGUMENT,
                      "device 0 is in use already");
  cleave_compile_options_t options = {.size = sizeof options, .threads = 1};
  void *program = NULL;
  mirror_case_refused(&c,
                      c.backend->compile(c.state, mirror_case_region(1000), &options, &program, &c.message),
                      CLEAVE_ERROR_OUT_OF_MEMORY, "device 0 is full: no 4000 bytes for");
  bool keep[2] = {true, true};
  mirror_ok(c, c.backend->review(c.state, mirror_case_region(1000), keep, &c.message));
  mirror_case_refused(&c, c.backend->review(c.state, mirror_case_region(20000), keep, &c.message),
                      CLEAVE_ERROR_UNSUPPORTED, "its weights have 80000 bytes, a device has 65536");
}

/* A child that reads the memory: does it live? */
static bool survives_reading(const void *memory) {
  (void)fflush(NULL);
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    (void)signal(SIGSEGV, SIG_DFL);
    volatile unsigned char byte = *(const volatile unsigned char *)memory;
    _exit(byte == 0xff ? 0 : 0);
  }
  int state = 0;
  ck_assert_int_eq(waitpid(child, &state, 0), child);
  return WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

UNIT_TEST(with_the_guard_on_a_host_that_reads_device_memory_crashes) {
  mirror_case_t c = mirror_case_open();
  mirror_tensor_t x;
  mirror_tensor_t y;
  mirror_case_upload(&c, &x, 0, 4, X);
  mirror_case_upload(&c, &y, 0, 4, ZERO);
  ck_assert(survives_reading(x.view.data));
  ck_assert_int_eq(mirror_case_set(&c, "guard", "1"), CLEAVE_OK);
  ck_assert(!survives_reading(x.view.data));
  void *program = mirror_case_program(&c, 0, 4);
  cleave_run_args_t args = mirror_case_args(&x, &y);
  void *workspace = NULL;
  mirror_ok(c,
            c.devices->alloc(c.state, 0, c.backend->info(program)->workspace_bytes, &workspace, &c.message));
  args.workspace = workspace;
  mirror_ok(c, c.backend->run(program, &args, &c.message));
  mirror_case_expect(&c, &y, Y);
  mirror_tensor_t late;
  mirror_case_upload(&c, &late, 1, 4, X);
  mirror_case_expect(&c, &late, X);
  ck_assert(!survives_reading(late.view.data));
  ck_assert_int_eq(mirror_case_set(&c, "guard", "0"), CLEAVE_OK);
  ck_assert(survives_reading(late.view.data));
  c.backend->unload(program);
}

UNIT_TEST(guarded_memory_is_not_zero_at_first) {
  mirror_case_t c = mirror_case_open();
  ck_assert_int_eq(mirror_case_set(&c, "guard", "true"), CLEAVE_OK);
  mirror_tensor_t fresh;
  void *memory = NULL;
  float values[4];
  mirror_ok(c, c.devices->alloc(c.state, 0, sizeof values, &memory, &c.message));
  mirror_case_tensor(&fresh, 0, 4, memory);
  mirror_case_download(&c, &fresh, values);
  unsigned char bytes[sizeof values];
  memcpy(bytes, values, sizeof values);
  for (size_t k = 0; k < sizeof bytes; k++) {
    ck_assert_uint_eq(bytes[k], 0xa5);
  }
}

UNIT_TEST(copies_are_between_one_device_and_the_host) {
  mirror_case_t c = mirror_case_open();
  mirror_tensor_t x;
  mirror_tensor_t host;
  float values[4] = {0};
  mirror_case_upload(&c, &x, 0, 4, X);
  mirror_case_tensor(&host, CLEAVE_INDEX_NONE, 4, values);
  ck_assert_int_eq(mirror_case_ask(&c, "bytes_copied_to"), 16);
  mirror_case_refused(&c, c.devices->copy_from(c.state, 1, &host.view, &x.view, NULL, &c.message),
                      CLEAVE_ERROR_INVALID_ARGUMENT,
                      "copy: expected memory of device 1 (2) and of the host (0), found 1 and 0");
  mirror_case_refused(&c, c.devices->copy_from(c.state, 0, &x.view, &host.view, NULL, &c.message),
                      CLEAVE_ERROR_INVALID_ARGUMENT, "found 0 and 1");
  host.dims[0] = 3;
  mirror_case_refused(&c, c.devices->copy_from(c.state, 0, &host.view, &x.view, NULL, &c.message),
                      CLEAVE_ERROR_INVALID_ARGUMENT, "two dense tensors of one known dtype and shape");
  host.dims[0] = 4;
  x.view.data = (const float *)x.view.data + 1;
  mirror_case_refused(&c, c.devices->copy_from(c.state, 0, &host.view, &x.view, NULL, &c.message),
                      CLEAVE_ERROR_INVALID_ARGUMENT, "not inside of memory that device 0 gave out");
  host.dims[0] = x.dims[0] = 3;
  mirror_ok(c, c.devices->copy_from(c.state, 0, &host.view, &x.view, NULL, &c.message));
  ck_assert_float_eq(values[0], X[1]);
  ck_assert_int_eq(mirror_case_ask(&c, "bytes_copied_from"), 12);
}

/* ---- regions ---- */

UNIT_TEST(a_region_runs_on_its_device) {
  mirror_case_t c = mirror_case_open();
  for (uint32_t device = 0; device < 2; device++) {
    mirror_tensor_t x;
    mirror_tensor_t y;
    mirror_case_upload(&c, &x, device, 4, X);
    mirror_case_upload(&c, &y, device, 4, ZERO);
    void *program = mirror_case_program(&c, device, 4);
    ck_assert_uint_ge(c.backend->info(program)->persistent_bytes, 16);
    c.devices->release_all(c.state, 1 - device);
    cleave_run_args_t args = mirror_case_args(&x, &y);
    void *workspace = NULL;
    mirror_ok(c, c.devices->alloc(c.state, device, c.backend->info(program)->workspace_bytes, &workspace,
                                  &c.message));
    args.workspace = workspace;
    mirror_ok(c, c.backend->run(program, &args, &c.message));
    mirror_case_expect(&c, &y, Y);
    c.backend->unload(program);
  }
  ck_assert_int_eq(mirror_case_ask(&c, "runs"), 2);
  ck_assert_int_eq(mirror_case_ask(&c, "own_bytes"), 0);
  ck_assert_int_eq(mirror_case_ask(&c, "bytes_staged"), 0);
}

UNIT_TEST(tensors_elsewhere_are_refused_with_the_reason) {
  mirror_case_t c = mirror_case_open();
  mirror_tensor_t x;
  mirror_tensor_t y;
  mirror_case_upload(&c, &x, 0, 4, X);
  mirror_case_upload(&c, &y, 0, 4, ZERO);
  void *program = mirror_case_program(&c, 0, 4);
  cleave_run_args_t args = mirror_case_args(&x, &y);
  mirror_tensor_t wrong;
  mirror_case_tensor(&wrong, CLEAVE_INDEX_NONE, 4, X);
  args.inputs = &wrong.view;
  mirror_case_refused(&c, c.backend->run(program, &args, &c.message), CLEAVE_ERROR_INVALID_ARGUMENT,
                      "input 0 lies in host memory, expected memory of device 0");
  mirror_case_upload(&c, &wrong, 1, 4, X);
  mirror_case_refused(&c, c.backend->run(program, &args, &c.message), CLEAVE_ERROR_INVALID_ARGUMENT,
                      "input 0 lies in memory of device 1, expected device 0");
  mirror_case_tensor(&wrong, 0, 4, X);
  mirror_case_refused(&c, c.backend->run(program, &args, &c.message), CLEAVE_ERROR_INVALID_ARGUMENT,
                      "are not inside of memory that device 0 gave out");
  args.inputs = &x.view;
  const void *memory = y.view.data;
  y.view.data = (const float *)memory + 1;
  mirror_case_refused(&c, c.backend->run(program, &args, &c.message), CLEAVE_ERROR_INVALID_ARGUMENT,
                      "output 0: 16 bytes at ");
  y.view.data = memory;
  if (c.backend->info(program)->workspace_bytes > 0) {
    args.workspace = &wrong;
    mirror_case_refused(&c, c.backend->run(program, &args, &c.message), CLEAVE_ERROR_INVALID_ARGUMENT,
                        "the workspace: ");
  }
  c.devices->free(c.state, 0, (void *)(uintptr_t)x.view.data);
  mirror_case_refused(&c, c.backend->run(program, &args, &c.message), CLEAVE_ERROR_INVALID_ARGUMENT,
                      "input 0: 16 bytes at ");
  ck_assert_int_ge(mirror_case_ask(&c, "misuses"), 5);
  c.backend->unload(program);
}

UNIT_TEST(weights_are_no_memory_of_the_host) {
  mirror_case_t c = mirror_case_open();
  void *program = mirror_case_program(&c, 0, 4);
  ck_assert_int_eq(mirror_case_ask(&c, "own_bytes"), 16);
  ck_assert_int_eq(mirror_case_ask(&c, "live_allocations"), 0);
  c.devices->release_all(c.state, 0);
  ck_assert_int_eq(mirror_case_ask(&c, "own_bytes"), 16);
  c.backend->unload(program);
  ck_assert_int_eq(mirror_case_ask(&c, "own_bytes"), 0);
}

UNIT_TEST(hosts_without_devices_are_staged_where_that_is_set) {
  mirror_case_t c = mirror_case_open();
  ck_assert_int_eq(mirror_case_set(&c, "host_memory", "stage"), CLEAVE_OK);
  ck_assert_int_eq(mirror_case_set(&c, "guard", "1"), CLEAVE_OK);
  float values[5] = {0};
  mirror_tensor_t x;
  mirror_tensor_t y;
  void *program = mirror_case_program(&c, 1, 4);
  mirror_case_tensor(&x, CLEAVE_INDEX_NONE, 4, X);
  mirror_case_tensor(&y, CLEAVE_INDEX_NONE, 4, values);
  cleave_run_args_t args = mirror_case_args(&x, &y);
  for (uint32_t run = 0; run < 2; run++) {
    memset(values, 0, sizeof values);
    mirror_ok(c, c.backend->run(program, &args, &c.message));
    ck_assert_mem_eq(values, Y, sizeof Y);
  }
  ck_assert_int_eq(mirror_case_ask(&c, "bytes_staged"), 2 * 32);
  cleave_request_t add = CLEAVE_REQUEST_ADD;
  args.requests = &add;
  mirror_ok(c, c.backend->run(program, &args, &c.message));
  ck_assert_float_eq(values[2], 2.0f * Y[2]);
  ck_assert_float_eq(values[3], 2.0f * Y[3]);
  c.backend->unload(program);
  ck_assert_int_eq(mirror_case_ask(&c, "own_bytes"), 0);
}

/* ---- requests ---- */

UNIT_TEST(add_adds_and_none_leaves_alone) {
  mirror_case_t c = mirror_case_open();
  static const float START[4] = {10.0f, 20.0f, 30.0f, 40.0f};
  mirror_tensor_t x;
  mirror_tensor_t y;
  mirror_case_upload(&c, &x, 0, 4, X);
  mirror_case_upload(&c, &y, 0, 4, START);
  void *program = mirror_case_program(&c, 0, 4);
  void *workspace = NULL;
  mirror_ok(
      c, c.devices->alloc(c.state, 0, c.backend->info(program)->workspace_bytes + 1, &workspace, &c.message));
  cleave_run_args_t args = mirror_case_args(&x, &y);
  cleave_request_t request = CLEAVE_REQUEST_NONE;
  args.requests = &request;
  args.workspace = workspace;
  mirror_ok(c, c.backend->run(program, &args, &c.message));
  mirror_case_expect(&c, &y, START);
  request = CLEAVE_REQUEST_ADD;
  mirror_ok(c, c.backend->run(program, &args, &c.message));
  mirror_ok(c, c.backend->run(program, &args, &c.message));
  mirror_case_expect(&c, &y, (float[]){10.0f, 20.0f, 33.0f, 46.0f});
  request = CLEAVE_REQUEST_WRITE;
  mirror_ok(c, c.backend->run(program, &args, &c.message));
  mirror_case_expect(&c, &y, Y);
  const void *memory = y.view.data;
  request = CLEAVE_REQUEST_NONE;
  y.view.data = NULL;
  mirror_ok(c, c.backend->run(program, &args, &c.message));
  request = CLEAVE_REQUEST_ADD;
  mirror_case_refused(&c, c.backend->run(program, &args, &c.message), CLEAVE_ERROR_INVALID_ARGUMENT,
                      "output 0 has no memory to add to");
  y.view.data = memory;
  request = (cleave_request_t)7;
  mirror_case_refused(&c, c.backend->run(program, &args, &c.message), CLEAVE_ERROR_INVALID_ARGUMENT,
                      "output 0: request 7 is unknown");
  mirror_case_expect(&c, &y, Y);
  c.backend->unload(program);
}

/* ---- shapes that only the run can tell ---- */

typedef struct resized {
  mirror_case_t *c;
  mirror_tensor_t output; /* int64, rank 2 */
  int64_t dims[2];
  uint32_t calls;
  bool on_host;
} resized_t;

static int64_t host_memory[64];

static cleave_status_t resize(void *session, uint32_t output, int32_t rank, const int64_t *dims) {
  resized_t *r = session;
  ck_assert_uint_eq(output, 0);
  ck_assert_int_eq(rank, 2);
  memcpy(r->dims, dims, sizeof r->dims);
  void *memory = host_memory;
  if (!r->on_host) {
    mirror_ok(*r->c,
              r->c->devices->alloc(r->c->state, 0, (size_t)(dims[0] * dims[1]) * 8, &memory, &r->c->message));
  }
  r->output.view.data = memory;
  r->output.view.memory = r->on_host ? CLEAVE_MEMORY_HOST : 1;
  r->output.view.rank = rank;
  r->output.view.dims = r->dims;
  r->calls++;
  return CLEAVE_OK;
}

UNIT_TEST(outputs_of_unknown_shape_get_memory_of_the_device) {
  mirror_case_t c = mirror_case_open();
  view_builder_t *b = view_builder_create();
  uint32_t x = view_builder_value(b, CLEAVE_DTYPE_F32, 1, (int64_t[]){4});
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_I64, 2, (int64_t[]){1, -1});
  view_builder_node(b, "NonZero", 1, &x, 1, &y);
  view_builder_output(b, y);
  void *program = NULL;
  cleave_compile_options_t options = {.size = sizeof options, .threads = 1};
  mirror_ok(c, c.backend->compile(c.state, view_builder_region(b), &options, &program, &c.message));
  mirror_tensor_t input;
  mirror_case_upload(&c, &input, 0, 4, (float[]){0.0f, 5.0f, 0.0f, 6.0f});
  ck_assert_int_eq(mirror_case_set(&c, "guard", "1"), CLEAVE_OK);
  resized_t r = {.c = &c};
  cleave_run_args_t args = mirror_case_args(&input, &r.output);
  args.resize_output = resize;
  args.session = &r;
  cleave_tensor_view_t open = {
      .size = sizeof open, .dtype = CLEAVE_DTYPE_I64, .rank = 2, .dims = (int64_t[]){1, -1}, .memory = 1};
  r.output.view = open;
  mirror_ok(c, c.backend->run(program, &args, &c.message));
  ck_assert_uint_eq(r.calls, 1);
  ck_assert_int_eq(r.dims[1], 2);
  int64_t found[2] = {0};
  cleave_tensor_view_t host = r.output.view;
  host.data = found;
  host.memory = CLEAVE_MEMORY_HOST;
  mirror_ok(c, c.devices->copy_from(c.state, 0, &host, &r.output.view, NULL, &c.message));
  ck_assert_int_eq(found[0], 1);
  ck_assert_int_eq(found[1], 3);

  cleave_request_t none = CLEAVE_REQUEST_NONE;
  r.output.view = open;
  args.requests = &none;
  mirror_ok(c, c.backend->run(program, &args, &c.message));
  ck_assert_uint_eq(r.calls, 1);

  args.requests = NULL;
  r.on_host = true;
  ck_assert_int_ne(c.backend->run(program, &args, &c.message), CLEAVE_OK);
  ck_assert_int_eq(mirror_case_set(&c, "host_memory", "stage"), CLEAVE_OK);
  r.output.view = open;
  mirror_ok(c, c.backend->run(program, &args, &c.message));
  ck_assert_int_eq(host_memory[0], 1);
  ck_assert_int_eq(host_memory[1], 3);
  c.backend->unload(program);
  view_builder_destroy(b);
}

/* ---- settings and options ---- */

UNIT_TEST(settings_are_all_right_or_none_is_taken) {
  mirror_case_t c = mirror_case_open();
  const cleave_key_value_t *answers = NULL;
  uint32_t count = 0;
  const cleave_key_value_t wrong[] = {{"latency_ns", "5"}, {"guard", "maybe"}};
  mirror_case_refused(&c, c.backend->configure(c.state, wrong, 2, &answers, &count, &c.message),
                      CLEAVE_ERROR_INVALID_ARGUMENT, "setting 'guard': expected 0 or 1, found 'maybe'");
  ck_assert_int_eq(mirror_case_ask(&c, "latency_ns"), 0);
  mirror_case_refused(&c, mirror_case_set(&c, "gard", "1"), CLEAVE_ERROR_UNSUPPORTED,
                      "setting 'gard' is unknown; there are: guard, host_memory, latency_ns");
  mirror_case_refused(&c, mirror_case_set(&c, "gard", NULL), CLEAVE_ERROR_UNSUPPORTED, "'gard' is unknown");
  mirror_case_refused(&c, mirror_case_set(&c, "latency_ns", "-1"), CLEAVE_ERROR_INVALID_ARGUMENT,
                      "expected nanoseconds");
  mirror_case_refused(&c, mirror_case_set(&c, "host_memory", "maybe"), CLEAVE_ERROR_INVALID_ARGUMENT,
                      "expected 'stage' or 'refuse'");
  mirror_case_refused(&c, mirror_case_set(&c, NULL, "1"), CLEAVE_ERROR_INVALID_ARGUMENT, "has no key");
  mirror_ok(c, c.backend->configure(c.state, NULL, 0, &answers, &count, &c.message));
  ck_assert_uint_ge(count, 15);
  ck_assert_int_gt(mirror_case_ask(&c, "misuses"), 0);
  ck_assert_int_eq(mirror_case_set(&c, "reset", "counters"), CLEAVE_OK);
  ck_assert_int_eq(mirror_case_ask(&c, "misuses"), 0);
}

UNIT_TEST(a_launch_costs_what_it_is_told_to) {
  mirror_case_t c = mirror_case_open();
  mirror_tensor_t x;
  mirror_tensor_t y;
  mirror_case_upload(&c, &x, 0, 4, X);
  mirror_case_upload(&c, &y, 0, 4, ZERO);
  ck_assert_int_eq(mirror_case_set(&c, "latency_ns", "30000000"), CLEAVE_OK);
  void *program = mirror_case_program(&c, 0, 4);
  ck_assert_int_eq(mirror_case_set(&c, "host_memory", "stage"), CLEAVE_OK); /* no workspace needed */
  cleave_run_args_t args = mirror_case_args(&x, &y);
  uint64_t start = cleave_clock_now();
  mirror_ok(c, c.backend->run(program, &args, &c.message));
  ck_assert_double_ge(cleave_clock_ms(start, cleave_clock_now()), 30.0);
  cleave_key_value_t none = {.key = "latency_ns", .value = "0"};
  args.options = &none;
  args.option_count = 1;
  double best = 1e9;
  for (uint32_t k = 0; k < 5; k++) {
    start = cleave_clock_now();
    mirror_ok(c, c.backend->run(program, &args, &c.message));
    double ms = cleave_clock_ms(start, cleave_clock_now());
    best = ms < best ? ms : best;
  }
  ck_assert_double_lt(best, 30.0);
  none.key = "speed";
  mirror_case_refused(&c, c.backend->run(program, &args, &c.message), CLEAVE_ERROR_INVALID_ARGUMENT,
                      "option 'speed' is unknown");
  c.backend->unload(program);
  void *second = NULL;
  cleave_compile_options_t options = {
      .size = sizeof options, .threads = 1, .option_count = 1, .options = &none};
  mirror_case_refused(&c, c.backend->compile(c.state, mirror_case_region(4), &options, &second, &c.message),
                      CLEAVE_ERROR_INVALID_ARGUMENT, "option 'speed' is unknown");
  options = (cleave_compile_options_t){.size = sizeof options, .threads = 1, .device = 2};
  mirror_case_refused(&c, c.backend->compile(c.state, mirror_case_region(4), &options, &second, &c.message),
                      CLEAVE_ERROR_INVALID_ARGUMENT, "device 2: there are 2");
}

UNIT_TEST(it_takes_what_cpu_takes_except_for_texts) {
  mirror_case_t c = mirror_case_open();
  view_builder_t *b = view_builder_create();
  uint32_t x = view_builder_value(b, CLEAVE_DTYPE_STRING, 1, (int64_t[]){4});
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_STRING, 1, (int64_t[]){4});
  view_builder_node(b, "Identity", 1, &x, 1, &y);
  view_builder_output(b, y);
  mirror_case_refused(&c, c.backend->supports(c.state, view_builder_region(b), &c.message),
                      CLEAVE_ERROR_UNSUPPORTED, "texts do not lie in memory of a device");
  ck_assert_int_eq(c.message.code, CLEAVE_REASON_DTYPE);
  view_builder_destroy(b);
  mirror_ok(c, c.backend->supports(c.state, mirror_case_region(4), &c.message));
  static const double FLOPS[2] = {4.0, 4.0};
  double nanoseconds[2] = {0.0};
  for (uint32_t k = 0; k < 2; k++) {
    cleave_region_view_t region = *mirror_case_region(k == 0 ? 4 : 40000);
    region.size = sizeof region;
    region.flops = FLOPS;
    mirror_ok(c, c.backend->cost(c.state, &region, &nanoseconds[k], &c.message));
  }
  ck_assert(nanoseconds[0] >= 1000.0 && nanoseconds[1] > nanoseconds[0] + 39000.0);
}

UNIT_SUITE("mirror_device")

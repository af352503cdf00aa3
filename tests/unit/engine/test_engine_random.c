// SPDX-License-Identifier: Apache-2.0
/* Random programs over 100 variables give the bits of the serial loop: any number of workers, bulks, several
 * devices, copy workers, priorities, asynchronous operations, and several threads that push programs of their
 * own. */
#include <pthread.h>

#include "engine_case.h"

enum { VARIABLES = 100, OPERATIONS = 10000, MAX_READS = 19 };

typedef struct sum {
  double *data;
  int reads[MAX_READS];
  int read_count;
  int write;
} sum_t;

static void add_up(sum_t *sum) {
  double total = 0;
  for (int k = 0; k < sum->read_count; k++) {
    total += sum->data[sum->reads[k]];
  }
  sum->data[sum->write] = total / (sum->read_count + 1) + 0.25 * sum->write;
}

static cleave_status_t run_sum(void *self, const cleave_engine_run_t *run, cleave_error_t *error) {
  (void)run;
  (void)error;
  add_up(self);
  return CLEAVE_OK;
}

static void start_sum(void *self, const cleave_engine_run_t *run, cleave_completion_t *completion) {
  (void)run;
  add_up(self);
  cleave_operation_complete(completion, CLEAVE_OK, NULL);
}

static uint64_t next(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state >> 33;
}

static void draw(sum_t *sum, double *data, uint64_t *state) {
  sum->data = data;
  sum->read_count = 2 + (int)(next(state) % (MAX_READS - 1));
  for (int k = 0; k < sum->read_count; k++) {
    sum->reads[k] = (int)(next(state) % VARIABLES);
  }
  sum->write = (int)(next(state) % VARIABLES);
}

typedef struct program {
  cleave_engine_t *engine;
  uint64_t seed;
  uint32_t bulk;
  uint32_t devices;
  bool is_varied; /* priorities, copies, asynchronous operations */
  double expected[VARIABLES];
  double found[VARIABLES];
  sum_t *sums;
} program_t;

static void push(program_t *program, cleave_variable_t *const *variables, sum_t *sum, uint64_t choice) {
  cleave_variable_t *reads[MAX_READS];
  for (int r = 0; r < sum->read_count; r++) {
    reads[r] = variables[sum->reads[r]];
  }
  cleave_operation_info_t info = {.size = sizeof info,
                                  .name = "sum",
                                  .run = run_sum,
                                  .self = sum,
                                  .reads = reads,
                                  .read_count = (uint32_t)sum->read_count,
                                  .writes = &variables[sum->write],
                                  .write_count = 1,
                                  .device = (uint32_t)(choice % program->devices)};
  if (program->is_varied && choice % 8 < 4) {
    info.priority = (int32_t)(choice % 5) - 2;
    info.flags = choice % 3 == 0 ? CLEAVE_OPERATION_COPY : 0;
    if (choice % 7 == 0) {
      info.run = NULL;
      info.start = start_sum;
    }
  }
  ck_assert_int_eq(cleave_engine_push(program->engine, &info, NULL), CLEAVE_OK);
}

static void *run_program(void *self) {
  program_t *program = self;
  cleave_variable_t *variables[VARIABLES];
  uint64_t state = program->seed;
  (void)cleave_engine_set_bulk(program->engine, program->bulk);
  program->sums = calloc(OPERATIONS, sizeof *program->sums);
  for (int k = 0; k < VARIABLES; k++) {
    variables[k] = engine_case_variable(program->engine);
    program->expected[k] = program->found[k] = k * 0.5;
  }
  for (int n = 0; n < OPERATIONS; n++) {
    draw(&program->sums[n], program->found, &state);
    sum_t serial = program->sums[n];
    serial.data = program->expected;
    add_up(&serial);
    push(program, variables, &program->sums[n], next(&state));
    if (n % 1000 == 999) {
      engine_case_wait(variables[next(&state) % VARIABLES]);
    }
  }
  for (int k = 0; k < VARIABLES; k++) {
    engine_case_wait(variables[k]);
    cleave_variable_release(variables[k], NULL, NULL);
  }
  cleave_engine_flush(program->engine);
  return NULL;
}

static void check(program_t *program) {
  ck_assert_mem_eq(program->found, program->expected, sizeof program->found);
  free(program->sums);
}

UNIT_TEST(random_programs_are_equal_to_the_serial_loop) {
  static const struct {
    uint32_t workers;
    uint32_t bulk;
  } settings[] = {{0, 0}, {1, 0}, {2, 0}, {8, 0}, {0, 16}, {1, 15}, {2, 7}};
  for (size_t k = 0; k < sizeof settings / sizeof settings[0]; k++) {
    static program_t program;
    program = (program_t){.engine = engine_case_create(settings[k].workers),
                          .seed = k * 77 + 1,
                          .bulk = settings[k].bulk,
                          .devices = 1};
    run_program(&program);
    engine_case_end(program.engine);
    check(&program);
  }
}

UNIT_TEST(devices_priorities_copies_and_asynchronous_operations_change_nothing) {
  const cleave_engine_device_t devices[] = {
      {.size = sizeof devices[0], .name = "a", .workers = 2},
      {.size = sizeof devices[0], .name = "b", .workers = 1, .copy_workers = 1},
      {.size = sizeof devices[0], .name = "c", .workers = 1, .copy_workers = 2}};
  for (uint32_t k = 0; k < 4; k++) {
    const cleave_engine_options_t options = {
        .size = sizeof options, .devices = devices, .device_count = 3, .is_serial = k == 3};
    static program_t program;
    program = (program_t){.seed = k + 1000, .bulk = k * 8, .devices = 3, .is_varied = true};
    ck_assert_int_eq(cleave_engine_create(&options, &program.engine, NULL), CLEAVE_OK);
    run_program(&program);
    engine_case_end(program.engine);
    check(&program);
  }
}

UNIT_TEST(several_threads_push_programs_of_their_own) {
  for (uint32_t workers = 0; workers < 3; workers++) {
    cleave_engine_t *engine = engine_case_create(workers);
    static program_t programs[4];
    pthread_t threads[4];
    for (uint32_t k = 0; k < 4; k++) {
      programs[k] =
          (program_t){.engine = engine, .seed = k + 7, .bulk = k * 4, .devices = 1, .is_varied = k == 2};
      pthread_create(&threads[k], NULL, run_program, &programs[k]);
    }
    for (uint32_t k = 0; k < 4; k++) {
      pthread_join(threads[k], NULL);
    }
    engine_case_end(engine);
    for (uint32_t k = 0; k < 4; k++) {
      check(&programs[k]);
    }
  }
}

UNIT_SUITE("engine, random programs")

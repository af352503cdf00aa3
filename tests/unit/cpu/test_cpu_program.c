// SPDX-License-Identifier: Apache-2.0
// Programs of the reference backend: what compiles, how memory is planned, what a run checks.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_test.h"
#include "view_builder.h"

const cleave_backend_t *cleave_backend_cpu(uint32_t abi_major, uint32_t abi_minor, cleave_message_t *message);

static const int64_t dims_2x3[] = {2, 3};
static const float ramp[64] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

UNIT_TEST(refuses_another_major_version) {
  cleave_message_t message = {.text = ""};
  ck_assert_ptr_null(cleave_backend_cpu(CLEAVE_BACKEND_ABI_MAJOR + 1, 0, &message));
  ck_assert_str_eq(message.text, "cpu: interface version 3.0, expected 2.2");
  ck_assert_ptr_nonnull(cleave_backend_cpu(CLEAVE_BACKEND_ABI_MAJOR, 99, &message));
}

/* A region of one node from values of the same shape; every output is one of the region. */
static view_builder_t *one_node(const char *op, uint32_t input_count, const cleave_dtype_t *inputs,
                                cleave_dtype_t output) {
  view_builder_t *builder = view_builder_create();
  uint32_t operands[4];
  for (uint32_t k = 0; k < input_count; k++) {
    operands[k] = view_builder_value(builder, inputs[k], 2, dims_2x3);
  }
  uint32_t y = view_builder_value(builder, output, 2, dims_2x3);
  view_builder_node(builder, op, input_count, operands, 1, &y);
  view_builder_output(builder, y);
  return builder;
}

static void check_supports(const char *op, uint32_t input_count, cleave_dtype_t dtype, cleave_status_t status,
                           const char *reason) {
  cpu = op_backend_cpu();
  cleave_dtype_t inputs[4] = {dtype, dtype, dtype, dtype};
  view_builder_t *builder = one_node(op, input_count, inputs, dtype);
  cleave_message_t message = {.text = ""};
  ck_assert_int_eq(cpu.backend->supports(cpu.state, view_builder_region(builder), &message), status);
  ck_assert_str_eq(message.text, reason);
  view_builder_destroy(builder);
  op_backend_destroy(&cpu);
}

UNIT_TEST(supports_says_why_not) {
  check_supports("Relu", 1, CLEAVE_DTYPE_F32, CLEAVE_OK, "");
  check_supports("Frobnicate", 1, CLEAVE_DTYPE_F32, CLEAVE_ERROR_UNSUPPORTED,
                 "Frobnicate: no kernel for this operator");
  check_supports("Relu", 0, CLEAVE_DTYPE_F32, CLEAVE_ERROR_UNSUPPORTED, "Relu: input 0 is missing");
  check_supports("Sin", 1, CLEAVE_DTYPE_I32, CLEAVE_ERROR_UNSUPPORTED,
                 "Sin: from int32 to int32 is not supported");
}

CPU_TEST(runs_nodes_in_order_and_shares_values) {
  view_builder_t *b = view_builder_create();
  uint32_t x = view_builder_value(b, CLEAVE_DTYPE_F32, 2, dims_2x3);
  uint32_t doubled = view_builder_value(b, CLEAVE_DTYPE_F32, 2, dims_2x3);
  uint32_t negated = view_builder_value(b, CLEAVE_DTYPE_F32, 2, dims_2x3);
  uint32_t turned = view_builder_value(b, CLEAVE_DTYPE_F32, 2, (int64_t[]){3, 2});
  uint32_t sum = view_builder_value(b, CLEAVE_DTYPE_F32, 2, dims_2x3);
  view_builder_node(b, "Add", 2, (uint32_t[]){x, x}, 1, &doubled);
  view_builder_node(b, "Neg", 1, &doubled, 1, &negated);
  view_builder_node(b, "Transpose", 1, &negated, 1, &turned);
  view_builder_node(b, "Mul", 2, (uint32_t[]){negated, doubled}, 1, &sum);
  view_builder_output(b, turned);
  view_builder_output(b, sum);
  view_program_t program;
  ck_assert_int_eq(view_program_create(&program, cpu.backend, cpu.state, view_builder_region(b), 1),
                   CLEAVE_OK);
  view_program_input(&program, 0, 2, dims_2x3, ramp);
  ck_assert_int_eq(view_program_run(&program), CLEAVE_OK);
  const float *first = program.outputs[0].data;
  const float *second = program.outputs[1].data;
  const float expected_first[] = {0, -6, -2, -8, -4, -10};
  for (int k = 0; k < 6; k++) {
    ck_assert_float_eq(first[k], expected_first[k]);
    ck_assert_float_eq(second[k], -4.0f * ramp[k] * ramp[k]);
  }
  /* `doubled` and `negated` live at the same time; each takes 64 bytes. */
  ck_assert_uint_eq(cpu.backend->info(program.program)->workspace_bytes, 128);
  view_program_destroy(&program);
  view_builder_destroy(b);
}

/* Workspace of a chain of nodes of one operator over [4, 16] floats, 256 bytes. */
static size_t chain_workspace(const char *op, uint32_t length) {
  cpu = op_backend_cpu();
  view_builder_t *b = view_builder_create();
  int64_t dims[2] = {4, 16};
  uint32_t value = view_builder_value(b, CLEAVE_DTYPE_F32, 2, dims);
  for (uint32_t k = 0; k < length; k++) {
    bool turns = strcmp(op, "Transpose") == 0 && k % 2 == 0;
    uint32_t next = view_builder_value(b, CLEAVE_DTYPE_F32, 2, turns ? (int64_t[]){16, 4} : dims);
    view_builder_node(b, op, 1, &value, 1, &next);
    value = next;
  }
  view_builder_output(b, value);
  view_program_t program;
  ck_assert_int_eq(view_program_create(&program, cpu.backend, cpu.state, view_builder_region(b), 1),
                   CLEAVE_OK);
  float input[64];
  for (int k = 0; k < 64; k++) {
    input[k] = (float)k;
  }
  view_program_input(&program, 0, 2, dims, input);
  ck_assert_int_eq(view_program_run(&program), CLEAVE_OK);
  for (int k = 0; k < 64; k++) {
    ck_assert_float_eq(((const float *)program.outputs[0].data)[k], (float)k);
  }
  size_t bytes = cpu.backend->info(program.program)->workspace_bytes;
  view_program_destroy(&program);
  view_builder_destroy(b);
  op_backend_destroy(&cpu);
  return bytes;
}

UNIT_TEST(reuses_memory_of_dead_values) {
  ck_assert_uint_eq(chain_workspace("Relu", 1), 0);
  ck_assert_uint_eq(chain_workspace("Relu", 10), 256); /* in place */
  ck_assert_uint_eq(chain_workspace("Transpose", 2), 256);
  ck_assert_uint_eq(chain_workspace("Transpose", 10), 512); /* two take turns */
}

CPU_TEST(does_not_overwrite_a_value_that_is_read_later) {
  view_builder_t *b = view_builder_create();
  int64_t three[] = {3};
  uint32_t x = view_builder_value(b, CLEAVE_DTYPE_F32, 1, three);
  uint32_t kept = view_builder_value(b, CLEAVE_DTYPE_F32, 1, three);
  uint32_t changed = view_builder_value(b, CLEAVE_DTYPE_F32, 1, three);
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_F32, 1, three);
  view_builder_node(b, "Abs", 1, &x, 1, &kept);
  view_builder_node(b, "Neg", 1, &kept, 1, &changed);
  view_builder_node(b, "Sub", 2, (uint32_t[]){kept, changed}, 1, &y);
  view_builder_output(b, y);
  view_program_t program;
  ck_assert_int_eq(view_program_create(&program, cpu.backend, cpu.state, view_builder_region(b), 1),
                   CLEAVE_OK);
  view_program_input(&program, 0, 1, three, (float[]){-1, 2, -3});
  ck_assert_int_eq(view_program_run(&program), CLEAVE_OK);
  const float *found = program.outputs[0].data;
  ck_assert_float_eq(found[0], 2);
  ck_assert_float_eq(found[1], 4);
  ck_assert_float_eq(found[2], 6);
  view_program_destroy(&program);
  view_builder_destroy(b);
}

CPU_TEST(refuses_an_intermediate_value_of_unknown_shape) {
  view_builder_t *b = view_builder_create();
  uint32_t x = view_builder_value(b, CLEAVE_DTYPE_F32, 1, (int64_t[]){-1});
  uint32_t middle = view_builder_value(b, CLEAVE_DTYPE_F32, 1, (int64_t[]){-1});
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_F32, 1, (int64_t[]){-1});
  view_builder_node(b, "Relu", 1, &x, 1, &middle);
  view_builder_node(b, "Neg", 1, &middle, 1, &y);
  view_builder_output(b, y);
  view_program_t program;
  ck_assert_int_eq(view_program_create(&program, cpu.backend, cpu.state, view_builder_region(b), 1),
                   CLEAVE_ERROR_UNSUPPORTED);
  ck_assert_str_eq(program.message.text,
                   "Relu: the shape of intermediate value 'value' is known only at run time");
  view_builder_destroy(b);
}

CPU_TEST(refuses_inputs_of_another_shape_than_compiled_for) {
  view_builder_t *b = one_node("Relu", 1, (cleave_dtype_t[]){CLEAVE_DTYPE_F32}, CLEAVE_DTYPE_F32);
  view_program_t program;
  ck_assert_int_eq(view_program_create(&program, cpu.backend, cpu.state, view_builder_region(b), 1),
                   CLEAVE_OK);
  view_program_input(&program, 0, 2, (int64_t[]){3, 2}, ramp);
  ck_assert_int_eq(view_program_run(&program), CLEAVE_ERROR_INVALID_ARGUMENT);
  ck_assert_str_eq(program.message.text, "input 0 does not have the dtype and shape compiled for");
  view_program_input(&program, 0, 2, dims_2x3, ramp);
  program.inputs[0].dtype = CLEAVE_DTYPE_I32;
  ck_assert_int_eq(view_program_run(&program), CLEAVE_ERROR_INVALID_ARGUMENT);
  program.inputs[0].dtype = CLEAVE_DTYPE_F32;
  program.inputs[0].data = NULL;
  ck_assert_int_eq(view_program_run(&program), CLEAVE_ERROR_OUT_OF_MEMORY);
  ck_assert_str_eq(program.message.text, "input 0 has no usable data");
  view_program_destroy(&program);
  view_builder_destroy(b);
}

CPU_TEST(copies_inputs_at_odd_addresses) {
  view_builder_t *b = one_node("Neg", 1, (cleave_dtype_t[]){CLEAVE_DTYPE_F32}, CLEAVE_DTYPE_F32);
  view_program_t program;
  unsigned char bytes[sizeof(float) * 6 + 1];
  memcpy(bytes + 1, ramp, sizeof(float) * 6);
  ck_assert_int_eq(view_program_create(&program, cpu.backend, cpu.state, view_builder_region(b), 1),
                   CLEAVE_OK);
  view_program_input(&program, 0, 2, dims_2x3, bytes + 1);
  for (int run = 0; run < 2; run++) {
    ck_assert_int_eq(view_program_run(&program), CLEAVE_OK);
    for (int k = 0; k < 6; k++) {
      ck_assert_float_eq(((const float *)program.outputs[0].data)[k], -ramp[k]);
    }
  }
  view_program_destroy(&program);
  view_builder_destroy(b);
}

/* The inputs that may share the output's memory, as bits. */
static uint32_t inplace_inputs(view_builder_t *builder) {
  cpu = op_backend_cpu();
  view_program_t program;
  ck_assert_int_eq(view_program_create(&program, cpu.backend, cpu.state, view_builder_region(builder), 1),
                   CLEAVE_OK);
  const cleave_program_info_t *info = cpu.backend->info(program.program);
  uint32_t bits = 0;
  for (uint32_t k = 0; k < info->inplace_count; k++) {
    ck_assert_uint_eq(info->inplace[k].output, 0);
    bits |= 1u << info->inplace[k].input;
  }
  view_program_destroy(&program);
  view_builder_destroy(builder);
  op_backend_destroy(&cpu);
  return bits;
}

UNIT_TEST(offers_in_place_where_bytes_agree) {
  cleave_dtype_t floats[] = {CLEAVE_DTYPE_F32, CLEAVE_DTYPE_F32};
  ck_assert_uint_eq(inplace_inputs(one_node("Add", 2, floats, CLEAVE_DTYPE_F32)), 3);
  ck_assert_uint_eq(inplace_inputs(one_node("Less", 2, floats, CLEAVE_DTYPE_BOOL)), 0);
  ck_assert_uint_eq(inplace_inputs(one_node("Transpose", 1, floats, CLEAVE_DTYPE_F32)), 0);
  ck_assert_uint_eq(inplace_inputs(one_node("Cast", 1, floats, CLEAVE_DTYPE_I32)), 1);
  ck_assert_uint_eq(inplace_inputs(one_node("Cast", 1, floats, CLEAVE_DTYPE_F64)), 0);
  cleave_dtype_t choice[] = {CLEAVE_DTYPE_BOOL, CLEAVE_DTYPE_F32, CLEAVE_DTYPE_F32};
  ck_assert_uint_eq(inplace_inputs(one_node("Where", 3, choice, CLEAVE_DTYPE_F32)), 6);

  view_builder_t *b = view_builder_create();
  uint32_t x = view_builder_value(b, CLEAVE_DTYPE_F32, 2, dims_2x3);
  uint32_t row = view_builder_value(b, CLEAVE_DTYPE_F32, 1, (int64_t[]){3});
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_F32, 2, dims_2x3);
  view_builder_node(b, "Add", 2, (uint32_t[]){row, x}, 1, &y);
  view_builder_output(b, y);
  ck_assert_uint_eq(inplace_inputs(b), 1); /* input 0 of the region is x */
}

UNIT_TEST(does_not_offer_in_place_for_an_input_used_otherwise_too) {
  view_builder_t *b = view_builder_create();
  int64_t three[] = {3};
  uint32_t x = view_builder_value(b, CLEAVE_DTYPE_I64, 1, three);
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_I64, 1, three);
  view_builder_node(b, "ScatterElements", 3, (uint32_t[]){x, x, x}, 1, &y);
  view_builder_output(b, y);
  ck_assert_uint_eq(inplace_inputs(b), 0);
}

CPU_TEST(leaves_out_what_nobody_uses) {
  view_builder_t *b = view_builder_create();
  uint32_t x = view_builder_value(b, CLEAVE_DTYPE_F32, 2, dims_2x3);
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_F32, 2, dims_2x3);
  uint32_t mask = view_builder_value(b, CLEAVE_DTYPE_BOOL, 2, dims_2x3);
  uint32_t unused = view_builder_value(b, CLEAVE_DTYPE_F32, -1, NULL);
  view_builder_node(b, "Dropout", 1, &x, 2, (uint32_t[]){y, mask});
  view_builder_node(b, "Exp", 1, &x, 1, &unused);
  view_builder_output(b, y);
  view_program_t program;
  ck_assert_int_eq(view_program_create(&program, cpu.backend, cpu.state, view_builder_region(b), 1),
                   CLEAVE_OK);
  ck_assert_uint_eq(cpu.backend->info(program.program)->workspace_bytes, 0);
  view_program_input(&program, 0, 2, dims_2x3, ramp);
  ck_assert_int_eq(view_program_run(&program), CLEAVE_OK);
  ck_assert_mem_eq(program.outputs[0].data, ramp, sizeof(float) * 6);
  view_program_destroy(&program);
  view_builder_destroy(b);
}

CPU_TEST(names_the_node_that_failed) {
  view_builder_t *b = view_builder_create();
  uint32_t x = view_builder_value(b, CLEAVE_DTYPE_F32, 2, dims_2x3);
  uint32_t index = view_builder_value(b, CLEAVE_DTYPE_I64, 1, (int64_t[]){2});
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_F32, 2, dims_2x3);
  view_builder_node(b, "Gather", 2, (uint32_t[]){x, index}, 1, &y);
  view_builder_output(b, y);
  view_program_t program;
  ck_assert_int_eq(view_program_create(&program, cpu.backend, cpu.state, view_builder_region(b), 1),
                   CLEAVE_OK);
  view_program_input(&program, 0, 2, dims_2x3, ramp);
  view_program_input(&program, 1, 1, (int64_t[]){2}, (int64_t[]){0, -3});
  ck_assert_int_eq(view_program_run(&program), CLEAVE_ERROR_SHAPE);
  ck_assert_str_eq(program.message.text, "Gather 'node': index -3 at element 1 is outside a dim of 2");
  view_program_destroy(&program);
  view_builder_destroy(b);
}

CPU_TEST(times_every_step_where_asked) {
  view_builder_t *b = view_builder_create();
  uint32_t x = view_builder_value(b, CLEAVE_DTYPE_F32, 2, dims_2x3);
  uint32_t middle = view_builder_value(b, CLEAVE_DTYPE_F32, 2, dims_2x3);
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_F32, 2, dims_2x3);
  view_builder_node(b, "Exp", 1, &x, 1, &middle);
  view_builder_node(b, "Log", 1, &middle, 1, &y);
  view_builder_output(b, y);
  void *compiled = NULL;
  cleave_message_t message = {.text = ""};
  cleave_compile_options_t options = {.size = sizeof options, .threads = 1, .profile = true};
  ck_assert_int_eq(cpu.backend->compile(cpu.state, view_builder_region(b), &options, &compiled, &message),
                   CLEAVE_OK);
  const cleave_step_time_t *steps = NULL;
  ck_assert_uint_eq(cpu.backend->profile(compiled, &steps), 0);
  float result[6];
  _Alignas(64) unsigned char workspace[64];
  cleave_tensor_view_t input = {
      .size = sizeof input, .dtype = CLEAVE_DTYPE_F32, .rank = 2, .dims = dims_2x3, .data = ramp};
  cleave_tensor_view_t output = input;
  output.data = result;
  cleave_run_args_t args = {.size = sizeof args, .inputs = &input, .outputs = &output};
  ck_assert_int_eq(cpu.backend->run(compiled, &args, &message), CLEAVE_ERROR_INVALID_ARGUMENT);
  ck_assert_str_eq(message.text, "the workspace is missing");
  args.workspace = workspace;
  ck_assert_int_eq(cpu.backend->run(compiled, &args, &message), CLEAVE_OK);
  ck_assert_uint_eq(cpu.backend->profile(compiled, &steps), 2);
  ck_assert_str_eq(steps[0].label, "Exp");
  ck_assert_str_eq(steps[1].label, "Log");
  ck_assert_uint_eq(steps[1].node, 1);
  ck_assert_uint_eq(steps[1].fusion, CLEAVE_INDEX_NONE);
  ck_assert(steps[0].start_ns <= steps[0].end_ns && steps[0].end_ns <= steps[1].start_ns);
  cpu.backend->unload(compiled);
  view_builder_destroy(b);
}

CPU_TEST(runs_over_tensors_without_elements) {
  op_case(&cpu, "Add", "f32[0,3]; f32[3] 1", "", "f32[0,3]");
  op_case(&cpu, "Transpose", "f32[2,0,3]", "perm=[2,0,1]", "f32[3,2,0]");
  op_case(&cpu, "ReduceSum", "f32[2,0]; i64[1] 1", "keepdims=0", "f32[2] 0");
  op_case(&cpu, "ReduceMax", "f32[0]; i64[1] 0", "keepdims=0", "f32[] -inf");
  op_case(&cpu, "Concat", "f32[0,2]; f32[1,2] 5 6", "axis=0", "f32[1,2] 5 6");
  op_case(&cpu, "NonZero", "f32[0]", "", "i64[1,0]");
  op_case(&cpu, "Gather", "f32[3] 1 2 3; i64[0]", "axis=0", "f32[0]");
  op_case(&cpu, "Pad", "f32[0]; i64[2] 1 1; f32[] 7", "", "f32[2] 7");
}

static bool has_openblas(void) {
  char line[4096];
  bool found = false;
  FILE *maps = fopen("/proc/self/maps", "r");
  ck_assert_ptr_nonnull(maps);
  while (!found && fgets(line, sizeof line, maps) != NULL) {
    found = strstr(line, "openblas") != NULL;
  }
  (void)fclose(maps);
  return found;
}

/* A program of a node over `input_count` values of one shape: compiled, and run on `data` if it is there. */
static void run_node(const char *op, uint32_t input_count, int32_t rank, const int64_t *dims,
                     cleave_dtype_t dtype, const float *data) {
  view_builder_t *b = view_builder_create();
  uint32_t operands[4];
  for (uint32_t k = 0; k < input_count; k++) {
    operands[k] = view_builder_value(b, dtype, rank, dims);
  }
  uint32_t y = view_builder_value(b, dtype, rank, dims);
  view_builder_node(b, op, input_count, operands, 1, &y);
  view_builder_output(b, y);
  view_program_t program;
  ck_assert_int_eq(view_program_create(&program, cpu.backend, cpu.state, view_builder_region(b), 1),
                   CLEAVE_OK);
  for (uint32_t k = 0; k < input_count && data != NULL; k++) {
    view_program_input(&program, k, rank, dims, data);
  }
  if (data != NULL) {
    ck_assert_int_eq(view_program_run(&program), CLEAVE_OK);
  }
  view_program_destroy(&program);
  view_builder_destroy(b);
}

CPU_TEST(openblas_is_loaded_when_a_product_is_compiled_and_only_then) {
  static const int64_t square[] = {4, 4};
  static const int64_t prompt[] = {1, 6, 16, 64};
  static const int64_t text[] = {1, 6, 256, 64};
  static const float data[6 * 16 * 64];
  if (has_openblas()) {
    return; /* all tests in one process, and another one multiplied */
  }
  run_node("MatMul", 2, 2, square, CLEAVE_DTYPE_I32, NULL);
  run_node("Attention", 3, 4, prompt, CLEAVE_DTYPE_F32, data);
  ck_assert(!has_openblas());
  run_node("Attention", 3, 4, text, CLEAVE_DTYPE_F32, NULL);
  ck_assert(has_openblas());
}

CPU_TEST(openblas_is_loaded_when_a_matmul_is_compiled) {
  static const int64_t square[] = {4, 4};
  run_node("MatMul", 2, 2, square, CLEAVE_DTYPE_F32, NULL);
  ck_assert(has_openblas());
}

/* Bytes of a program that reads a constant of 64 KiB at an odd address, in rows that one index each picks, or
 * as numbers that are added to them. */
static size_t bytes_with_table(const unsigned char *table, bool is_added) {
  cpu = op_backend_cpu();
  int64_t dims[2] = {256, 64};
  int64_t row[2] = {1, 64};
  view_builder_t *b = view_builder_create();
  uint32_t data = view_builder_constant(b, CLEAVE_DTYPE_F32, 2, dims, table);
  uint32_t index = view_builder_value(b, CLEAVE_DTYPE_I64, 1, (int64_t[]){1});
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_F32, 2, row);
  view_builder_node(b, "Gather", 2, (uint32_t[]){data, index}, 1, &y);
  view_builder_output(b, y);
  if (is_added) {
    uint32_t sum = view_builder_value(b, CLEAVE_DTYPE_F32, 2, dims);
    view_builder_node(b, "Add", 2, (uint32_t[]){y, data}, 1, &sum);
    view_builder_output(b, sum);
  }
  view_program_t program;
  ck_assert_int_eq(view_program_create(&program, cpu.backend, cpu.state, view_builder_region(b), 1),
                   CLEAVE_OK);
  view_program_input(&program, 0, 1, (int64_t[]){1}, (int64_t[]){-1});
  ck_assert_int_eq(view_program_run(&program), CLEAVE_OK);
  ck_assert_mem_eq(program.outputs[0].data, table + 255 * 64 * sizeof(float), 64 * sizeof(float));
  size_t bytes = cpu.backend->info(program.program)->persistent_bytes;
  view_program_destroy(&program);
  view_builder_destroy(b);
  op_backend_destroy(&cpu);
  return bytes;
}

UNIT_TEST(copies_constants_only_where_their_address_matters) {
  enum { BYTES = 256 * 64 * sizeof(float) };
  unsigned char *table = calloc(1, BYTES + 64);
  ck_assert_ptr_nonnull(table);
  for (size_t k = 0; k < BYTES; k++) {
    table[k + 1] = (unsigned char)(k * 37 % 63);
  }
  ck_assert_uint_lt(bytes_with_table(table + 1, false), BYTES);
  ck_assert_uint_ge(bytes_with_table(table + 1, true), BYTES);
  free(table);
}

UNIT_SUITE("cpu_program")

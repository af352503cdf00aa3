// SPDX-License-Identifier: Apache-2.0
// Operators of the reference backend that move, select, scatter or make elements.
#include "cpu_test.h"
#include "view_builder.h"

static void check(const char *op, const char *inputs, const char *attributes, const char *expected) {
  op_case(&cpu, op, inputs, attributes, expected);
}

static void check_fails(const char *op, const char *inputs, const char *attributes, const char *expected,
                        const char *part) {
  op_case_fails(&cpu, op, inputs, attributes, expected, CLEAVE_ERROR_SHAPE, part);
}

CPU_TEST(changes_shapes_and_keeps_elements) {
  check("Identity", "str[2] a b", "", "str[2] a b");
  check("Reshape", "f32[2,3] 1 2 3 4 5 6; i64[2] 3 -1", "", "f32[3,2] 1 2 3 4 5 6");
  check("Reshape", "f32[2,3] 1 2 3 4 5 6; i64[3] 0 1 -1", "", "f32[2,1,3] 1 2 3 4 5 6");
  check("Reshape", "f32[0,3]; i64[2] 3 0", "allowzero=1", "f32[3,0]");
  check("Reshape", "f32[1] 5; i64[0]", "", "f32[] 5");
  check("Flatten", "f32[2,1,2] 1 2 3 4", "axis=2", "f32[2,2] 1 2 3 4");
  check("Flatten", "f32[2,2] 1 2 3 4", "axis=0", "f32[1,4] 1 2 3 4");
  check("Flatten", "f32[2,1,2] 1 2 3 4", "axis=-1", "f32[2,2] 1 2 3 4");
  check("Squeeze", "f32[1,2,1] 1 2; i64[1] -1", "", "f32[1,2] 1 2");
  check("Squeeze", "f32[1,2,1] 1 2", "", "f32[2] 1 2");
  check("Unsqueeze", "f32[2] 1 2; i64[2] 0 -1", "", "f32[1,2,1] 1 2");
  check("Shape", "f32[2,3,4] 0", "start=1", "i64[2] 3 4");
  check("Shape", "f32[2,3,4] 0", "start=-3 end=-1", "i64[2] 2 3");
  check("Size", "f32[2,3] 0", "", "i64[] 6");
  check("Dropout", "f32[2] 1 2; f32[] 0.5", "", "f32[2] 1 2; bool[2] 1 1");
  check_fails("Reshape", "f32[2,3] 1; i64[1] 5", "", "f32[5] 0", "6 elements cannot take");
  check_fails("Reshape", "f32[2] 1; i64[2] -1 -1", "", "f32[1,2] 0", "shape has -1 at dim 1");
  check_fails("Reshape", "f32[2] 1; i64[2] 2 0", "", "f32[2,1] 0", "copies dim 1");
  check_fails("Squeeze", "f32[2] 1; i64[1] 0", "", "f32[2] 0", "only 1 can be squeezed");
  check_fails("Unsqueeze", "f32[2] 1; i64[2] 0 0", "", "f32[1,1,2] 0", "axis 0 is repeated");
}

/* Transposes floats of every size through a permutation, and compares with the definition. */
static void check_transpose(cleave_dtype_t dtype, int32_t rank, const int64_t *dims, const int64_t *perm) {
  view_builder_t *b = view_builder_create();
  int64_t out_dims[CLEAVE_MAX_RANK];
  int64_t strides[CLEAVE_MAX_RANK];
  int64_t count = 1;
  for (int32_t d = rank - 1; d >= 0; d--) {
    strides[d] = count;
    count *= dims[d];
    out_dims[d] = dims[perm[d]];
  }
  size_t size = cleave_dtype_size(dtype);
  unsigned char *data = malloc((size_t)count * size);
  ck_assert_ptr_nonnull(data);
  for (size_t k = 0; k < (size_t)count * size; k++) {
    data[k] = (unsigned char)(k * 131 + k / 251);
  }
  uint32_t x = view_builder_value(b, dtype, rank, dims);
  uint32_t y = view_builder_value(b, dtype, rank, out_dims);
  uint32_t node = view_builder_node(b, "Transpose", 1, &x, 1, &y);
  view_builder_ints(b, node, "perm", (uint32_t)rank, perm);
  view_builder_output(b, y);
  view_program_t program;
  ck_assert_int_eq(view_program_create(&program, cpu.backend, cpu.state, view_builder_region(b), 2),
                   CLEAVE_OK);
  view_program_input(&program, 0, rank, dims, data);
  ck_assert_int_eq(view_program_run(&program), CLEAVE_OK);
  int64_t index[CLEAVE_MAX_RANK] = {0};
  for (int64_t k = 0; k < count; k++) {
    int64_t from = 0;
    for (int32_t d = 0; d < rank; d++) {
      from += index[d] * strides[perm[d]];
    }
    const unsigned char *found = (const unsigned char *)program.outputs[0].data + (size_t)k * size;
    ck_assert_msg(memcmp(found, data + (size_t)from * size, size) == 0, "element %lld of size %zu",
                  (long long)k, size);
    for (int32_t d = rank - 1; d >= 0 && ++index[d] == out_dims[d]; d--) {
      index[d] = 0;
    }
  }
  view_program_destroy(&program);
  view_builder_destroy(b);
  free(data);
}

CPU_TEST(transposes_every_element_size_and_order) {
  static const cleave_dtype_t dtypes[] = {CLEAVE_DTYPE_U8, CLEAVE_DTYPE_F16, CLEAVE_DTYPE_F32,
                                          CLEAVE_DTYPE_F64};
  for (size_t k = 0; k < sizeof dtypes / sizeof dtypes[0]; k++) {
    check_transpose(dtypes[k], 2, (int64_t[]){67, 131}, (int64_t[]){1, 0});
    check_transpose(dtypes[k], 2, (int64_t[]){3, 1500}, (int64_t[]){1, 0});
    check_transpose(dtypes[k], 2, (int64_t[]){1500, 3}, (int64_t[]){1, 0});
    check_transpose(dtypes[k], 3, (int64_t[]){5, 34, 37}, (int64_t[]){0, 2, 1});
    check_transpose(dtypes[k], 3, (int64_t[]){33, 5, 36}, (int64_t[]){2, 1, 0});
    check_transpose(dtypes[k], 4, (int64_t[]){2, 9, 7, 40}, (int64_t[]){0, 3, 1, 2});
    check_transpose(dtypes[k], 4, (int64_t[]){2, 40, 9, 7}, (int64_t[]){0, 2, 3, 1});
    check_transpose(dtypes[k], 4, (int64_t[]){2, 9, 7, 40}, (int64_t[]){0, 2, 1, 3});
    check_transpose(dtypes[k], 5, (int64_t[]){2, 1, 3, 4, 5}, (int64_t[]){4, 1, 0, 3, 2});
    check_transpose(dtypes[k], 8, (int64_t[]){2, 2, 2, 2, 2, 2, 2, 2}, (int64_t[]){7, 0, 6, 1, 5, 2, 4, 3});
  }
  op_case_fails(&cpu, "Transpose", "f32[2,2] 1", "perm=[0,0]", "f32[2,2] 0", CLEAVE_ERROR_SHAPE,
                "permutation");
  check_fails("Transpose", "f32[2,2] 1", "perm=[0,2,1]", "f32[2,2] 0", "3 entries for a tensor of rank 2");
}

CPU_TEST(rearranges_depth_and_space) {
  check("DepthToSpace", "f32[1,4,1,2] 1 2 3 4 5 6 7 8", "blocksize=2", "f32[1,1,2,4] 1 3 2 4 5 7 6 8");
  check("DepthToSpace", "f32[1,8,1,1] 0 1 2 3 4 5 6 7", "blocksize=2 mode='DCR'",
        "f32[1,2,2,2] 0 2 4 6 1 3 5 7");
  check("DepthToSpace", "f32[1,8,1,1] 0 1 2 3 4 5 6 7", "blocksize=2 mode='CRD'",
        "f32[1,2,2,2] 0 1 2 3 4 5 6 7");
  check("SpaceToDepth", "f32[1,1,2,4] 1 3 2 4 5 7 6 8", "blocksize=2", "f32[1,4,1,2] 1 2 3 4 5 6 7 8");
  check_fails("DepthToSpace", "f32[1,3,1,1] 0", "blocksize=2", "f32[1,1,2,2] 0", "divisible by 4");
}

CPU_TEST(joins_and_splits) {
  check("Concat", "f32[2,1] 1 2; f32[2,2] 3 4 5 6", "axis=1", "f32[2,3] 1 3 4 2 5 6");
  check("Concat", "str[1] a; str[2] b c", "axis=-1", "str[3] a b c");
  check("Split", "f32[2,4] 1 2 3 4 5 6 7 8; i64[2] 1 3", "axis=1", "f32[2,1] 1 5; f32[2,3] 2 3 4 6 7 8");
  check("Split", "f32[5] 1 2 3 4 5", "axis=0 num_outputs=2", "f32[3] 1 2 3; f32[2] 4 5");
  check("Split", "f32[4] 1 2 3 4; i64[2] 1 3", "axis=0", "-; f32[3] 2 3 4");
  check_fails("Concat", "f32[2,1] 1; f32[3,1] 1", "axis=1", "f32[2,2] 0",
              "input 1 has 3 at dim 0, expected 2");
  check_fails("Split", "f32[4] 1; i64[2] 3 3", "axis=0", "f32[3] 0; f32[3] 0",
              "part 1 has 3 elements, 1 of 4");
  check_fails("Split", "f32[4] 1; i64[2] 1 1", "axis=0", "f32[1] 0; f32[1] 0", "the parts have 2 elements");
}

CPU_TEST(slices_with_any_step) {
  check("Slice", "f32[2,4] 1 2 3 4 5 6 7 8; i64[2] 1 0; i64[2] 2 3; i64[2] 0 1; i64[2] 1 2", "",
        "f32[1,2] 5 7");
  check("Slice", "f32[4] 1 2 3 4; i64[1] -1; i64[1] -9223372036854775807; i64[1] 0; i64[1] -1", "",
        "f32[4] 4 3 2 1");
  check("Slice", "f32[4] 1 2 3 4; i32[1] 1; i32[1] 1000; i32[1] -1", "", "f32[3] 2 3 4");
  check("Slice", "f32[4] 1 2 3 4; i64[1] 3; i64[1] 1", "", "f32[0]");
  check("Slice", "f32[4] 1 2 3 4; i64[1] 10; i64[1] 0; i64[1] 0; i64[1] -3", "", "f32[1] 4");
  check("Slice", "f32[4] 1 2 3 4; i64[1] 0; i64[1] 9223372036854775807; i64[1] 0; i64[1] 9223372036854775807",
        "", "f32[1] 1");
  check("Slice", "f32[3] 1 2 3; i64[1] 2; i64[1] -9; i64[1] 0; i64[1] -9223372036854775808", "", "f32[1] 3");
  check("Slice", "u8[2,2] 1 2 3 4; i64[1] -1; i64[1] -3; i64[1] 1; i64[1] -1", "", "u8[2,2] 2 1 4 3");
  check_fails("Slice", "f32[2] 1; i64[1] 0; i64[1] 1; i64[1] 0; i64[1] 0", "", "f32[1] 0", "step 0");
  check_fails("Slice", "f32[2] 1; i64[1] 0; i64[1] 1; i64[1] 1", "", "f32[1] 0", "axis 1");
}

CPU_TEST(repeats_elements) {
  check("Expand", "f32[3,1] 1 2 3; i64[3] 2 1 2", "", "f32[2,3,2] 1 1 2 2 3 3 1 1 2 2 3 3");
  check("Expand", "f32[3] 1 2 3; i64[1] 1", "", "f32[3] 1 2 3");
  check("Tile", "f32[2,2] 1 2 3 4; i64[2] 2 1", "", "f32[4,2] 1 2 3 4 1 2 3 4");
  check("Tile", "f32[1,2] 1 2; i64[2] 2 2", "", "f32[2,4] 1 2 1 2 1 2 1 2");
  check("Tile", "str[1] a; i64[1] 3", "", "str[3] a a a");
  check_fails("Expand", "f32[2] 1; i64[1] 3", "", "f32[3] 0", "does not broadcast");
  check_fails("Tile", "f32[2] 1; i64[1] -1", "", "f32[2] 0", "repeats has -1");
}

CPU_TEST(pads_in_every_mode) {
  check("Pad", "f32[2,2] 1 2 3 4; i64[4] 0 1 0 1; f32[] 9", "", "f32[2,4] 9 1 2 9 9 3 4 9");
  check("Pad", "f32[2,2] 1 2 3 4; i64[2] 1 0; -; i64[1] 0", "", "f32[3,2] 0 0 1 2 3 4");
  check("Pad", "f32[4] 1 2 3 4; i64[2] -1 2", "", "f32[5] 2 3 4 0 0");
  check("Pad", "f32[3] 1 2 3; i64[2] 2 2", "mode='edge'", "f32[7] 1 1 1 2 3 3 3");
  check("Pad", "f32[3] 1 2 3; i64[2] 2 2", "mode='reflect'", "f32[7] 3 2 1 2 3 2 1");
  check("Pad", "f32[3] 1 2 3; i64[2] 4 5", "mode='reflect'", "f32[12] 1 2 3 2 1 2 3 2 1 2 3 2");
  check("Pad", "f32[3] 1 2 3; i64[2] 2 4", "mode='wrap'", "f32[9] 2 3 1 2 3 1 2 3 1");
  check("Pad", "f32[2,2] 1 2 3 4; i64[4] 1 1 0 0", "mode='reflect'", "f32[3,3] 4 3 4 2 1 2 4 3 4");
  check("Pad", "i64[2] 5 6; i64[2] -1 -1", "", "i64[0]");
  check("CenterCropPad", "f32[2,3] 1 2 3 4 5 6; i64[2] 1 5", "", "f32[1,5] 0 1 2 3 0");
  check("CenterCropPad", "f32[4] 1 2 3 4; i64[1] 3", "axes=[-1]", "f32[3] 1 2 3");
  check("CenterCropPad", "f32[2] 1 2; i64[1] 5", "", "f32[5] 0 1 2 0 0");
  check_fails("Pad", "f32[2] 1; i64[2] -2 -1", "", "f32[0]", "pads of -2 and -1");
  check_fails("Pad", "f32[0]; i64[2] 1 0", "mode='edge'", "f32[1] 0", "no elements to fill the border");
  op_case_fails(&cpu, "Pad", "f32[2] 1; i64[2] 1 0", "mode='mirror'", "f32[3] 0", CLEAVE_ERROR_UNSUPPORTED,
                "mode 'mirror'");
}

CPU_TEST(gathers_by_index) {
  check("Gather", "f32[3,2] 1 2 3 4 5 6; i64[2] 2 -3", "axis=0", "f32[2,2] 5 6 1 2");
  check("Gather", "f32[2,3] 1 2 3 4 5 6; i32[1,2] 0 2", "axis=1", "f32[2,1,2] 1 3 4 6");
  check("Gather", "str[3] a b c; i64[] 1", "axis=0", "str[] b");
  check("GatherElements", "f32[2,2] 1 2 3 4; i64[2,2] 0 0 1 0", "axis=1", "f32[2,2] 1 1 4 3");
  check("GatherElements", "f32[3,2] 1 2 3 4 5 6; i64[1,2] -1 0", "axis=0", "f32[1,2] 5 2");
  check("GatherND", "f32[2,2] 1 2 3 4; i64[2,2] 0 0 1 1", "", "f32[2] 1 4");
  check("GatherND", "f32[2,2] 1 2 3 4; i64[2,1] 1 -2", "", "f32[2,2] 3 4 1 2");
  check("GatherND", "f32[2,2,2] 1 2 3 4 5 6 7 8; i64[2,1] 1 0", "batch_dims=1", "f32[2,2] 3 4 5 6");
  check_fails("Gather", "f32[3] 1; i64[1] 3", "axis=0", "f32[1] 0",
              "index 3 at element 0 is outside a dim of 3");
  check_fails("GatherElements", "f32[2] 1; i64[2] 0 -3", "axis=0", "f32[2] 0", "index -3 at element 1");
  check_fails("GatherND", "f32[2,2] 1; i64[1,2] 1 2", "", "f32[1] 0", "index 2 at element 1");
  check_fails("GatherND", "f32[2] 1; i64[1,2] 0 0", "", "f32[1] 0", "tuples of 2 indices do not fit rank 1");
}

CPU_TEST(scatters_with_and_without_reduction) {
  check("ScatterElements", "f32[1,5] 1 2 3 4 5; i64[1,2] 1 3; f32[1,2] 1.5 2.5", "axis=1",
        "f32[1,5] 1 1.5 3 2.5 5");
  check("ScatterElements", "f32[1,5] 1 2 3 4 5; i64[1,2] 1 1; f32[1,2] 1 2", "axis=1 reduction='add'",
        "f32[1,5] 1 5 3 4 5");
  check("ScatterElements", "i32[3] 1 2 3; i64[2] -1 0; i32[2] 9 7", "reduction='max'", "i32[3] 7 2 9");
  check("ScatterElements", "u8[3] 1 2 3; i64[2] 0 0; u8[2] 16 16", "reduction='mul'", "u8[3] 0 2 3");
  check("ScatterElements", "f16[2] 1 2; i64[1] 1; f16[1] 0.5", "reduction='min'", "f16[2] 1 0.5");
  check("TensorScatter", "f32[2,4,1] 1 2 3 4 5 6 7 8; f32[2,2,1] 10 20 30 40; i64[2] 1 2", "",
        "f32[2,4,1] 1 10 20 4 5 6 30 40");
  check("TensorScatter", "f16[1,2,3,1] 1 2 3 4 5 6; f16[1,2,1,1] 7 8; i64[1] 2", "",
        "f16[1,2,3,1] 1 2 7 4 5 8");
  check("TensorScatter", "i8[1,4,1] 1 2 3 4; i8[1,2,1] 10 20; i64[1] 3", "mode='circular'",
        "i8[1,4,1] 20 2 3 10");
  check("TensorScatter", "f32[1,2,3] 1 2 3 4 5 6; f32[1,2,1] 7 8", "axis=2", "f32[1,2,3] 7 2 3 8 5 6");
  check("ScatterND", "f32[4] 1 2 3 4; i64[2,1] 1 -1; f32[2] 9 8", "", "f32[4] 1 9 3 8");
  check("ScatterND", "f32[2,2] 1 2 3 4; i64[2,1] 1 1; f32[2,2] 10 20 30 40", "reduction='add'",
        "f32[2,2] 1 2 43 64");
  check("ScatterND", "str[2] a b; i64[1,1] 0; str[1] c", "", "str[2] c b");
  check_fails("ScatterElements", "f32[2] 1; i64[1] 2; f32[1] 0", "", "f32[2] 0", "index 2 at element 0");
  check_fails("ScatterND", "f32[2] 1; i64[1,1] 0; f32[2] 0", "", "f32[2] 0",
              "updates have 2 elements, expected 1");
  op_case_fails(&cpu, "ScatterND", "f32[2] 1; i64[1,1] 0; f32[1] 0", "reduction='xor'", "f32[2] 0",
                CLEAVE_ERROR_UNSUPPORTED, "reduction 'xor'");
}

CPU_TEST(makes_tensors_from_numbers) {
  check("ConstantOfShape", "i64[2] 2 2", "value=<i32[1] 7>", "i32[2,2] 7");
  check("ConstantOfShape", "i64[1] 3", "", "f32[3] 0");
  check("ConstantOfShape", "i64[0]", "value=<f32[1] 2>", "f32[] 2");
  check("Range", "i64[] 1; i64[] 6; i64[] 2", "", "i64[3] 1 3 5");
  check("Range", "i32[] 10; i32[] 6; i32[] -3", "", "i32[2] 10 7");
  check("Range", "f32[] 0; f32[] 1; f32[] 0.25", "", "f32[4] 0 0.25 0.5 0.75");
  check("Range", "f32[] 1; f32[] 0; f32[] 1", "", "f32[0]");
  check("EyeLike", "i32[2,3] 0", "k=1", "f64[2,3] 0 1 0 0 0 1");
  check("EyeLike", "f32[2,2] 0", "k=-5", "f32[2,2] 0");
  check("OneHot", "i64[3] 0 -1 5; i64[] 3; f32[2] 2 9", "", "f32[3,3] 9 2 2 2 2 9 2 2 2");
  check("OneHot", "i64[2] 1 0; i64[] 2; i32[2] 0 1", "axis=0", "i32[2,2] 0 1 1 0");
  check("Trilu", "f32[3,3] 1 2 3 4 5 6 7 8 9", "", "f32[3,3] 1 2 3 0 5 6 0 0 9");
  check("Trilu", "f32[3,3] 1 2 3 4 5 6 7 8 9; i64[] -1", "upper=0", "f32[3,3] 0 0 0 4 0 0 7 8 0");
  check("Trilu", "i64[2,2] 1 2 3 4; i64[] 9", "", "i64[2,2] 0");
  check_fails("Range", "i64[] 0; i64[] 1; i64[] 0", "", "i64[1] 0", "delta is 0");
  check_fails("ConstantOfShape", "i64[1] -1", "", "f32[1] 0", "shape has -1");
}

CPU_TEST(finds_shapes_in_the_data) {
  check("NonZero", "f32[2,2] 1 0 -2 3", "", "i64[2,3] 0 1 1 0 0 1");
  check("NonZero", "bool[3] 0 1 1", "", "i64[1,2] 1 2");
  check("Compress", "f32[3,2] 1 2 3 4 5 6; bool[2] 0 1", "axis=0", "f32[1,2] 3 4");
  check("Compress", "f32[3,2] 1 2 3 4 5 6; bool[2] 0 1", "axis=1", "f32[3,1] 2 4 6");
  check("Compress", "f32[3,2] 1 2 3 4 5 6; bool[5] 0 1 0 0 1", "", "f32[2] 2 5");
  check("Unique", "f32[6] 2 1 1 3 4 3", "",
        "f32[4] 1 2 3 4; i64[4] 1 0 3 4; i64[6] 1 0 0 2 3 2; i64[4] 2 1 2 1");
  check("Unique", "f32[6] 2 1 1 3 4 3", "sorted=0",
        "f32[4] 2 1 3 4; i64[4] 0 1 3 4; i64[6] 0 1 1 2 3 2; i64[4] 1 2 2 1");
  check("Unique", "f32[3,2] 1 0 1 0 2 3", "axis=0", "f32[2,2] 1 0 2 3; i64[2] 0 2; i64[3] 0 0 1; i64[2] 2 1");
  check("Unique", "i64[2,3] 1 1 2 0 0 3", "axis=1", "i64[2,2] 1 2 0 3; -; i64[3] 0 0 1");
  check("Unique", "str[3] b a b", "", "str[2] a b");
  check("Unique", "f32[3] nan 1 nan", "", "f32[2] 1 nan");
  check("Unique", "i64[0]", "", "i64[0]; i64[0]; i64[0]; i64[0]");
}

CPU_TEST(reverses_sequences_and_takes_determinants) {
  check("ReverseSequence", "f32[2,3] 1 2 3 4 5 6; i64[2] 2 3", "time_axis=1 batch_axis=0",
        "f32[2,3] 2 1 3 6 5 4");
  check("ReverseSequence", "f32[3,2] 1 2 3 4 5 6; i64[2] 1 3", "time_axis=0 batch_axis=1",
        "f32[3,2] 1 6 3 4 5 2");
  check_fails("ReverseSequence", "f32[2,2] 1; i64[2] 1 3", "", "f32[2,2] 0", "length 3 of batch 1");
  check("Det", "f32[2,2,2] 1 2 3 4 0 1 1 0", "", "f32[2] -2 -1");
  check("Det", "f64[3,3] 2 0 1 1 3 2 1 1 4", "", "f64[] 18");
  check("Det", "f32[2,2] 1 2 2 4", "", "f32[] 0");
}

/* Draws 10,000 numbers, and gives their mean and variance. */
static void draw(const char *op, double seed, double *mean, double *variance, float *first) {
  view_builder_t *b = view_builder_create();
  int64_t dims[] = {100, 100};
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_F32, 2, dims);
  uint32_t node = view_builder_node(b, op, 0, NULL, 1, &y);
  view_builder_ints(b, node, "shape", 2, dims);
  view_builder_float(b, node, "seed", seed);
  view_builder_output(b, y);
  view_program_t program;
  ck_assert_int_eq(view_program_create(&program, cpu.backend, cpu.state, view_builder_region(b), 2),
                   CLEAVE_OK);
  ck_assert_int_eq(view_program_run(&program), CLEAVE_OK);
  const float *values = program.outputs[0].data;
  double sum = 0;
  double squares = 0;
  for (int k = 0; k < 10000; k++) {
    sum += (double)values[k];
    squares += (double)values[k] * (double)values[k];
  }
  *first = values[0];
  *mean = sum / 10000;
  *variance = squares / 10000 - *mean * *mean;
  view_program_destroy(&program);
  view_builder_destroy(b);
}

CPU_TEST(draws_seeded_random_numbers) {
  double mean = 0;
  double variance = 0;
  float first = 0;
  float again = 0;
  float other = 0;
  draw("RandomNormal", 1.0, &mean, &variance, &first);
  ck_assert_double_eq_tol(mean, 0.0, 0.03);
  ck_assert_double_eq_tol(variance, 1.0, 0.05);
  draw("RandomUniform", 7.0, &mean, &variance, &first);
  ck_assert_double_eq_tol(mean, 0.5, 0.01);
  ck_assert_double_eq_tol(variance, 1.0 / 12, 0.003);
  draw("RandomUniform", 7.0, &mean, &variance, &again);
  draw("RandomUniform", 8.0, &mean, &variance, &other);
  ck_assert_float_eq(first, again);
  ck_assert_float_ne(first, other);
  check("Bernoulli", "f32[4] 0 1 0 1", "seed=3.0", "f32[4] 0 1 0 1");
  check("Multinomial", "f32[2,2] 0 -1000 -1000 0", "sample_size=3", "i32[2,3] 0 0 0 1 1 1");
}

/* One Momentum step of one tensor of two elements, with alpha 0.5 and beta 2. */
static void momentum_step(const char *mode, int64_t count, float *x, float *v) {
  view_builder_t *b = view_builder_create();
  int64_t two[] = {2};
  uint32_t inputs[5];
  inputs[0] = view_builder_value(b, CLEAVE_DTYPE_F32, 0, NULL);
  inputs[1] = view_builder_value(b, CLEAVE_DTYPE_I64, 0, NULL);
  for (int k = 2; k < 5; k++) {
    inputs[k] = view_builder_value(b, CLEAVE_DTYPE_F32, 1, two);
  }
  uint32_t outputs[2] = {view_builder_value(b, CLEAVE_DTYPE_F32, 1, two),
                         view_builder_value(b, CLEAVE_DTYPE_F32, 1, two)};
  uint32_t node = view_builder_node(b, "Momentum", 5, inputs, 2, outputs);
  view_builder_domain(b, node, "ai.onnx.preview.training");
  view_builder_string(b, node, "mode", mode);
  view_builder_float(b, node, "alpha", 0.5);
  view_builder_float(b, node, "beta", 2.0);
  view_builder_float(b, node, "norm_coefficient", 0.0);
  view_builder_output(b, outputs[0]);
  view_builder_output(b, outputs[1]);
  view_program_t program;
  ck_assert_int_eq(view_program_create(&program, cpu.backend, cpu.state, view_builder_region(b), 1),
                   CLEAVE_OK);
  float rate = 0.25f;
  view_program_input(&program, 0, 0, NULL, &rate);
  view_program_input(&program, 1, 0, NULL, &count);
  view_program_input(&program, 2, 1, two, (float[]){1, 2});
  view_program_input(&program, 3, 1, two, (float[]){4, -4});
  view_program_input(&program, 4, 1, two, (float[]){8, 0});
  ck_assert_int_eq(view_program_run(&program), CLEAVE_OK);
  memcpy(x, program.outputs[0].data, 2 * sizeof *x);
  memcpy(v, program.outputs[1].data, 2 * sizeof *v);
  view_program_destroy(&program);
  view_builder_destroy(b);
}

CPU_TEST(takes_optimiser_steps_of_the_training_domain) {
  float x[2];
  float v[2];
  momentum_step("standard", 0, x, v); /* v = 0.5 v + g */
  ck_assert_float_eq(v[0], 8);
  ck_assert_float_eq(x[0], -1);
  ck_assert_float_eq(v[1], -4);
  ck_assert_float_eq(x[1], 3);
  momentum_step("nesterov", 1, x, v); /* v = 0.5 v + 2 g; x -= r (g + 0.5 v) */
  ck_assert_float_eq(v[0], 12);
  ck_assert_float_eq(x[0], -1.5f);
  op_case_fails(&cpu, "Momentum", "f32[] 1; i64[] 0; f32[1] 1; f32[1] 1; f32[1] 1", "", "f32[1] 0; f32[1] 0",
                CLEAVE_ERROR_UNSUPPORTED, "no kernel for this operator");
}

UNIT_SUITE("cpu_kernels")

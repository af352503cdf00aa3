// SPDX-License-Identifier: Apache-2.0
// Inference of what moves, cuts, selects and resizes. Each line is one node; see infer_case.h.

#include "infer_case.h"
#include "unit.h"

UNIT_TEST(views_relate_element_counts) {
  static const infer_case_t cases[] = {
      {"Reshape", "f32[2,3,4] i64(6,4)", "", "f32[6,4]", NULL},
      {"Reshape", "f32[2,3,4] i64(0,-1)", "", "f32[2,12]", NULL},
      {"Reshape", "f32[N,T,768] i64(0,0,12,64)", "", "f32[N,T,12,64]", NULL},
      {"Reshape", "f32[N,T,768] i64(0,-1,12,64)", "", "f32[N,T,12,64]", NULL},
      {"Reshape", "f32[N,T,768] i64(-1,768)", "", "f32[N*T,768]", NULL},
      {"Reshape", "f32[?,T,768] i64(0,-1,768)", "", "f32[?,T,768]", NULL},
      {"Reshape", "f32[2,3] i64[3]", "", "f32[?,?,?]", NULL},
      {"Reshape", "f32[2,3] i64[?]", "", "f32[...]", NULL},
      {"Reshape", "f32[0,3] i64(0,7)", "allowzero=1", "f32[0,7]", NULL},
      {"Reshape", "f32[2,?] i64(3,4)", "", "f32[3,4]", "f32[2,6] i64[2]"},
      {"Reshape", "?[...] i64(3,4)", "", "?[3,4]", NULL},
      {"Reshape", "f32[2,3] i64(4,-1)", "", "!6 elements cannot be split into rows of 4", NULL},
      {"Reshape", "f32[2,3] i64(4,2)", "", "!expected 6 elements, found a shape with 8", NULL},
      {"Reshape", "f32[2,3] i64(-1,-1)", "", "!more than one size of the shape is -1", NULL},
      {"Reshape", "f32[2,3] i64(-2,3)", "", "!expected sizes of -1 or more, found -2", NULL},
      {"Reshape", "f32[2] i64(2,0)", "", "!size 1 of the shape is 0, but the input has rank 1", NULL},
      {"Reshape", "f32[2] i64(1,1,1,1,1,1,1,1,2)", "", "!expected a rank from 0 to 8, found 9", NULL},
      {"Reshape", "f32[2] i32(2)", "", "!input 'shape': expected dtype int64, found int32", NULL},
      {"Flatten", "f32[N,8,7,7]", "", "f32[N,392]", NULL},
      {"Flatten", "f32[]", "axis=0", "f32[1,1]", NULL},
      {"Flatten", "f32[2,3,4]", "axis=0", "f32[1,24]", NULL},
      {"Flatten", "f32[2,3,4]", "axis=-1", "f32[6,4]", NULL},
      {"Flatten", "f32[2,3,4]", "axis=4", "!expected an axis from -3 to 3, found 4", NULL},
      {"Squeeze", "f32[1,N,1] i64(0,-1)", "", "f32[N]", NULL},
      {"Squeeze", "f32[1,5,1]", "", "f32[5]", NULL},
      {"Squeeze", "f32[?,5] i64(0)", "", "f32[5]", "f32[1,5] i64[1]"},
      {"Squeeze", "f32[2,5] i64(0)", "", "!expected shape [1, 5], found [2, 5]", NULL},
      {"Squeeze", "f32[1,5] i64(0,-2)", "", "!axis 0 is given twice", NULL},
      {"Unsqueeze", "f32[N] i64(0,2)", "", "f32[1,N,1]", NULL},
      {"Unsqueeze", "f32[N] i64(3)", "", "!expected an axis from -2 to 1, found 3", NULL},
      {"Unsqueeze", "f32[1,1,1,1,1,1,1,1] i64(0)", "", "!expected a rank from 0 to 8, found 9", NULL},
      {"Identity", "f32[N,?]", "", "f32[N,?]", NULL},
  };
  INFER_CASES(cases);
}

UNIT_TEST(slices_follow_numpy) {
  static const infer_case_t cases[] = {
      {"Slice", "f32[10,8] i64(1) i64(5)", "", "f32[4,8]", NULL},
      {"Slice", "f32[10,8] i64(-3) i64(1000) i64(1)", "", "f32[10,3]", NULL},
      {"Slice", "f32[10,8] i64(0,1) i64(-1,7) i64(0,1) i64(2,3)", "", "f32[5,2]", NULL},
      {"Slice", "f32[10] i64(9) i64(-100) i64(0) i64(-1)", "", "f32[10]", NULL},
      {"Slice", "f32[10] i64(20) i64(0) i64(0) i64(-4)", "", "f32[3]", NULL},
      {"Slice", "f32[10] i64(5) i64(5)", "", "f32[0]", NULL},
      {"Slice", "f32[10] i64(7) i64(3)", "", "f32[0]", NULL},
      {"Slice", "f32[0] i64(0) i64(3)", "", "f32[0]", NULL},
      {"Slice", "f32[10] i64(-9223372036854775808) i64(9223372036854775807)", "", "f32[10]", NULL},
      {"Slice", "f32[10] i64(9223372036854775807) i64(-9223372036854775808) i64(0) i64(-9223372036854775808)",
       "", "f32[1]", NULL},
      {"Slice", "f32[N,T] i64(1) i64(9223372036854775807) i64(1)", "", "f32[N,T-1]", NULL},
      {"Slice", "f32[N,T] i64(0) i64(1) i64(1)", "", "f32[N,min(T,1)]", NULL},
      {"Slice", "f32[N,T] i64(0) i64(0) i64(1)", "", "f32[N,0]", NULL},
      {"Slice", "f32[?,T] i64(0) i64(1)", "", "f32[?,T]", NULL},
      {"Slice", "f32[?,T] i64(0) i64(100)", "", "f32[?,T]", NULL},
      {"Slice", "f32[?,T] i64(1) i64(3)", "", "f32[?,T]", NULL},
      {"Slice", "f32[?,T] i64(-1) i64(9223372036854775807)", "", "f32[?,T]", NULL},
      {"Slice", "f32[N,T] i64(0) i64(-1) i64(1)", "", "f32[N,T-1]", NULL},
      {"Slice", "f32[N,T] i64(-1) i64(9223372036854775807) i64(1)", "", "f32[N,min(T,1)]", NULL},
      {"Slice", "f32[N,T] i64(-3) i64(-1) i64(1)", "", "f32[N,min(T,3)-1]", NULL},
      {"Slice", "f32[N,T] i64(0) i64(512) i64(1)", "", "f32[N,min(T,512)]", NULL},
      {"Slice", "f32[N,T] i64(-1) i64(-9223372036854775807) i64(1) i64(-1)", "", "f32[N,T]", NULL},
      {"Slice", "f32[N,T] i64(0) i64(9223372036854775807) i64(1) i64(2)", "", "f32[N,floor((T+1)/(2))]",
       NULL},
      {"Slice", "f32[N,8] i64[1] i64[1] i64(1)", "", "f32[N,?]", NULL},
      {"Slice", "f32[N,8] i64[1] i64[1] i64[1]", "", "f32[?,?]", NULL},
      {"Slice", "f32[10] i64(0) i64(5) i64(0) i64(0)", "", "!the step of axis 0 is 0", NULL},
      {"Slice", "f32[10] i64(0) i64(5) i64(1)", "", "!expected an axis from -1 to 0, found 1", NULL},
      {"Slice", "f32[10] i64(0,1) i64(5)", "", "!starts, ends, axes and steps differ in length: 2 and 1",
       NULL},
  };
  INFER_CASES(cases);
}

UNIT_TEST(joins_and_splits_add_up) {
  static const infer_case_t cases[] = {
      {"Concat", "f32[N,3] f32[N,4] f32[N,T]", "axis=1", "f32[N,T+7]", NULL},
      {"Concat", "f32[2,?] ?[...]", "axis=0", "f32[?,?]", "f32[2,?] f32[?,?]"},
      {"Concat", "f32[2,3] f32[?,?]", "axis=-2", "f32[?,3]", "f32[2,3] f32[?,3]"},
      {"Concat", "f32[2,3] f32[2,4]", "axis=0", "!expected shape", NULL},
      {"Concat", "f32[2,3] f32[2]", "axis=0", "!input 1: expected rank 2, found 1", NULL},
      {"Concat", "f32[2,3]", "axis=2", "!expected an axis from -2 to 1, found 2", NULL},
      {"Split", "f32[N,9]", "axis=1", "f32[N,3] f32[N,3] f32[N,3]", NULL},
      {"Split", "f32[N,7]", "axis=1 num_outputs=3", "f32[N,3] f32[N,3] f32[N,1]", NULL},
      {"Split", "f32[N,8] i64(5,3)", "axis=1", "f32[N,5] f32[N,3]", NULL},
      {"Split", "f32[N,?] i64(5,3)", "axis=1", "f32[N,5] f32[N,3]", "f32[N,8] i64[2]"},
      {"Split", "f32[N,8] i64(5,4)", "axis=1", "!!expected shape", NULL},
      {"Split", "f32[N,8] i64(9,-1)", "axis=1", "!!part 1: expected a size of 0 or more, found -1", NULL},
      {"Split", "f32[N,8] i64(8)", "axis=1", "!!input 'split': expected shape [2], found [1]", NULL},
      {"Tile", "f32[2,N] i64(3,2)", "", "f32[6,2*N]", NULL},
      {"Tile", "f32[2,N] i64(3)", "", "!input 'input': expected rank 1, found 2", NULL},
      {"Tile", "f32[2,3] i64(3,-1)", "", "!expected sizes of 0 or more, found -1", NULL},
      {"Pad", "f32[1,3,H,8] i64(0,0,1,1,0,0,1,2)", "", "f32[1,3,H+2,11]", NULL},
      {"Pad", "f32[1,8] i64(0,-1,0,-2)", "", "f32[1,5]", NULL},
      {"Pad", "f32[4,8] i64(1,2) - i64(-1)", "", "f32[4,11]", NULL},
      {"Pad", "f32[1,2] i64(0,-3,0,0)", "", "!axis 1 of size 2 cannot be padded by -3 and 0", NULL},
      {"Pad", "f32[1,2] i64(0,3)", "", "!input 'pads': expected shape [4], found [2]", NULL},
      {"Pad", "f32[1,2] i64(0,9223372036854775807,0,9223372036854775807)", "", "!cannot be padded", NULL},
      {"CenterCropPad", "f32[10,7,3] i64(6,8)", "axes=0,1", "f32[6,8,3]", NULL},
      {"Expand", "f32[3,1] i64(2,1,6)", "", "f32[2,3,6]", NULL},
      {"Expand", "f32[1,T] i64[2]", "", "f32[?,?]", NULL},
      {"Expand", "f32[3] i64(4)", "", "!the input does not broadcast to the requested shape", NULL},
  };
  INFER_CASES(cases);
}

UNIT_TEST(gathers_and_scatters_combine_shapes) {
  static const infer_case_t cases[] = {
      {"Gather", "f32[30522,768] i64[N,T]", "", "f32[N,T,768]", NULL},
      {"Gather", "f32[N,T,768] i64:0", "axis=1", "f32[N,768]", NULL},
      {"Gather", "f32[2,3] f32[1]", "", "!indices are float32, expected int32 or int64", NULL},
      {"Gather", "f32[] i64[1]", "", "!expected an axis", NULL},
      {"Gather", "f32[1,1,1,1,1] i64[1,1,1,1,1]", "", "!expected a rank from 0 to 8, found 9", NULL},
      {"GatherElements", "f32[3,3] i64[2,?]", "axis=1", "f32[2,?]", NULL},
      {"GatherND", "f32[2,3,4] i64[5,2]", "", "f32[5,4]", NULL},
      {"GatherND", "f32[2,3,4] i64[2,1]", "batch_dims=1", "f32[2,4]", NULL},
      {"GatherND", "f32[2,3] i64[5,3]", "", "!index tuples of 3 do not fit data of rank 2", NULL},
      {"GatherND", "f32[2,3] i64[5,1]", "batch_dims=-1", "!batch_dims -1 does not fit", NULL},
      {"ScatterElements", "f32[3,3] i64[2,?] ?[?,3]", "", "f32[3,3]", "f32[3,3] i64[2,3] f32[2,3]"},
      {"ScatterND", "f32[4,5,6] i64[2,1] f32[2,?,?]", "", "f32[4,5,6]", "f32[4,5,6] i64[2,1] f32[2,5,6]"},
      {"ScatterND", "f32[4,5,6] i64[2,4] f32[2]", "", "!index tuples of 4", NULL},
      {"TensorScatter", "f32[N,4,C,8] ?[?,?,1,?] ?[?]", "", "f32[N,4,C,8]",
       "f32[N,4,C,8] f32[N,4,1,8] i64[N]"},
      {"TensorScatter", "f32[2,4,3] f32[2,5,3]", "", "!5 rows cannot fit into a cache of 4", NULL},
      {"TensorScatter", "f32[2,4,3] f32[2,1,3]", "axis=0", "!axis 0 is the batch", NULL},
      {"Transpose", "f32[N,T,12,64]", "perm=0,2,1,3", "f32[N,12,T,64]", NULL},
      {"Transpose", "f32[2,3,4]", "", "f32[4,3,2]", NULL},
      {"Transpose", "f32[2,3]", "perm=0,0", "!perm names axis 0 twice", NULL},
      {"Transpose", "f32[2,3]", "perm=0,2", "!expected an axis", NULL},
      {"Transpose", "f32[2,3]", "perm=0,1,2", "!expected rank 3, found 2", NULL},
      {"DepthToSpace", "f32[N,8,2,3]", "blocksize=2", "f32[N,2,4,6]", NULL},
      {"DepthToSpace", "f32[N,7,2,3]", "blocksize=2", "!axis 1 of size 7 is not a multiple of 4", NULL},
      {"DepthToSpace", "f32[N,8,2,3]", "blocksize=0", "!blocksize is 0", NULL},
      {"SpaceToDepth", "f32[N,2,4,6]", "blocksize=2", "f32[N,8,2,3]", NULL},
      {"Trilu", "f32[N,3,3]", "", "f32[N,3,3]", NULL},
      {"ReverseSequence", "f32[4,?] i64[2]", "", "f32[4,2]", NULL},
      {"ReverseSequence", "f32[4,2] i64[2]", "batch_axis=0 time_axis=0", "!expected 0 and 1", NULL},
  };
  INFER_CASES(cases);
}

UNIT_TEST(selection_leaves_sizes_open_that_depend_on_data) {
  static const infer_case_t cases[] = {
      {"NonZero", "f32[2,3,4]", "", "i64[3,?]", NULL},
      {"Compress", "f32[2,3] bool[3]", "axis=1", "f32[2,?]", NULL},
      {"Compress", "f32[2,3] bool[3]", "", "f32[?]", NULL},
      {"Unique", "f32[2,3]", "axis=0", "f32[?,3] i64[?] i64[?] i64[?]", NULL},
      {"NonMaxSuppression", "f32[N,100,4] f32[N,80,?]", "", "i64[?,3]", "f32[N,100,4] f32[N,80,100]"},
      {"TopK", "f32[N,10] i64(3)", "", "f32[N,3] i64[N,3]", NULL},
      {"TopK", "f32[N,10] i64[1]", "axis=1", "f32[N,?] i64[N,?]", NULL},
      {"TopK", "f32[N,10] i64(11)", "", "!!cannot take 11 of axis 1", NULL},
      {"TopK", "f32[N,10] i64(-1)", "", "!!cannot take -1 of axis 1", NULL},
      {"OneHot", "i64[N,T] i64:12 f32[2]", "", "f32[N,T,12]", NULL},
      {"OneHot", "i64[N,T] f32(12) i32[2]", "axis=1", "i32[N,12,T]", NULL},
      {"OneHot", "i64[N,T] i64:-1 f32[2]", "", "!depth is -1", NULL},
      {"EyeLike", "f32[3,N]", "dtype=7", "i64[3,N]", NULL},
      {"Range", "i64:0 i64:10 i64:3", "", "i64[4]", NULL},
      {"Range", "i64:10 i64:0 i64:-3", "", "i64[4]", NULL},
      {"Range", "f32:1 f32:2 f32:0.3", "", "f32[4]", NULL},
      {"Range", "i64:0 i64:-5 i64:3", "", "i64[0]", NULL},
      {"Range", "i64:0 i64:5 i64:0", "", "!the step is 0", NULL},
      {"Range", "f32:0 f32:5 f32:0", "", "!the step is 0", NULL},
      {"Range", "i64:-9223372036854775808 i64:9223372036854775807 i64:1", "", "i64[?]", NULL},
      {"ConstantOfShape", "i64(2,3)", "", "f32[2,3]", NULL},
      {"ConstantOfShape", "i64()", "", "f32[]", NULL},
      {"ConstantOfShape", "i64(-2)", "", "!expected sizes of 0 or more, found -2", NULL},
  };
  INFER_CASES(cases);
}

UNIT_TEST(images_are_resized_by_scales_or_sizes) {
  static const infer_case_t cases[] = {
      {"Resize", "f32[N,3,10,20] - f32(1,1,2,0.5)", "", "f32[N,3,20,10]", NULL},
      {"Resize", "f32[N,3,H,W] - f32(1,1,2,0.5)", "", "f32[N,3,2*H,floor((W)/(2))]", NULL},
      {"Resize", "f32[N,3,10,20] - - i64(1,3,7,9)", "", "f32[1,3,7,9]", NULL},
      {"Resize", "f32[N,3,10,20] - f32() i64(7,9)", "axes=2,3", "f32[N,3,7,9]", NULL},
      {"Resize", "f32[1,1,2,4] - - i64(8,8)", "axes=2,3 keep_aspect_ratio_policy=not_larger", "f32[1,1,4,8]",
       NULL},
      {"Resize", "f32[1,1,2,4] - - i64(8,8)", "axes=2,3 keep_aspect_ratio_policy=not_smaller",
       "f32[1,1,8,16]", NULL},
      {"Resize", "f32[1,1,4,4] f32(0,0,0.25,0.25,1,1,0.75,0.75) f32(1,1,3,3)",
       "coordinate_transformation_mode=tf_crop_and_resize", "f32[1,1,6,6]", NULL},
      {"Resize", "f32[1,1,4,4]", "", "!neither scales nor sizes are given", NULL},
      {"Resize", "f32[1,1,4,4] - f32(1,1,0,1)", "", "!scales has the factor 0", NULL},
      {"Resize", "f32[1,1,4,4] - f32(1,1)", "", "!input 'scales': expected shape [4], found [2]", NULL},
      {"Resize", "f32[1,1,4,4] - - i64(1,1,-4,4)", "", "!sizes has the size -4", NULL},
      {"GridSample", "f32[N,3,10,20] f32[?,5,6,2]", "", "f32[N,3,5,6]", "f32[N,3,10,20] f32[N,5,6,2]"},
      {"GridSample", "f32[N,3,10,20] f32[N,5,6,3]", "", "!expected shape", NULL},
      {"AffineGrid", "f32[N,2,3] i64(4,3,5,6)", "", "f32[4,5,6,2]", NULL},
      {"AffineGrid", "f32[N,3,4] i64(4,3,5,6,7)", "", "f32[4,5,6,7,3]", NULL},
  };
  INFER_CASES(cases);
}

UNIT_SUITE("infer_move")

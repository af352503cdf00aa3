// SPDX-License-Identifier: Apache-2.0
// y[p] = x[p, with at[p] along the axis]. A place outside of the axis gives zeros. RANK is at least 1.
struct arguments {
  const element *x;
  const place *at;
  element *y;
  index count;
  index axis;
  index dims[RANK];
  index strides[RANK]; // of x; 0 along the axis
  index step;          // of x, along the axis
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  index rest = i;
  index from = 0;
#pragma unroll
  for (int d = RANK - 1; d >= 0; d--) {
    from += take_last(rest, args.dims[d]) * args.strides[d];
  }
  const i64 at = place_in(args.at[i], args.axis);
  element value = {};
  if (at >= 0) {
    value = args.x[from + (index)at * args.step];
  }
  args.y[i] = value;
}

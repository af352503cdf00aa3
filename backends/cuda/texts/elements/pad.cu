// SPDX-License-Identifier: Apache-2.0
// Pad with elements of the tensor itself. MODE 1: the last one; 2: reflected at it; 3: from the other end. RANK is at least 1.
struct arguments {
  const element *x;
  element *y;
  index count;
  index dims[RANK];  // of y
  index begin[RANK]; // where what is kept of x lies in y
  index kept[RANK];
  index from[RANK]; // and begins in x
  index stride[RANK];
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
    const index kept = args.kept[d];
    index at = take_last(rest, args.dims[d]) - args.begin[d];
#if MODE == 1
    at = at < 0 ? 0 : at < kept ? at : kept - 1;
#else
    const index period = MODE == 3 ? kept : kept > 1 ? 2 * (kept - 1) : 1;
    at %= period;
    at = at < 0 ? at + period : at;
    at = at < kept ? at : period - at;
#endif
    from += (args.from[d] + at) * args.stride[d];
  }
  args.y[i] = args.x[from];
}

// SPDX-License-Identifier: Apache-2.0
// Copies elements between two tensors of any strides. RANK is at least 1.
struct arguments {
  const element *x;
  element *y;
  index count;
  index dims[RANK];
  index from[RANK];
  index to[RANK];
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  index rest = i;
  index from = 0;
  index to = 0;
#pragma unroll
  for (int d = RANK - 1; d > 0; d--) {
    const index at = take_last(rest, args.dims[d]);
    from += at * args.from[d];
    to += at * args.to[d];
  }
  args.y[to + rest * args.to[0]] = args.x[from + rest * args.from[0]];
}

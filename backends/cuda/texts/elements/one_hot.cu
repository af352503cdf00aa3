// SPDX-License-Identifier: Apache-2.0
// y[outer][d][inner] = values[1] if d is the place at[outer][inner], counted from the end if it is negative; else values[0].
// `whole` makes a number of type `exact` of a place.
struct arguments {
  const place *at;
  const element *values;
  element *y;
  index count;
  index depth;
  index inner;
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  const index line = i / args.inner;
  const index outer = line / args.depth;
  const exact d = (exact)(line - outer * args.depth);
  const exact at = whole(args.at[outer * args.inner + i - line * args.inner]);
  args.y[i] = args.values[at == d || at == d - (exact)args.depth ? 1 : 0];
}

// SPDX-License-Identifier: Apache-2.0
// y[outer][k][inner] = x[outer][at[k]][inner]. A place outside of the axis gives zeros: nothing is read there.
struct arguments {
  const element *x;
  const place *at;
  element *y;
  index count;
  index axis;
  index places;
  index inner;
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  const index row = i / args.inner;
  const index outer = row / args.places;
  const i64 at = place_in(args.at[row - outer * args.places], args.axis);
  element value = {};
  if (at >= 0) {
    value = args.x[(outer * args.axis + (index)at) * args.inner + (i - row * args.inner)];
  }
  args.y[i] = value;
}

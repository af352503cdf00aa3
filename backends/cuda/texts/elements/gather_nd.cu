// SPDX-License-Identifier: Apache-2.0
// y[k][inner] = x[batch of k][the DEPTH places of tuple k][inner]. A place outside of its axis gives zeros: nothing is read there.
struct arguments {
  const element *x;
  const place *at;
  element *y;
  index count;
  index inner;
  index tuples; // of a batch
  index batch;  // of x, in elements
  index dims[DEPTH];
  index strides[DEPTH];
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  const index tuple = i / args.inner;
  index from = tuple / args.tuples * args.batch + i - tuple * args.inner;
  bool is_inside = true;
#pragma unroll
  for (int d = 0; d < DEPTH; d++) {
    const i64 at = place_in(args.at[tuple * DEPTH + d], args.dims[d]);
    is_inside = is_inside && at >= 0;
    from += (is_inside ? (index)at : 0) * args.strides[d];
  }
  element value = {};
  if (is_inside) {
    value = args.x[from];
  }
  args.y[i] = value;
}

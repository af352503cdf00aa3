// SPDX-License-Identifier: Apache-2.0
// One axis of a Resize: y[outer][k][inner] = sum over the taps of weights[k][tap] * x[outer][places[k][tap]][inner].
// What lies outside of the region of interest, with places of -1, is OUTSIDE. NEAREST: elements are copied.
struct arguments {
  const source *x;
  const i32 *places;
  const number *weights;
  target *y;
  index count;
  index axis;
  index out;
  index inner;
  index taps;
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  const index row = i / args.inner;
  const index outer = row / args.out;
  const index entry = (row - outer * args.out) * args.taps;
  const source *x = args.x + outer * args.axis * args.inner + (i - row * args.inner);
  if (args.places[entry] < 0) {
    args.y[i] = TO_TARGET(OUTSIDE);
    return;
  }
#ifdef NEAREST
  args.y[i] = x[(index)args.places[entry] * args.inner];
#else
  number sum = 0;
  for (index tap = 0; tap < args.taps; tap++) {
    sum += args.weights[entry + tap] * FROM_SOURCE(x[(index)args.places[entry + tap] * args.inner]);
  }
  args.y[i] = TO_TARGET(sum);
#endif
}

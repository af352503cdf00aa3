// SPDX-License-Identifier: Apache-2.0
// LRN: an element over a power of the mean square of its neighbours among the channels, WINDOW of them.
struct arguments {
  const element *x;
  element *y;
  index count;
  index channels;
  index places; // of a channel
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  const index line = i / args.places;
  const index channel = line % args.channels;
  const index before = (WINDOW - 1) / 2;
  const index after = WINDOW - 1 - before;
  const index first = channel < before ? -channel : -before;
  const index last = args.channels - 1 - channel < after ? args.channels - 1 - channel : after;
  number sum = 0;
  for (index k = first; k <= last; k++) {
    const number value = widen(args.x[i + k * args.places]);
    sum += value * value;
  }
  args.y[i] = narrow((number)widen(args.x[i]) / pow((number)BIAS + (number)SCALE * sum, (number)BETA));
}

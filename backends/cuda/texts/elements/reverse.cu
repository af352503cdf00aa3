// SPDX-License-Identifier: Apache-2.0
// ReverseSequence: of each sequence, the first lengths[b] elements in reverse, and what follows as it is. A length below 0 counts
// as 0, one above `times` as all of them.
struct arguments {
  const element *x;
  const i64 *lengths;
  element *y;
  index count;
  index times;
  index time_step; // elements
  index batches;
  index batch_step;
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  const index time = i / args.time_step % args.times;
  const i64 given = args.lengths[i / args.batch_step % args.batches];
  const index length = given < 0 ? 0 : given < args.times ? (index)given : args.times;
  args.y[i] = args.x[time < length ? i + (length - 1 - 2 * time) * args.time_step : i];
}

// SPDX-License-Identifier: Apache-2.0
// Every element the same, whose bits come in two halves.
struct arguments {
  element *y;
  index count;
  index low;
  index high;
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i < args.count) {
    args.y[i] = (element)((u64)(u32)args.high << 32 | (u64)(u32)args.low);
  }
}

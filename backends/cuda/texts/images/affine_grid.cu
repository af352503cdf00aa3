// SPDX-License-Identifier: Apache-2.0
// AffineGrid over AXES axes: y[n][p] = theta[n] times the coordinates of place p, the last axis first, and 1. ALIGNED: they reach
// from -1 to 1, otherwise their elements do.
struct arguments {
  const element *theta;
  element *y;
  index count;
  index out[AXES];
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  index image = i;
  double at[AXES];
#pragma unroll
  for (int d = AXES - 1; d >= 0; d--) {
    const double place = (double)take_last(image, args.out[d]);
    const double size = (double)args.out[d];
    at[AXES - 1 - d] = ALIGNED ? (size > 1 ? 2 * place / (size - 1) - 1 : 0) : (2 * place + 1) / size - 1;
  }
  const element *theta = args.theta + image * AXES * (AXES + 1);
  for (int row = 0; row < AXES; row++) {
    double sum = 0;
    for (int k = 0; k < AXES; k++) {
      sum += (double)widen(theta[row * (AXES + 1) + k]) * at[k];
    }
    args.y[i * AXES + row] = narrow(sum + (double)widen(theta[row * (AXES + 1) + AXES]));
  }
}

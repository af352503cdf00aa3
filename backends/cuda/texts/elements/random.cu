// SPDX-License-Identifier: Apache-2.0
// Numbers that look random: element k is a hash of the seed and k, the same as on `cpu`. MODE 0: uniform from FIRST to SECOND; 1: normal,
// of mean FIRST and deviation SECOND; 2: 1 with the probability that x has, else 0. Double, as there; that bounds it.
struct arguments {
#if MODE == 2
  const probability *x;
#endif
  element *y;
  index count;
};

// A number in [0, 1) with 53 random bits.
__device__ double draw(u64 counter) {
  u64 x = SEED + (counter + 1) * 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  x ^= x >> 31;
  return (double)(x >> 11) * (1.0 / 9007199254740992.0);
}

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  const double u = draw(2 * (u64)i);
#if MODE == 0
  const double value = FIRST + __dmul_rn(u, SECOND - FIRST);
#elif MODE == 1
  const double angle = 6.283185307179586 * draw(2 * (u64)i + 1);
  const double value = FIRST + SECOND * sqrt(-2.0 * log(1.0 - u)) * cos(angle);
#else
  const double value = u < widen_probability(args.x[i]) ? 1.0 : 0.0;
#endif
  args.y[i] = narrow(value);
}

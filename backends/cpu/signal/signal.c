// SPDX-License-Identifier: Apache-2.0
// Fourier transforms. Bluestein: with n k = (n^2 + k^2 - (k - n)^2) / 2 a transform of any length is a
// convolution with a chirp, done by transforms of a power of two at least twice as long.
#include "cpu/signal/signal.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

static bool is_power_of_two(int64_t n) {
  return (n & (n - 1)) == 0;
}

void cpu_fourier_carve(cpu_carver_t *carver, int64_t length, cpu_fourier_t *out_fourier) {
  cpu_fourier_t fourier = {.length = length, .padded = 1};
  int64_t least = is_power_of_two(length) ? length : cpu_nn_multiply(length, 2);
  while (fourier.padded < least && fourier.padded < (int64_t)1 << 60) {
    fourier.padded *= 2;
  }
  fourier.real = cpu_nn_carve(carver, fourier.padded, sizeof(double));
  fourier.imaginary = cpu_nn_carve(carver, fourier.padded, sizeof(double));
  if (!is_power_of_two(length)) {
    for (int k = 0; k < 2; k++) {
      fourier.chirp[k] = cpu_nn_carve(carver, length, sizeof(double));
      fourier.kernel[k] = cpu_nn_carve(carver, fourier.padded, sizeof(double));
    }
  }
  *out_fourier = fourier;
}

static void swap(double *a, double *b) {
  double moved = *a;
  *a = *b;
  *b = moved;
}

// Forward transform of a power of two: bit reversal, then butterflies.
static void radix_two(double *re, double *im, int64_t n) {
  for (int64_t i = 1, j = 0; i < n; i++) {
    int64_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) {
      j ^= bit;
    }
    j ^= bit;
    if (i < j) {
      swap(&re[i], &re[j]);
      swap(&im[i], &im[j]);
    }
  }
  for (int64_t size = 2; size <= n; size *= 2) {
    for (int64_t k = 0; k < size / 2; k++) {
      double angle = -2 * pi * (double)k / (double)size;
      double wr = cos(angle);
      double wi = sin(angle);
      for (int64_t start = k; start < n; start += size) {
        int64_t other = start + size / 2;
        double tr = re[other] * wr - im[other] * wi;
        double ti = re[other] * wi + im[other] * wr;
        re[other] = re[start] - tr;
        im[other] = im[start] - ti;
        re[start] += tr;
        im[start] += ti;
      }
    }
  }
}

void cpu_fourier_prepare(cpu_fourier_t *f) {
  if (is_power_of_two(f->length)) {
    return;
  }
  for (int64_t k = 0; k < f->padded; k++) {
    f->kernel[0][k] = 0;
    f->kernel[1][k] = 0;
  }
  // k^2 modulo 2n, kept small by steps: (k + 1)^2 = k^2 + 2k + 1.
  int64_t square = 0;
  for (int64_t k = 0; k < f->length; k++) {
    double angle = pi * (double)square / (double)f->length;
    f->chirp[0][k] = cos(angle);
    f->chirp[1][k] = sin(angle);
    square = (square + 2 * k + 1) % (2 * f->length);
    int64_t mirrored = k == 0 ? 0 : f->padded - k;
    f->kernel[0][k] = f->kernel[0][mirrored] = f->chirp[0][k];
    f->kernel[1][k] = f->kernel[1][mirrored] = f->chirp[1][k];
  }
  radix_two(f->kernel[0], f->kernel[1], f->padded);
}

static void bluestein(cpu_fourier_t *f) {
  for (int64_t k = 0; k < f->padded; k++) {
    bool inside = k < f->length;
    double re = inside ? f->real[k] * f->chirp[0][k] + f->imaginary[k] * f->chirp[1][k] : 0;
    double im = inside ? f->imaginary[k] * f->chirp[0][k] - f->real[k] * f->chirp[1][k] : 0;
    f->real[k] = re;
    f->imaginary[k] = im;
  }
  radix_two(f->real, f->imaginary, f->padded);
  // The inverse transform is the forward one with real and imaginary parts exchanged.
  for (int64_t k = 0; k < f->padded; k++) {
    double re = f->real[k] * f->kernel[0][k] - f->imaginary[k] * f->kernel[1][k];
    double im = f->real[k] * f->kernel[1][k] + f->imaginary[k] * f->kernel[0][k];
    f->real[k] = re / (double)f->padded;
    f->imaginary[k] = im / (double)f->padded;
  }
  radix_two(f->imaginary, f->real, f->padded);
  for (int64_t k = 0; k < f->length; k++) {
    double re = f->real[k] * f->chirp[0][k] + f->imaginary[k] * f->chirp[1][k];
    double im = f->imaginary[k] * f->chirp[0][k] - f->real[k] * f->chirp[1][k];
    f->real[k] = re;
    f->imaginary[k] = im;
  }
}

static void exchange(cpu_fourier_t *f) {
  for (int64_t k = 0; k < f->length; k++) {
    swap(&f->real[k], &f->imaginary[k]);
  }
}

void cpu_fourier_run(cpu_fourier_t *f, bool inverse) {
  if (inverse) {
    exchange(f);
  }
  if (is_power_of_two(f->length)) {
    radix_two(f->real, f->imaginary, f->length);
  } else {
    bluestein(f);
  }
  if (inverse) {
    exchange(f);
    for (int64_t k = 0; k < f->length; k++) {
      f->real[k] /= (double)f->length;
      f->imaginary[k] /= (double)f->length;
    }
  }
}

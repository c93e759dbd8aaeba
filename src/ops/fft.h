#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace sardonyx {

struct Complex {
  double real = 0.0;
  double imaginary = 0.0;
};
inline Complex operator*(Complex a, Complex b) {
  return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}
inline Complex operator+(Complex a, Complex b) {
  return {a.real + b.real, a.imaginary + b.imaginary};
}
inline Complex operator-(Complex a, Complex b) {
  return {a.real - b.real, a.imaginary - b.imaginary};
}
inline Complex conjugate(Complex a) { return {a.real, -a.imaginary}; }

/// The discrete Fourier transform of one length.
///
/// Numbers  double; y[k] = sum x[n] exp(-2 pi i k n / N).
/// Cost     O(N log N) for every N: powers of two directly, others as a convolution of the next
///          power of two from 2 N on (Bluestein's algorithm).
class Fft {
 public:
  explicit Fft(std::int64_t length);

  /// In place, on `length` elements.
  void forward(Complex* x);
  /// The inverse, divided by N.
  void inverse(Complex* x);

 private:
  void run_power_of_two(Complex* x) const;
  void run_chirp(Complex* x);

  std::int64_t length_;
  /// exp(-2 pi i k / N) for k in [0, N / 2).
  std::vector<Complex> roots_;
  /// For lengths that are no power of two: exp(-pi i k k / N), the transform of its conjugate, and
  /// a buffer.
  std::vector<Complex> chirp_;
  std::vector<Complex> filter_;
  std::vector<Complex> buffer_;
  std::unique_ptr<Fft> inner_;
};

}  // namespace sardonyx

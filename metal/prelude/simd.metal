// SIMD-group functions of complex numbers, part by part. For bool, half, bfloat, vectors and 64-bit integers the
// functions of metal serve.

template <typename T>
inline complex_t<T> simd_shuffle(complex_t<T> data, ushort lane) {
  return complex_t<T>(metal::simd_shuffle(data.real, lane), metal::simd_shuffle(data.imag, lane));
}
template <typename T>
inline complex_t<T> simd_shuffle_xor(complex_t<T> data, ushort mask) {
  return complex_t<T>(metal::simd_shuffle_xor(data.real, mask), metal::simd_shuffle_xor(data.imag, mask));
}
template <typename T>
inline complex_t<T> simd_shuffle_down(complex_t<T> data, ushort delta) {
  return complex_t<T>(metal::simd_shuffle_down(data.real, delta), metal::simd_shuffle_down(data.imag, delta));
}
template <typename T>
inline complex_t<T> simd_shuffle_up(complex_t<T> data, ushort delta) {
  return complex_t<T>(metal::simd_shuffle_up(data.real, delta), metal::simd_shuffle_up(data.imag, delta));
}
template <typename T>
inline complex_t<T> simd_shuffle_and_fill_up(complex_t<T> data, complex_t<T> filling, ushort delta) {
  return complex_t<T>(
      metal::simd_shuffle_and_fill_up(data.real, filling.real, delta),
      metal::simd_shuffle_and_fill_up(data.imag, filling.imag, delta));
}
template <typename T>
inline complex_t<T> simd_shuffle_and_fill_down(complex_t<T> data, complex_t<T> filling, ushort delta) {
  return complex_t<T>(
      metal::simd_shuffle_and_fill_down(data.real, filling.real, delta),
      metal::simd_shuffle_and_fill_down(data.imag, filling.imag, delta));
}
template <typename T>
inline complex_t<T> simd_broadcast(complex_t<T> data, ushort lane) {
  return complex_t<T>(metal::simd_broadcast(data.real, lane), metal::simd_broadcast(data.imag, lane));
}
template <typename T>
inline complex_t<T> simd_broadcast_first(complex_t<T> data) {
  return complex_t<T>(metal::simd_broadcast_first(data.real), metal::simd_broadcast_first(data.imag));
}
template <typename T>
inline complex_t<T> simd_sum(complex_t<T> data) {
  return complex_t<T>(metal::simd_sum(data.real), metal::simd_sum(data.imag));
}
template <typename T>
inline complex_t<T> simd_prefix_inclusive_sum(complex_t<T> data) {
  return complex_t<T>(
      metal::simd_prefix_inclusive_sum(data.real), metal::simd_prefix_inclusive_sum(data.imag));
}
template <typename T>
inline complex_t<T> simd_prefix_exclusive_sum(complex_t<T> data) {
  return complex_t<T>(
      metal::simd_prefix_exclusive_sum(data.real), metal::simd_prefix_exclusive_sum(data.imag));
}

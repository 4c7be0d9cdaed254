// metal::array of <metal_array>: N elements as a value.

namespace metal {

template <typename T, size_t N>
struct array {
  using value_type = T;
  T __elems[N];

  constexpr size_t size() const { return N; }
  constexpr size_t max_size() const { return N; }
  constexpr bool empty() const { return N == 0; }
  constexpr T operator[](size_t i) const thread { return __elems[i]; }
  constexpr T operator[](size_t i) const device { return __elems[i]; }
  constexpr T operator[](size_t i) const constant { return __elems[i]; }
  constexpr T operator[](size_t i) const threadgroup { return __elems[i]; }
  constexpr thread T& operator[](size_t i) thread { return __elems[i]; }
  constexpr device T& operator[](size_t i) device { return __elems[i]; }
  constexpr threadgroup T& operator[](size_t i) threadgroup { return __elems[i]; }
};

}  // namespace metal

// Packing numbers into the parts of an integer, and back (Metal specification, "Pack and unpack functions"): the first
// component stands in the lowest bits.

#pragma clang fp contract(off)

namespace metal {
namespace detail {

// A part of `bits` bits: round(clamp(x, 0, 1) * max), the nearest and even at ties; NaN is 0.
inline uint unorm_bits(float x, uint bits) {
  const float top = float((1u << bits) - 1u);
  return uint(rint(select(clamp(x, 0.0f, 1.0f), 0.0f, x != x) * top));
}
inline uint snorm_bits(float x, uint bits) {
  const float top = float((1u << (bits - 1u)) - 1u);
  const int n = int(rint(select(clamp(x, -1.0f, 1.0f), 0.0f, x != x) * top));
  return uint(n) & ((1u << bits) - 1u);
}
inline float unorm_value(uint x, uint at, uint bits) {
  const uint top = (1u << bits) - 1u;
  return float((x >> at) & top) / float(top);
}
inline float snorm_value(uint x, uint at, uint bits) {
  const int n = int(x << (32u - bits - at)) >> (32u - bits);
  return max(float(n) / float((1u << (bits - 1u)) - 1u), -1.0f);
}
inline float to_srgb(float c) {
  c = select(clamp(c, 0.0f, 1.0f), 0.0f, c != c);
  return select(1.055f * pow(c, 1.0f / 2.4f) - 0.055f, 12.92f * c, c < 0.0031308f);
}
inline float from_srgb(float c) {
  return select(pow((c + 0.055f) / 1.055f, 2.4f), c / 12.92f, c <= 0.04045f);
}

}  // namespace detail

#define LIB_PACK(T)                                                                                            \
  inline uint pack_##T##_to_unorm4x8(T##4 x) {                                                                 \
    return detail::unorm_bits(x.x, 8) | detail::unorm_bits(x.y, 8) << 8 | detail::unorm_bits(x.z, 8) << 16 |   \
        detail::unorm_bits(x.w, 8) << 24;                                                                      \
  }                                                                                                            \
  inline uint pack_##T##_to_snorm4x8(T##4 x) {                                                                 \
    return detail::snorm_bits(x.x, 8) | detail::snorm_bits(x.y, 8) << 8 | detail::snorm_bits(x.z, 8) << 16 |   \
        detail::snorm_bits(x.w, 8) << 24;                                                                      \
  }                                                                                                            \
  inline uint pack_##T##_to_srgb_unorm4x8(T##4 x) {                                                            \
    return detail::unorm_bits(detail::to_srgb(x.x), 8) | detail::unorm_bits(detail::to_srgb(x.y), 8) << 8 |    \
        detail::unorm_bits(detail::to_srgb(x.z), 8) << 16 | detail::unorm_bits(x.w, 8) << 24;                  \
  }                                                                                                            \
  inline uint pack_##T##_to_unorm2x16(T##2 x) {                                                                \
    return detail::unorm_bits(x.x, 16) | detail::unorm_bits(x.y, 16) << 16;                                    \
  }                                                                                                            \
  inline uint pack_##T##_to_snorm2x16(T##2 x) {                                                                \
    return detail::snorm_bits(x.x, 16) | detail::snorm_bits(x.y, 16) << 16;                                    \
  }                                                                                                            \
  inline uint pack_##T##_to_unorm10a2(T##4 x) {                                                                \
    return detail::unorm_bits(x.x, 10) | detail::unorm_bits(x.y, 10) << 10 |                                   \
        detail::unorm_bits(x.z, 10) << 20 | detail::unorm_bits(x.w, 2) << 30;                                  \
  }                                                                                                            \
  inline ushort pack_##T##_to_unorm565(T##3 x) {                                                               \
    return ushort(detail::unorm_bits(x.x, 5) << 11 | detail::unorm_bits(x.y, 6) << 5 |                         \
        detail::unorm_bits(x.z, 5));                                                                           \
  }                                                                                                            \
  inline T##4 unpack_unorm4x8_to_##T(uint x) {                                                                 \
    return T##4(detail::unorm_value(x, 0, 8), detail::unorm_value(x, 8, 8), detail::unorm_value(x, 16, 8),     \
        detail::unorm_value(x, 24, 8));                                                                        \
  }                                                                                                            \
  inline T##4 unpack_snorm4x8_to_##T(uint x) {                                                                 \
    return T##4(detail::snorm_value(x, 0, 8), detail::snorm_value(x, 8, 8), detail::snorm_value(x, 16, 8),     \
        detail::snorm_value(x, 24, 8));                                                                        \
  }                                                                                                            \
  inline T##4 unpack_unorm4x8_srgb_to_##T(uint x) {                                                            \
    return T##4(detail::from_srgb(detail::unorm_value(x, 0, 8)),                                               \
        detail::from_srgb(detail::unorm_value(x, 8, 8)), detail::from_srgb(detail::unorm_value(x, 16, 8)),     \
        detail::unorm_value(x, 24, 8));                                                                        \
  }                                                                                                            \
  inline T##2 unpack_unorm2x16_to_##T(uint x) {                                                                \
    return T##2(detail::unorm_value(x, 0, 16), detail::unorm_value(x, 16, 16));                                \
  }                                                                                                            \
  inline T##2 unpack_snorm2x16_to_##T(uint x) {                                                                \
    return T##2(detail::snorm_value(x, 0, 16), detail::snorm_value(x, 16, 16));                                \
  }                                                                                                            \
  inline T##4 unpack_unorm10a2_to_##T(uint x) {                                                                \
    return T##4(detail::unorm_value(x, 0, 10), detail::unorm_value(x, 10, 10), detail::unorm_value(x, 20, 10), \
        detail::unorm_value(x, 30, 2));                                                                        \
  }                                                                                                            \
  inline T##3 unpack_unorm565_to_##T(ushort x) {                                                               \
    return T##3(detail::unorm_value(x, 11, 5), detail::unorm_value(x, 5, 6), detail::unorm_value(x, 0, 5));    \
  }
LIB_PACK(float)
LIB_PACK(half)
#undef LIB_PACK

}  // namespace metal

// Type traits of <metal_type_traits>.

namespace metal {

template <typename T, T V>
struct integral_constant {
  static constexpr constant T value = V;
  using value_type = T;
  using type = integral_constant<T, V>;
  constexpr operator T() const { return V; }
};
template <bool B>
using bool_constant = integral_constant<bool, B>;
using true_type = integral_constant<bool, true>;
using false_type = integral_constant<bool, false>;

template <typename... Ts>
using void_t = void;

// <metal_utility>: lists of integers as types. A list is made of its halves, so that long ones nest little.
template <typename T, T... Is>
struct integer_sequence {
  using value_type = T;
  static constexpr size_t size() { return sizeof...(Is); }
};
template <size_t... Is>
using index_sequence = integer_sequence<size_t, Is...>;
template <typename A, typename B>
struct _joined;
template <typename T, T... A, T... B>
struct _joined<integer_sequence<T, A...>, integer_sequence<T, B...>> {
  using type = integer_sequence<T, A..., T(sizeof...(A) + B)...>;
};
template <typename T, size_t N>
struct _counted {
  using type = typename _joined<typename _counted<T, N / 2>::type, typename _counted<T, N - N / 2>::type>::type;
};
template <typename T>
struct _counted<T, 0> {
  using type = integer_sequence<T>;
};
template <typename T>
struct _counted<T, 1> {
  using type = integer_sequence<T, T(0)>;
};
template <typename T, T N>
using make_integer_sequence = typename _counted<T, size_t(N)>::type;
template <size_t N>
using make_index_sequence = make_integer_sequence<size_t, N>;
template <typename... Ts>
using index_sequence_for = make_index_sequence<sizeof...(Ts)>;

// What Apple's headers call atomic<T>.
template <typename T>
using _atomic = atomic<T>;

// A value of a type where only its type matters.
template <typename T>
T&& declval();

template <typename T>
struct type_identity {
  using type = T;
};

template <bool C, typename A, typename B>
struct conditional {
  using type = A;
};
template <typename A, typename B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool C, typename A, typename B>
using conditional_t = typename conditional<C, A, B>::type;

template <bool C, typename T = void>
struct enable_if {};
template <typename T>
struct enable_if<true, T> {
  using type = T;
};
template <bool C, typename T = void>
using enable_if_t = typename enable_if<C, T>::type;

// What a type is without its qualifiers.
template <typename T>
struct remove_const {
  using type = T;
};
template <typename T>
struct remove_const<const T> {
  using type = T;
};
template <typename T>
struct remove_volatile {
  using type = T;
};
template <typename T>
struct remove_volatile<volatile T> {
  using type = T;
};
template <typename T>
using remove_const_t = typename remove_const<T>::type;
template <typename T>
using remove_volatile_t = typename remove_volatile<T>::type;
template <typename T>
struct remove_cv {
  using type = remove_const_t<remove_volatile_t<T>>;
};
template <typename T>
using remove_cv_t = typename remove_cv<T>::type;

#define PRELUDE_EACH_SPACE(M) M(thread) M(device) M(constant) M(threadgroup)

template <typename T>
struct remove_reference {
  using type = T;
};
template <typename T>
struct remove_pointer {
  using type = T;
};
template <typename T>
struct is_pointer_impl {
  static constexpr constant bool value = false;
};
template <typename T>
struct is_reference {
  static constexpr constant bool value = false;
};
#define PRELUDE_SPACE(S)                             \
  template <typename T>                              \
  struct remove_reference<S T&> {                    \
    using type = T;                                  \
  };                                                 \
  template <typename T>                              \
  struct remove_pointer<S T*> {                      \
    using type = T;                                  \
  };                                                 \
  template <typename T>                              \
  struct is_pointer_impl<S T*> {                     \
    static constexpr constant bool value = true;     \
  };                                                 \
  template <typename T>                              \
  struct is_reference<S T&> {                        \
    static constexpr constant bool value = true;     \
  };
PRELUDE_EACH_SPACE(PRELUDE_SPACE)
#undef PRELUDE_SPACE
#undef PRELUDE_EACH_SPACE
template <typename T>
using remove_reference_t = typename remove_reference<T>::type;
template <typename T>
using remove_pointer_t = typename remove_pointer<T>::type;
template <typename T>
struct is_pointer {
  static constexpr constant bool value = is_pointer_impl<remove_cv_t<T>>::value;
};
template <typename T>
using decay_t = remove_cv_t<remove_reference_t<T>>;
template <typename T>
struct decay {
  using type = decay_t<T>;
};

template <typename A, typename B>
struct is_same {
  static constexpr constant bool value = false;
};
template <typename A>
struct is_same<A, A> {
  static constexpr constant bool value = true;
};
template <typename A, typename B>
static constexpr constant bool is_same_v = is_same<A, B>::value;

template <typename T>
struct is_const {
  static constexpr constant bool value = false;
};
template <typename T>
struct is_const<const T> {
  static constexpr constant bool value = true;
};

// Kinds of types.
template <typename T>
struct is_integral_impl {
  static constexpr constant bool value = false;
};
template <typename T>
struct is_floating_impl {
  static constexpr constant bool value = false;
};
template <typename T>
struct is_signed_impl {
  static constexpr constant bool value = false;
};
#define PRELUDE_KIND(K, T)                       \
  template <>                                    \
  struct is_##K##_impl<T> {                      \
    static constexpr constant bool value = true; \
  };
PRELUDE_KIND(integral, bool)
PRELUDE_KIND(integral, char)
PRELUDE_KIND(integral, uchar)
PRELUDE_KIND(integral, short)
PRELUDE_KIND(integral, ushort)
PRELUDE_KIND(integral, int)
PRELUDE_KIND(integral, uint)
PRELUDE_KIND(integral, long)
PRELUDE_KIND(integral, ulong)
PRELUDE_KIND(floating, half)
PRELUDE_KIND(floating, bfloat)
PRELUDE_KIND(floating, float)
PRELUDE_KIND(floating, double)
PRELUDE_KIND(signed, char)
PRELUDE_KIND(signed, short)
PRELUDE_KIND(signed, int)
PRELUDE_KIND(signed, long)
PRELUDE_KIND(signed, half)
PRELUDE_KIND(signed, bfloat)
PRELUDE_KIND(signed, float)
PRELUDE_KIND(signed, double)
#undef PRELUDE_KIND

template <typename T>
struct is_void {
  static constexpr constant bool value = is_same_v<remove_cv_t<T>, void>;
};
template <typename T>
struct is_integral {
  static constexpr constant bool value = is_integral_impl<remove_cv_t<T>>::value;
};
template <typename T>
struct is_floating_point {
  static constexpr constant bool value = is_floating_impl<remove_cv_t<T>>::value;
};
template <typename T>
struct is_arithmetic {
  static constexpr constant bool value = is_integral<T>::value || is_floating_point<T>::value;
};
template <typename T>
struct is_scalar {
  static constexpr constant bool value = is_arithmetic<T>::value || is_pointer<T>::value;
};
template <typename T>
struct is_signed {
  static constexpr constant bool value = is_signed_impl<remove_cv_t<T>>::value;
};
template <typename T>
struct is_unsigned {
  static constexpr constant bool value = is_integral<T>::value && !is_signed<T>::value;
};
template <typename T>
struct is_vector {
  static constexpr constant bool value = false;
};
template <typename T, int N>
struct is_vector<vec<T, N>> {
  static constexpr constant bool value = true;
};
// What the functions of SIMD-groups take, by the name that Metal's headers have for it.
template <typename T>
struct __is_valid_simdgroup_type {
  static constexpr constant bool value = is_arithmetic<T>::value && sizeof(T) < 8 && !is_same<T, bool>::value;
};
template <typename T, int N>
struct __is_valid_simdgroup_type<vec<T, N>> {
  static constexpr constant bool value = __is_valid_simdgroup_type<T>::value;
};
// Between arithmetic types every conversion is implicit; otherwise only a type to itself. Classes are not looked into.
template <typename A, typename B>
struct is_convertible {
  static constexpr constant bool value =
      is_same_v<remove_cv_t<A>, remove_cv_t<B>> || (is_arithmetic<A>::value && is_arithmetic<B>::value);
};

#define PRELUDE_V(N)   \
  template <typename T> \
  static constexpr constant bool N##_v = N<T>::value;
PRELUDE_V(is_const)
PRELUDE_V(is_pointer)
PRELUDE_V(is_reference)
PRELUDE_V(is_void)
PRELUDE_V(is_integral)
PRELUDE_V(is_floating_point)
PRELUDE_V(is_arithmetic)
PRELUDE_V(is_scalar)
PRELUDE_V(is_signed)
PRELUDE_V(is_unsigned)
PRELUDE_V(is_vector)
#undef PRELUDE_V
template <typename A, typename B>
static constexpr constant bool is_convertible_v = is_convertible<A, B>::value;

// The integer type of the same size and the other signedness.
template <typename T>
struct make_unsigned {
  using type = T;
};
template <typename T>
struct make_signed {
  using type = T;
};
#define PRELUDE_SIGN(S, U)  \
  template <>               \
  struct make_unsigned<S> { \
    using type = U;         \
  };                        \
  template <>               \
  struct make_signed<U> {   \
    using type = S;         \
  };
PRELUDE_SIGN(char, uchar)
PRELUDE_SIGN(short, ushort)
PRELUDE_SIGN(int, uint)
PRELUDE_SIGN(long, ulong)
#undef PRELUDE_SIGN
template <typename T>
using make_unsigned_t = typename make_unsigned<T>::type;
template <typename T>
using make_signed_t = typename make_signed<T>::type;

// fast and precise differ from metal in name only: there is one arithmetic.
namespace fast {
using namespace metal;
}
namespace precise {
using namespace metal;
}

}  // namespace metal

using namespace metal;

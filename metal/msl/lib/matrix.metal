// Metal's matrices: float2x2 to float4x4 and those of half. A matrix is its columns; m[c] is one of them, m[c][r] an
// element. Products are computed in the precision of their elements, the inner sum in its order.

#pragma clang fp contract(off)

namespace metal {
namespace detail {
template <typename T>
struct same {
  using type = T;
};
}  // namespace detail

template <typename T, int Cols, int Rows = Cols>
struct matrix {
  using column_type = vec<T, Rows>;
  vec<T, Rows> columns[Cols];

  constexpr matrix() {
    for (int c = 0; c < Cols; ++c) {
      columns[c] = vec<T, Rows>(T(0));
    }
  }
  // The argument on the diagonal, zeros elsewhere.
  explicit constexpr matrix(T x) {
    for (int c = 0; c < Cols; ++c) {
      for (int r = 0; r < Rows; ++r) {
        columns[c][r] = r == c ? x : T(0);
      }
    }
  }
  // Columns, of which there are as many as the matrix has.
  constexpr matrix(vec<T, Rows> a, vec<T, Rows> b) {
    static_assert(Cols == 2, "a matrix is made of as many vectors as it has columns");
    columns[0] = a;
    columns[1] = b;
  }
  constexpr matrix(vec<T, Rows> a, vec<T, Rows> b, vec<T, Rows> c) {
    static_assert(Cols == 3, "a matrix is made of as many vectors as it has columns");
    columns[0] = a;
    columns[1] = b;
    columns[2] = c;
  }
  constexpr matrix(vec<T, Rows> a, vec<T, Rows> b, vec<T, Rows> c, vec<T, Rows> d) {
    static_assert(Cols == 4, "a matrix is made of as many vectors as it has columns");
    columns[0] = a;
    columns[1] = b;
    columns[2] = c;
    columns[3] = d;
  }
  // Elements, column by column.
  template <typename A, typename B, typename C, typename D, typename... E,
            typename = enable_if_t<is_arithmetic<A>::value && sizeof...(E) + 4 == Cols * Rows>>
  constexpr matrix(A a, B b, C c, D d, E... rest) {
    const T all[Cols * Rows] = {T(a), T(b), T(c), T(d), T(rest)...};
    for (int i = 0; i < Cols; ++i) {
      for (int r = 0; r < Rows; ++r) {
        columns[i][r] = all[i * Rows + r];
      }
    }
  }
  // A matrix of the same shape and another type.
  template <typename U, typename = enable_if_t<!is_same<U, T>::value>>
  explicit constexpr matrix(matrix<U, Cols, Rows> m) {
    for (int c = 0; c < Cols; ++c) {
      columns[c] = vec<T, Rows>(m.columns[c]);
    }
  }

#define LIB_COLUMN(S)                                                              \
  constexpr S vec<T, Rows>& operator[](int c) S { return columns[c]; }             \
  constexpr const S vec<T, Rows>& operator[](int c) const S { return columns[c]; }
  LIB_COLUMN(thread)
  LIB_COLUMN(threadgroup)
  LIB_COLUMN(device)
#undef LIB_COLUMN
  constexpr const constant vec<T, Rows>& operator[](int c) const constant { return columns[c]; }
};

#define LIB_SHAPES(M) M(2, 2) M(2, 3) M(2, 4) M(3, 2) M(3, 3) M(3, 4) M(4, 2) M(4, 3) M(4, 4)
#define LIB_NAMES(C, R)                      \
  using float##C##x##R = matrix<float, C, R>; \
  using half##C##x##R = matrix<half, C, R>;
LIB_SHAPES(LIB_NAMES)
#undef LIB_NAMES
#undef LIB_SHAPES

#define LIB_EACH(OP, SELF)                                                                  \
  template <typename T, int C, int R>                                                       \
  constexpr matrix<T, C, R> operator OP(matrix<T, C, R> a, matrix<T, C, R> b) {             \
    for (int c = 0; c < C; ++c) {                                                           \
      a.columns[c] = a.columns[c] OP b.columns[c];                                          \
    }                                                                                       \
    return a;                                                                               \
  }
LIB_EACH(+, +=)
LIB_EACH(-, -=)
#undef LIB_EACH

template <typename T, int C, int R>
constexpr matrix<T, C, R> operator-(matrix<T, C, R> a) {
  for (int c = 0; c < C; ++c) {
    a.columns[c] = -a.columns[c];
  }
  return a;
}
template <typename T, int C, int R>
constexpr matrix<T, C, R> operator+(matrix<T, C, R> a) {
  return a;
}
template <typename T, int C, int R>
constexpr matrix<T, C, R> operator*(matrix<T, C, R> a, typename detail::same<T>::type s) {
  for (int c = 0; c < C; ++c) {
    a.columns[c] = a.columns[c] * s;
  }
  return a;
}
template <typename T, int C, int R>
constexpr matrix<T, C, R> operator*(typename detail::same<T>::type s, matrix<T, C, R> a) {
  return a * s;
}
// A matrix and a column vector.
template <typename T, int C, int R>
constexpr vec<T, R> operator*(matrix<T, C, R> a, typename detail::same<vec<T, C>>::type v) {
  vec<T, R> s = a.columns[0] * v[0];
  for (int c = 1; c < C; ++c) {
    s = fma(a.columns[c], vec<T, R>(v[c]), s);
  }
  return s;
}
// A row vector and a matrix.
template <typename T, int C, int R>
constexpr vec<T, C> operator*(typename detail::same<vec<T, R>>::type v, matrix<T, C, R> a) {
  vec<T, C> s;
  for (int c = 0; c < C; ++c) {
    s[c] = dot(v, a.columns[c]);
  }
  return s;
}
template <typename T, int K, int R, int C>
constexpr matrix<T, C, R> operator*(matrix<T, K, R> a, matrix<T, C, K> b) {
  matrix<T, C, R> p;
  for (int c = 0; c < C; ++c) {
    p.columns[c] = a * b.columns[c];
  }
  return p;
}

#define LIB_ASSIGN(S)                                                                                     \
  template <typename T, int C, int R>                                                                     \
  constexpr S matrix<T, C, R>& operator+=(S matrix<T, C, R>& a, matrix<T, C, R> b) { return a = a + b; }  \
  template <typename T, int C, int R>                                                                     \
  constexpr S matrix<T, C, R>& operator-=(S matrix<T, C, R>& a, matrix<T, C, R> b) { return a = a - b; }  \
  template <typename T, int C, int R>                                                                     \
  constexpr S matrix<T, C, R>& operator*=(S matrix<T, C, R>& a, typename detail::same<T>::type s) {       \
    return a = a * s;                                                                                     \
  }                                                                                                       \
  template <typename T, int C, int R>                                                                     \
  constexpr S matrix<T, C, R>& operator*=(S matrix<T, C, R>& a, matrix<T, C, C> b) { return a = a * b; }
LIB_ASSIGN(thread)
LIB_ASSIGN(threadgroup)
LIB_ASSIGN(device)
#undef LIB_ASSIGN

template <typename T, int C, int R>
constexpr bool operator==(matrix<T, C, R> a, matrix<T, C, R> b) {
  bool same = true;
  for (int c = 0; c < C; ++c) {
    same = same && all(a.columns[c] == b.columns[c]);
  }
  return same;
}
template <typename T, int C, int R>
constexpr bool operator!=(matrix<T, C, R> a, matrix<T, C, R> b) {
  return !(a == b);
}

template <typename T, int C, int R>
constexpr matrix<T, R, C> transpose(matrix<T, C, R> m) {
  matrix<T, R, C> t;
  for (int c = 0; c < C; ++c) {
    for (int r = 0; r < R; ++r) {
      t.columns[r][c] = m.columns[c][r];
    }
  }
  return t;
}

template <typename T>
constexpr T determinant(matrix<T, 2, 2> m) {
  return m.columns[0][0] * m.columns[1][1] - m.columns[1][0] * m.columns[0][1];
}
template <typename T>
constexpr T determinant(matrix<T, 3, 3> m) {
  return dot(m.columns[0], cross(m.columns[1], m.columns[2]));
}
// By the 2 by 2 minors of the upper and the lower two rows.
template <typename T>
constexpr T determinant(matrix<T, 4, 4> m) {
  const vec<T, 4> a = m.columns[0], b = m.columns[1], c = m.columns[2], d = m.columns[3];
  const T ab = a.x * b.y - b.x * a.y, ac = a.x * c.y - c.x * a.y, ad = a.x * d.y - d.x * a.y;
  const T bc = b.x * c.y - c.x * b.y, bd = b.x * d.y - d.x * b.y, cd = c.x * d.y - d.x * c.y;
  const T lab = a.z * b.w - b.z * a.w, lac = a.z * c.w - c.z * a.w, lad = a.z * d.w - d.z * a.w;
  const T lbc = b.z * c.w - c.z * b.w, lbd = b.z * d.w - d.z * b.w, lcd = c.z * d.w - d.z * c.w;
  return ab * lcd - ac * lbd + ad * lbc + bc * lad - bd * lac + cd * lab;
}

}  // namespace metal

// What Metal declares beside its functions: flags of barriers, memory orders, and the namespaces of the library.
#pragma clang fp contract(off)

enum memory_order {
  memory_order_relaxed,
  memory_order_acquire,
  memory_order_release,
  memory_order_acq_rel,
  memory_order_seq_cst
};
enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };

namespace metal {
using ::memory_order;
using ::memory_order_relaxed;
using ::memory_order_acquire;
using ::memory_order_release;
using ::memory_order_acq_rel;
using ::memory_order_seq_cst;
using ::thread_scope;
using ::thread_scope_thread;
using ::thread_scope_simdgroup;
using ::thread_scope_threadgroup;
using ::thread_scope_device;

enum class mem_flags {
  mem_none = 0, mem_device = 1, mem_threadgroup = 2, mem_texture = 4, mem_threadgroup_imageblock = 8
};
constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(int(a) | int(b)); }

// How a texture is used: the second argument of its type, which is refused.
enum class access { sample, read, write, read_write };

// uniform<T> promises that a value is the same in all threads; here it is just the value.
template <typename T>
using uniform = T;
template <typename T>
constexpr T make_uniform(T x) { return x; }

template <typename T> struct remove_addrspace { using type = T; };
template <typename T> struct remove_addrspace<device T> { using type = T; };
template <typename T> struct remove_addrspace<constant T> { using type = T; };
template <typename T> struct remove_addrspace<threadgroup T> { using type = T; };
template <typename T> using remove_addrspace_t = typename remove_addrspace<T>::type;

// _disjunction<A, B, ...> derives from the first of its arguments that is true, else from the last.
template <typename... B> struct _disjunction { static constexpr constant bool value = false; };
template <typename A, typename... B> struct _disjunction<A, B...> {
  static constexpr constant bool value = A::value || _disjunction<B...>::value;
};

namespace fast {}
namespace precise {}
}  // namespace metal

// Clang's hints to its optimiser.
constexpr long __builtin_expect(long x, long) { return x; }
constexpr void __builtin_assume(bool) {}
inline void __builtin_unreachable() {}

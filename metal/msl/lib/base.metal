// What Metal declares beside its functions: flags of barriers, memory orders, and the namespaces of the library.
#pragma clang fp contract(off)

enum memory_order { memory_order_relaxed = 0 };
enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };

namespace metal {
using ::memory_order;
using ::memory_order_relaxed;
using ::thread_scope;
using ::thread_scope_thread;
using ::thread_scope_simdgroup;
using ::thread_scope_threadgroup;
using ::thread_scope_device;

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2, mem_texture = 4, mem_threadgroup_imageblock = 8 };
constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(int(a) | int(b)); }

namespace fast {}
namespace precise {}
}  // namespace metal

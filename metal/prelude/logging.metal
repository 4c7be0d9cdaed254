// metal::os_log of <metal_logging>, and MLX's name for it: what kernels log goes nowhere. Apple's compiler has it from
// Metal 3.2 on.

namespace metal {

enum os_log_type {
  OS_LOG_TYPE_DEFAULT,
  OS_LOG_TYPE_INFO,
  OS_LOG_TYPE_DEBUG,
  OS_LOG_TYPE_ERROR = 16,
  OS_LOG_TYPE_FAULT
};

struct os_log {
  constexpr os_log(constant const char*, constant const char*) constant {}
  template <typename... A>
  void log(constant const char*, A...) const constant {}
  template <typename... A>
  void log_debug(constant const char*, A...) const constant {}
  template <typename... A>
  void log_info(constant const char*, A...) const constant {}
  template <typename... A>
  void log_error(constant const char*, A...) const constant {}
  template <typename... A>
  void log_fault(constant const char*, A...) const constant {}
  template <typename... A>
  void log_with_type(os_log_type, constant const char*, A...) const constant {}
};

constant os_log os_log_default("", "");

}  // namespace metal

namespace mlx {
using os_log = metal::os_log;
}

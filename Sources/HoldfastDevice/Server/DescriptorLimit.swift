import Glibc

/// How many descriptors this process may have.
enum DescriptorLimit {
  /// Raises the limit to `count`, unless it is as high already; false where the system does not allow that.
  static func raise(to count: Int) -> Bool {
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    var limit = rlimit()
    guard unsafe getrlimit(resource, &limit) == 0 else { return false }
    if limit.rlim_cur >= rlim_t(count) { return true }
    guard limit.rlim_max >= rlim_t(count) else { return false }
    limit.rlim_cur = rlim_t(count)
    return unsafe setrlimit(resource, &limit) == 0
  }
}

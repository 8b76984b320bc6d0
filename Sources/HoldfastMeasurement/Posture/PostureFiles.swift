import Glibc
import HoldfastLinux

/// The files from which the posture is read. Each is optional, and small; none can make the reader wait or fail.
struct PostureFiles {
  private let root: String

  init(_ files: HostFiles) { root = files.root }

  /// The result of reading one file.
  enum Reading: Equatable {
    case text([UInt8])
    /// Nothing has that name.
    case absent
    /// There is something, but it is not a regular file of the kernel, is too long, or cannot be read.
    case unreadable

    /// The bytes without blanks at either end; nil if there are none to read.
    var trimmed: ArraySlice<UInt8>? {
      guard case .text(let bytes) = self else { return nil }
      return bytes[...].trimmed
    }
  }

  /// Reads a file of at most `limit` bytes.
  func read(_ path: String, limit: Int = 4096) -> Reading {
    do throws(SystemError) {
      // Opening a pipe without a writer must not block.
      let file = try Descriptor(opening: root + path, flags: O_RDONLY | O_NONBLOCK | O_NOCTTY)
      guard try file.status().st_mode & S_IFMT == S_IFREG, try isOfKernel(file, path) else { return .unreadable }
      var bytes: [UInt8] = []
      var chunk = [UInt8](repeating: 0, count: 4096)
      while true {
        let count = try file.read(into: &chunk)
        if count == 0 { return .text(bytes) }
        bytes += chunk[..<count]
        guard bytes.count <= limit else { return .unreadable }
      }
    } catch {
      return error.isAbsence ? .absent : .unreadable
    }
  }

  /// Whether this process is in the namespace of that kind which the kernel made at its start; nil if the kernel does not tell.
  ///
  /// Source: Linux, include/uapi/linux/nsfs.h (before 6.18, include/linux/proc_ns.h): the numbers of the first namespaces.
  func isInFirst(_ namespace: Namespace) -> Bool? {
    var target = [CChar](repeating: 0, count: 64)
    let path = root + "/proc/self/ns/\(namespace.rawValue)"
    guard isKernelFolder("/proc/self/ns") else { return nil }
    let count = unsafe readlink(path, &target, target.count)
    guard count > 0 else { return nil }
    let link = target[..<count].lazy.map { UInt8(bitPattern: $0) }
    return link.elementsEqual("\(namespace.rawValue):[\(namespace.firstNumber)]".utf8)
  }

  /// A kind of namespace by which a container hides the host.
  enum Namespace: String {
    case process = "pid"
    case controlGroup = "cgroup"
    case user

    fileprivate var firstNumber: UInt32 {
      switch self {
      case .controlGroup: 0xefff_fffb
      case .process: 0xefff_fffc
      case .user: 0xefff_fffd
      }
    }
  }

  /// Whether something has that name; nil if the system does not tell.
  func has(_ path: String) -> Bool? {
    var status = stat()
    guard unsafe lstat(root + path, &status) != 0 else { return true }
    return SystemError.last.isAbsence ? false : nil
  }

  /// Whether a folder is the kernel's own. A container may have an empty one mounted over it.
  func isKernelFolder(_ path: String) -> Bool {
    do throws(SystemError) {
      let folder = try Descriptor(opening: root + path, flags: O_RDONLY | O_DIRECTORY)
      return try isOfKernel(folder, path)
    } catch { return false }
  }

  /// Returns whether a file below `/proc` or `/sys` lies on a file system of the kernel. Anyone may mount other files there, for
  /// processes of their own.
  ///
  /// Source: Linux, include/uapi/linux/magic.h.
  private func isOfKernel(_ file: borrowing Descriptor, _ path: String) throws(SystemError) -> Bool {
    guard root.isEmpty, path.hasPrefix("/proc") || path.hasPrefix("/sys") else { return true }
    let (proc, system, security, efiVariables): (UInt64, UInt64, UInt64, UInt64) =
      (0x9fa0, 0x6265_6572, 0x7363_6673, 0xde5e_81e4)
    let type = try fileSystemType(of: file.number)
    return path.hasPrefix("/proc") ? type == proc : [system, security, efiVariables].contains(type)
  }
}

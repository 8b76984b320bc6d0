import CHost
import Glibc
import HoldfastLinux

/// The files that a measurement reads: the running system, or for tests a folder laid out like one.
public struct HostFiles: Sendable {
  /// The prefix of every absolute path that is read; empty for the running system.
  package var root: String
  /// The source of the code ranges that the dynamic loader knows.
  package var loader: LoaderView
  /// The source of the files at the paths of mapped code.
  package var code: CodeView
  /// The path of the device secret; nil for the app's own storage.
  package var deviceSecretPath: String?

  /// The executable address ranges that the dynamic loader knows.
  public enum LoaderView: Sendable {
    /// The loader of this process supplies the ranges.
    case live
    /// These address ranges are used, for a test.
    case fixed([Range<UInt64>])
  }

  /// The files at the paths of mapped code.
  public enum CodeView: Sendable {
    /// The file at each path is examined.
    case live
    /// Only these files, by path, are used, for a test.
    case fixed([[UInt8]: MappedFile])
  }

  /// Creates a view of the running system, or of the given folder and values.
  public init(
    root: String = "", loader: LoaderView = .live, code: CodeView = .live, deviceSecretPath: String? = nil
  ) {
    self.root = root
    self.loader = loader
    self.code = code
    self.deviceSecretPath = deviceSecretPath
  }

  /// Whether this is the running system.
  var isLive: Bool { root.isEmpty }

  /// The maximum byte count of a file that is read completely.
  private static let maximumByteCount = 16 << 20

  func open(_ path: String, as source: MeasuredSource) throws(MeasurementError) -> Descriptor {
    do throws(SystemError) {
      return try open(path)
    } catch {
      throw .unreadable(source, code: error.number)
    }
  }

  private func open(_ path: String) throws(SystemError) -> Descriptor {
    guard let kernelPath = kernelPath(of: path) else {
      // Opening a pipe without a writer must not block.
      return try Descriptor(opening: root + path, flags: O_RDONLY | O_NONBLOCK | O_NOCTTY)
    }
    if path == Self.executable {
      _ = try Descriptor(taking: unsafe holdfast_open_proc_link(kernelPath))
      return try Descriptor(opening: path, flags: O_RDONLY)
    }
    let file: Descriptor
    if let kept = try ProcessFiles.file(at: path) {
      file = kept
    } else {
      file = try Descriptor(taking: unsafe holdfast_open_proc(kernelPath))
    }
    guard try fileSystemType(of: file.number) == Self.procfs else { throw SystemError(EXDEV) }
    return file
  }

  /// Returns the part after `/proc/` in the path of a kernel file about this process or about sockets; nil for other paths.
  ///
  /// Any user can mount something over `/proc`, or over a file below it, for a program of theirs: another file system with
  /// arbitrary content, or the files of another process.
  private func kernelPath(of path: String) -> String? {
    guard isLive, path.hasPrefix("/proc/self/") || path.hasPrefix("/proc/net/") else { return nil }
    return String(path.dropFirst("/proc/".utf8.count))
  }

  private static let executable = "/proc/self/exe"

  /// Source: Linux, include/uapi/linux/magic.h, `PROC_SUPER_MAGIC`.
  private static let procfs: UInt64 = 0x9fa0

  /// Returns the file at the path of mapped code, with its state if there are mounts to look it up in; nil if there is none.
  func mappedFile(at path: [UInt8], _ mounts: inout Mounts?) throws(MeasurementError) -> MappedFile? {
    switch code {
    case .fixed(let files): return files[path]
    case .live:
      do throws(SystemError) { return try MappedFile(at: path, &mounts) } catch {
        throw .unreadable(.mappedFile, code: error.number)
      }
    }
  }

  /// Returns the whole file; throws `unreadable` if there is none.
  func contents(of path: String, as source: MeasuredSource) throws(MeasurementError) -> [UInt8] {
    guard let contents = try contentsIfPresent(of: path, as: source) else {
      throw .unreadable(source, code: ENOENT)
    }
    return contents
  }

  /// Returns the whole file; nil if there is none.
  func contentsIfPresent(of path: String, as source: MeasuredSource) throws(MeasurementError) -> [UInt8]? {
    do throws(SystemError) {
      return try Self.read(open(path))
    } catch {
      if error.isAbsence { return nil }
      throw .unreadable(source, code: error.number)
    }
  }

  /// Returns the file up to its first empty line, or all of it.
  func firstParagraph(of path: String, as source: MeasuredSource) throws(MeasurementError) -> [UInt8] {
    let file = try open(path, as: source)
    do throws(SystemError) {
      let text = try Self.read(file, chunkByteCount: 1024) { $0.contains("\n\n") }
      return Array(text[..<(text[...].firstRange(of: "\n\n")?.lowerBound ?? text.count)])
    } catch {
      throw .unreadable(source, code: error.number)
    }
  }

  /// Returns the target of a symbolic link.
  func destination(of path: String, as source: MeasuredSource) throws(MeasurementError) -> [UInt8] {
    do throws(SystemError) {
      guard let kernelPath = kernelPath(of: path) else { return try Self.destination(of: root + path, in: AT_FDCWD) }
      let link = try Descriptor(taking: unsafe holdfast_open_proc_link(kernelPath))
      return try Self.destination(of: "", in: link.number)
    } catch {
      throw .unreadable(source, code: error.number)
    }
  }

  /// Source: readlinkat(2); without a path it is the link that `descriptor` is open for.
  private static func destination(of path: String, in descriptor: Int32) throws(SystemError) -> [UInt8] {
    var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = unsafe target.withUnsafeMutableBytes { bytes in
      unsafe readlinkat(descriptor, path, bytes.bindMemory(to: CChar.self).baseAddress!, bytes.count)
    }
    guard count >= 0 else { throw SystemError.last }
    target.removeSubrange(count...)
    return target
  }

  /// Returns the names in a folder, without `.` and `..`, in arbitrary order.
  func names(in path: String, as source: MeasuredSource) throws(MeasurementError) -> [String] {
    do throws(SystemError) { return try Self.names(in: open(path)) } catch {
      throw .unreadable(source, code: error.number)
    }
  }

  private static func names(in opened: consuming Descriptor) throws(SystemError) -> [String] {
    // fdopendir(3) takes its descriptor over.
    let descriptor = fcntl(opened.number, F_DUPFD_CLOEXEC, 0)
    guard descriptor >= 0 else { throw SystemError.last }
    guard let folder = unsafe fdopendir(descriptor) else {
      let fault = SystemError.last
      close(descriptor)
      throw fault
    }
    defer { unsafe closedir(folder) }
    var names: [String] = []
    errno = 0
    while let entry = unsafe readdir(folder) {
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
      }
      if name != "." && name != ".." { names.append(name) }
      errno = 0
    }
    guard errno == 0 else { throw SystemError.last }
    return names
  }

  /// Reads until `isEnough` returns true, or to the end.
  private static func read(
    _ file: borrowing Descriptor, chunkByteCount: Int = 32 << 10,
    until isEnough: (ArraySlice<UInt8>) -> Bool = { _ in false }
  ) throws(SystemError) -> [UInt8] {
    var contents: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: chunkByteCount)
    while !isEnough(contents[...]) {
      var span = chunk.mutableSpan
      let count = try file.read(into: &span, at: UInt64(contents.count))
      if count == 0 { break }
      contents += chunk[..<count]
      guard contents.count <= maximumByteCount else { throw SystemError(EFBIG) }
    }
    return contents
  }
}

/// The magic number of the file system of an open file or folder.
package func fileSystemType(of descriptor: Int32) throws(SystemError) -> UInt64 {
  let type = holdfast_file_system_type(descriptor)
  guard type != 0 else { throw SystemError.last }
  return type
}

import CHost
import Glibc
import HoldfastLinux

/// Where the measurement looks: the running system, or for tests a folder that is laid out like one.
public struct HostFiles: Sendable {
  /// Put before every absolute path that is read; empty for the running system.
  public var root: String
  /// Who says which code the dynamic loader knows of.
  public var loader: LoaderView
  /// Who says what lies at the path of mapped code.
  public var code: CodeView
  /// The device secret's path; nil for the app's own storage.
  public var deviceSecretPath: String?

  /// What the dynamic loader knows of.
  public enum LoaderView: Sendable {
    /// Ask the loader of this process.
    case live
    /// These executable address ranges.
    case fixed([Range<UInt64>])
  }

  /// What lies at the path of mapped code.
  public enum CodeView: Sendable {
    /// Look there.
    case live
    /// These files, by path, and no other.
    case fixed([[UInt8]: MappedFile])
  }

  /// The running system, unless told otherwise.
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

  /// No file that is read whole may be larger.
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
      // A pipe without a writer must not hold anybody up.
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

  /// What follows `/proc/` in the path of a file in which the kernel tells of this process, or of sockets; nil for others.
  ///
  /// Any user can mount what he likes over `/proc`, or over a file below it, for a program of his: another file system,
  /// which could tell anything, or the files of another process, which tell of that one.
  private func kernelPath(of path: String) -> String? {
    guard isLive, path.hasPrefix("/proc/self/") || path.hasPrefix("/proc/net/") else { return nil }
    return String(path.dropFirst("/proc/".utf8.count))
  }

  private static let executable = "/proc/self/exe"

  /// Source: Linux, include/uapi/linux/magic.h, `PROC_SUPER_MAGIC`.
  private static let procfs: UInt64 = 0x9fa0

  /// What lies at the path of mapped code, or nil when nothing does.
  func mappedFile(at path: [UInt8]) throws(MeasurementError) -> MappedFile? {
    switch code {
    case .fixed(let files): return files[path]
    case .live:
      do throws(SystemError) { return try MappedFile(at: path) } catch {
        throw .unreadable(.mappedFile, code: error.number)
      }
    }
  }

  /// The whole file; `unreadable` when there is none.
  func contents(of path: String, as source: MeasuredSource) throws(MeasurementError) -> [UInt8] {
    guard let contents = try contentsIfPresent(of: path, as: source) else {
      throw .unreadable(source, code: ENOENT)
    }
    return contents
  }

  /// The whole file, or nil when there is none.
  func contentsIfPresent(of path: String, as source: MeasuredSource) throws(MeasurementError) -> [UInt8]? {
    do throws(SystemError) {
      return try Self.read(open(path))
    } catch {
      if error.isAbsence { return nil }
      throw .unreadable(source, code: error.number)
    }
  }

  /// The file up to its first empty line, or all of it.
  func firstParagraph(of path: String, as source: MeasuredSource) throws(MeasurementError) -> [UInt8] {
    let file = try open(path, as: source)
    do throws(SystemError) {
      let text = try Self.read(file, chunkByteCount: 1024) { $0.contains("\n\n") }
      return Array(text[..<(text[...].firstRange(of: "\n\n")?.lowerBound ?? text.count)])
    } catch {
      throw .unreadable(source, code: error.number)
    }
  }

  /// Where a symbolic link leads.
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

  /// The names in a folder, without `.` and `..`, in no order.
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

  /// Reads until `isEnough`, or to the end.
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
func fileSystemType(of descriptor: Int32) throws(SystemError) -> UInt64 {
  let type = holdfast_file_system_type(descriptor)
  guard type != 0 else { throw SystemError.last }
  return type
}

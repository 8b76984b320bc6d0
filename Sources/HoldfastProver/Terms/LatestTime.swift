import Glibc
import HoldfastCore
import HoldfastFormats
import HoldfastLinux

/// The latest time that an enrolment knows of, by which a clock that was set back is noticed: the file `latest_time.json`.
///
/// An enrolment begins with the time at which the issuer signed the terms. From then on, the time follows the host's clock at each
/// proof and, if the device has one, the device's clock in each sealed verdict. It never goes back; only another enrolment begins
/// anew. While the host runs, it also goes on with the time since the host's start.
package struct LatestTime: Sendable, Equatable {
  /// The time, in Unix seconds.
  package let seconds: UInt64
  /// The uptime of the host at that time; nil if the kernel did not say.
  package let uptime: Uptime?

  package static let fileName = "latest_time.json"
  static let maximumByteCount = 256

  /// Creates a time.
  package init(seconds: UInt64, uptime: Uptime?) { (self.seconds, self.uptime) = (seconds, uptime) }

  /// Returns the present time: the latest of the host's clock, this time, and this time with what has passed since, if the host
  /// has not been restarted.
  package func present(_ host: HostSource) -> UInt64 { max(floor(host.uptime()), host.unixSeconds() ?? 0) }

  /// Returns the earliest time that it can be now.
  package func floor(_ now: Uptime?) -> UInt64 {
    guard let uptime, let now, now.bootID == uptime.bootID, now.seconds > uptime.seconds else { return seconds }
    return seconds + min(now.seconds - uptime.seconds, maximumInteger - min(seconds, maximumInteger))
  }

  /// The content of the file.
  package func encoded() -> [UInt8] {
    JSONValue.object([
      ("version", .integer(1)), ("seconds", .integer(min(seconds, maximumInteger))),
      ("boot_id", uptime.map { .string($0.bootID) } ?? .null),
      ("boot_seconds", uptime.map { .integer(min($0.seconds, maximumInteger)) } ?? .null),
    ]).compact() + [UInt8(ascii: "\n")]
  }

  /// Parses the content of the file; nil for anything that ``encoded()`` does not write.
  package init?(_ bytes: [UInt8]) {
    guard let value = try? JSONValue(parsing: bytes, byteLimit: Self.maximumByteCount), value["version"]?.number == 1,
      let seconds = value["seconds"]?.number, let boot = value["boot_id"], let since = value["boot_seconds"]
    else { return nil }
    switch (boot, since) {
    case (.null, .null): uptime = nil
    case (.string(let id), .integer(let passed)) where Uptime.isID(id): uptime = Uptime(bootID: id, seconds: passed)
    default: return nil
    }
    self.seconds = seconds
    guard encoded() == bytes else { return nil }
  }
}

extension EnrolmentFolder {
  /// Reads the latest time of an enrolment with terms. Without its file, nobody knows how late it is.
  ///
  /// - Throws: `damaged`, `missing`, `file`.
  package func latestTime() throws(StateFolderFault) -> LatestTime {
    guard let time = LatestTime(try read(LatestTime.fileName, limit: LatestTime.maximumByteCount)) else {
      throw damaged(LatestTime.fileName)
    }
    return time
  }

  /// Raises the latest time to the present and to `deviceSeconds`, durably, and returns it. Other processes may do the same at
  /// once, or replace the enrolment.
  ///
  /// - Throws: `damaged`, `missing`, `busy`; `file`, after which the time is as before.
  @discardableResult
  package func raiseLatestTime(_ host: HostSource, to deviceSeconds: UInt64 = 0) throws(StateFolderFault) -> UInt64 {
    for _ in 0..<Self.lockMilliseconds / 2 {
      let present: UInt64?
      do throws(FileError) { present = try raiseOnce(host, to: deviceSeconds) } catch {
        switch error.kind {
        case .locked:
          usleep(2000)
          continue
        case .tooLarge: throw damaged(LatestTime.fileName)
        case .notFound: throw .missing(path: file(LatestTime.fileName))
        default: throw .file(error)
        }
      }
      guard let present else { throw damaged(LatestTime.fileName) }
      return present
    }
    throw .busy
  }

  /// Raises the time while no other process does; returns nil if the file is damaged.
  private func raiseOnce(_ host: HostSource, to deviceSeconds: UInt64) throws(FileError) -> UInt64? {
    var bytes: [UInt8] = []
    var locked = try LockedFile(path: file(LatestTime.fileName), limit: LatestTime.maximumByteCount) { span in
      for index in span.indices { bytes.append(span[index]) }
    }
    guard let known = LatestTime(bytes) else { return nil }
    let present = max(known.present(host), min(deviceSeconds, maximumInteger))
    if present > known.seconds {
      try locked.replace(with: LatestTime(seconds: present, uptime: host.uptime()).encoded().span)
    }
    return present
  }

  /// The longest time for which another process may lock the file, in milliseconds.
  private static var lockMilliseconds: Int { 5000 }
}

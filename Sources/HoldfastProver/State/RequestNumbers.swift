import Glibc
import HoldfastCore
import HoldfastLinux

/// The numbers of a prover's requests to one device, each larger than all before it, in the file `request_number` of a
/// folder.
///
/// A device carries out no number twice (docs/protocol.md, "Once is once"). A number is on the disk before it is sent,
/// and two processes with the same folder never take the same number. The numbers follow the clock, so that they rise
/// even if the folder is restored from an older copy. If the clock went back, they rise by one.
package struct RequestNumbers {
  package static let fileName = "request_number"

  private let path: String
  private let warn: (ProverWarning) -> Void
  /// The longest time for which another process may lock the file, in milliseconds.
  private static let lockMilliseconds = 5000
  /// The longest file: the 16 digits of 2^53 - 1 and a newline.
  private static let maximumByteCount = 17

  /// Refers to the numbers in `folder`, which has the files of the device's enrolment.
  package init(folder: String, warn: @escaping (ProverWarning) -> Void) {
    path = "\(folder)/\(Self.fileName)"
    self.warn = warn
  }

  /// Takes the next number, or the first of `count` consecutive numbers: the Unix time in microseconds, or the
  /// successor of the last number if that is larger.
  ///
  /// If the folder cannot be written, the result is a warning, and the numbers only follow the clock. A damaged file is
  /// replaced with a warning. If the device knows a higher number, it says so, and ``raise(to:)`` corrects the file.
  ///
  package func next(count: UInt64 = 1, now: UInt64 = unixMicroseconds()) throws(RequestNumberFault) -> UInt64 {
    var first: UInt64 = 0
    try change { (last) throws(RequestNumberFault) in
      // A clock beyond the year 2255 is wrong.
      first = max(now <= maximumInteger ? now : 0, last.map { $0 + 1 } ?? 0)
      guard first <= maximumInteger, count - 1 <= maximumInteger - first else { throw .exhausted(path: path) }
      return first + (count - 1)
    }
    return first
  }

  /// Records the last number that the device, which has proved itself, accepted. The next number will be larger.
  package func raise(to highest: UInt64) throws(RequestNumberFault) {
    try change { (last) throws(RequestNumberFault) in max(last ?? 0, highest) }
  }

  /// Replaces the last number with the result of `body`, whose argument is the present one; nil if there is none.
  ///
  /// An enrolment that is replaced meanwhile takes its folder away, with the file that is being written. The new folder has a
  /// copy of the last number, with which the call begins again.
  private func change(_ body: (UInt64?) throws(RequestNumberFault) -> UInt64) throws(RequestNumberFault) {
    for _ in 0..<Self.replacementCount {
      do throws(RequestNumberFault) { return try changeOnce(body) } catch {
        guard case .file(let fault) = error, fault.kind == .notFound else { throw error }
      }
    }
    try changeOnce(body)
  }

  /// The number of replacements of an enrolment that one call endures.
  private static let replacementCount = 100

  private func changeOnce(_ body: (UInt64?) throws(RequestNumberFault) -> UInt64) throws(RequestNumberFault) {
    var bytes: [UInt8] = []
    let file = try lock { span in
      for index in span.indices { bytes.append(span[index]) }
    }
    let last = Self.number(bytes)
    if last == nil, !bytes.isEmpty { warn(.damagedRequestNumber(path: path)) }
    let next = try body(last)
    guard next != last, var file else { return }
    do throws(FileError) { try file.replace(with: Array("\(next)\n".utf8).span) } catch {
      try goOnWithoutWriting(error)
    }
  }

  /// Continues without writing. The prover can still make proofs: the numbers follow the clock, and the device refuses
  /// one that does not rise.
  private func goOnWithoutWriting(_ error: FileError) throws(RequestNumberFault) {
    switch error.kind {
    case .readOnly, .noPermission, .diskFull: warn(.unwrittenRequestNumber(error))
    default: throw .file(error)
    }
  }

  /// Waits for the lock, after creating an empty file if there is none. Returns nil if that is impossible.
  private func lock(_ body: (Span<UInt8>) -> Void) throws(RequestNumberFault) -> LockedFile? {
    for _ in 0..<Self.lockMilliseconds / 2 {
      do throws(FileError) {
        return try LockedFile(path: path, limit: Self.maximumByteCount, body)
      } catch {
        switch error.kind {
        case .locked: usleep(2000)
        case .notFound:
          do throws(FileError) { return try LockedFile(creatingAt: path, Span()) } catch {
            guard error.kind == .exists || error.kind == .locked else {
              try goOnWithoutWriting(error)
              return nil
            }
          }
        // A file that is too large cannot be a number.
        case .tooLarge: try removeDamaged()
        default: throw .file(error)
        }
      }
    }
    throw .locked(path: path)
  }

  private func removeDamaged() throws(RequestNumberFault) {
    warn(.damagedRequestNumber(path: path))
    do throws(FileError) { try Files.removeFile(at: path) } catch {
      guard error.kind == .notFound else { throw .file(error) }
      return
    }
  }

  /// Parses digits without leading zeros and a newline; returns nil for anything else.
  private static func number(_ bytes: [UInt8]) -> UInt64? {
    guard bytes.last == 0x0a, let number = UInt64(String(decoding: bytes.dropLast(), as: UTF8.self)),
      number <= maximumInteger, "\(number)\n".utf8.elementsEqual(bytes)
    else { return nil }
    return number
  }
}

/// Returns the Unix time in microseconds; 0 for a clock before 1970.
package func unixMicroseconds() -> UInt64 {
  var time = timespec()
  unsafe clock_gettime(CLOCK_REALTIME, &time)
  return UInt64(max(time.tv_sec, 0)) * 1_000_000 + UInt64(time.tv_nsec) / 1000
}

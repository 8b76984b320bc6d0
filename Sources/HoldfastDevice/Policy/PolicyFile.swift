import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastStorage
import Synchronization

/// `policy.json`, looked at again in every round. While it cannot be taken, nothing is allowed.
///
/// It is read each time, since a time stamp does not show every change; it is decoded when its bytes differ.
package final class PolicyFile: Sendable {
  private let path: String
  private let last = Mutex<(bytes: [UInt8], reading: PolicyReading)?>(nil)

  init(path: String) {
    self.path = path
  }

  /// The policy in force now.
  package func read() -> PolicyReading {
    last.withLock { last in
      let bytes: [UInt8]
      do throws(FileError) {
        bytes = try Files.readFile(
          at: path, limit: DevicePolicy.maximumByteCount, requirements: [.owned, .noSymbolicLink])
      } catch {
        last = nil
        return PolicyReading(
          fault: error.kind == .tooLarge
            ? .malformed(JSONMistake(at: [], expected: .shorterText(DevicePolicy.maximumByteCount))) : .unreadable)
      }
      if let last, last.bytes == bytes { return last.reading }
      let reading = PolicyReading(bytes)
      last = (bytes, reading)
      return reading
    }
  }
}

/// What a look at the policy file gave.
package struct PolicyReading: Sendable, Equatable {
  /// What is allowed; nothing when there is a fault.
  package let policy: DevicePolicy
  /// Why the file could not be taken; nil when it was.
  package let fault: PolicyFault?
  /// SHA-256 of the file; nil when it could not be taken.
  package let digest: Digest?

  private init(policy: DevicePolicy, digest: Digest) {
    (self.policy, fault, self.digest) = (policy, nil, digest)
  }

  /// A policy that needs no file.
  package init(_ policy: DevicePolicy) {
    self.init(policy.json())
  }

  init(fault: PolicyFault) {
    (policy, self.fault, digest) = (.denyAll, fault, nil)
  }

  init(_ bytes: [UInt8]) {
    do throws(PolicyFault) {
      self.init(policy: try DevicePolicy(json: bytes), digest: try sha256(bytes))
    } catch {
      self.init(fault: error)
    }
  }
}

private func sha256(_ bytes: [UInt8]) throws(PolicyFault) -> Digest {
  var cryptography = OpenSSLCryptography()
  var hash = cryptography.sha256()
  hash.append(bytes.span)
  do throws(CryptographyFailure) { return try hash.finish() } catch { throw .unreadable }
}

/// The policy file of a running server: each change of it is audited and announced once.
final class PolicyWatch: Sendable {
  private let file: PolicyFile
  private let ledger: Ledger
  private let notify: @Sendable (ServerNotice) -> Void
  private let announced = Mutex<Mark?>(nil)

  /// What tells one policy from another.
  private struct Mark: Equatable {
    let digest: Digest?
    let fault: PolicyFault?
  }

  init(_ file: PolicyFile, ledger: Ledger, notify: @escaping @Sendable (ServerNotice) -> Void) {
    (self.file, self.ledger, self.notify) = (file, ledger, notify)
  }

  /// The policy in force now. `realClock` is in Unix seconds.
  func policy(realClock: UInt64?) -> DevicePolicy {
    let reading = file.read()
    let mark = Mark(digest: reading.digest, fault: reading.fault)
    let isNew = announced.withLock { announced in
      guard announced != mark else { return false }
      announced = mark
      // While the file cannot be taken, nothing is allowed, and nothing is dropped.
      ledger.auditBound = reading.policy.auditEntryCount
      return true
    }
    if isNew { announce(reading, realClock: realClock) }
    return reading.policy
  }

  private func announce(_ reading: PolicyReading, realClock: UInt64?) {
    notify(.policy(reading))
    do throws(LedgerError) {
      try ledger.notePolicy(reading.digest, realClock: realClock)
    } catch {
      announced.withLock { $0 = nil }
    }
  }
}

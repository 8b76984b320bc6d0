import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastLinux
import Synchronization

/// The file `policy.json`, which is read again in every round. While it is invalid, nothing is allowed.
///
/// It is read each time, because a time stamp does not show every change. It is decoded only if its bytes differ.
package final class PolicyFile: Sendable {
  private struct State: ~Copyable {
    var file: RereadFile
    var reading: PolicyReading?
  }

  private let state: Mutex<State>

  init(path: String) {
    let file = RereadFile(
      path: path, limit: DevicePolicy.maximumByteCount, requirements: [.owned, .noSymbolicLink])
    state = Mutex(State(file: file))
  }

  /// Reads the policy that is in force now.
  package func read() -> PolicyReading {
    state.withLock { state in
      do throws(FileError) {
        if try !state.file.read(), let reading = state.reading { return reading }
      } catch {
        state.reading = nil
        return PolicyReading(
          fault: error.kind == .tooLarge
            ? .malformed(JSONMistake(at: [], expected: .shorterText(DevicePolicy.maximumByteCount))) : .unreadable)
      }
      let reading = PolicyReading(state.file.bytes)
      state.reading = reading
      return reading
    }
  }
}

/// The result of reading the policy file.
public struct PolicyReading: Sendable, Equatable {
  /// The policy in force. It allows nothing if there is a fault.
  package let policy: DevicePolicy
  /// The reason that the file was refused; nil if it was not.
  package let fault: PolicyFault?
  /// The SHA-256 of the file; nil if it was refused.
  package let digest: Digest?

  private init(policy: DevicePolicy, digest: Digest) {
    (self.policy, fault, self.digest) = (policy, nil, digest)
  }

  /// Makes a reading of a policy that is not in a file.
  package init(_ policy: DevicePolicy) {
    self.init(policy.json())
  }

  package init(fault: PolicyFault) {
    (policy, self.fault, digest) = (.denyAll, fault, nil)
  }

  package init(_ bytes: [UInt8]) {
    let digest: Digest
    do throws(CryptographyFailure) { digest = try sha256(bytes.span) } catch {
      self.init(fault: .unreadable)
      return
    }
    do throws(PolicyFault) { self.init(policy: try DevicePolicy(json: bytes), digest: digest) } catch {
      self.init(fault: error)
    }
  }
}

func sha256(_ bytes: Span<UInt8>) throws(CryptographyFailure) -> Digest {
  var cryptography = OpenSSLCryptography()
  var hash = cryptography.sha256()
  hash.append(bytes)
  return try hash.finish()
}

/// The policy file of a running server. Each change of it is audited and announced once.
package final class PolicyWatch: Sendable {
  private let file: PolicyFile
  private let ledger: Ledger
  private let notify: @Sendable (ServerNotice) -> Void
  private let announced = Mutex<Mark?>(nil)

  /// The facts that distinguish one policy from another.
  private struct Mark: Equatable {
    let digest: Digest?
    let fault: PolicyFault?
  }

  package init(_ file: PolicyFile, ledger: Ledger, notify: @escaping @Sendable (ServerNotice) -> Void) {
    (self.file, self.ledger, self.notify) = (file, ledger, notify)
  }

  /// Returns the policy that is in force now, and announces it if it has changed. `realClock` is in Unix seconds.
  package func policy(realClock: UInt64?) -> DevicePolicy {
    let reading = file.read()
    let mark = Mark(digest: reading.digest, fault: reading.fault)
    let isNew = announced.withLock { announced in
      guard announced != mark else { return false }
      announced = mark
      // While the file is invalid, nothing is allowed, and no audit entry is dropped.
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

import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL
import HoldfastLinux
import Synchronization

/// The file `policy.json`, or `policy.jws` of a device with a policy key, which is read again in every round. While it is invalid,
/// nothing is allowed.
///
/// It is read each time, because a time stamp does not show every change. It is decoded only if its bytes differ.
package final class PolicyFile: Sendable {
  private struct State: ~Copyable {
    var file: RereadFile
    var reading: PolicyReading?
    /// The ``RereadFile/openingCount`` of `reading`.
    var openingCount: UInt64 = 0
  }

  private let state: Mutex<State>
  private let name: DeviceFile
  private let limit: Int
  private let signer: PolicySigner?

  /// Names the policy file in a folder; with `signer`, the one that needs a signature.
  init(in folder: String, signer: PolicySigner?) {
    (name, self.signer) = (signer == nil ? .policy : .signedPolicy, signer)
    limit = signer == nil ? DevicePolicy.maximumByteCount : SignedPolicy.maximumByteCount
    let file = RereadFile(path: name.path(in: folder), limit: limit, requirements: [.owned, .noSymbolicLink])
    state = Mutex(State(file: file))
  }

  /// Reads the policy that is in force now.
  package func read() -> PolicyReading {
    state.withLock { state in
      do throws(FileError) {
        let isChanged = try state.file.read()
        // A signed policy that was replaced and put back may be outdated by now.
        let isSettled = signer == nil || state.openingCount == state.file.openingCount
        if !isChanged, isSettled, let reading = state.reading { return reading }
      } catch {
        state.reading = nil
        return PolicyReading(
          fault: error.kind == .tooLarge
            ? .malformed(JSONMistake(at: [], expected: .shorterText(limit))) : .unreadable, in: name)
      }
      let reading =
        if let signer { PolicyReading(state.file.bytes, by: signer) } else { PolicyReading(state.file.bytes) }
      // A policy that could not be recorded is tried again.
      state.reading = reading.fault == .unrecorded ? nil : reading
      state.openingCount = state.file.openingCount
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
  /// The number of a signed policy; nil if the policy has no signature, or was refused.
  package let number: UInt64?
  /// The file.
  package let file: DeviceFile

  private init(policy: DevicePolicy, digest: Digest, number: UInt64? = nil) {
    (self.policy, fault, self.digest, self.number) = (policy, nil, digest, number)
    file = number == nil ? .policy : .signedPolicy
  }

  /// Makes a reading of a policy that is not in a file.
  package init(_ policy: DevicePolicy) {
    self.init(policy.json())
  }

  package init(fault: PolicyFault, in file: DeviceFile = .policy) {
    (policy, self.fault, digest, number, self.file) = (.denyAll, fault, nil, nil, file)
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

  /// Reads a signed policy.
  init(_ bytes: [UInt8], by signer: PolicySigner) {
    do throws(PolicyFault) {
      let signed = try signer.policy(bytes)
      let digest: Digest
      do throws(CryptographyFailure) { digest = try sha256(bytes.span) } catch { throw .unreadable }
      self.init(policy: signed.policy, digest: digest, number: signed.number)
    } catch { self.init(fault: error, in: .signedPolicy) }
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
      ledger.auditRules = reading.policy.auditRules
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

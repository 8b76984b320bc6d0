/// The user's side of an activation or an unlocking, which answers the device's challenge with the owner's code. It
/// does no I/O.
///
/// Pass every message from the device to ``receive(_:)``, and carry out the step that it returns.
package struct ActivationSession<Crypto: Cryptography & ~Copyable, Random: RandomSource & ~Copyable>: ~Copyable {
  private let code: OneUseCode
  private let purpose: OneUseCode.Purpose
  private var cryptography: Crypto
  private var random: Random
  private var state = UserSessionState.start

  /// The id of the device that answered; set with the first message.
  package private(set) var deviceID = DeviceID()
  /// The device's grant; nil before ``ActivationStep/store``.
  package private(set) var grant: ActivationGrant?
  /// The protection that the device's owner demands; nil for none, and before ``ActivationStep/store``.
  package private(set) var demand: ProtectionDemand?
  /// The next message to the device, ready to be sent.
  package private(set) var outgoing = ByteBuffer<128>()

  /// Creates a session that uses `code` for `purpose`.
  package init(
    code: consuming OneUseCode, for purpose: OneUseCode.Purpose, cryptography: consuming Crypto,
    random: consuming Random
  ) {
    self.code = code
    self.purpose = purpose
    self.cryptography = cryptography
    self.random = random
  }

  /// Takes a message from the device and returns the next step.
  package mutating func receive(_ message: Span<UInt8>) throws(ActivationFault) -> ActivationStep {
    outgoing.removeAll()
    if let status = Self.refusal(message) { throw .refused(status) }
    switch state.take() {
    case .start:
      state = try purpose == .activation ? open(message) : unlock(message)
      return .send
    case .opened(let key, let codeKey, let opening):
      let keys = try takeGrant(message, key: key, codeKey: codeKey, opening: opening)
      state = .granted(keys)
      return .store
    case .granted:
      throw .malformed
    case .awaiting(let type, let mac):
      guard case .some(let given) = try Self.mac(message, type: type) else { throw .malformed }
      guard constantTimeEqual(given.bytes, mac.bytes) else { throw .impostor }
      return .done
    case .ended:
      throw .malformed
    }
  }

  /// Leaves the confirmation in ``outgoing``. The user's secrets must be durable by then.
  ///
  /// - Throws: `malformed` outside ``ActivationStep/store``, `cryptography` if that fails.
  package mutating func confirm() throws(ActivationFault) {
    outgoing.removeAll()
    guard case .granted(let keys) = state.take() else { throw .malformed }
    do throws(CryptographyFailure) {
      let mac = try authenticationCode(key: keys.client, keys.transcript, using: &cryptography)
      let answer = try authenticationCode(key: keys.device, keys.transcript, using: &cryptography)
      try write(.confirm(mac: mac))
      state = .awaiting(type: Message.activatedType, mac: answer)
    } catch { throw .cryptography }
  }

  /// Lends the secrets to `body`, between ``ActivationStep/store`` and ``confirm()``; returns nil at any other time.
  package borrowing func withSecrets<Result: ~Copyable, Failure: Error>(
    _ body: (borrowing UserSecrets) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    switch state {
    case .granted(let keys): return try body(keys.secrets)
    default: return nil
    }
  }

  private mutating func open(_ message: Span<UInt8>) throws(ActivationFault) -> UserSessionState {
    try readChallenge(message)
    let key: FreshKey
    do throws(DeviceFault) { key = try FreshKey(using: &cryptography, &random) } catch {
      throw error == .random ? .random : .cryptography
    }
    do throws(CryptographyFailure) {
      let codeKey = try code.key(for: .activation, using: &cryptography)
      let opening = try ActivationKeys.opening(
        challenge: message, clientPoint: key.publicPoint, using: &cryptography)
      let mac = try authenticationCode(key: codeKey, opening, using: &cryptography)
      try write(.activate(key.publicPoint, mac: mac))
      return .opened(key, codeKey: codeKey, opening: opening)
    } catch { throw .cryptography }
  }

  private mutating func unlock(_ message: Span<UInt8>) throws(ActivationFault) -> UserSessionState {
    try readChallenge(message)
    do throws(CryptographyFailure) {
      let codeKey = try code.key(for: .unlock, using: &cryptography)
      let digest = try ActivationKeys.unlocking(challenge: message, using: &cryptography)
      try write(.unlock(mac: try authenticationCode(key: codeKey, digest, using: &cryptography)))
      let answer = try authenticationCode(key: codeKey, prefix: "\u{1}", digest, using: &cryptography)
      return .awaiting(type: Message.unlockedType, mac: answer)
    } catch { throw .cryptography }
  }

  private mutating func readChallenge(_ message: Span<UInt8>) throws(ActivationFault) {
    do throws(EncodingFault) { deviceID = try Challenge(message).deviceID } catch { throw .malformed }
  }

  private mutating func takeGrant(
    _ message: Span<UInt8>, key: consuming FreshKey, codeKey: borrowing Secret<32>, opening: Digest
  ) throws(ActivationFault) -> ActivationKeys {
    let reply: ActivationReply
    do throws(EncodingFault) { reply = try ActivationReply(message) } catch { throw .malformed }
    guard case .grant(let devicePoint, let sealed) = reply else { throw .malformed }
    var plaintext = ByteBuffer<384>()
    do throws(EncodingFault) { try plaintext.append(sealed) } catch { throw .malformed }
    let keys: ActivationKeys
    do throws(CryptographyFailure) {
      keys = try ActivationKeys(
        shared: try key.agree(with: devicePoint, using: &cryptography), code: codeKey, opening: opening,
        devicePoint: devicePoint, using: &cryptography)
    } catch { throw .impostor }
    do throws(CryptographyFailure) {
      try plaintext.open(
        key: keys.grant, nonce: FixedBytes<12>().bytes, authenticating: keys.transcript.bytes, using: &cryptography)
    } catch { throw .impostor }
    do throws(EncodingFault) { grant = try ActivationGrant(plaintext.bytes, demand: &demand) } catch {
      throw .malformed
    }
    return keys
  }

  private mutating func write(_ message: ActivationMessage) throws(CryptographyFailure) {
    do throws(EncodingFault) { try message.encode(into: &outgoing) } catch { throw CryptographyFailure() }
  }

  /// Returns the status if `message` is a verdict (M3), with which a device refuses; nil for any other message.
  private static func refusal(_ message: Span<UInt8>) -> Status? {
    do throws(EncodingFault) { return try VerdictMessage(message).status } catch { return nil }
  }

  private static func mac(_ message: Span<UInt8>, type: UInt64) throws(ActivationFault) -> MAC? {
    let reply: ActivationReply
    do throws(EncodingFault) { reply = try ActivationReply(message) } catch { throw .malformed }
    switch reply {
    case .activated(let mac): return type == Message.activatedType ? mac : nil
    case .unlocked(let mac): return type == Message.unlockedType ? mac : nil
    case .grant: return nil
    }
  }
}

/// The next step of the caller of a ``ActivationSession``.
package enum ActivationStep: Sendable {
  /// The caller sends ``ActivationSession/outgoing``, then waits for the next message.
  case send
  /// The caller makes ``ActivationSession/grant`` and the secrets durable, calls ``ActivationSession/confirm()``, and sends
  /// ``ActivationSession/outgoing``.
  case store
  /// The exchange is over, and the device has carried it out.
  case done
}

/// The reason why an activation or an unlocking ended. A message of the device without a MAC proves nothing.
public enum ActivationFault: Error, Equatable {
  /// The message is not one of this protocol.
  case malformed
  /// The device refused: the code is wrong, used up or expired, or the device has no room.
  case refused(Status)
  /// The peer does not know the code.
  case impostor
  /// The random source or the cryptography failed.
  case random, cryptography
}

/// The state of a ``ActivationSession``.
enum UserSessionState: ~Copyable {
  case start
  case opened(FreshKey, codeKey: Secret<32>, opening: Digest)
  case granted(ActivationKeys)
  case awaiting(type: UInt64, mac: MAC)
  case ended

  /// Returns the state, and leaves ``ended``.
  mutating func take() -> UserSessionState {
    var taken = UserSessionState.ended
    swap(&taken, &self)
    return taken
  }
}

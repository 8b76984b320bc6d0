import HoldfastCore
import HoldfastOpenSSL

extension OneUseCode {
  /// The code as the owner reads it to the user.
  package var text: String {
    var bytes: [UInt8] = []
    write(into: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// A user with one of the owner's codes at a device, message by message.
package struct TestVisitor {
  /// The device's last refusal.
  package private(set) var status = Status.accepted
  /// The secrets that the device gave to a new user; empty before that.
  package private(set) var secrets: [CodePurpose: [UInt8]] = [:]
  /// The protection that the owner demanded with the secrets.
  package private(set) var demand: ProtectionDemand?

  package init() {}

  /// Runs a whole activation or unlock with a peer that answers M1 and each message with another message. Returns whether
  /// both ends accepted it.
  package mutating func use(
    _ text: String, for purpose: OneUseCode.Purpose, seed: UInt64 = 3, challenge: [UInt8],
    respond: ([UInt8]) throws -> [UInt8]
  ) throws -> Bool {
    let bytes = Array(text.utf8)
    guard let code = OneUseCode(bytes.span) else { return false }
    var session = ActivationSession(
      code: code, for: purpose, cryptography: OpenSSLCryptography(), random: TestRandom(state: seed))
    var message = challenge
    while true {
      do throws(ActivationFault) {
        switch try session.receive(message.span) {
        case .send: break
        case .store:
          let given: [CodePurpose: [UInt8]]? = session.withSecrets { secrets in
            [.otp: secrets.otp.withBytes { Array($0) }, .seal: secrets.seal.withBytes { Array($0) }]
          }
          secrets = given ?? [:]
          demand = session.demand
          try session.confirm()
        case .done: return true
        }
      } catch {
        if case .refused(let refused) = error { status = refused }
        return false
      }
      message = try respond(Array(session.outgoing.bytes))
    }
  }
}

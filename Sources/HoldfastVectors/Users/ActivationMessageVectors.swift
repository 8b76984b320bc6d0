import HoldfastCore
import HoldfastOpenSSL

/// The vectors `OneUseCode`: a code of a device's owner as a person types it, and the keys that follow from it.
///
/// Source: docs/protocol.md, Activation and Unlocking.
struct OneUseCodeVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let text = Array(try test.node.member("code").text().utf8)
    let activation: FixedBytes<32>? = try test.node.optional("activationKey")?.fixed()
    let unlock: FixedBytes<32>? = try test.node.optional("unlockKey")?.fixed()
    guard let code = OneUseCode(text.span) else { return .refused("not a code") }
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      let keys = (
        publicBytes(try code.key(for: .activation, using: &cryptography)),
        publicBytes(try code.key(for: .unlock, using: &cryptography))
      )
      if let activation, keys.0 != activation { return .differs("activationKey") }
      if let unlock, keys.1 != unlock { return .differs("unlockKey") }
      return .accepted
    } catch { return .refused("no key") }
  }
}

/// The vectors `ActivationMessage`: the messages 21, 23 and 25 of a user. Source: docs/protocol.md, Activation.
struct ActivationMessageVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let message = try test.bytes("message")
    var written: [UInt8] = []
    do throws(EncodingFault) {
      guard let read = try ActivationMessage(message.span) else { return .refused("another message") }
      read.encode(into: &written)
    } catch { return .refused("\(error)") }
    return written == message ? .accepted : .differs("message, written again,")
  }
}

/// The vectors `ActivationReply`: the messages 22, 24 and 26 of a device. Source: docs/protocol.md, Activation.
struct ActivationReplyVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let message = try test.bytes("message")
    do throws(EncodingFault) { _ = try ActivationReply(message.span) } catch { return .refused("\(error)") }
    return .accepted
  }
}

/// The vectors `ActivationGrant`: the plaintext of the sealed part of message 22. Source: docs/protocol.md, Activation.
struct ActivationGrantVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let message = try test.bytes("message")
    do throws(EncodingFault) {
      var demand: ProtectionDemand?
      let grant = try ActivationGrant(message.span, demand: &demand)
      return grant.encoded(with: demand) == message ? .accepted : .differs("message, written again,")
    } catch { return .refused("\(error)") }
  }
}

extension ActivationGrant {
  /// Writes the grant, with the owner's demand if there is one.
  func encoded(with demand: ProtectionDemand?) -> [UInt8] {
    var written: [UInt8] = []
    if let demand { encode(with: demand, into: &written) } else { encode(into: &written) }
    return written
  }
}

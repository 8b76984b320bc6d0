import HoldfastCore
import HoldfastOpenSSL
import HoldfastReplay

/// The vectors `Activation`: what a user's authenticator sends in an exchange, and which answers it takes.
///
/// Source: docs/protocol.md, Activation.
struct ActivationVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let code = try test.node.member("code").ownersCode()
    let m1 = try test.bytes("m1")
    let (granted, activated) = (try test.bytes("granted"), try test.bytes("activated"))
    let random = ScalarRandom(bytes: try test.node.member("clientPrivateKey").fixed())
    let expected = try ExpectedActivation(test)
    var user = ActivationSession(code: code, for: .activation, cryptography: OpenSSLCryptography(), random: random)
    do throws(ActivationFault) {
      guard case .send = try user.receive(m1.span) else { return .refused("no opening") }
      let activate = array(user.outgoing.bytes)
      guard case .store = try user.receive(granted.span), let grant = user.grant else { return .refused("no grant") }
      let secrets = user.withSecrets { [publicBytes($0.otp), publicBytes($0.seal), publicBytes($0.host)] }
      let plaintext = grant.encoded(with: user.demand)
      try user.confirm()
      let confirm = array(user.outgoing.bytes)
      guard case .done = try user.receive(activated.span) else { return .refused("no end") }
      guard let expected else { return .accepted }
      if activate != expected.activate { return .differs("activate") }
      if plaintext != expected.grant { return .differs("grant") }
      if confirm != expected.confirm { return .differs("confirm") }
      return secrets == expected.secrets ? .accepted : .differs("a secret")
    } catch { return .refused("\(error)") }
  }
}

/// The values that a valid test of `Activation` expects.
private struct ExpectedActivation {
  let activate, grant, confirm: [UInt8]
  let secrets: [FixedBytes<32>]

  /// Reads the values; nil for an invalid test.
  init?(_ test: VectorTest) throws(VectorFault) {
    guard test.result != .invalid else { return nil }
    (activate, grant, confirm) = (try test.bytes("activate"), try test.bytes("grant"), try test.bytes("confirm"))
    secrets = [
      try test.node.member("otpSecret").fixed(), try test.node.member("sealSecret").fixed(),
      try test.node.member("hostSecret").fixed(),
    ]
  }
}

/// The vectors `ActivationAtDevice`: how a device that has one code of its owner answers a user.
///
/// Source: docs/protocol.md, Activation.
struct DeviceActivationVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let (m1, activate, confirm) = (try test.bytes("m1"), try test.bytes("activate"), try test.bytes("confirm"))
    let isValid = test.result != .invalid
    let granted = isValid ? try test.bytes("granted") : []
    let activated = isValid ? try test.bytes("activated") : []
    var device = try CodeHolder(test, random: test.node.member("freshPrivateKey").fixed())
    do throws(Refusal) {
      try device.answer(activate, to: m1)
      if isValid { try Refusal.unless(device.answer, granted, "granted") }
      try device.confirm(confirm)
      if isValid { try Refusal.unless(device.answer, activated, "activated") }
      return .accepted
    } catch { return .refused(error.reason) }
  }
}

/// The vectors `Unlocking`: what a user's authenticator sends to end a lockout, and which answer it takes.
///
/// Source: docs/protocol.md, Unlocking.
struct UnlockingVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let code = try test.node.member("code").ownersCode()
    let (m1, unlocked) = (try test.bytes("m1"), try test.bytes("unlocked"))
    let unlock = test.result == .invalid ? nil : try test.bytes("unlock")
    var user = ActivationSession(
      code: code, for: .unlock, cryptography: OpenSSLCryptography(), random: ScalarRandom(bytes: FixedBytes()))
    do throws(ActivationFault) {
      guard case .send = try user.receive(m1.span) else { return .refused("no opening") }
      let sent = array(user.outgoing.bytes)
      guard case .done = try user.receive(unlocked.span) else { return .refused("no end") }
      return unlock == nil || sent == unlock ? .accepted : .differs("unlock")
    } catch { return .refused("\(error)") }
  }
}

/// The vectors `UnlockingAtDevice`: how a device that has one code of its owner answers a user who is locked out.
///
/// Source: docs/protocol.md, Unlocking.
struct DeviceUnlockingVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let (m1, unlock) = (try test.bytes("m1"), try test.bytes("unlock"))
    let unlocked = test.result == .invalid ? nil : try test.bytes("unlocked")
    var device = try CodeHolder(test, random: FixedBytes())
    do throws(Refusal) {
      try device.answer(unlock, to: m1)
      if let unlocked { try Refusal.unless(device.answer, unlocked, "unlocked") }
      return .accepted
    } catch { return .refused(error.reason) }
  }
}

/// A device that has one code of its owner.
private struct CodeHolder: ~Copyable {
  private var device: VectorDevice<OpenSSLCryptography, P256PrivateKey>

  /// Reads the code of a test, with its purpose, its user and its times.
  init(_ test: VectorTest, random: FixedBytes<32>) throws(VectorFault) {
    let code = try test.node.member("code").ownersCode()
    let member = try test.node.member("purpose")
    let purposes = ["activation": OneUseCode.Purpose.activation, "unlock": .unlock]
    guard let purpose = purposes[try member.text()] else { throw member.fault(.wrongValue) }
    let (time, expires) = (try test.node.member("time").number(), try test.node.member("expires").number())
    let grant = try test.node.optional("methods").map { (methods) throws(VectorFault) in
      try ActivationGrant(user: test.node.member("user").text(), methods: methods)
    }
    let key: P256PrivateKey
    let codeKey: Secret<32>
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) { key = try P256PrivateKey(scalar: Self.anyKey()) } catch {
      throw member.fault(.wrongValue)
    }
    do throws(CryptographyFailure) { codeKey = try code.key(for: purpose, using: &cryptography) } catch {
      throw member.fault(.wrongValue)
    }
    let record = OneUseCodeRecord(
      id: 1, purpose: purpose, key: codeKey, user: grant?.user ?? BoundedText("user"), expires: expires,
      methods: grant?.methods ?? ByPurpose())
    device = VectorDevice(
      deviceID: DeviceID(), keyID: KeyID(), key: key,
      issuers: TrustedIssuers(keyID: KeyID(), publicKey: P256Point()), cryptography: OpenSSLCryptography())
    device.keep(record, time: time, random: random)
  }

  /// A private key, which no exchange of a user needs.
  private static func anyKey() -> Secret<32> {
    var key = Secret<32>()
    key.withMutableBytes { $0[31] = 1 }
    return key
  }

  /// The last message of the device.
  var answer: [UInt8] { array(device.verdict) }

  /// Has the device answer a message in the round of `m1`.
  mutating func answer(_ message: [UInt8], to m1: [UInt8]) throws(Refusal) {
    let nothing: [UInt8] = []
    try accepted { (device) throws(EncodingFault) in
      try device.answer(message.span, to: m1.span, result: nothing.span)
    }
  }

  /// Has the device answer the confirmation.
  mutating func confirm(_ message: [UInt8]) throws(Refusal) {
    try accepted { (device) throws(EncodingFault) in try device.confirm(message.span) }
  }

  private mutating func accepted(
    _ body: (inout VectorDevice<OpenSSLCryptography, P256PrivateKey>) throws(EncodingFault) -> Status
  ) throws(Refusal) {
    do throws(EncodingFault) {
      let status = try body(&device)
      guard status != .accepted else { return }
      throw EncodingFault.unexpected
    } catch { throw Refusal(reason: "the device refuses") }
  }
}

extension ActivationGrant {
  /// Reads the accounts of an owner's code as a grant has them.
  fileprivate init(user: String, methods: VectorNode) throws(VectorFault) {
    var plaintext: [UInt8] = [0xa4, 0x01]
    plaintext.appendCBOR(text: Array(user.utf8).span)
    plaintext += [0x02, 0x00, 0x03] + (try methods.bytes()) + [0x04, 0x10]
    do throws(EncodingFault) {
      var demand: ProtectionDemand?
      try self.init(plaintext.span, demand: &demand)
    } catch { throw methods.fault(.wrongValue) }
  }
}

extension VectorNode {
  /// Reads a code of a device's owner.
  fileprivate func ownersCode() throws(VectorFault) -> OneUseCode {
    let text = Array(try text().utf8)
    guard let code = OneUseCode(text.span) else { throw fault(.wrongValue) }
    return code
  }
}

/// A random source that always returns the private key of a vector.
private struct ScalarRandom: RandomSource {
  let bytes: FixedBytes<32>

  func fill(_ output: inout MutableSpan<UInt8>) {
    for index in output.indices { output[index] = bytes[index % 32] }
  }
}

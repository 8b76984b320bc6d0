import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastIssuer

@Suite struct BackendTests {
  var parties: Parties

  init() throws {
    parties = try Parties()
  }

  private func issue(
    _ token: [UInt8]? = nil, for device: DeviceDescriptor? = nil, parties: Parties? = nil,
    issued: MemoryIssued = MemoryIssued(), options: IssuanceOptions = IssuanceOptions(), at seconds: UInt64? = nil
  ) throws -> Issuance {
    let parties = parties ?? self.parties
    var backend = try parties.backend(issued)
    var random = SystemRandom()
    let token = try token ?? self.parties.attestation()
    return try backend.issue(
      attestation: token.span, for: device ?? parties.device(), options: options,
      clock: TestClock(seconds: seconds ?? parties.now), random: &random)
  }

  /// The claims that the example's device finds in an issued token, as hexadecimal CBOR.
  private func open(_ issuance: Issuance, _ format: MeasurementTokenFormat = .cose) throws -> OpenedToken {
    guard case .issued(let issued) = issuance else { throw UnreadableFile() }
    let token = issued.bytes
    return try MeasurementTokenWriterTests().open(token, format)
  }

  @Test(arguments: [ServiceFolder.AttestationSignature.hs256, .es256])
  func `a device opens what is issued, and finds the measurements that the app proves`(
    signature: ServiceFolder.AttestationSignature
  ) throws {
    var parties = parties
    parties.signature = signature
    let issuance = try issue(parties.attestation(), parties: parties)
    let opened = try open(issuance)
    #expect(opened.issuerKeyID == parties.example.fixed("keys.issuer_kid"))
    #expect(opened.claims.contains(parties.example.text("measurement.im")))
    #expect(opened.claims.contains(parties.example.text("measurement.dm")))
    guard case .issued(let issued) = issuance else { return }
    guard case .bytes(let id)? = issued.claims[.tokenID] else { throw UnreadableFile() }
    #expect(opened.claims.contains(hex(id)))
    #expect(issued.claims[.issuedAt] == .number(parties.now))
    #expect(issued.claims[.expires] == .number(parties.now + 90 * 86400))
    #expect(issued.claims[.generation] == .number(1))
    #expect([Claim.maximumUses, .commands, .user].allSatisfy { issued.claims[$0] == nil })
    #expect([Claim.integrity, .device, .proofKey].allSatisfy { issued.claims[$0] == nil })
  }

  @Test func `two tokens have different ids`() throws {
    guard case .issued(let first) = try issue(), case .issued(let second) = try issue() else {
      Issue.record("refused")
      return
    }
    #expect(first.claims[.tokenID] != second.claims[.tokenID])
  }

  @Test(arguments: [MeasurementTokenFormat.cose, .macCOSE, .unsignedCOSE, .jose, .joseKeyWrap])
  func `options become claims`(format: MeasurementTokenFormat) throws {
    var options = IssuanceOptions()
    options.format = format
    options.validitySeconds = 60
    options.claims = [.commands: .texts(["unlock"]), .maximumUses: .number(5), .user: .text("ada")]
    let issuance = try issue(options: options)
    let opened = try open(issuance, format)
    guard case .issued(let issued) = issuance else { return }
    #expect(issued.claims[.expires] == .number(parties.now + 60))
    for (claim, value) in options.claims { #expect(issued.claims[claim] == value) }
    #expect(issued.claims[.version] == .version(AppVersion(major: 1, minor: 2, patch: 3)))
    #expect(
      opened.claims.hasSuffix(
        "3a000124fb01" + "3a000124fc05" + "3a000124fd81" + hex([0x66] + Array("unlock".utf8))
          + "3a000124fe83010203" + "3a000124ff" + hex([0x63] + Array("ada".utf8))))
  }

  @Test func `what the policy says of tokens is in each of them, unless an option says otherwise`() throws {
    var parties = parties
    parties.policy.commands = ["lock", "unlock"]
    parties.policy.maximumUses = 9
    parties.policy.tokenSeconds = 60
    var options = IssuanceOptions()
    options.claims = [.maximumUses: .number(5)]
    for (options, uses) in [(IssuanceOptions(), 9), (options, 5)] as [(IssuanceOptions, UInt64)] {
      guard case .issued(let issued) = try issue(parties: parties, options: options) else {
        Issue.record("refused")
        continue
      }
      #expect(issued.claims[.commands] == .texts(["lock", "unlock"]))
      #expect(issued.claims[.maximumUses] == .number(uses))
      #expect(issued.claims[.expires] == .number(parties.now + 60))
    }
  }

  @Test func `the times of an attestation token are kept to, with thirty seconds of grace`() throws {
    let token = try parties.attestation()
    #expect(try issue(token, at: parties.now - 31) == .refused(.notYetValid))
    #expect(try issue(token, at: parties.now + 330) == .refused(.expired))
    for seconds in [parties.now - 30, parties.now + 329] {
      guard case .issued = try issue(token, at: seconds) else {
        Issue.record("refused at \(seconds)")
        continue
      }
    }
  }

  @Test func `a token that was never valid is refused within the seconds of grace too`() throws {
    var other = parties
    other.policy.attestationSeconds = 0
    #expect(try issue(other.attestation()) == .refused(.notYetValid))
  }

  @Test func `a token for another backend, or of another service, is refused`() throws {
    let token = try parties.attestation()
    var other = parties
    other.policy.audience = parties.text("other.example")
    #expect(try issue(token, parties: other) == .refused(.audience))
    other = parties
    other.policy.attestationIssuer = parties.text("other.example")
    #expect(try issue(token, parties: other) == .refused(.issuer))
  }

  @Test func `a token that was asked for another device is refused`() throws {
    var id = parties.example.deviceID
    id[0] ^= 1
    #expect(try issue(for: parties.device(id: id)) == .refused(.anotherDevice))
    let otherKey = try DeviceDescriptor(
      deviceID: parties.example.deviceID, publicPoint: P256PrivateKey().publicPoint)
    #expect(try issue(for: otherKey) == .refused(.anotherDevice))
  }

  @Test func `one baseline is one device's, and it may have it again`() throws {
    var backend = try parties.backend()
    var random = SystemRandom()
    var id = parties.example.deviceID
    id[0] ^= 1
    let clock = TestClock(seconds: parties.now)
    let first = try parties.device()
    let second = try parties.device(id: id)
    for (device, isIssued) in [(first, true), (second, false), (first, true)] {
      let token = try parties.attestation(for: device)
      let issuance = try backend.issue(attestation: token.span, for: device, clock: clock, random: &random)
      if case .issued = issuance {
        #expect(isIssued)
      } else {
        #expect(!isIssued && issuance == .refused(.baselineOfAnotherDevice))
      }
    }
  }

  @Test func `a device has one key: who gives its descriptor a key of his own reads no token for it`() throws {
    var backend = try parties.backend()
    var random = SystemRandom()
    let clock = TestClock(seconds: parties.now)
    let device = try parties.device()
    let impostor = try DeviceDescriptor(deviceID: device.deviceID, publicPoint: P256PrivateKey().publicPoint)
    for (descriptor, isIssued) in [(device, true), (impostor, false), (device, true)] {
      let token = try parties.attestation(for: descriptor)
      let issuance = try backend.issue(attestation: token.span, for: descriptor, clock: clock, random: &random)
      if case .issued = issuance {
        #expect(isIssued)
      } else {
        #expect(!isIssued && issuance == .refused(.anotherKey))
      }
    }
  }

  @Test func `with a list of devices, one that is not registered gets no token, and one that is gets it`() throws {
    var parties = parties
    parties.policy.devices = .listed
    let device = try parties.device()
    #expect(try issue(parties: parties) == .refused(.unknownDevice))
    var issued = MemoryIssued()
    issued.registered[device.deviceID] = RegisteredDevice(
      deviceID: device.deviceID, publicPoint: device.publicKey.point)
    guard case .issued = try issue(parties: parties, issued: issued) else {
      Issue.record("refused")
      return
    }
  }

  @Test(arguments: [DeviceAdmission.listed, .firstCome])
  func `a device that is registered with another key, or blocked, gets no token`(admission: DeviceAdmission) throws {
    var parties = parties
    parties.policy.devices = admission
    let device = try parties.device()
    var issued = MemoryIssued()
    issued.registered[device.deviceID] = RegisteredDevice(
      deviceID: device.deviceID, publicPoint: try P256PrivateKey().publicPoint)
    #expect(try issue(parties: parties, issued: issued) == .refused(.anotherKey))
    issued.registered[device.deviceID] = RegisteredDevice(
      deviceID: device.deviceID, publicPoint: device.publicKey.point, blocked: 1)
    #expect(try issue(parties: parties, issued: issued) == .refused(.blockedDevice))
    issued.registered[device.deviceID] = RegisteredDevice(deviceID: device.deviceID, publicPoint: nil, blocked: 1)
    #expect(
      try issue(parties: parties, issued: issued) == .refused(admission == .listed ? .unknownDevice : .blockedDevice))
  }

  @Test func `a flipped character is refused`() throws {
    let token = try parties.attestation()
    for index in stride(from: 0, to: token.count, by: 11) where token[index] != UInt8(ascii: ".") {
      var changed = token
      changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
      let issuance = try issue(changed)
      if case .refused(.attestation) = issuance { continue }
      Issue.record("\(index): \(issuance)")
    }
  }

  @Test func `a token signed with another secret is refused, and one that is not signed`() throws {
    var cryptography = OpenSSLCryptography()
    var random = SystemRandom()
    let other = [UInt8](repeating: 9, count: 32)
    var key = JWSKey.hs256(SecretBytes(copying: other.span))
    let payload = Array("{}".utf8)
    let signed = try key.sign(payload.span, type: "holdfast-at+jwt", using: &cryptography)
    let forged = try parties.encryptionKey().seal(signed.bytes, contentType: "JWT", random: &random)
    #expect(try issue(forged) == .refused(.attestation(.cryptography)))
    let bare = try parties.encryptionKey().seal(payload.span, contentType: "JWT", random: &random)
    #expect(try issue(bare) == .refused(.attestation(.malformed)))
  }

  @Test func `a signed token without measurements is refused`() throws {
    var cryptography = OpenSSLCryptography()
    var random = SystemRandom()
    var key = try parties.signingKey()
    let payload = Array(#"{"iss":"attestation.example","aud":"api.example","iat":1,"exp":2}"#.utf8)
    let signed = try key.sign(payload.span, type: "holdfast-at+jwt", using: &cryptography)
    let token = try parties.encryptionKey().seal(signed.bytes, contentType: "JWT", random: &random)
    #expect(try issue(token) == .refused(.attestation(.unexpected)))
  }

  @Test func `an app that its attestation does not name has the policy's name, and is refused without one`() throws {
    var cryptography = OpenSSLCryptography()
    var random = SystemRandom()
    var encryption = try parties.encryptionKey()
    var key = try parties.signingKey()
    let attestation = try parties.attestation()
    let opened = try encryption.open(attestation.span, contentType: "JWT")
    let payload = try key.verify(opened.bytes, type: "holdfast-at+jwt", using: &cryptography)
    let claims = String(decoding: payload.bytes.array, as: UTF8.self)
    let unnamed = Array(claims.replacing(#","sub":"example-app""#, with: "").utf8)
    try #require(unnamed.count < payload.bytes.count)
    let signed = try key.sign(unnamed.span, type: "holdfast-at+jwt", using: &cryptography)
    let token = try encryption.seal(signed.bytes, contentType: "JWT", random: &random)
    #expect(try issue(token) == .refused(.unnamedApp))
    var naming = parties
    naming.policy.subject = parties.text("the policy's app")
    guard case .issued(let issued) = try issue(token, parties: naming) else {
      Issue.record("refused")
      return
    }
    #expect(issued.claims[.subject] == .text("the policy's app"))
  }

  @Test func `revoking raises the generation of that device alone`() throws {
    var backend = try parties.backend()
    var random = SystemRandom()
    #expect(try backend.revoke(parties.example.deviceID) == 2)
    #expect(try backend.revoke(parties.example.deviceID) == 3)
    #expect(try backend.revoke(DeviceID()) == 2)
    let token = try parties.attestation()
    let issuance = try backend.issue(
      attestation: token.span, for: parties.device(), clock: TestClock(seconds: parties.now), random: &random)
    guard case .issued(let issued) = issuance else {
      Issue.record("refused")
      return
    }
    #expect(issued.claims[.generation] == .number(3))
    #expect(try open(issuance).claims.contains("3a000124fb03"))
  }

  @Test func `without a clock, a record or randomness nothing is issued`() throws {
    let token = try parties.attestation()
    let device = try parties.device()
    var random = SystemRandom()
    var backend = try parties.backend()
    #expect(throws: IssuanceFault.noClock) {
      _ = try backend.issue(
        attestation: token.span, for: device, clock: TestClock(seconds: nil), random: &random)
    }
    let clock = TestClock(seconds: parties.now)
    var failing = try parties.backend(MemoryIssued(fails: true))
    #expect(throws: IssuanceFault.ledger(ServiceLedgerFault())) {
      _ = try failing.issue(attestation: token.span, for: device, clock: clock, random: &random)
    }
    var dry = ListedRandom(bytes: [])
    #expect(throws: IssuanceFault.writing(.cryptography)) {
      _ = try backend.issue(attestation: token.span, for: device, clock: clock, random: &dry)
    }
    var options = IssuanceOptions()
    options.claims[.commands] = .texts(Array(repeating: "unlock", count: 17))
    #expect(throws: IssuanceFault.writing(.tooManyCommands)) { try issue(options: options) }
    for (claim, value) in [
      (Claim.maximumUses, ClaimValue.number(maximumInteger + 1)), (.maximumUses, .text("3")),
      (.user, .text(String(repeating: "u", count: 33))), (.proofKey, .bytes(Array(repeating: 0, count: 16))),
    ] {
      options.claims = [claim: value]
      #expect(throws: IssuanceFault.writing(.claims)) { try issue(options: options) }
    }
  }
}

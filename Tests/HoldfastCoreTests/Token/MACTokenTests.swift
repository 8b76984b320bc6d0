import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

/// Tokens whose claims are a `COSE_Mac0`, under a key that their issuer shares with the device.
@Suite struct MACTokenTests {
  static let macKey = [UInt8](0..<32)
  private let device: ExampleDevice
  private let keyID: KeyID

  init() throws {
    device = try ExampleDevice()
    var cryptography = OpenSSLCryptography()
    keyID = try HoldfastCore.keyID(of: .mac(secret(Self.macKey)), using: &cryptography)
    device.store.macKeys[keyID] = Self.macKey
    device.policy.acceptsMAC = true
  }

  @Test func `the key id of a MAC key is the start of a hash of its own`() throws {
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append((Array("holdfast/1 mac kid".utf8) + [0] + Self.macKey).span)
    let digest: Digest = try hash.finish()
    #expect(Array(digest).prefix(8) == Array(keyID)[...])
  }

  @Test func `a token under a shared key is accepted, as a whole and by its reference`() throws {
    let token = try mac().token()
    var whole = try Prover.with(token)
    #expect(try device.round(&whole).response.status == .accepted)
    var remembered = try Prover.with(token, remembered: true)
    #expect(try device.round(&remembered).response.status == .accepted)
    #expect(device.store.rounds.map { $0.verifyingKey } == [keyID, keyID])
    #expect(device.store.generations[keyID] == 1)
  }

  @Test func `the helper that makes any MAC makes a good one too`() throws {
    try open(macUnder(Self.macKey, named: [UInt8](keyID.bytes)))
  }

  @Test func `without the policy's word a trusted key is not enough, also for a token that is remembered`() throws {
    let token = try mac().token()
    device.policy.acceptsMAC = false
    var early = try Prover.with(token)
    #expect(try device.round(&early).response.status == .tokenInvalid)
    device.policy.acceptsMAC = true
    var first = try Prover.with(token)
    #expect(try device.round(&first).response.status == .accepted)
    var second = try Prover.with(token, remembered: true)
    #expect(try device.round(&second).response.status == .accepted)
    device.policy.acceptsMAC = false
    var third = try Prover.with(token, remembered: true)
    #expect(try device.round(&third).response.status == .tokenInvalid)
  }

  @Test func `without trust in the key the policy's word is not enough, also for a token that is remembered`() throws {
    let token = try mac().token()
    var first = try Prover.with(token)
    #expect(try device.round(&first).response.status == .accepted)
    device.store.macKeys = [:]
    var remembered = try Prover.with(token, remembered: true)
    #expect(try device.round(&remembered).response.status == .tokenInvalid)
    var whole = try Prover.with(token)
    #expect(try device.round(&whole).response.status == .tokenInvalid)
  }

  @Test func `trust that ends while a round is under way denies it`() throws {
    device.store.losesTrust = true
    #expect(try device.status(of: mac()) == .tokenInvalid)
    #expect(device.lock.performed.isEmpty)
  }

  @Test func `another device's key makes no token for this one, whatever key id it names`() throws {
    let others = [UInt8](repeating: 0xee, count: 32)
    #expect(throws: TokenFault.untrusted) { try open(mac(others)) }
    let named = [UInt8](keyID.bytes)
    #expect(throws: TokenFault.cryptography) {
      try open(mac(others) { $0.replaceSubrange(Self.keyIDPlace, with: named) })
    }
  }

  @Test(arguments: 0..<32)
  func `every byte of the tag counts`(index: Int) throws {
    #expect(throws: TokenFault.cryptography) {
      try open(mac { $0[$0.count - 32 + index] ^= 1 })
    }
  }

  @Test(arguments: [0, 8, 16, 31])
  func `a shorter tag is none`(count: Int) throws {
    let token = try mac { plaintext in
      let tag = Array(plaintext.suffix(32))
      plaintext.removeLast(34)
      plaintext.appendCBOR(bytes: Array(tag.prefix(count)).span)
    }
    #expect(throws: TokenFault.structure) { try open(token) }
  }

  @Test func `a changed claim no longer fits the tag`() throws {
    // The generation, 1, is the last byte of the claims.
    #expect(throws: TokenFault.cryptography) { try open(mac { $0[$0.count - 35] = 2 }) }
  }

  @Test func `the kind of the key decides: no MAC under a signing key's id, no signature under a MAC key's`() throws {
    let issuer = try P256PrivateKey(scalar: secret(WorkedExample.shared.bytes("keys.issuer_private"))).publicPoint
    var cryptography = OpenSSLCryptography()
    let signingID = [UInt8](try HoldfastCore.keyID(of: issuer, using: &cryptography).bytes)
    // The attack on a verifier that lets the header choose: the issuer's public point as the key of a MAC.
    for key in [Self.macKey, [UInt8](issuer.bytes)] {
      #expect(throws: TokenFault.cryptography) { try open(macUnder(key, named: signingID)) }
    }
    let macID = [UInt8](keyID.bytes)
    #expect(throws: TokenFault.cryptography) {
      try open(ExampleToken { $0.flaws.changePlaintext = { $0.replaceSubrange(Self.keyIDPlace, with: macID) } })
    }
  }

  @Test(
    arguments: [
      // The tags of COSE_Sign1 and COSE_Encrypt0, ES256, HMAC 256/64 and HMAC 384/384, and other labels.
      (0, 0xd2), (0, 0xd0), (6, 0x26), (6, 0x04), (6, 0x06), (7, 0x03), (17, 0x0f), (30, 0xa1),
    ] as [(Int, UInt8)])
  func `no header may be written otherwise`(index: Int, byte: UInt8) throws {
    #expect(throws: TokenFault.structure) { try open(mac { $0[index] = byte }) }
  }

  /// Where the key id stands in what is encrypted.
  private static let keyIDPlace = 9..<17

  /// A token under a MAC key, changed before it is encrypted.
  private func mac(_ key: [UInt8] = macKey, _ change: @escaping (inout [UInt8]) throws -> Void = { _ in }) throws
    -> ExampleToken
  {
    try ExampleToken { ($0.issuer, $0.flaws.changePlaintext) = (try TestIssuer(sharing: key), change) }
  }

  /// The device's view of a token.
  private func open(_ token: ExampleToken) throws { try device.open(token.token()) }

  /// A `COSE_Mac0` under any bytes, with any key id.
  private func macUnder(_ key: [UInt8], named id: [UInt8]) throws -> ExampleToken {
    try mac { plaintext in
      plaintext.replaceSubrange(Self.keyIDPlace, with: id)
      let protected = Array(plaintext[4..<30])
      let claims = Array(plaintext[33..<plaintext.count - 34])
      var cryptography = OpenSSLCryptography()
      var mac = try cryptography.hmacSHA256(key: key.span)
      mac.appendCOSEClaimsContext("MAC0", protected: protected.span, payload: claims.span)
      plaintext.replaceSubrange(plaintext.count - 32..<plaintext.count, with: Array(try mac.finish() as MAC))
    }
  }
}

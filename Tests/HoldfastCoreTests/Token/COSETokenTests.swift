import Foundation
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastCore

/// The parts of a COSE token that no tag and no signature covers hold exactly what the protocol says.
@Suite struct COSETokenTests {
  private func open(_ token: [UInt8]) throws { try ExampleDevice().open(token) }

  @Test func `a token as it is made opens`() throws {
    try open(try ExampleToken().token())
  }

  @Test(
    arguments: [
      ("43a10103", "43a10101"), ("43a10103", "44a1010300"), ("43a10103", "43a20103"), ("43a10103", "44a1011803"),
      ("43a10103a1054c", "43a10103a1064c"), ("43a10103a1054c", "43a10103a2054c"), ("d86084", "d86085"),
      ("d86084", "d86184"),
    ])
  func `no header may be written otherwise`(part: String, other: String) throws {
    let made = try ExampleToken().token()
    let token = hex(made)
    let start = try #require(token.range(of: part))
    let changed = token.replacingCharacters(in: start, with: other)
    #expect(throws: TokenFault.self) { try open(hex(changed)) }
  }

  @Test func `nothing follows a token, and nothing the signed claims in it`() throws {
    let made = try ExampleToken().token()
    for more in [[0x00], [0xf6], made] {
      #expect(throws: TokenFault.self) { try open(made + more) }
    }
    let longer = try ExampleToken { $0.flaws.changePlaintext = { $0.append(0xf6) } }.token()
    #expect(throws: TokenFault.self) { try open(longer) }
  }

  /// Each of them is authenticated, too, so that a change behind the map would be noticed later.
  @Test func `nothing follows the parameters in a protected header`() throws {
    let made = try ExampleToken().token()
    let start = try #require(made.indices.first { made[$0...].starts(with: hex("4ea2013818")) })
    var longer = made
    longer[start] += 1
    longer.insert(0, at: start + 15)
    #expect(throws: TokenFault.malformed) { try open(longer) }
    let signed = try ExampleToken {
      $0.flaws.changePlaintext = { plaintext in
        // The tag and the array, then a string of bytes with its length in one.
        #expect(plaintext[1...2] == [0x84, 0x58])
        plaintext.insert(0, at: 4 + Int(plaintext[3]))
        plaintext[3] += 1
      }
    }.token()
    #expect(throws: TokenFault.malformed) { try open(signed) }
  }

  @Test func `the recipient's key id has its label, and the signature no unprotected header`() throws {
    let relabelled = try ExampleToken { $0.flaws.recipientKeyLabel = 5 }.token()
    #expect(throws: TokenFault.structure) { try open(relabelled) }
    let promising = try ExampleToken { $0.flaws.unprotectedHeader = [0xa1] }.token()
    #expect(throws: TokenFault.structure) { try open(promising) }
  }

  @Test(arguments: [0xd0, 0xd3] as [UInt8])
  func `a signature behind another tag than its own is none`(tag: UInt8) throws {
    // 0xd2 is the tag of a COSE_Sign1, which no signature covers.
    let made = try ExampleToken {
      $0.flaws.changePlaintext = { plaintext in
        #expect(plaintext[0] == 0xd2)
        plaintext[0] = tag
      }
    }.token()
    #expect(throws: TokenFault.structure) { try open(made) }
  }

  @Test func `a nonce of another length and a ciphertext without a tag are not even decrypted`() throws {
    let made = try ExampleToken().token()
    let token = hex(made)
    let zeros = String(repeating: "00", count: 12)
    let shortNonce = token.replacingOccurrences(of: "a1054c" + zeros, with: "a1054b" + zeros.dropLast(2))
    #expect(shortNonce.count == token.count - 2)
    #expect(throws: TokenFault.structure) { try open(hex(shortNonce)) }
    let start = try #require(token.range(of: "a1054c" + zeros)).upperBound
    // Long enough not to occur in the ciphertext, which is random.
    let end = try #require(token.range(of: "81834ea2013818")).lowerBound
    let empty = token.replacingCharacters(in: start..<end, with: "4f" + String(repeating: "00", count: 15))
    #expect(throws: TokenFault.structure) { try open(hex(empty)) }
    // A ciphertext of nothing but its tag is decrypted, and holds no token.
    let hollow = try ExampleToken { $0.flaws.changePlaintext = { $0 = [] } }.token()
    #expect(throws: TokenFault.malformed) { try open(hollow) }
  }

  @Test func `a version is three numbers, in a list that says so`() throws {
    for head in [0x82, 0x84] as [UInt8] {
      var token = ExampleToken { $0.version = (1, 2, 3) }
      token.flaws.changeClaims = { claims in
        // 3a 00 01 24 fe is -75007.
        let label = hex("3a000124fe")
        let start = claims.indices.first { claims[$0...].starts(with: label) }!
        claims[start + label.count] = head
      }
      let made = try token.token()
      #expect(throws: TokenFault.self) { try open(made) }
    }
    let good = try ExampleToken { $0.version = (1, 2, 3) }.token()
    try open(good)
  }

  @Test(arguments: ["cose", "jose"]) func `a token names in clear text the key that it is encrypted to`(name: String)
    throws
  {
    let example = WorkedExample.shared
    let (token, encoding) = example.token(name)
    let keyID = try Challenge(hex(example.round("cose")["m1"]!).span).keyID
    #expect(TokenRecipient.keyID(of: token.span, encoding: encoding) == keyID)
    #expect(TokenRecipient.keyID(of: token.span, encoding: .reference) == nil)
    let cut = Array(token.dropFirst())
    #expect(TokenRecipient.keyID(of: cut.span, encoding: encoding) == nil)
  }

  @Test func `a bare token is nobody's, also in the place of one that was signed`() throws {
    var cryptography = OpenSSLCryptography()
    var key = try P256PrivateKey(scalar: secret(WorkedExample.shared.bytes("keys.device_private")))
    let id = try keyID(of: key.publicPoint, using: &cryptography)
    var trust = try ExampleDevice().store
    var opener = TokenOpener()
    var verified = AuthenticatedToken()
    for isSigned in [true, false] {
      let token = try ExampleToken { $0.flaws.isSigned = isSigned }.token()
      try opener.open(
        token.span, encoding: .cose, key: &key, keyID: id, trust: &trust, acceptsUnsigned: true, acceptsMAC: false,
        using: &cryptography, into: &verified)
      let isSomebodys = verified.verifyingKey != nil
      #expect(isSomebodys == isSigned)
    }
  }

  @Test func `more than 3072 bytes are not looked at`() {
    #expect(throws: TokenFault.malformed) { try open([UInt8](repeating: 0, count: 3073)) }
  }
}

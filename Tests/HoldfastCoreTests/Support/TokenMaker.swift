import HoldfastOpenSSL

import HoldfastCore

/// Makes COSE measurement tokens for the worked example's device, with whatever claims a test wants.
struct TokenMaker {
  var issuedAt: UInt64 = 1_790_000_000
  var expires: UInt64 = 1_790_003_600
  var audience: [UInt8] = hex("74348e8af6e1c57c37f453b0c7b78462")
  var tokenID: [UInt8] = Array(repeating: 0x11, count: 16)
  var generation: UInt64 = 1
  var maximumUses: UInt64?
  var commands: [String]?
  var version: [UInt64]?
  var user: String?
  var isSigned = true
  /// The label of the key id in the recipient's header.
  var recipientKeyLabel: UInt8 = 4
  /// The unprotected header of the signature.
  var unprotected: [UInt8] = [0xa0]
  /// The key of a `COSE_Mac0` in the place of the signature.
  var macKey: [UInt8]?
  /// The issuer's scalar; the example's unless a stranger signs.
  var issuer = WorkedExample.shared.bytes("keys.issuer_private")
  /// Changes the claims before they are signed.
  var changeClaims: (inout [UInt8]) -> Void = { _ in }
  /// Changes what is encrypted.
  var changePlaintext: (inout [UInt8]) -> Void = { _ in }

  func token() throws -> [UInt8] {
    let example = WorkedExample.shared
    var cryptography = OpenSSLCryptography()
    var claims = claims()
    changeClaims(&claims)
    var plaintext = claims
    if let macKey {
      plaintext = try authenticated(claims, macKey, &cryptography)
    } else if isSigned {
      plaintext = try signed(claims, &cryptography)
    }
    changePlaintext(&plaintext)
    var ephemeral = try P256PrivateKey()
    let device: P256Point = fixed(example.bytes("keys.device_point"))
    var shared = Secret<32>()
    try ephemeral.agree(with: device, into: &shared)
    var protected: [UInt8] = [0xa2, 0x01, 0x38, 0x18, recipientKeyLabel, 0x48]
    protected += example.bytes("keys.device_kid")
    var context = ByteBuffer<64>()
    try context.appendCOSEKeyContext(recipientProtected: protected.span)
    var key = Secret<32>()
    try key.withMutableBytes { output in
      try shared.withBytes { input in
        try cryptography.hkdfSHA256(inputKey: input, salt: Span(), info: context.bytes, into: &output)
      }
    }
    var authenticated = ByteBuffer<16>()
    try authenticated.appendCOSEEncryptionContext()
    var tag = FixedBytes<16>()
    var message = plaintext.mutableSpan
    let iv = FixedBytes<12>()
    try cryptography.aes256GCMSeal(
      key: key, nonce: iv.bytes, authenticating: authenticated.bytes, message: &message, tag: &tag)
    return envelope(plaintext, tag: tag, protected: protected, point: ephemeral.publicPoint)
  }

  private func envelope(
    _ ciphertext: [UInt8], tag: FixedBytes<16>, protected: [UInt8], point: P256Point
  ) -> [UInt8] {
    var token: [UInt8] = []
    token.appendCBOR(tag: 96)
    token.appendCBOR(array: 4)
    token += [0x43, 0xa1, 0x01, 0x03, 0xa1, 0x05, 0x4c] + [UInt8](repeating: 0, count: 12)
    token.appendCBOR(byteStringHead: ciphertext.count + 16)
    token += ciphertext
    token.append(tag.bytes)
    token += [0x81, 0x83]
    token.appendCBOR(bytes: protected.span)
    token += [0xa1, 0x20, 0xa4, 0x01, 0x02, 0x20, 0x01, 0x21]
    token.appendCBOR(bytes: point.bytes.extracting(1..<33))
    token.append(0x22)
    token.appendCBOR(bytes: point.bytes.extracting(33..<65))
    token.append(0x40)
    return token
  }

  private func signed(_ claims: [UInt8], _ cryptography: inout OpenSSLCryptography) throws -> [UInt8] {
    var key = try P256PrivateKey(scalar: secret(issuer))
    let id = try keyID(of: key.publicPoint, using: &cryptography)
    var protected: [UInt8] = [0xa3, 0x01, 0x26, 0x04]
    protected.appendCBOR(bytes: id.bytes)
    protected.append(0x10)
    protected.appendCBOR(text: "holdfast-mt")
    var hash = cryptography.sha256()
    hash.appendCOSEClaimsContext("Signature1", protected: protected.span, payload: claims.span)
    let signature = try key.sign(try hash.finish())
    var signed: [UInt8] = [0xd2, 0x84]
    signed.appendCBOR(bytes: protected.span)
    signed += unprotected
    signed.appendCBOR(bytes: claims.span)
    signed.appendCBOR(bytes: signature.bytes)
    return signed
  }

  private func authenticated(
    _ claims: [UInt8], _ key: [UInt8], _ cryptography: inout OpenSSLCryptography
  ) throws -> [UInt8] {
    var protected: [UInt8] = [0xa3, 0x01, 0x05, 0x04]
    protected.appendCBOR(bytes: try keyID(of: .mac(secret(key)), using: &cryptography).bytes)
    protected.append(0x10)
    protected.appendCBOR(text: "holdfast-mt")
    var mac = try cryptography.hmacSHA256(key: key.span)
    mac.appendCOSEClaimsContext("MAC0", protected: protected.span, payload: claims.span)
    var message: [UInt8] = [0xd1, 0x84]
    message.appendCBOR(bytes: protected.span)
    message += unprotected
    message.appendCBOR(bytes: claims.span)
    message.appendCBOR(bytes: try mac.finish().bytes)
    return message
  }

  private func claims() -> [UInt8] {
    let example = WorkedExample.shared
    let optional = [maximumUses != nil, commands != nil, version != nil, user != nil].count { $0 }
    var map: [UInt8] = []
    map.appendCBOR(map: 10 + optional)
    map += [0x01, 0x61, 0x69, 0x02, 0x61, 0x73, 0x03]
    map.appendCBOR(text: audienceText.span)
    for (label, value) in [(UInt64(4), expires), (6, issuedAt)] {
      map.appendCBOR(unsigned: label)
      map.appendCBOR(unsigned: value)
    }
    map.append(0x07)
    map.appendCBOR(bytes: tokenID.span)
    for (label, path) in [(-75001, "im"), (-75002, "dm"), (-75003, "mpk")] {
      map.appendCBOR(integer: Int64(label))
      map.appendCBOR(bytes: example.bytes("measurement.\(path)").span)
    }
    map.appendCBOR(integer: -75004)
    map.appendCBOR(unsigned: generation)
    if let maximumUses {
      map.appendCBOR(integer: -75005)
      map.appendCBOR(unsigned: maximumUses)
    }
    if let commands {
      map.appendCBOR(integer: -75006)
      map.appendCBOR(array: commands.count)
      for command in commands { map.appendCBOR(text: Array(command.utf8).span) }
    }
    if let version {
      map.appendCBOR(integer: -75007)
      map.appendCBOR(array: version.count)
      for number in version { map.appendCBOR(unsigned: number) }
    }
    if let user {
      map.appendCBOR(integer: -75008)
      map.appendCBOR(text: Array(user.utf8).span)
    }
    return map
  }

  private var audienceText: [UInt8] {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    var bits = 0
    var pending = 0
    var text: [UInt8] = []
    for byte in audience {
      pending = pending << 8 | Int(byte)
      bits += 8
      while bits >= 6 {
        bits -= 6
        text.append(alphabet[pending >> bits & 63])
      }
    }
    text.append(alphabet[pending << (6 - bits) & 63])
    return text
  }
}

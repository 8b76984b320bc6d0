import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

@Suite struct P256PrivateKeyTests {
  private let scalar = hex("c88f01f510d9ac3f70a292daa2316de544e9aab8afe84049c62a9c57862d1433")
  private let point = hex(
    "04dad0b65394221cf9b051e1feca5787d098dfe637fc90b9ef945d0c3772581180"
      + "5271a0461cdb8252d61f1c456fa3e59ab1f45b33accf5f58389e0577b8990bb3")
  private let peerPoint = hex(
    "04d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf63"
      + "56fbf3ca366cc23e8157854c13c58d6aac23f046ada30f8353e74f33039872ab")
  private let shared = hex("d6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de")

  private func key() throws -> P256PrivateKey {
    try P256PrivateKey(scalar: Secret<32>(copying: scalar.span)!)
  }

  @Test func `a scalar gives its public point and comes back out`() throws {
    let key = try key()
    #expect(key.publicPoint.bytes.array == point)
    let bytes = try key.scalar().withBytes { $0.array }
    #expect(bytes == scalar)
  }

  @Test func `ECDH gives the shared secret of RFC 5903 again and again`() throws {
    var key = try key()
    for _ in 0..<3 {
      var secret = Secret<32>()
      try key.agree(with: P256Point(peerPoint.span)!, into: &secret)
      let bytes = secret.withBytes { $0.array }
      #expect(bytes == shared)
    }
  }

  @Test(arguments: [0, 1, 64]) func `ECDH refuses a point with a wrong byte, and then serves a right one`(
    index: Int
  ) throws {
    var key = try key()
    var secret = Secret<32>()
    var wrong = P256Point(peerPoint.span)!
    wrong[index] ^= 1
    do throws(CryptographyFailure) {
      try key.agree(with: wrong, into: &secret)
      Issue.record("agreed")
    } catch {}
    try key.agree(with: P256Point(peerPoint.span)!, into: &secret)
    let bytes = secret.withBytes { $0.array }
    #expect(bytes == shared)
  }

  @Test(arguments: [2, 3, 6, 7] as [UInt8]) func `a point in another form than the uncompressed is refused`(
    form: UInt8
  ) throws {
    let other = [form] + peerPoint.dropFirst()
    let compressed = Array(other.prefix(33))
    for point in [other, compressed] {
      #expect(throws: CryptographyFailure.self) { try checkPoint(point.span, on: .p256) }
    }
    #expect(throws: CryptographyFailure.self) { try checkPoint(Array(peerPoint.dropLast()).span, on: .p256) }
    #expect(throws: CryptographyFailure.self) { try checkPoint(peerPoint.span, on: .p384) }
    try checkPoint(peerPoint.span, on: .p256)
  }

  @Test func `ECDH refuses the zero point`() throws {
    var key = try key()
    var secret = Secret<32>()
    var zero = P256Point()
    for first: UInt8 in [0, 4] {
      zero[0] = first
      do throws(CryptographyFailure) {
        try key.agree(with: zero, into: &secret)
        Issue.record("agreed")
      } catch {}
    }
  }

  @Test(arguments: [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551",
    "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
  ])
  func `a scalar outside 1 to n - 1 is refused`(scalar: String) throws {
    do throws(CryptographyFailure) {
      _ = try P256PrivateKey(scalar: Secret<32>(copying: hex(scalar).span)!)
      Issue.record("accepted")
    } catch {}
  }

  @Test func `two new keys agree, and differ`() throws {
    var left = try P256PrivateKey()
    var right = try P256PrivateKey()
    #expect(left.publicPoint != right.publicPoint)
    var one = Secret<32>()
    var other = Secret<32>()
    try left.agree(with: right.publicPoint, into: &one)
    try right.agree(with: left.publicPoint, into: &other)
    let equal = one.withBytes { one in other.withBytes { other in constantTimeEqual(one, other) } }
    #expect(equal)
  }

  @Test func `a signature verifies, and not over another digest, by another key or with a flipped bit`() throws {
    var cryptography = OpenSSLCryptography()
    var key = try key()
    let other = try P256PrivateKey()
    for round in 0..<20 {
      var digest = Digest()
      digest[0] = UInt8(round)
      let signature = try key.sign(digest)
      try cryptography.p256Verify(key: key.publicPoint, digest: digest, signature: signature)
      var wrong = signature
      wrong[round * 3] ^= 0x10
      #expect(throws: CryptographyFailure.self) {
        try verify(key.publicPoint, digest, wrong)
      }
      #expect(throws: CryptographyFailure.self) {
        try verify(other.publicPoint, digest, signature)
      }
      digest[31] ^= 1
      #expect(throws: CryptographyFailure.self) {
        try verify(key.publicPoint, digest, signature)
      }
    }
  }

  @Test func `a signature of RFC 6979 verifies`() throws {
    let key = hex(
      "0460fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6"
        + "7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299")
    let signature = hex(
      "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
        + "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8")
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append("sample")
    try verify(P256Point(key.span)!, hash.finish(), FixedBytes<64>(signature.span)!)
  }

  @Test func `a key id is the head of the point's digest`() throws {
    var cryptography = OpenSSLCryptography()
    let point = hex(
      "04129e6b9822449fd5398e5e96d6899cfb01f95a6c6cfc1572c32e51b6f17ed6ae"
        + "be3be5ab6666b7b836aa4a53f8b6231eb92f73214ffc251a66bbd68e6e5a221b")
    #expect(try keyID(of: P256Point(point.span)!, using: &cryptography).bytes.array == hex("641450c5f107071c"))
  }

  private func verify(_ key: P256Point, _ digest: Digest, _ signature: FixedBytes<64>) throws {
    var cryptography = OpenSSLCryptography()
    try cryptography.p256Verify(key: key, digest: digest, signature: signature)
  }
}

import COpenSSL

/// An elliptic curve of libcrypto, for vectors on curves that Holdfast itself does not use.
struct LibcryptoCurve {
  /// The name of the curve in Wycheproof.
  let name: String
  private let identifier: CInt
  /// The byte count of a coordinate.
  let coordinateByteCount: Int
  /// The byte count of r and of s in a signature.
  let orderByteCount: Int

  /// Finds the curve with the name that Wycheproof uses, such as `secp256r1` or `brainpoolP320r1`; nil if libcrypto has
  /// none.
  init?(_ name: String) {
    self.name = name
    // X9.62 gave two of the curves other names, and libcrypto uses these.
    let names = ["secp192r1": "prime192v1", "secp256r1": "prime256v1", "P-256K": "secp256k1"]
    identifier = unsafe OBJ_sn2nid(names[name] ?? name)
    guard identifier != 0, let group = unsafe EC_GROUP_new_by_curve_name(identifier) else {
      ERR_clear_error()
      return nil
    }
    defer { unsafe EC_GROUP_free(group) }
    coordinateByteCount = Int(unsafe EC_GROUP_get_degree(group) + 7) / 8
    orderByteCount = Int(unsafe EC_GROUP_order_bits(group) + 7) / 8
  }

  /// Returns the x coordinate of a private key times an uncompressed point; nil if either is not one of this curve.
  func agree(scalar: [UInt8], point: [UInt8]) -> [UInt8]? {
    guard let peer = key(point: point), let own = unsafe EC_KEY_new_by_curve_name(identifier) else { return nil }
    defer {
      unsafe EC_KEY_free(own)
      ERR_clear_error()
    }
    let number = unsafe BN_bin2bn(scalar, CInt(scalar.count), nil)
    defer { unsafe BN_free(number) }
    let group = unsafe EC_KEY_get0_group(own)
    guard unsafe BN_is_zero(number) == 0, unsafe BN_cmp(number, EC_GROUP_get0_order(group)) < 0,
      unsafe EC_KEY_set_private_key(own, number) == 1
    else { return nil }
    var shared = [UInt8](repeating: 0, count: coordinateByteCount)
    let count = unsafe ECDH_compute_key(&shared, shared.count, EC_KEY_get0_public_key(peer.pointer), own, nil)
    return count == shared.count ? shared : nil
  }

  /// Returns whether a DER `ECDSA-Sig-Value` over a digest was made with the private key of an uncompressed point.
  ///
  /// libcrypto refuses every encoding but DER's.
  func verifies(_ signature: [UInt8], digest: [UInt8], point: [UInt8]) -> Bool {
    guard let key = key(point: point), let byteCount = CInt(exactly: signature.count) else { return false }
    defer { ERR_clear_error() }
    return unsafe ECDSA_verify(0, digest, CInt(digest.count), signature, byteCount, key.pointer) == 1
  }

  /// Returns whether a signature r ‖ s, of exactly twice ``orderByteCount`` bytes, over a digest was made with the
  /// private key of an uncompressed point.
  func verifies(pair signature: [UInt8], digest: [UInt8], point: [UInt8]) -> Bool {
    guard signature.count == 2 * orderByteCount, let key = key(point: point), let pair = unsafe ECDSA_SIG_new() else {
      return false
    }
    defer {
      unsafe ECDSA_SIG_free(pair)
      ERR_clear_error()
    }
    let (r, s) = (Array(signature[..<orderByteCount]), Array(signature[orderByteCount...]))
    let byteCount = CInt(orderByteCount)
    guard unsafe ECDSA_SIG_set0(pair, BN_bin2bn(r, byteCount, nil), BN_bin2bn(s, byteCount, nil)) == 1 else {
      return false
    }
    return unsafe ECDSA_do_verify(digest, CInt(digest.count), pair, key.pointer) == 1
  }

  /// Returns the uncompressed point in a `SubjectPublicKeyInfo`; nil unless it is the encoding of a point on this curve that
  /// names the curve.
  ///
  /// Source: RFC 5480 §2. A point has one such encoding, so that other ones need not be parsed.
  func point(inSubjectPublicKeyInfo encoded: [UInt8]) -> [UInt8]? {
    let point = Array(encoded.suffix(1 + 2 * coordinateByteCount))
    guard let key = key(point: point) else { return nil }
    var canonical: UnsafeMutablePointer<UInt8>?
    let byteCount = unsafe i2d_EC_PUBKEY(key.pointer, &canonical)
    defer { unsafe CRYPTO_free(canonical, nil, 0) }
    guard byteCount > 0 else { return nil }
    return unsafe UnsafeBufferPointer(start: canonical, count: Int(byteCount)).elementsEqual(encoded) ? point : nil
  }

  private func key(point: [UInt8]) -> Key? {
    guard point.count == 1 + 2 * coordinateByteCount, point[0] == 4 else { return nil }
    defer { ERR_clear_error() }
    guard let key = unsafe Key(EC_KEY_new_by_curve_name(identifier)),
      unsafe EC_KEY_oct2key(key.pointer, point, point.count, nil) == 1, unsafe EC_KEY_check_key(key.pointer) == 1
    else { return nil }
    return key
  }

  /// A public key, which was checked.
  @safe
  private final class Key {
    let pointer: OpaquePointer

    init?(_ pointer: OpaquePointer?) {
      guard let pointer = unsafe pointer else { return nil }
      unsafe self.pointer = pointer
    }

    deinit { unsafe EC_KEY_free(pointer) }
  }
}

import COpenSSL

/// The certificates with which a TLS server has proved its name, in DER, as the server sent them.
package struct ServerCertificates: Sendable {
  private let bytes: [UInt8]
  private let byteCounts: [Int]

  /// The number of certificates that a server may send.
  package static let countRange = 1...10
  /// The byte count of each certificate.
  package static let byteCountRange = 1...32_768

  /// Takes certificates, the server's own first; nil if there are too many or too few, or one is too long or empty.
  package init?(_ certificates: [[UInt8]]) {
    guard Self.countRange.contains(certificates.count),
      certificates.allSatisfy({ Self.byteCountRange.contains($0.count) })
    else { return nil }
    (bytes, byteCounts) = (certificates.flatMap(\.self), certificates.map(\.count))
  }

  /// Checks that the certificates lead to a trusted authority, are valid, and are for a host; and that a key of the chain is pinned, if
  /// there are pins.
  ///
  /// - Parameters:
  ///   - host: a DNS name or an IP address, without NUL.
  ///   - authorities: the path of a file in PEM with the only authorities that count; nil for those of the system.
  ///   - unixSeconds: the time of the check.
  ///   - pins: SHA-256 digests of SubjectPublicKeyInfo, 32 bytes each, one after the other.
  /// - Throws: The reason why the server must not be trusted.
  package func check(
    host: String, authorities: String?, unixSeconds: UInt64, pins: [UInt8]
  ) throws(ServerCertificateFault) {
    var task = unsafe holdfast_chain()
    unsafe task.now = Int(clamping: unixSeconds)
    let result = unsafe host.withCString { host in
      unsafe Self.withOptionalCString(authorities) { authorities in
        unsafe pins.withUnsafeBufferPointer { pins in
          unsafe bytes.withUnsafeBufferPointer { bytes in
            unsafe byteCounts.withUnsafeBufferPointer { counts in
              unsafe (task.certificates, task.byte_counts) = (bytes.baseAddress, counts.baseAddress)
              unsafe (task.count, task.host, task.authorities) = (counts.count, host, authorities)
              unsafe (task.pins, task.pin_count) = (pins.baseAddress, pins.count / 32)
              return unsafe holdfast_check_chain(&task)
            }
          }
        }
      }
    }
    switch result {
    case HOLDFAST_CHAIN_OK: return
    case HOLDFAST_CHAIN_MALFORMED: throw .malformed
    case HOLDFAST_CHAIN_BAD_AUTHORITIES: throw .badAuthorities
    case HOLDFAST_CHAIN_UNPINNED: throw .wrongPin
    case HOLDFAST_CHAIN_REFUSED: throw unsafe ServerCertificateFault(verification: task.error)
    default: throw .cryptography
    }
  }

  private static func withOptionalCString<Result>(
    _ text: String?, _ body: (UnsafePointer<CChar>?) -> Result
  ) -> Result {
    guard let text else { return body(nil) }
    return unsafe text.withCString { unsafe body($0) }
  }
}

/// The reasons why a TLS server must not be trusted.
public enum ServerCertificateFault: Error, Equatable, Sendable {
  /// The host is neither a DNS name nor an IP address.
  case malformedHost
  /// There are too many certificates or none, or one of them is too long or not exactly one certificate in DER.
  case malformed
  /// A certificate has expired, or is not valid yet.
  case expired
  /// The server's certificate is for another name.
  case anotherName
  /// The certificates do not lead to a trusted authority, or one of them may not be used in that way.
  case untrusted
  /// The certificates are good, but no key in their chain is pinned.
  case wrongPin
  /// The file with the authorities cannot be read, or contains no certificates.
  case badAuthorities
  /// There is no clock.
  case noClock
  /// The cryptographic library failed.
  case cryptography

  /// Source: the X509_V_ERR numbers of X509_STORE_CTX_get_error(3).
  fileprivate init(verification number: CInt) {
    self =
      switch number {
      case 9, 10: .expired
      case 62, 64: .anotherName
      default: .untrusted
      }
  }
}

import HoldfastCore
import HoldfastOnline
import HoldfastOpenSSL

/// The reasons why a TLS server must not be trusted.
public typealias ServerCertificateFault = HoldfastOpenSSL.ServerCertificateFault

extension HoldfastClient {
  /// Checks the certificates of a TLS server for a connection that the app makes itself: they must lead to a trusted authority, be
  /// valid at present and for the host, and a key of their chain must have one of the pins that count for the host (see
  /// ``pins(for:)``). Call it in the handshake, before anything is sent.
  ///
  /// Without pins for the host, its certificates suffice. The pins count as read. Revocation is not checked.
  ///
  /// Source: RFC 5280 §6, RFC 6125 §6.4, RFC 7469 §2.6.
  ///
  /// - Parameters:
  ///   - host: the name or IP address to which the app connects, in ASCII, at most 253 bytes.
  ///   - certificates: the certificates in the order of the TLS message, the server's first: 1 to 10, each 1 to 32,768 bytes of DER.
  ///   - authorities: the path of a file in PEM with the only authorities that count; nil for those of the system, as libcrypto
  ///     finds them (also by `SSL_CERT_FILE` and `SSL_CERT_DIR`).
  /// - Throws: ``ServerCertificateFault``. Then do not use the connection.
  public func checkServer(
    _ host: String, certificates: [[UInt8]], authorities: String? = nil
  ) throws(ServerCertificateFault) {
    guard (1...253).contains(host.utf8.count), host.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
      throw .malformedHost
    }
    guard let chain = ServerCertificates(certificates) else { throw .malformed }
    guard let now = environment.now().unixSeconds else { throw .noClock }
    let pins = pinned(for: host)
    try chain.check(host: host, authorities: authorities, unixSeconds: now, pins: pins.flatMap(\.digest))
  }
}

import HoldfastCore
import HoldfastFormats
import HoldfastOpenSSL

/// The outcome of handing in pages of a device's audit log.
package struct ReceivedPages: Sendable, Equatable {
  /// The state of the log.
  package var log = ReceivedLog()
  /// The number of pages that could not be opened or that contradict themselves or earlier ones.
  package var refusedCount = 0
  /// The receipt for the entries before which none is missing, at most 256 bytes; nil if there is none, and after a fork.
  package var receipt: [UInt8]?

  init() {}
}

/// The folder as the home of devices' audit logs.
extension ServiceFolder {
  /// Returns the public key for agreement, which devices need to seal pages; nil for a folder that an earlier version made.
  package func agreementKey() throws(ServiceFolderFault) -> PublicKeyJWK? {
    try checkIsWhole()
    guard try has(.agreement) else { return nil }
    return PublicKeyJWK(point: try signingKey(.agreement).publicPoint)
  }

  /// Opens pages that a courier hands in, and durably records them.
  ///
  /// - Parameters:
  ///   - pages: sealed pages, in any order.
  ///   - device: the device that gave them; the owner has registered its key.
  /// - Returns: nil if the device is not registered, or if the folder has no key for agreement.
  package func receive(
    pages: [[UInt8]], of device: DeviceID
  ) throws(ServiceFolderFault) -> ReceivedPages? {
    try checkIsWhole()
    guard try has(.agreement) else { return nil }
    var agreement = try signingKey(.agreement)
    var signing = try signingKey(.issuer)
    var records = try issuedBaselines()
    var received = ReceivedPages()
    let point: P256Point?
    do throws(ServiceLedgerFault) {
      point = try records.registration(of: device)?.publicPoint
      received.log = try records.receivedLog(of: device)
    } catch { throw .ledger(error) }
    guard let point else { return nil }
    let home: AuditHome
    let secret: AuditPageSecret
    do throws(CryptographyFailure) {
      home = try AuditHome(of: signing.publicPoint)
      secret = try home.secret(with: device, point, agreement: &agreement)
    } catch { throw .cryptography }
    for page in pages where try !store(page, of: device, secret, in: &records, &received.log) {
      received.refusedCount += 1
    }
    guard let through = received.log.through, !received.log.isForked else { return received }
    do throws(CryptographyFailure) {
      received.receipt = try home.receipt(for: through, of: device, key: &signing)
    } catch { throw .cryptography }
    return received
  }

  /// Records one page. Returns whether it is a part of the log.
  private func store(
    _ sealed: [UInt8], of device: DeviceID, _ secret: borrowing AuditPageSecret,
    in records: inout IssuedBaselinesDatabase, _ log: inout ReceivedLog
  ) throws(ServiceFolderFault) -> Bool {
    var cryptography = OpenSSLCryptography()
    guard let page = try? secret.open(sealed.span, using: &cryptography), let links = try? page.links() else {
      return false
    }
    let wasForked = log.isForked
    do throws(ServiceLedgerFault) { log = try records.store(page, links: links, of: device) } catch {
      throw .ledger(error)
    }
    return wasForked || !log.isForked
  }
}

import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import Synchronization

/// The sealed pages of a device's audit log, which couriers carry home.
///
/// The secret that the device shares with the home is computed once. Pages follow each other, whoever asks for them: each courier gets
/// the one after the last. Once a page has reached the end of the log, the next one begins again with the first entry that the home has
/// not acknowledged: the courier of the page before may have lost it.
package final class AuditPages: Sendable {
  /// The agreement with a home.
  private final class Agreement: Sendable {
    let home: KeyID
    let point: P256Point
    let secret: AuditPageSecret

    init(home: KeyID, point: P256Point, secret: consuming AuditPageSecret) {
      (self.home, self.point) = (home, point)
      self.secret = secret
    }
  }

  private struct State {
    var agreement: Agreement?
    /// The number of the entry after the last page; 0 if that reached the end of the log.
    var next: UInt64 = 0
  }

  private let device: DeviceID
  private let agree: @Sendable (P256Point) throws(CryptographyFailure) -> Secret<32>
  private let random: @Sendable () throws(RandomFailure) -> FixedBytes<16>
  private let state = Mutex(State())

  /// Creates the pages of a device.
  ///
  /// - Parameters:
  ///   - device: the id of the device.
  ///   - agree: computes ECDH of the device's key and a point: the x coordinate, 32 bytes.
  ///   - random: draws random bytes.
  package init(
    of device: DeviceID, agree: @escaping @Sendable (P256Point) throws(CryptographyFailure) -> Secret<32>,
    random: @escaping @Sendable () throws(RandomFailure) -> FixedBytes<16>
  ) {
    (self.device, self.agree, self.random) = (device, agree, random)
  }

  /// Makes a sealed page of the entries of a ledger.
  ///
  /// - Parameters:
  ///   - from: the number of its first entry; 0 for the next one in turn.
  ///   - home: the id of the home's key.
  ///   - ledger: the ledger of the device.
  ///   - realClock: the real clock, in Unix seconds; nil if there is none.
  /// - Returns: nil if the home announced no key for agreement or is not trusted, and if there is no such entry.
  func page(
    from: UInt64, for home: KeyID, of ledger: Ledger, realClock: UInt64?
  ) throws(DeviceFault) -> [UInt8]? {
    let point: P256Point?
    do throws(LedgerFault) { point = try ledger.agreementKey(of: home, realClock: realClock) } catch { throw .store }
    guard let point else { return nil }
    let agreement = try agreement(with: home, point)
    guard let page = try next(from: from, of: ledger) else { return nil }
    let random: FixedBytes<16>
    do throws(RandomFailure) { random = try self.random() } catch { throw .random }
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) {
      return try agreement.secret.seal(page, random: random, using: &cryptography)
    } catch { throw .cryptography }
  }

  private func next(from: UInt64, of ledger: Ledger) throws(DeviceFault) -> AuditPage? {
    let next = state.withLock { $0.next }
    let page: AuditPage?
    do throws(LedgerFault) { page = try ledger.auditPage(from: from, next: next) } catch { throw .store }
    guard let page else { return nil }
    let last = page.base.count + UInt64(page.entries.count)
    state.withLock { $0.next = last < page.end.count ? last + 1 : 0 }
    return page
  }

  private func agreement(with home: KeyID, _ point: P256Point) throws(DeviceFault) -> Agreement {
    if let known = state.withLock({ $0.agreement }), known.home == home, known.point == point { return known }
    do throws(CryptographyFailure) {
      let made = Agreement(
        home: home, point: point, secret: AuditPageSecret(try agree(point), device: device, home: home))
      state.withLock { $0.agreement = made }
      return made
    } catch { throw .cryptography }
  }
}

import HoldfastCore
import HoldfastFormats
import HoldfastIssuer
import HoldfastOpenSSL

/// The vectors `AuditPage`: pages of a device's audit log at the home of the log, which opens them and follows the chain.
///
/// Source: docs/couriers.md, The audit log goes home.
struct AuditPageVectors: ReplayableGroup {
  private let home: Home
  private let agreement: FixedBytes<32>
  private let device: P256Point

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) {
    home = try Home(group)
    agreement = try group.member("agreementPrivateKey").fixed()
    device = try group.member("devicePublicKey").fixed()
  }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let sealed = try test.bytes("sealed")
    let expected = test.result == .valid ? try test.node.member("page") : nil
    let page: AuditPage
    do throws(CryptographyFailure) {
      var cryptography = OpenSSLCryptography()
      var key = try P256PrivateKey(scalar: secret(agreement))
      page = try home.home.secret(with: home.device, device, agreement: &key).open(sealed.span, using: &cryptography)
    } catch { return .refused("it cannot be opened, or is no page") }
    do throws(AuditLinkFault) { _ = try page.links() } catch { return .refused("\(error)") }
    return expected.map { $0.value == page.json } ?? true ? .accepted : .differs("page")
  }
}

extension AuditPage {
  /// The page as the vectors state it.
  fileprivate var json: JSONValue {
    .object([
      ("cut", .integer(cut)), ("after", .integer(base.count)), ("head", .string(hexadecimal(base.head))),
      ("entries", .array(entries.map { .string(hexadecimal($0.span)) })), ("count", .integer(end.count)),
      ("last", .string(hexadecimal(end.head))),
    ])
  }
}

/// The vectors `AuditReceipt`: receipts at a device that knows the key of its log's home. Source: docs/couriers.md, Receipts.
struct AuditReceiptVectors: ReplayableGroup {
  private let home: Home

  init(_ group: VectorNode, frame: VectorNode) throws(VectorFault) { home = try Home(group) }

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let bytes = try test.bytes("receipt")
    var expected: AuditChain?
    if test.result == .valid {
      expected = AuditChain(
        count: try test.node.member("count").number(), head: try test.node.member("head").fixed())
    }
    let receipt: AuditReceipt
    do throws(EncodingFault) { receipt = try AuditReceipt(bytes.span) } catch { return .refused("\(error)") }
    guard receipt.home == home.home.keyID else { return .refused("another key") }
    guard receipt.device == home.device else { return .refused("another device") }
    var cryptography = OpenSSLCryptography()
    do throws(CryptographyFailure) { try receipt.verify(by: home.point, using: &cryptography) } catch {
      return .refused("signature")
    }
    return receipt.chain == expected ?? receipt.chain ? .accepted : .differs("entry that is acknowledged")
  }
}

/// A device, and the home of its log.
private struct Home {
  let device: DeviceID
  let point: P256Point
  let home: AuditHome

  /// Reads the keys, and checks that the home's id is that of its key.
  init(_ group: VectorNode) throws(VectorFault) {
    device = try group.member("deviceId").fixed()
    point = try group.member("homePublicKey").fixed()
    let keyID = try group.member("homeKid")
    do throws(CryptographyFailure) { home = try AuditHome(of: point) } catch { throw keyID.fault(.keysDiffer) }
    guard home.keyID == (try keyID.fixed()) else { throw keyID.fault(.keysDiffer) }
  }
}

/// The vectors `AuditPageAnswer`: answers of a device to a question for a page. Source: docs/couriers.md, Delivery in a session.
struct AuditPageAnswerVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let message = try test.bytes("message")
    var written: [UInt8] = []
    do throws(EncodingFault) { try PageAnswer(message.span).encode(into: &written) } catch {
      return .refused("\(error)")
    }
    return written == message ? .accepted : .differs("message, written again,")
  }
}

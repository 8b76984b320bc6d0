import HoldfastCore
import HoldfastOpenSSL

/// An entry of an audit log with its place in the chain.
package struct AuditLink: Sendable, Equatable {
  /// The entry.
  package let entry: AuditEntry
  /// The entry in its encoding.
  package let bytes: [UInt8]
  /// The hash after the entry.
  package let head: Digest
}

extension AuditLink {
  /// Decodes entries, and follows the chain over them.
  ///
  /// - Parameters:
  ///   - entries: the entries in their encoding.
  ///   - base: the chain before the first one.
  /// - Throws: `broken` if an entry cannot be decoded or has another number.
  package static func links(
    of entries: [[UInt8]], after base: AuditChain
  ) throws(AuditLinkFault) -> [AuditLink] {
    var cryptography = OpenSSLCryptography()
    var chain = base
    var links: [AuditLink] = []
    for bytes in entries {
      do throws(CryptographyFailure) { try chain.advance(over: bytes.span, using: &cryptography) } catch {
        throw .cryptography
      }
      guard let entry = try? AuditEntry(bytes.span), entry.sequence == chain.count else { throw .broken }
      links.append(AuditLink(entry: entry, bytes: bytes, head: chain.head))
    }
    return links
  }
}

/// The reason why entries are no part of an audit log.
package enum AuditLinkFault: Error, Equatable {
  /// An entry cannot be decoded, or the entries do not follow each other as they say.
  case broken
  /// The cryptographic library failed.
  case cryptography
}

extension AuditPage {
  /// The entries with their places in the chain.
  ///
  /// - Throws: `broken` also if the page reaches the end of the log, and does not lead to its hash.
  package func links() throws(AuditLinkFault) -> [AuditLink] {
    let links = try AuditLink.links(of: entries, after: base)
    let last = AuditChain(count: base.count + UInt64(entries.count), head: links.last?.head ?? base.head)
    guard last.count < end.count || last == end else { throw .broken }
    return links
  }
}

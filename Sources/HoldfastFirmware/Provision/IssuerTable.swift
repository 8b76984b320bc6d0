import HoldfastCore

/// The issuers that a device trusts, at most eight. The owner's tools compile the table.
package struct IssuerTable: ~Copyable {
  /// The most issuers that a device trusts.
  package static var maximumCount: Int { Limit.issuers.microcontroller }

  /// The entries `[kid, key]`, one after another.
  private var entries = ByteBuffer<640>()
  /// The number of issuers in the table.
  package private(set) var count = 0

  /// Makes an empty table.
  package init() {}

  /// Adds an issuer. Returns whether it was added: false if the table is full or has an issuer with that id.
  package mutating func append(_ keyID: KeyID, _ key: borrowing IssuerKey) -> Bool {
    guard count < Self.maximumCount, self[keyID] == nil else { return false }
    do throws(EncodingFault) {
      try entries.appendCBOR(array: 2)
      try entries.appendCBOR(bytes: keyID.bytes)
      switch key {
      case .signing(let point): try entries.appendCBOR(bytes: point.bytes)
      case .mac(let secret):
        try secret.withBytes { (bytes: Span<UInt8>) throws(EncodingFault) in try entries.appendCBOR(bytes: bytes) }
      }
    } catch { return false }
    count += 1
    return true
  }

  /// The key with the id `keyID`; nil if that issuer is not trusted.
  package subscript(keyID: KeyID) -> IssuerKey? {
    var reader = CBORReader(entries.bytes)
    return reader.issuerKey(keyID, among: count)
  }

  /// Returns the id of the issuer at an index below ``count``.
  public func keyID(_ index: Int) -> KeyID {
    precondition(index < count)
    var reader = CBORReader(entries.bytes)
    do throws(EncodingFault) {
      for _ in 0..<index { try reader.skip() }
      try reader.array(of: 2)
      return try reader.fixedBytes()
    } catch { return KeyID() }
  }
}

extension IssuerTable {
  /// Writes `[[kid, point of 65 bytes / MAC key of 32 bytes] …]`.
  func encode<Sink: ByteSink & ~Copyable>(into sink: inout Sink) throws(Sink.Failure) {
    try sink.appendCBOR(array: count)
    try sink.append(entries.bytes)
  }

  package init(_ reader: inout CBORReader) throws(EncodingFault) {
    for _ in 0..<(try reader.arrayHead()) {
      try reader.array(of: 2)
      let keyID: KeyID = try reader.fixedBytes()
      guard let key = IssuerKey(try reader.byteString()), append(keyID, key) else { throw .unexpected }
    }
  }
}

/// The location of the trusted issuers in a device's flash.
package struct ProvisionedIssuers {
  /// The offset of the CBOR array; nil if there is none, and no issuer is trusted.
  private let offset: Int?

  package init<Flash: FlashMemory & ~Copyable>(in flash: borrowing Flash) {
    offset = Provision.issuersOffset(in: flash.bytes)
  }

  package func find(_ keyID: KeyID, in bytes: Span<UInt8>) -> IssuerKey? {
    guard let offset else { return nil }
    var reader = CBORReader(bytes.extracting(offset..<FlashLayout.provision.upperBound))
    do throws(EncodingFault) {
      let count = try reader.arrayHead()
      return reader.issuerKey(keyID, among: count)
    } catch { return nil }
  }
}

extension CBORReader {
  fileprivate mutating func issuerKey(_ wanted: KeyID, among count: Int) -> IssuerKey? {
    do throws(EncodingFault) {
      for _ in 0..<count {
        try array(of: 2)
        let keyID: KeyID = try fixedBytes()
        let key = try byteString()
        if keyID == wanted { return IssuerKey(key) }
      }
    } catch { return nil }
    return nil
  }
}

extension IssuerKey {
  /// Makes a point or a MAC key, depending on the length; nil for any other length.
  fileprivate init?(_ bytes: Span<UInt8>) {
    if let point = P256Point(bytes) {
      self = .signing(point)
    } else if let secret = Secret<32>(copying: bytes) {
      self = .mac(secret)
    } else {
      return nil
    }
  }
}

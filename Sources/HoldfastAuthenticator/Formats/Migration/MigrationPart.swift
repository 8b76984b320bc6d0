import HoldfastCore

/// One URI of an export: some accounts, and which part of which export they are.
///
/// Source: the `MigrationPayload` of Google Authenticator's `otpauth-migration://offline?data=…`.
struct MigrationPart {
  /// Where the accounts are.
  private(set) var accounts: [Range<Int>] = []
  /// The position among the parts, from 0.
  private(set) var index = 0
  /// How many parts there are, 1 to 100.
  private(set) var count = 1
  private(set) var exportID: UInt64 = 0

  /// `malformed` for a field that is there twice, of another type, or beyond its range.
  init(_ payload: Span<UInt8>) throws(ImportFault) {
    var reader = ProtobufReader(payload)
    var seen: Set<UInt64> = []
    while let field = try reader.next() {
      if case (1, .bytes(let place)) = (field.number, field.value) {
        guard accounts.count < Credential.maximumAccountCount else { throw .tooLarge }
        accounts.append(place)
        continue
      }
      guard (1...5).contains(field.number) else { continue }
      guard case .varint(let value) = field.value, seen.insert(field.number).inserted else { throw .malformed }
      switch field.number {
      case 3:
        guard value <= 100 else { throw .malformed }
        count = max(Int(value), 1)
      case 4:
        guard value < 100 else { throw .malformed }
        index = Int(value)
      case 5: exportID = value
      case 1: throw .malformed
      default: break
      }
    }
    guard index < count else { throw .malformed }
  }
}

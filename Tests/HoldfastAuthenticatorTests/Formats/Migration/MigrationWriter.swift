/// Writes Protocol Buffers, rightly or wrongly, for tests.
struct MigrationWriter {
  private(set) var bytes: [UInt8] = []

  mutating func varint(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(rest & 0x7f) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  mutating func field(_ number: UInt64, _ value: UInt64) {
    varint(number << 3)
    varint(value)
  }

  mutating func field(_ number: UInt64, _ value: [UInt8]) {
    varint(number << 3 | 2)
    varint(UInt64(value.count))
    bytes += value
  }

  mutating func raw(_ value: [UInt8]) { bytes += value }

  static func message(_ body: (inout MigrationWriter) -> Void) -> [UInt8] {
    var writer = MigrationWriter()
    body(&writer)
    return writer.bytes
  }

  /// `otpauth-migration://` around `payload`.
  static func uri(_ payload: [UInt8]) -> String {
    "otpauth-migration://offline?data=" + percentEncodedBase64(payload)
  }

  /// One account.
  static func account(
    name: String = "alice", issuer: String = "", type: UInt64 = 2, _ more: (inout MigrationWriter) -> Void = { _ in }
  ) -> [UInt8] {
    message { writer in
      writer.field(1, Array("12345678901234567890".utf8))
      writer.field(2, Array(name.utf8))
      writer.field(3, Array(issuer.utf8))
      writer.field(6, type)
      more(&writer)
    }
  }

  /// One part of an export.
  static func part(_ accounts: [[UInt8]], index: UInt64 = 0, count: UInt64 = 1, id: UInt64 = 77) -> String {
    uri(
      message { writer in
        for account in accounts { writer.field(1, account) }
        writer.field(2, 1)
        writer.field(3, count)
        writer.field(4, index)
        writer.field(5, id)
      })
  }

  private static func percentEncodedBase64(_ bytes: [UInt8]) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    var text = ""
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = Array(bytes[start..<min(start + 3, bytes.count)])
      let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
      for position in 0..<4 {
        text.append(position > group.count ? "=" : alphabet[bits >> (18 - 6 * position) & 63])
      }
    }
    return text.map { ["+": "%2B", "/": "%2F", "=": "%3D"][$0] ?? String($0) }.joined()
  }
}

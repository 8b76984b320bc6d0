import HoldfastCore

/// A request to an agent, one packet, and its answer, one packet. docs/vault.md describes the bytes.
///
/// A request is an operation (1 byte), the length of a name (1 byte), the name, and a secret for `hold`. An answer is a status
/// (1 byte), and a secret for `give`, or names for `list`.
package enum AgentMessage {
  /// The largest packet: operation, length, the longest name and the longest secret.
  package static let largest = 4096
  /// The byte counts that a name may have.
  static let nameByteCounts = 1...64

  enum Operation: UInt8 {
    case hold = 1
    case give = 2
    case list = 3
    case forget = 4
    case forgetAll = 5
  }

  enum Status: UInt8 {
    case done = 0
    case unknownName = 1
    case full = 2
    case malformed = 3
  }

  /// Answers the request of `byteCount` bytes in the message of `secrets`, and returns the byte count of the answer there.
  package static func answer(byteCount: Int, _ secrets: inout HeldSecrets, at now: Int64) -> Int {
    secrets.expire(at: now)
    switch handle(byteCount, &secrets, now) {
    case .success(let count): return count
    case .failure(let refusal):
      secrets.wipeMessage()
      secrets.withMessage { $0[0] = refusal.status.rawValue }
      return 1
    }
  }

  private struct Refusal: Error {
    let status: Status
  }

  private static func handle(
    _ byteCount: Int, _ secrets: inout HeldSecrets, _ now: Int64
  ) -> Result<Int, Refusal> {
    guard let (operation, name, rest) = secrets.withMessage({ parse(byteCount, $0.span) }) else {
      return .failure(Refusal(status: .malformed))
    }
    var count = 1
    switch operation {
    case .hold:
      guard (1...HeldSecrets.largestSecret).contains(rest.count) else { return .failure(Refusal(status: .malformed)) }
      guard secrets.holdMessage(from: rest.lowerBound, count: rest.count, as: name, at: now) else {
        return .failure(Refusal(status: .full))
      }
      secrets.wipeMessage()
    case .give:
      secrets.wipeMessage()
      guard let given = secrets.giveInMessage(at: 1, name, at: now) else {
        return .failure(Refusal(status: .unknownName))
      }
      count += given
    case .list:
      let text = Array(secrets.names.joined(separator: "\n").utf8)
      secrets.withMessage { message in
        for index in text.indices { message[1 + index] = text[index] }
      }
      count += text.count
    case .forget:
      guard secrets.forget(name) else { return .failure(Refusal(status: .unknownName)) }
    case .forgetAll:
      secrets.forgetAll()
    }
    secrets.withMessage { $0[0] = Status.done.rawValue }
    return .success(count)
  }

  /// Parses a request: its operation, its name, and the place of its secret. Operations without a name or a secret have none.
  private static func parse(
    _ byteCount: Int, _ bytes: Span<UInt8>
  ) -> (Operation, name: String, secret: Range<Int>)? {
    guard byteCount >= 2, let operation = Operation(rawValue: bytes[0]) else { return nil }
    let nameEnd = 2 + Int(bytes[1])
    guard nameEnd <= byteCount, operation == .hold || nameEnd == byteCount else { return nil }
    switch operation {
    case .list, .forgetAll: return nameEnd == 2 ? (operation, "", nameEnd..<nameEnd) : nil
    case .hold, .give, .forget:
      guard let name = name([UInt8](bytes.extracting(2..<nameEnd))) else { return nil }
      return (operation, name, nameEnd..<byteCount)
    }
  }

  /// Parses a name: 1 to 64 bytes of printable ASCII, without spaces.
  static func name(_ bytes: [UInt8]) -> String? {
    guard nameByteCounts.contains(bytes.count), bytes.allSatisfy({ (0x21...0x7e).contains($0) }) else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }
}

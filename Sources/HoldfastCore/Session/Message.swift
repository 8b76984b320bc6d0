/// What all messages of a session share.
///
/// Each message is one deterministic CBOR array whose first element says which it is (docs/protocol.md, Session).
public enum Message {
  /// The longest message, in bytes.
  public static let maximumByteCount = 4096
  /// The version of the protocol, in M1.
  public static let version: UInt64 = 1
  static let challengeType: UInt64 = 1
  static let answerType: UInt64 = 2
  static let verdictType: UInt64 = 3
  package static let compatibilityType: UInt64 = 12
}

/// A buffer for one message.
public typealias MessageBuffer = ByteBuffer<4096>

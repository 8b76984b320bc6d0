/// A limit of a message, of a device's memory or of time: one row of the table in docs/protocol.md#limits.
///
/// A test compares ``all`` with that table, in both directions. The capacity of a buffer is a generic argument and cannot be
/// computed from a constant, so a limit in bytes takes its number from the type of the buffer, below.
package struct Limit {
  /// The unit of a limit's number.
  package enum Unit { case count, bytes, milliseconds }

  /// The limited quantity, in the words of the document.
  package let name: StaticString
  /// The unit of both numbers.
  package let unit: Unit
  /// The limit of a device on Linux.
  package let linux: Int
  /// The limit of a device on a microcontroller.
  package let microcontroller: Int

  /// The limit of each device; only for a limit that does not depend on where the device runs.
  @inline(__always)
  package var everywhere: Int { linux }

  @inline(__always)
  private init(_ name: StaticString, _ unit: Unit = .count, linux: Int, microcontroller: Int) {
    (self.name, self.unit, self.linux, self.microcontroller) = (name, unit, linux, microcontroller)
  }

  @inline(__always)
  private init(_ name: StaticString, _ unit: Unit, _ everywhere: Int) {
    self.init(name, unit, linux: everywhere, microcontroller: everywhere)
  }
}

extension Limit {
  package static var message: Limit { Limit("message", .bytes, MessageBuffer.capacity) }
  package static var token: Limit { Limit("token", .bytes, TokenBuffer.capacity) }
  package static var headerJOSE: Limit { Limit("JOSE header, decoded", .bytes, 1024) }
  package static var sealedRequest: Limit { Limit("sealed request", .bytes, SealedRequestBuffer.capacity) }
  package static var sealedReply: Limit { Limit("sealed reply", .bytes, SealedReplyBuffer.capacity) }
  package static var result: Limit { Limit("result of a command", .bytes, ResultBuffer.capacity) }

  package static var answer: Limit { Limit("from M1 to the first byte of M2", .milliseconds, 30_000) }
  package static var wholeMessage: Limit {
    Limit("from the first byte of a message to its last", .milliseconds, 10_000)
  }
  package static var silence: Limit { Limit("silence after bytes that are no message", .milliseconds, 1000) }
  package static var repetition: Limit { Limit("from M1 to its repetition on a line", .milliseconds, 2000) }

  package static var issuers: Limit { Limit("issuers that a device trusts", linux: 64, microcontroller: 8) }
  package static var users: Limit { Limit("users", linux: 100_000, microcontroller: 16) }
  package static var ownerCodes: Limit {
    Limit("codes of the owner that are not used yet", linux: 64, microcontroller: 16)
  }
  package static var commands: Limit { Limit("commands in policy", linux: 256, microcontroller: 16) }
  package static var rememberedTokens: Limit { Limit("remembered tokens", linux: 4096, microcontroller: 8) }
  package static var kept: Limit { Limit("counted tokens and nonces kept", linux: 1_000_000, microcontroller: 64) }
  package static var nonces: Limit { Limit("nonces kept of one token", linux: 1024, microcontroller: 8) }
  package static var requests: Limit {
    Limit("tokens whose request numbers are kept", linux: 1_000_000, microcontroller: 64)
  }
  package static var revocations: Limit { Limit("revoked tokens", linux: 100_000, microcontroller: 64) }
  package static var connections: Limit { Limit("connections", linux: 64, microcontroller: 1) }
  package static var waitingPeers: Limit { Limit("peers that wait for a connection", linux: 128, microcontroller: 0) }

  /// All limits, in the order of the document.
  package static var all: InlineArray<21, Limit> {
    [
      message, token, headerJOSE, sealedRequest, sealedReply, result,
      answer, wholeMessage, silence, repetition,
      issuers, users, ownerCodes, commands, rememberedTokens, kept, nonces, requests, revocations, connections,
      waitingPeers,
    ]
  }
}

/// A buffer for one message.
public typealias MessageBuffer = ByteBuffer<4096>

/// A buffer for one token.
package typealias TokenBuffer = ByteBuffer<3072>

/// A buffer for the result of a command.
public typealias ResultBuffer = ByteBuffer<1024>

/// A buffer for `sealed` of M2: the encrypted request with its tag.
package typealias SealedRequestBuffer = ByteBuffer<768>

/// A buffer for `sealed` of M3: the encrypted reply with its tag, at most 1,088 bytes. It also holds the text of a page of a
/// microcontroller's audit log, at most 1,024 bytes.
///
/// Source: docs/protocol.md, docs/couriers.md.
public typealias SealedReplyBuffer = ByteBuffer<1088>

/// A buffer for M1.
public typealias ChallengeBuffer = ByteBuffer<64>

/// A buffer for M3: an array of the type, the status, and the longest sealed reply.
public typealias VerdictBuffer = ByteBuffer<1096>

/// A buffer for the data that the seal of M3 authenticates: the hash of the transcript, 32 bytes, and the status.
package typealias VerdictContext = ByteBuffer<33>

/// A buffer for a part of a JOSE token after base64url is decoded: three quarters of the longest token.
package typealias TokenPartBuffer = ByteBuffer<2304>

/// How long a server waits, in milliseconds. The defaults are those of docs/protocol.md, where it has one.
public struct ServerTiming: Sendable {
  /// From M1 to the first byte of M2.
  public var answerMilliseconds: Int
  /// From the first byte of M2 to its last.
  public var messageMilliseconds: Int
  /// For a peer to take a message.
  public var sendMilliseconds: Int
  /// The longest that an answer to failed proofs is held back.
  public var greatestDelayMilliseconds: UInt64
  /// For a peer to read the last message before its connection is closed, where closing could take it back.
  public var farewellMilliseconds: Int
  /// For a new peer to prove itself before its place may go to another one.
  public var provingMilliseconds: UInt64

  public init(
    answerMilliseconds: Int = 30_000, messageMilliseconds: Int = 10_000, sendMilliseconds: Int = 10_000,
    greatestDelayMilliseconds: UInt64 = 1000, farewellMilliseconds: Int = 1000, provingMilliseconds: UInt64 = 2000
  ) {
    self.answerMilliseconds = answerMilliseconds
    self.messageMilliseconds = messageMilliseconds
    self.sendMilliseconds = sendMilliseconds
    self.greatestDelayMilliseconds = greatestDelayMilliseconds
    self.farewellMilliseconds = farewellMilliseconds
    self.provingMilliseconds = provingMilliseconds
  }
}

/// How much a server takes on. The defaults are the limits for a host in docs/protocol.md, Limits.
public struct ServerOptions: Sendable {
  /// How many connections are served at once. Where all places are taken, a new peer gets that of one that has not proved
  /// itself in time, or else is answered `busy`.
  public var connectionCount: Int
  /// How many peers may wait to be accepted.
  public var waitingCount: Int
  /// How many opened tokens are remembered.
  public var rememberedTokenCount: Int
  public var ledgerLimits: LedgerLimits
  public var timing: ServerTiming

  public init(
    connectionCount: Int = 64, waitingCount: Int = 128, rememberedTokenCount: Int = TokenMemory.usualCapacity,
    ledgerLimits: LedgerLimits = LedgerLimits(), timing: ServerTiming = ServerTiming()
  ) {
    self.connectionCount = connectionCount
    self.waitingCount = waitingCount
    self.rememberedTokenCount = rememberedTokenCount
    self.ledgerLimits = ledgerLimits
    self.timing = timing
  }
}

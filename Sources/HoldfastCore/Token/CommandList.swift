/// The commands that a token allows: at most 16 of at most 32 bytes each.
public struct CommandList: ~Copyable, Sendable {
  private var commands = InlineArray<16, BoundedText<32>>(repeating: BoundedText())
  /// How many there are.
  public private(set) var count = 0
  private let pin = Pinned()

  /// No command.
  public init() {}

  /// Takes one more; `unexpected` when there are 16 already.
  public mutating func append(_ command: BoundedText<32>) throws(EncodingFault) {
    guard count < commands.count else { throw .unexpected }
    commands[count] = command
    count += 1
  }

  public subscript(index: Int) -> BoundedText<32> {
    precondition(index < count)
    return commands[index]
  }

  borrowing func copy() -> CommandList {
    var other = CommandList()
    other.commands = commands
    other.count = count
    return other
  }

  /// Whether `command` is among them.
  public func contains(_ command: BoundedText<32>) -> Bool {
    for index in 0..<count where commands[index] == command { return true }
    return false
  }
}

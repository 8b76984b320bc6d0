import HoldfastCore

/// Two slots of flash, one of them in force: a log of transactions, each of which counts whole or not at all.
///
/// A slot begins with the words: magic, sequence, checksum of both, *complete* (0 once the log holds all that the other slot
/// held), *superseded* (0 once the other slot is complete), and three blank ones. A transaction is a word with its length,
/// its bytes, padded with zeros, and a checksum; the checksum is programmed last. One without it never happened.
///
/// What neither a power cut nor this code leaves behind is damage, and damage is final: going back to the other slot would
/// forget.
struct Journal<Flash: FlashMemory & ~Copyable>: ~Copyable {
  /// The longest transaction, in bytes.
  static var longestTransaction: Int { 1024 }

  private(set) var flash: Flash
  /// Where the slot in force begins.
  private(set) var slot: Int
  private var sequence: UInt32
  /// Where the next transaction goes.
  private(set) var end: Int

  /// Finds the slot in force, and the end of its log.
  init(opening flash: consuming Flash) throws(StoreFault) {
    self.flash = flash
    (slot, sequence, end) = (0, 0, 0)
    let (first, second) = (FlashLayout.slots.first, FlashLayout.slots.second)
    let heads = (first: SlotHead(self.flash, at: first), second: SlotHead(self.flash, at: second))
    let isSecond: Bool
    switch (heads.first.state, heads.second.state) {
    case (.current, .current):
      guard heads.first.sequence != heads.second.sequence else { throw .damaged }
      isSecond = heads.second.sequence > heads.first.sequence
      // The power failed in between. It must be made up for: half erased, the older one would look damaged.
      do throws(FlashFailure) {
        try self.flash.programVerified(0, at: (isSecond ? first : second) + SlotHead.supersededOffset)
      } catch { throw .flash }
    case (.current, .unfinished), (.current, .superseded): isSecond = false
    case (.unfinished, .current), (.superseded, .current): isSecond = true
    case (.unfinished, .unfinished) where heads.first.isBlank && heads.second.isBlank: throw .blank
    default: throw .damaged
    }
    slot = isSecond ? second : first
    sequence = isSecond ? heads.second.sequence : heads.first.sequence
    var cursor = JournalCursor(slot: slot, sequence: sequence)
    while try cursor.next(in: self.flash) != nil {}
    end = cursor.position
  }

  /// Begins a journal in flash that holds none; it is one once ``finishSlot()`` returns.
  init(creatingIn flash: consuming Flash) throws(StoreFault) {
    self.flash = flash
    (slot, sequence, end) = (FlashLayout.slots.second, 0, 0)
    do throws(FlashFailure) { try beginSlot() } catch { throw .flash }
  }

  var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    get { flash.bytes }
  }

  /// The item at an offset into the slot in force.
  @_lifetime(borrow self)
  func item(_ place: UInt16) throws(EncodingFault) -> Span<UInt8> {
    let rest = bytes.extracting(slot + Int(place)..<FlashLayout.byteCount)
    var reader = CBORReader(rest)
    try reader.skip()
    return rest.extracting(0..<reader.position)
  }

  /// What begins at an offset into the slot in force.
  @_lifetime(borrow self)
  func bytes(from place: UInt16) -> Span<UInt8> { bytes.extracting(slot + Int(place)..<FlashLayout.byteCount) }

  /// Where the item that begins at `position` is, in either slot.
  @inline(never)
  func itemRange(at position: Int) throws(StoreFault) -> Range<Int> {
    var reader = CBORReader(bytes.extracting(position..<FlashLayout.byteCount))
    do throws(EncodingFault) { try reader.skip() } catch { throw .damaged }
    return position..<position + reader.position
  }

  /// How many bytes a transaction may still have.
  var room: Int {
    (slot + FlashLayout.slotByteCount - end - 8) / 4 * 4
  }

  /// Walks along what was appended so far.
  var cursor: JournalCursor {
    JournalCursor(slot: slot, sequence: sequence)
  }

  /// Appends a transaction, durable when this returns; gives where its bytes are. After `flash` nothing more may be appended.
  mutating func append(_ transaction: Span<UInt8>) throws(StoreFault) -> Range<Int> {
    guard transaction.count <= min(room, Self.longestTransaction) else { throw .full }
    let start = end + 4
    do throws(FlashFailure) {
      var crc = try beginTransaction(transaction.count)
      for position in stride(from: 0, to: transaction.count, by: 4) {
        try program(transaction.paddedWord(at: position), &crc)
      }
      try finishTransaction(crc)
    } catch { throw .flash }
    return start..<start + transaction.count
  }

  /// Appends a transaction that is already in the flash.
  mutating func append(copyOf body: Range<Int>) throws(StoreFault) {
    guard body.count <= min(room, Self.longestTransaction) else { throw .full }
    do throws(FlashFailure) {
      var crc = try beginTransaction(body.count)
      for position in stride(from: 0, to: body.count, by: 4) {
        try program(flash.bytes.extracting(body).paddedWord(at: position), &crc)
      }
      try finishTransaction(crc)
    } catch { throw .flash }
  }

  private mutating func beginTransaction(_ byteCount: Int) throws(FlashFailure) -> CRC32 {
    var crc = CRC32()
    crc.append(word: sequence)
    try program(Transaction.head(byteCount), &crc)
    return crc
  }

  private mutating func program(_ word: UInt32, _ crc: inout CRC32) throws(FlashFailure) {
    try flash.programVerified(word, at: end)
    crc.append(word: word)
    end += 4
  }

  private mutating func finishTransaction(_ crc: CRC32) throws(FlashFailure) {
    try flash.programVerified(Transaction.checksum(crc), at: end)
    end += 4
  }

  /// Begins the other slot, which from now on takes what is appended, and is in force once ``finishSlot()`` returns.
  mutating func beginSlot() throws(FlashFailure) {
    let other = slot == FlashLayout.slots.first ? FlashLayout.slots.second : FlashLayout.slots.first
    if !flash.isBlank(other..<other + FlashLayout.slotByteCount) {
      for page in stride(from: other, to: other + FlashLayout.slotByteCount, by: FlashLayout.pageByteCount) {
        try flash.erasePage(at: page)
      }
    }
    (slot, sequence) = (other, sequence + 1)
    end = slot + SlotHead.byteCount
    try SlotHead.write(sequence, into: &flash, at: slot)
  }

  mutating func finishSlot() throws(FlashFailure) {
    try flash.programVerified(0, at: slot + SlotHead.completeOffset)
    let other = slot == FlashLayout.slots.first ? FlashLayout.slots.second : FlashLayout.slots.first
    try flash.programVerified(0, at: other + SlotHead.supersededOffset)
  }
}

extension Span<UInt8> {
  /// Up to four bytes, little-endian, and zeros.
  fileprivate func paddedWord(at offset: Int) -> UInt32 {
    var word: UInt32 = 0
    for index in 0..<Swift.min(4, count - offset) { word |= UInt32(self[offset + index]) << UInt32(8 * index) }
    return word
  }
}

/// Walks along the transactions of a slot that count.
struct JournalCursor {
  /// Behind the last one that was looked at.
  private(set) var position: Int
  private let slotEnd: Int
  private let sequence: UInt32

  init(slot: Int, sequence: UInt32) {
    position = slot + SlotHead.byteCount
    slotEnd = slot + FlashLayout.slotByteCount
    self.sequence = sequence
  }

  /// Where the bytes of the next one are; nil behind the last. Throws `damaged` for what was never written.
  mutating func next<Flash: FlashMemory & ~Copyable>(
    in flash: borrowing Flash
  ) throws(StoreFault) -> Range<Int>? {
    while slotEnd - position >= 8, flash.word(at: position) != .max {
      guard let transaction = Transaction(flash, at: position, in: slotEnd) else { throw .damaged }
      position = transaction.end
      switch try transaction.state(flash, sequence: sequence) {
      case .counts: return transaction.body
      case .neverHappened: continue
      }
    }
    guard flash.isBlank(position..<slotEnd) else { throw .damaged }
    return nil
  }
}

/// The first eight words of a slot.
struct SlotHead {
  static let byteCount = 32
  static let completeOffset = 12
  static let supersededOffset = 16

  enum State {
    /// Blank, or being written when the power failed: the other slot holds all there is.
    case unfinished
    case current
    case superseded
    case damaged
  }

  let sequence: UInt32
  let state: State
  /// Whether nothing was ever written here.
  let isBlank: Bool

  init<Flash: FlashMemory & ~Copyable>(_ flash: borrowing Flash, at slot: Int) {
    sequence = flash.word(at: slot + 4)
    isBlank = flash.isBlank(slot..<slot + Self.byteCount)
    let isWhole = flash.word(at: slot) == Self.magic && flash.word(at: slot + 8) == Self.checksum(sequence)
    let (complete, superseded) = (
      flash.word(at: slot + Self.completeOffset), flash.word(at: slot + Self.supersededOffset)
    )
    switch (isWhole, complete, superseded) {
    case (_, .max, .max): state = .unfinished
    case (true, 0, .max): state = .current
    // Whatever else it says: it may be erased up to here.
    case (_, _, 0): state = .superseded
    default: state = .damaged
    }
  }

  static func write<Flash: FlashMemory & ~Copyable>(
    _ sequence: UInt32, into flash: inout Flash, at slot: Int
  ) throws(FlashFailure) {
    try flash.programVerified(magic, at: slot)
    try flash.programVerified(sequence, at: slot + 4)
    try flash.programVerified(checksum(sequence), at: slot + 8)
  }

  /// "HfJ1".
  private static let magic: UInt32 = 0x314a_6648

  private static func checksum(_ sequence: UInt32) -> UInt32 {
    var crc = CRC32()
    crc.append(word: magic)
    crc.append(word: sequence)
    return crc.value
  }
}

/// A transaction as it stands in flash: a head, its bytes padded to whole words, a checksum.
struct Transaction {
  private let byteCount: Int
  private let start: Int
  /// Behind the checksum.
  let end: Int

  enum State {
    case counts
    /// The power failed before it was whole.
    case neverHappened
  }

  /// Where its bytes are.
  var body: Range<Int> { start + 4..<start + 4 + byteCount }

  /// Nil for what is no head, or reaches beyond the slot.
  init?<Flash: FlashMemory & ~Copyable>(_ flash: borrowing Flash, at start: Int, in slotEnd: Int) {
    let head = flash.word(at: start)
    byteCount = Int(head & 0xffff)
    self.start = start
    end = start + 8 + (byteCount + 3) / 4 * 4
    guard head == Self.head(byteCount), end <= slotEnd else { return nil }
  }

  /// The length and its complement: no flipped bit makes another length of it.
  static func head(_ byteCount: Int) -> UInt32 {
    let length = UInt32(byteCount)
    return ~length << 16 | length
  }

  /// The last word, which is never that of erased flash.
  static func checksum(_ crc: CRC32) -> UInt32 {
    crc.value == .max ? 0 : crc.value
  }

  /// Throws `damaged` where the checksum is another one.
  func state<Flash: FlashMemory & ~Copyable>(
    _ flash: borrowing Flash, sequence: UInt32
  ) throws(StoreFault) -> State {
    let written = flash.word(at: end - 4)
    guard written != .max else { return .neverHappened }
    var crc = CRC32()
    crc.append(word: sequence)
    for position in stride(from: start, to: end - 4, by: 4) { crc.append(word: flash.word(at: position)) }
    guard written == Self.checksum(crc) else { throw .damaged }
    return .counts
  }
}

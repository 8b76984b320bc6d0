import HoldfastCore

/// A log of transactions in two slots of flash, one of which is in force. A transaction counts as a whole or not at all.
///
/// A slot begins with eight words: magic, sequence, checksum of both, *complete* (0 once the log holds everything that the
/// other slot held), *superseded* (0 once the other slot is complete), and three blank ones. A transaction is a word with its
/// length, its bytes padded with zeros, and a checksum. The checksum is programmed last; a transaction without one never
/// happened.
///
/// Any state that neither a power cut nor this code can produce is damage, and damage is fatal: falling back to the other
/// slot would roll the device back.
package struct Journal<Flash: FlashMemory & ~Copyable>: ~Copyable {
  /// The length of the longest transaction, in bytes.
  package static var longestTransaction: Int { 2560 }

  package private(set) var flash: Flash
  /// The offset of the slot in force.
  package private(set) var slot: Int
  private var sequence: UInt32
  /// The offset at which the next transaction begins.
  package private(set) var end: Int

  /// Finds the slot in force, and the end of its log.
  ///
  /// - Throws: `blank` if nothing was ever written, `damaged` for a state that cannot arise, `flash` if the flash fails.
  package init(opening flash: consuming Flash) throws(StoreFault) {
    self.flash = flash
    (slot, sequence, end) = (0, 0, 0)
    let (first, second) = (FlashLayout.slots.first, FlashLayout.slots.second)
    let heads = (first: SlotHead(self.flash, at: first), second: SlotHead(self.flash, at: second))
    let isSecond: Bool
    switch (heads.first.state, heads.second.state) {
    case (.current, .current):
      guard heads.first.sequence != heads.second.sequence else { throw .damaged }
      isSecond = heads.second.sequence > heads.first.sequence
      // The power failed between the two words of `finishSlot`. Superseding the older slot now is necessary: if it were half
      // erased later, it would look damaged.
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

  /// Begins a journal in flash that holds none. The journal is valid once ``finishSlot()`` returns.
  package init(creatingIn flash: consuming Flash) throws(StoreFault) {
    self.flash = flash
    (slot, sequence, end) = (FlashLayout.slots.second, 0, 0)
    do throws(FlashFailure) { try beginSlot() } catch { throw .flash }
  }

  package var bytes: Span<UInt8> {
    @_lifetime(borrow self)
    get { flash.bytes }
  }

  /// Returns the item at an offset into the slot in force.
  @_lifetime(borrow self)
  package func item(_ place: UInt16) throws(EncodingFault) -> Span<UInt8> {
    let rest = bytes.extracting(slot + Int(place)..<FlashLayout.byteCount)
    var reader = CBORReader(rest)
    try reader.skip()
    return rest.extracting(0..<reader.position)
  }

  /// Returns the bytes from an offset into the slot in force to the end of the flash.
  @_lifetime(borrow self)
  package func bytes(from place: UInt16) -> Span<UInt8> { bytes.extracting(slot + Int(place)..<FlashLayout.byteCount) }

  /// Returns the range of the item that begins at `position`, in either slot.
  @inline(never)
  package func itemRange(at position: Int) throws(StoreFault) -> Range<Int> {
    var reader = CBORReader(bytes.extracting(position..<FlashLayout.byteCount))
    do throws(EncodingFault) { try reader.skip() } catch { throw .damaged }
    return position..<position + reader.position
  }

  /// The number of bytes that the next transaction may have.
  package var room: Int {
    (slot + FlashLayout.slotByteCount - end - 8) / 4 * 4
  }

  /// A cursor over the transactions that were appended so far.
  package var cursor: JournalCursor {
    JournalCursor(slot: slot, sequence: sequence)
  }

  /// Appends a transaction and returns the range of its bytes. The transaction is durable when this returns.
  ///
  /// - Throws: `full` if there is no room, `flash` if the flash fails. Nothing may be appended after `flash`.
  @inline(never)
  package mutating func append(_ transaction: Span<UInt8>) throws(StoreFault) -> Range<Int> {
    guard transaction.count <= min(room, Self.longestTransaction) else { throw .full }
    let start = end + 4
    do throws(FlashFailure) {
      var crc = try beginTransaction(transaction.count)
      let whole = transaction.count & ~3
      for position in stride(from: 0, to: whole, by: 4) { try program(transaction.word(at: position), &crc) }
      if whole < transaction.count { try program(transaction.extracting(droppingFirst: whole).shortWord, &crc) }
      try finishTransaction(crc)
    } catch { throw .flash }
    return start..<start + transaction.count
  }

  /// Appends a copy of bytes that are already in the flash, as a transaction.
  ///
  /// - Throws: `full` if there is no room, `flash` if the flash fails.
  package mutating func append(copyOf body: Range<Int>) throws(StoreFault) {
    // The flash keeps its place, and the bytes of the old slot are not changed.
    _ = try append(unsafe _overrideLifetime(flash.bytes.extracting(body), copying: ()))
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

  /// Begins the other slot. From now on it takes the transactions that are appended, and it is in force once ``finishSlot()``
  /// returns.
  package mutating func beginSlot() throws(FlashFailure) {
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

  /// Puts the new slot in force: marks it as complete, and then the other one as superseded.
  package mutating func finishSlot() throws(FlashFailure) {
    try flash.programVerified(0, at: slot + SlotHead.completeOffset)
    let other = slot == FlashLayout.slots.first ? FlashLayout.slots.second : FlashLayout.slots.first
    try flash.programVerified(0, at: other + SlotHead.supersededOffset)
  }
}

extension Span<UInt8> {
  /// Fewer than four bytes as a little-endian word, padded with zeros.
  fileprivate var shortWord: UInt32 {
    var word: UInt32 = 0
    for index in indices { word |= UInt32(self[index]) << UInt32(8 * index) }
    return word
  }
}

/// A cursor over the transactions of a slot that count.
package struct JournalCursor {
  /// The offset after the last transaction that was read.
  package private(set) var position: Int
  private let slotEnd: Int
  private let sequence: UInt32

  package init(slot: Int, sequence: UInt32) {
    position = slot + SlotHead.byteCount
    slotEnd = slot + FlashLayout.slotByteCount
    self.sequence = sequence
  }

  /// Returns the range of the next transaction's bytes; nil after the last one.
  ///
  /// - Throws: `damaged` for bytes that cannot have been written.
  package mutating func next<Flash: FlashMemory & ~Copyable>(
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
package struct SlotHead {
  package static let byteCount = 32
  package static let completeOffset = 12
  package static let supersededOffset = 16

  package enum State {
    /// The slot is blank, or was being written when the power failed: the other slot holds everything.
    case unfinished
    case current
    case superseded
    case damaged
  }

  package let sequence: UInt32
  package let state: State
  /// Whether the head is erased.
  package let isBlank: Bool

  package init<Flash: FlashMemory & ~Copyable>(_ flash: borrowing Flash, at slot: Int) {
    sequence = flash.word(at: slot + 4)
    isBlank = flash.isBlank(slot..<slot + Self.byteCount)
    let isWhole = flash.word(at: slot) == Self.magic && flash.word(at: slot + 8) == Self.checksum(sequence)
    let (complete, superseded) = (
      flash.word(at: slot + Self.completeOffset), flash.word(at: slot + Self.supersededOffset)
    )
    switch (isWhole, complete, superseded) {
    case (_, .max, .max): state = .unfinished
    case (true, 0, .max): state = .current
    // Such a slot may be partly erased, up to this word, so the words before it do not matter.
    case (_, _, 0): state = .superseded
    default: state = .damaged
    }
  }

  package static func write<Flash: FlashMemory & ~Copyable>(
    _ sequence: UInt32, into flash: inout Flash, at slot: Int
  ) throws(FlashFailure) {
    try flash.programVerified(magic, at: slot)
    try flash.programVerified(sequence, at: slot + 4)
    try flash.programVerified(checksum(sequence), at: slot + 8)
  }

  /// The letters "HfJ1".
  private static let magic: UInt32 = 0x314a_6648

  private static func checksum(_ sequence: UInt32) -> UInt32 {
    var crc = CRC32()
    crc.append(word: magic)
    crc.append(word: sequence)
    return crc.value
  }
}

/// A transaction in flash: a head, its bytes padded to whole words, and a checksum.
package struct Transaction {
  private let byteCount: Int
  private let start: Int
  /// The offset after the checksum.
  package let end: Int

  enum State {
    case counts
    /// The power failed before the transaction was complete.
    case neverHappened
  }

  /// The range of the transaction's bytes.
  var body: Range<Int> { start + 4..<start + 4 + byteCount }

  /// Reads the head at `start`; nil if it is not a head, or if the transaction would reach beyond the slot.
  package init?<Flash: FlashMemory & ~Copyable>(_ flash: borrowing Flash, at start: Int, in slotEnd: Int) {
    let head = flash.word(at: start)
    byteCount = Int(head & 0xffff)
    self.start = start
    end = start + 8 + (byteCount + 3) / 4 * 4
    guard head == Self.head(byteCount), end <= slotEnd else { return nil }
  }

  /// Returns the head: the length and its complement. A flipped bit cannot turn it into another valid length.
  static func head(_ byteCount: Int) -> UInt32 {
    let length = UInt32(byteCount)
    return ~length << 16 | length
  }

  /// Returns the last word of a transaction, which never equals that of erased flash.
  package static func checksum(_ crc: CRC32) -> UInt32 {
    crc.value == .max ? 0 : crc.value
  }

  /// Returns whether the transaction counts.
  ///
  /// - Throws: `damaged` if the checksum is wrong.
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

import HoldfastCore
import HoldfastLinux

/// The secrets that an agent holds, each under a name, and the buffer for messages: all in locked memory.
///
/// They are forgotten together when nobody has used one for a time, when a shift is over, or when their owner says so. The clock
/// counts while the machine sleeps, and cannot be set.
package struct HeldSecrets: ~Copyable {
  /// The largest number of secrets.
  static let capacity = 32
  static let largestSecret = 1024

  /// The places in the locked memory: one for each secret, then one for a message.
  private var memory: LockedMemory
  private var entries: [Entry] = []
  private let idleSeconds: Int64
  private let shiftSeconds: Int64
  private var lastUse: Int64 = 0
  private var firstUse: Int64 = 0

  private struct Entry {
    let name: String
    let place: Int
    let count: Int
  }

  /// Holds nothing yet; everything is forgotten when it was idle for a time, and after a shift.
  package init(idleSeconds: Int, shiftSeconds: Int) throws(SystemError) {
    memory = try LockedMemory(byteCount: Self.capacity * Self.largestSecret + AgentMessage.largest)
    (self.idleSeconds, self.shiftSeconds) = (Int64(idleSeconds), Int64(shiftSeconds))
  }

  private static func range(_ place: Int, count: Int) -> Range<Int> {
    place * largestSecret..<place * largestSecret + count
  }

  private static let messagePlace = capacity

  var isEmpty: Bool { entries.isEmpty }
  var names: [String] { entries.map(\.name) }

  /// The seconds until everything has to be forgotten; nil if nothing is held.
  func secondsLeft(at now: Int64) -> Int64? {
    entries.isEmpty ? nil : max(0, min(lastUse + idleSeconds, firstUse + shiftSeconds) - now)
  }

  /// Forgets everything if its time is over.
  mutating func expire(at now: Int64) {
    if secondsLeft(at: now) == 0 { forgetAll() }
  }

  mutating func forgetAll() {
    memory.wipe(0..<Self.capacity * Self.largestSecret)
    entries = []
  }

  mutating func forget(_ name: String) -> Bool {
    guard let index = entries.firstIndex(where: { $0.name.utf8.elementsEqual(name.utf8) }) else { return false }
    memory.wipe(Self.range(entries[index].place, count: Self.largestSecret))
    entries.remove(at: index)
    return true
  }

  /// Lends the buffer for a message, at the end of the locked memory.
  package mutating func withMessage<Result>(_ body: (inout MutableSpan<UInt8>) -> Result) -> Result {
    var bytes = memory.bytes
    var message = bytes._mutatingExtracting(last: AgentMessage.largest)
    return body(&message)
  }

  mutating func wipeMessage() {
    let start = Self.messagePlace * Self.largestSecret
    memory.wipe(start..<start + AgentMessage.largest)
  }

  /// Keeps the `count` bytes from `offset` on in the message under a name, in place of an older secret of that name.
  ///
  /// - Returns: Whether there was room.
  mutating func holdMessage(from offset: Int, count: Int, as name: String, at now: Int64) -> Bool {
    let isFirst = entries.isEmpty
    _ = forget(name)
    guard let place = (0..<Self.capacity).first(where: { place in !entries.contains { $0.place == place } }) else {
      return false
    }
    var bytes = memory.bytes
    let (from, to) = (Self.messagePlace * Self.largestSecret + offset, place * Self.largestSecret)
    for index in 0..<count { bytes[to + index] = bytes[from + index] }
    entries.append(Entry(name: name, place: place, count: count))
    if isFirst { firstUse = now }
    lastUse = now
    return true
  }

  /// Writes a secret into the message from `offset` on, and returns its byte count; nil if none has this name.
  mutating func giveInMessage(at offset: Int, _ name: String, at now: Int64) -> Int? {
    guard let entry = entries.first(where: { $0.name.utf8.elementsEqual(name.utf8) }) else { return nil }
    var bytes = memory.bytes
    let (from, to) = (entry.place * Self.largestSecret, Self.messagePlace * Self.largestSecret + offset)
    for index in 0..<entry.count { bytes[to + index] = bytes[from + index] }
    lastUse = now
    return entry.count
  }
}

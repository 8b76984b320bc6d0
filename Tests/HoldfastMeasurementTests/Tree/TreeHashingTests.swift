import Foundation
import HoldfastCore
import HoldfastLinux
import Synchronization
import Testing

import HoldfastMeasurement

/// The tree digest of bytes, computed from its description without any code that is tested.
func treeDigest(_ bytes: [UInt8]) throws -> Digest {
  let size = 131_072
  func number(_ value: Int) -> [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) } }
  var input = Array("holdfast/1 tree\0".utf8) + number(size) + number(bytes.count)
  for (index, start) in stride(from: 0, to: bytes.count, by: size).enumerated() {
    let leaf = Array("holdfast/1 leaf\0".utf8) + number(index) + bytes[start..<min(start + size, bytes.count)]
    let digest = try sha256(leaf)
    for position in 0..<32 { input.append(digest[position]) }
  }
  return try sha256(input)
}

private let chunk = TreeDigest.chunkByteCount

@Suite struct TreeHashingTests {
  let path = NSTemporaryDirectory() + "hf-tree-" + UUID().uuidString.prefix(8)

  /// Bytes that differ in every page.
  static func bytes(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0x5a, count: count)
    for page in 0..<count / 4096 {
      for index in 0..<4 { bytes[page * 4096 + index] = UInt8(truncatingIfNeeded: page >> (index * 8)) }
    }
    return bytes
  }

  private func source(_ bytes: [UInt8], flags: Int32 = O_RDONLY) throws -> TreeSource {
    try Data(bytes).write(to: URL(filePath: path))
    return try open(flags)
  }

  private func open(_ flags: Int32 = O_RDONLY) throws -> TreeSource {
    defer { try? FileManager.default.removeItem(atPath: path) }
    return try TreeSource(file: Descriptor(opening: path, flags: flags), as: .executable)
  }

  private func root(_ bytes: [UInt8], threads: Int = 3) throws -> Digest {
    try roots([source(bytes)], threads: threads)[0]
  }

  private func roots(_ sources: [TreeSource], threads: Int) throws -> [Digest] {
    try TreeHashing(sources, threadCount: threads).finish().map(\.root)
  }

  @Test(arguments: [0, 1, chunk - 1, chunk, chunk + 1, 2 * chunk, 40 * chunk + 5], [1, 2, 7])
  func `the digest is the one that the description gives, by any number of threads`(count: Int, threads: Int) throws {
    let bytes = Self.bytes(count)
    #expect(try root(bytes, threads: threads) == treeDigest(bytes))
  }

  @Test func `a bit that differs in any chunk shows, and so do chunks in another order`() throws {
    let bytes = Self.bytes(20 * chunk + 1)
    var seen: Set<Digest> = [try root(bytes)]
    for position in Array(stride(from: 77, to: bytes.count, by: chunk)) + [bytes.count - 1] {
      var changed = bytes
      changed[position] ^= 0x10
      seen.insert(try root(changed))
    }
    var swapped = bytes
    swapped.replaceSubrange(0..<chunk, with: bytes[chunk..<2 * chunk])
    swapped.replaceSubrange(chunk..<2 * chunk, with: bytes[0..<chunk])
    seen.insert(try root(swapped))
    #expect(seen.count == 23)
  }

  @Test func `what is cut off, or appended as zeros, shows`() throws {
    let bytes = Self.bytes(3 * chunk)
    var seen: Set<Digest> = []
    for count in [2 * chunk, 3 * chunk - 1, 3 * chunk] { seen.insert(try root(Array(bytes[..<count]))) }
    for count in [1, chunk] { seen.insert(try root(bytes + [UInt8](repeating: 0, count: count))) }
    seen.insert(try root([UInt8](repeating: 0, count: chunk)))
    seen.insert(try root([UInt8](repeating: 0, count: 2 * chunk)))
    #expect(seen.count == 7)
  }

  @Test func `a file that looks like what is hashed for another one is another one, in both forms`() throws {
    let bytes = Self.bytes(2 * chunk)
    let tree = try root(bytes)
    var preimage = Array("holdfast/1 tree\0".utf8)
    for value in [chunk, bytes.count] {
      preimage += (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
    }
    for index in 0..<2 {
      let start = Array("holdfast/1 leaf\0".utf8) + [0, 0, 0, 0, 0, 0, 0, UInt8(index)]
      let leaf = try sha256(start + bytes[index * chunk..<(index + 1) * chunk])
      preimage += (0..<32).map { leaf[$0] }
    }
    // Its flat digest is the tree digest of the other: forms must not be compared.
    #expect(try sha256(preimage) == tree)
    #expect(try root(preimage) != tree)
    #expect(ImageDigest.flat(tree) != ImageDigest.tree(tree))
    #expect(try root(bytes) != sha256(bytes))
  }

  @Test func `several sources are hashed in one pass, empty ones too`() throws {
    let parts = [0, 5 * chunk + 9, 0, 1, 30 * chunk].map(Self.bytes)
    let sources = try parts.map { try source($0) }
    #expect(try roots(sources, threads: 3) == parts.map(treeDigest))
    #expect(try roots([], threads: 3).isEmpty)
  }

  @Test(arguments: ["shorter", "longer", "rewritten"])
  func `a file that changes during the hashing is an error`(change: String) throws {
    let bytes = Self.bytes(20 * chunk)
    try Data(bytes).write(to: URL(filePath: path))
    // The clock of files is coarse: a time of now could be that of the change, too.
    try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSince1970: 1000)], ofItemAtPath: path)
    let writing = try FileHandle(forUpdating: URL(filePath: path))
    let source = try open()
    // The threads start when the file has changed, as late as the change can be.
    switch change {
    case "shorter": try writing.truncate(atOffset: UInt64(bytes.count - 1))
    case "longer": try writing.truncate(atOffset: UInt64(bytes.count + 1))
    default: try writing.write(contentsOf: bytes[..<10])
    }
    #expect(throws: MeasurementError.unreadable(.executable, code: ETXTBSY)) { try roots([source], threads: 2) }
  }

  @Test func `an error of any thread reaches the caller, who has no thread left`() throws {
    for threads in [1, 2, 5] {
      let running = Running()
      let sources = [try source(Self.bytes(30 * chunk)), try source(Self.bytes(30 * chunk), flags: O_WRONLY)]
      #expect(throws: MeasurementError.unreadable(.executable, code: EBADF)) {
        try TreeHashing(sources, threadCount: threads, starting: running.start).finish()
      }
      #expect(running.count == 0 && running.startedCount == threads - 1)
    }
  }

  @Test func `no thread outlives the hashing, whether it is finished or given up`() throws {
    let running = Running()
    let bytes = Self.bytes(200 * chunk)
    _ = try TreeHashing([source(bytes)], threadCount: 6, starting: running.start).finish()
    #expect(running.count == 0)
    _ = TreeHashing([try source(bytes)], threadCount: 6, starting: running.start)
    #expect(running.count == 0 && running.startedCount == 10)
  }

  @Test func `where no thread can be created, or only some, the others do the work`() throws {
    let bytes = Self.bytes(60 * chunk)
    let source = try source(bytes)
    for limit in 0..<4 {
      let running = Running(limit: limit)
      #expect(
        try TreeHashing([source], threadCount: 5, starting: running.start).finish()[0].root == treeDigest(bytes))
      #expect(running.startedCount == limit && running.refusedCount == 1)
    }
  }

  @Test func `one thread is enough for little, and for one processor`() throws {
    let never: TreeHashing.Starter = { _ in
      Issue.record("a thread was started")
      return nil
    }
    for (count, threads) in [(0, 8), (7, 8), (15, 8), (100, 1), (100, 0)] {
      let bytes = Self.bytes(count * chunk)
      #expect(
        try TreeHashing([source(bytes)], threadCount: threads, starting: never).finish()[0].root == treeDigest(bytes))
    }
  }

  @Test func `a file that has more bytes than its size says is an error`() throws {
    let source = try TreeSource(file: Descriptor(opening: "/proc/self/status", flags: O_RDONLY), as: .executable)
    #expect(source.byteCount == 0)
    #expect(throws: MeasurementError.unreadable(.executable, code: ETXTBSY)) { try roots([source], threads: 1) }
  }

  @Test func `a folder or a pipe is no source`() throws {
    #expect(throws: MeasurementError.unreadable(.executable, code: EINVAL)) {
      try TreeSource(file: Descriptor(opening: "/", flags: O_RDONLY), as: .executable)
    }
  }
}

/// The threads of a hashing, of which the system has a limited number.
private final class Running: Sendable {
  private let state = Mutex((count: 0, started: 0, refused: 0))
  private let limit: Int

  init(limit: Int = 100) { self.limit = limit }

  var count: Int { state.withLock { $0.count } }
  var startedCount: Int { state.withLock { $0.started } }
  var refusedCount: Int { state.withLock { $0.refused } }

  func start(_ body: @escaping @Sendable () -> Void) -> HoldfastLinux.Thread? {
    let isRefused = state.withLock { state in
      if state.started == limit {
        state.refused += 1
        return true
      }
      state.count += 1
      state.started += 1
      return false
    }
    guard !isRefused else { return nil }
    return try? HoldfastLinux.Thread {
      body()
      self.state.withLock { $0.count -= 1 }
    }
  }
}

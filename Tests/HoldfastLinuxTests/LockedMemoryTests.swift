import Foundation
import HoldfastLinux
import Testing

@Suite struct LockedMemoryTests {
  @Test func `locked memory is never swapped, and is in no core file and in no child`() throws {
    let memory = try LockedMemory(byteCount: 64)
    // Source: proc(5), VmFlags: locked, not in a core file, wiped in the child of a fork.
    #expect(try kernelFlags(at: address(of: memory)).isSuperset(of: ["lo", "dd", "wf"]))
  }

  @Test func `locked memory is gone once it goes out of scope`() throws {
    var place: UInt = 0
    do {
      let memory = try LockedMemory(byteCount: 1 << 20)
      place = address(of: memory)
      #expect(try !kernelFlags(at: place).isEmpty)
    }
    #expect(try !kernelFlags(at: place).contains("lo"))
  }

  @Test func `locked memory begins as zeros, and keeps what is written but for what is wiped`() throws {
    var memory = try LockedMemory(byteCount: 4)
    #expect(copy(of: memory) == [0, 0, 0, 0])
    var bytes = memory.bytes
    for index in 0..<4 { bytes[index] = UInt8(index) + 1 }
    memory.wipe(1..<3)
    #expect(copy(of: memory) == [1, 0, 0, 4])
  }

  private func copy(of memory: borrowing LockedMemory) -> [UInt8] {
    memory.withBytes { bytes in bytes.indices.map { bytes[$0] } }
  }

  private func address(of memory: borrowing LockedMemory) -> UInt {
    memory.withBytes { bytes in unsafe bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } }
  }

  /// The flags of the mapping with an address; none if nothing is mapped there.
  private func kernelFlags(at address: UInt) throws -> Set<Substring> {
    var isInside = false
    let file = try #require(FileHandle(forReadingAtPath: "/proc/self/smaps"))
    let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ")
      let ends = words[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
      if ends.count == 2 { isInside = ends[0] <= address && address < ends[1] }
      if isInside && words[0] == "VmFlags:" { return Set(words.dropFirst()) }
    }
    return []
  }
}

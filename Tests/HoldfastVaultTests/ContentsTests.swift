import Glibc
import HoldfastCore
import HoldfastLinux
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastVault

/// What a vault encrypts: cut at every byte, changed, extended, rearranged.
@Suite final class ContentsTests {
  private static let chunk = 65_536
  private let made: TestVault
  private let unlocked: UnlockedVault

  init() throws {
    made = try TestVault(passcode: nil)
    unlocked = try made.vault.unlock(keyFile: made.keyFile)
  }

  private func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) } }

  /// What a decryption releases, and its fault.
  private func released(_ sealed: ArraySlice<UInt8>) -> (bytes: [UInt8], fault: VaultFault?) {
    var (rest, result) = (sealed, [UInt8]())
    do throws(VaultFault) {
      try unlocked.decrypt(
        context: "",
        reading: { (output) throws(VaultFault) in
          let count = min(output.count, rest.count)
          unsafe output.withUnsafeMutableBytes { unsafe $0.copyBytes(from: rest.prefix(count)) }
          rest = rest.dropFirst(count)
          return count
        }, writing: { (bytes) throws(VaultFault) in result.append(bytes) })
      return (result, nil)
    } catch { return (result, error) }
  }

  @Test(arguments: [0, 1, 15, 16, 65_535, 65_536, 65_537, 131_072, 200_000])
  func `contents of any length come back`(count: Int) throws {
    let plain = bytes(count)
    let sealed = try unlocked.encrypted(plain)
    #expect(sealed.count == 96 + count + 16 * max(1, (count + 65_535) / 65_536))
    let (found, fault) = released(sealed[...])
    #expect(found == plain && fault == nil)
    // No two encryptions are alike.
    #expect(try unlocked.encrypted(plain)[32...] != sealed[32...])
  }

  @Test(arguments: [0, 1, 200])
  func `a small file that is cut, changed or extended at any byte is refused, and nothing is released`(count: Int)
    throws
  {
    let sealed = try unlocked.encrypted(bytes(count))
    var faults: [String: Int] = [:]
    for length in sealed.indices {
      let (found, fault) = released(sealed[..<length])
      #expect(found.isEmpty)
      faults["\(fault, default: "none")", default: 0] += 1
    }
    #expect(faults == ["notEncrypted": 96, "contentsDamaged": 16 + count])
    faults = [:]
    for index in sealed.indices {
      var changed = sealed
      changed[index] ^= UInt8(1 << (index % 8))
      let (found, fault) = released(changed[...])
      #expect(found.isEmpty)
      faults["\(fault, default: "none")", default: 0] += 1
    }
    #expect(faults == ["notEncrypted": 16, "otherVault": 16, "contentsDamaged": sealed.count - 32])
    for tail in [[0], [UInt8](repeating: 0, count: 16), Array(sealed[96...]), sealed] {
      let (found, fault) = released((sealed + tail)[...])
      #expect(found.isEmpty && fault == .contentsDamaged)
    }
  }

  @Test func `a large file that is cut anywhere releases whole chunks only, and ends in an error`() throws {
    let plain = bytes(2 * Self.chunk + 40)
    let sealed = try unlocked.encrypted(plain)
    let ends = [96, 96 + 65_552, 96 + 2 * 65_552, sealed.count]
    let lengths = Set(ends.flatMap { $0 - 40...$0 + 40 }).union(stride(from: 0, to: sealed.count, by: 4099))
    for length in lengths where length < sealed.count && length >= 0 {
      let (found, fault) = released(sealed[..<length])
      #expect(fault == (length < 96 ? .notEncrypted : .contentsDamaged))
      // A chunk that has become the last one is not released, because it was not encrypted as such.
      let whole = max(0, length - 97) / 65_552
      #expect(found == Array(plain[..<(whole * Self.chunk)]), "\(length)")
    }
  }

  @Test func `chunks of one file cannot change their places, and those of two files cannot be mixed`() throws {
    let sealed = try unlocked.encrypted(bytes(3 * Self.chunk))
    let other = try unlocked.encrypted(bytes(3 * Self.chunk))
    let pieces = (0..<3).map { Array(sealed[(96 + $0 * 65_552)..<(96 + ($0 + 1) * 65_552)]) }
    let (head, otherHead) = (Array(sealed[..<96]), Array(other[..<96]))
    let rearranged = [
      head + pieces[1] + pieces[0] + pieces[2], head + pieces[0] + pieces[2], head + pieces[2],
      head + pieces[0] + pieces[0] + pieces[2], otherHead + pieces[0] + pieces[1] + pieces[2],
      head + pieces[0] + pieces[1] + Array(other[(96 + 2 * 65_552)...]), head + pieces[0] + pieces[1],
      sealed + pieces[2], sealed + [UInt8](repeating: 0, count: 16),
    ]
    for attack in rearranged {
      let (found, fault) = released(attack[...])
      #expect(fault == .contentsDamaged)
      #expect(found.count < 3 * Self.chunk)
    }
  }

  @Test func `contents belong to their context and their vault`() throws {
    let sealed = try unlocked.encrypted([7], context: "settings")
    #expect(try unlocked.decrypted(sealed, context: "settings") == [7])
    for context in ["", "setting", "settings "] {
      #expect(throws: VaultFault.contentsDamaged) { _ = try unlocked.decrypted(sealed, context: context) }
    }
    let other = try TestVault(host: TestHost(secret: [UInt8](1...32)), passcode: nil)
    let second = Vault(path: other.place.file("second"), environment: other.host.environment)
    let another = try second.create(passcode: nil, keyFile: other.keyFile)
    #expect(throws: VaultFault.otherVault) { _ = try another.decrypted(sealed, context: "settings") }
  }

  @Test func `descriptors are read to their end, and a lost output is an error`() throws {
    let folder = made.place.path
    let plain = try Descriptor.unnamedFile(in: folder)
    let sealed = try Descriptor.unnamedFile(in: folder)
    let again = try Descriptor.unnamedFile(in: folder)
    let contents = bytes(100_000)
    try plain.write(contents.span)
    lseek(plain.number, 0, SEEK_SET)
    try unlocked.encrypt(from: plain.number, to: sealed.number)
    lseek(sealed.number, 0, SEEK_SET)
    try unlocked.decrypt(from: sealed.number, to: again.number)
    var found = [UInt8](repeating: 0, count: 100_001)
    lseek(again.number, 0, SEEK_SET)
    #expect(try again.read(into: &found) == 100_000 && Array(found[..<100_000]) == contents)
    lseek(sealed.number, 0, SEEK_SET)
    let readOnly = try Descriptor(opening: "/dev/null", flags: O_RDONLY)
    #expect(throws: VaultFault.output(EBADF)) { try unlocked.decrypt(from: sealed.number, to: readOnly.number) }
    let writeOnly = try Descriptor(opening: "/dev/null", flags: O_WRONLY)
    #expect(throws: VaultFault.input(EBADF)) { try unlocked.encrypt(from: writeOnly.number, to: again.number) }
  }
}

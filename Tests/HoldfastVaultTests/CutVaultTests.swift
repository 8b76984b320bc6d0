import HoldfastLinux
import TestSupport
import Testing

import HoldfastVault

/// A vault's files, cut at every byte and changed in every byte.
@Suite struct CutVaultTests {
  /// The ways in which a file is damaged: each shorter length, and each byte changed.
  private func damaged(_ whole: [UInt8]) -> [[UInt8]] {
    whole.indices.map { Array(whole[..<$0]) }
      + whole.indices.map { index in
        var bytes = whole
        bytes[index] ^= index % 2 == 0 ? 0x01 : 0x80
        return bytes
      } + [whole + [0]]
  }

  @Test func `a damaged counter refuses every passcode, and wipes nothing`() throws {
    let made = try TestVault(attemptLimit: 3)
    let whole = try made.contents("attempts")
    #expect(whole.count == 66)
    var faults: Set<String> = []
    for bytes in damaged(whole) {
      try made.put(bytes, into: "attempts")
      for text in [rightPasscode, wrongPasscode, wrongPasscode, wrongPasscode, wrongPasscode] {
        faults.insert("\(made.fault(of: text), default: "none")")
      }
      faults.insert("\(made.faultOfKeyFile(), default: "unlocked")")
      guard try made.contents("attempts") == bytes else {
        faults.insert("written")
        break
      }
    }
    #expect(faults == ["attemptsDamaged", "unlocked"])
    try Files.removeFile(at: made.vault.path + "/attempts")
    #expect(made.fault(of: rightPasscode) == .attemptsDamaged)
    #expect(made.fault(of: wrongPasscode) == .attemptsDamaged)
    _ = try made.vault.restore(keyFile: made.keyFile)
    #expect(made.fault(of: rightPasscode) == nil)
  }

  @Test(arguments: ["vault.key", "vault.copy"])
  func `if one copy of the record is damaged, the other one counts, and replaces it`(name: String) throws {
    let made = try TestVault()
    let whole = try made.contents(name)
    #expect(whole.count == 265)
    var faults: Set<String> = []
    for (index, bytes) in damaged(whole).enumerated() {
      try made.put(bytes, into: name)
      if index % 2 == 0 {
        faults.insert("\(made.faultOfKeyFile(), default: "unlocked")")
      } else {
        faults.insert("\(made.fault(of: rightPasscode), default: "unlocked")")
      }
      if try made.contents(name) != whole { faults.insert("not repaired") }
    }
    #expect(faults == ["unlocked"])
    try Files.removeFile(at: "\(made.vault.path)/\(name)")
    #expect(made.faultOfKeyFile() == nil)
    #expect(try made.contents(name) == whole)
  }

  @Test func `if both copies are damaged, nothing is unlocked, counted or wiped`() throws {
    let made = try TestVault(attemptLimit: 3)
    let (whole, counter) = (try made.contents("vault.key"), try made.contents("attempts"))
    var faults: Set<String> = []
    for bytes in damaged(whole) {
      for name in ["vault.key", "vault.copy"] { try made.put(bytes, into: name) }
      faults.insert("\(made.fault(of: rightPasscode), default: "unlocked")")
      faults.insert("\(made.faultOfKeyFile(), default: "unlocked")")
      for name in ["vault.key", "vault.copy"] where try made.contents(name) != bytes { faults.insert("written") }
    }
    #expect(faults == ["damaged"])
    #expect(try made.contents("attempts") == counter)
    try made.put(whole, into: "vault.copy")
    #expect(made.fault(of: rightPasscode) == nil)
  }

  @Test func `an older copy does not bring an old passcode back`() throws {
    let made = try TestVault()
    let old = try made.contents("vault.key")
    try made.vault.setPasscode(
      passcode("another horse"), of: try made.vault.unlock(keyFile: made.keyFile))
    for name in ["vault.key", "vault.copy"] {
      try made.put(old, into: name)
      #expect(made.fault(of: "another horse") == nil)
      #expect(try made.contents(name) != old)
      try made.put(old, into: name)
      #expect(made.fault(of: rightPasscode) == .wrongPasscode(attemptsLeft: 9))
      #expect(made.fault(of: "another horse") == nil)
    }
  }
}

import HoldfastCore
import HoldfastLinux
import HoldfastMeasurement
import HoldfastOpenSSL
import Synchronization
import TestSupport
import Testing

import HoldfastVault

@Suite struct VaultTests {
  @Test func `passcode and key file unlock the same key, and nothing else does`() throws {
    let made = try TestVault()
    let sealed = try made.vault.unlock(passcode: passcode(rightPasscode)).encrypted([1, 2, 3])
    #expect(try made.vault.unlock(keyFile: made.keyFile).decrypted(sealed) == [1, 2, 3])
    let other = made.place.file("other")
    try KeyFile.create(at: other, environment: made.host.environment)
    #expect(throws: VaultFault.wrongKeyFile) { _ = try made.vault.unlock(keyFile: other) }
    try made.place.makeFile("short", [UInt8](repeating: 1, count: 31))
    try made.place.makeFile("long", [UInt8](repeating: 1, count: 33))
    for name in ["short", "long"] {
      let path = made.place.file(name)
      #expect(throws: VaultFault.keyFileLength(path: path)) { _ = try made.vault.unlock(keyFile: path) }
    }
    try made.place.setMode("other", 0o644)
    #expect(throws: VaultFault.file(FileError(.tooOpen(mode: 0o644), at: other))) {
      _ = try made.vault.unlock(keyFile: other)
    }
    #expect(made.fault(of: wrongPasscode) == .wrongPasscode(attemptsLeft: 9))
  }

  @Test func `a key that an agent holds must be that of the vault`() throws {
    let made = try TestVault()
    let key = try made.vault.unlock(keyFile: made.keyFile).copiedKey()
    let sealed = try made.vault.unlock(heldKey: SecretBytes(copying: key.bytes)).encrypted([9])
    #expect(try made.vault.unlock(keyFile: made.keyFile).decrypted(sealed) == [9])
    #expect(throws: VaultFault.wrongKey) { _ = try made.vault.unlock(heldKey: SecretBytes(zeros: 32)) }
    #expect(throws: VaultFault.wrongKey) {
      _ = try made.vault.unlock(heldKey: SecretBytes(copying: key.bytes.extracting(first: 31)))
    }
  }

  @Test func `a vault needs a key, allowed limits, and a folder of its own`() throws {
    let (place, host) = (try TemporaryFolder(), TestHost())
    let vault = Vault(path: place.file("v"), environment: host.environment)
    #expect(throws: VaultFault.noKey) { _ = try vault.create(passcode: nil, keyFile: nil) }
    for limit in [-1, 0, 2, 101] {
      #expect(throws: VaultFault.attemptLimit) {
        _ = try vault.create(passcode: passcode(rightPasscode), keyFile: nil, attemptLimit: limit)
      }
    }
    for text in ["", "12345", String(repeating: "x", count: 257)] {
      #expect(throws: VaultFault.passcodeLength) { _ = try passcode(text) }
    }
    #expect(throws: VaultFault.missing) { _ = try vault.unlock(passcode: passcode(rightPasscode)) }
    _ = try vault.create(passcode: passcode(rightPasscode), keyFile: nil, attemptLimit: 3)
    #expect(throws: VaultFault.exists) { _ = try vault.create(passcode: passcode(rightPasscode), keyFile: nil) }
    #expect(throws: VaultFault.noKeyFile) {
      try KeyFile.create(at: place.file("key"), environment: host.environment)
      _ = try vault.unlock(keyFile: place.file("key"))
    }
    let foreign = place.file("device")
    try Files.createPrivateDirectory(at: foreign)
    try place.makeFile("device/device.json")
    let other = Vault(path: foreign, environment: host.environment)
    #expect(throws: VaultFault.file(FileError(.anotherKind(.device), at: foreign))) {
      _ = try other.create(passcode: passcode(rightPasscode), keyFile: nil)
    }
    #expect(throws: VaultFault.missing) { try other.wipe() }
    #expect(try Files.names(inFolder: foreign, limit: 10) == ["device.json"])
  }

  @Test func `a new passcode replaces the old one, and what was encrypted stays readable`() throws {
    let made = try TestVault()
    let unlocked = try made.vault.unlock(passcode: passcode(rightPasscode))
    let sealed = try unlocked.encrypted([4, 5])
    try made.vault.setPasscode(passcode("another horse"), of: unlocked, attemptLimit: 3)
    #expect(made.fault(of: rightPasscode) == .wrongPasscode(attemptsLeft: 2))
    #expect(try made.vault.unlock(passcode: passcode("another horse")).decrypted(sealed) == [4, 5])
    // Without a key file, the passcode cannot be removed; without a passcode, the key file cannot.
    try made.vault.setKeyFile(nil, of: unlocked)
    #expect(throws: VaultFault.noKey) { try made.vault.setPasscode(nil, of: unlocked) }
    #expect(made.faultOfKeyFile() == .noKeyFile)
    try made.vault.setKeyFile(made.keyFile, of: unlocked)
    try made.vault.setPasscode(nil, of: unlocked)
    #expect(made.fault(of: "another horse") == .noPasscode)
    #expect(throws: VaultFault.noKey) { try made.vault.setKeyFile(nil, of: unlocked) }
    #expect(try made.vault.unlock(keyFile: made.keyFile).decrypted(sealed) == [4, 5])
    // Another vault's key changes nothing.
    let other = try TestVault()
    #expect(throws: VaultFault.wrongKey) {
      try other.vault.setPasscode(passcode("another horse"), of: unlocked)
    }
  }

  @Test func `on another host, a copy of the folder is useless, and nothing is counted or wiped`() throws {
    let made = try TestVault()
    let before = try Dictionary(uniqueKeysWithValues: made.names().map { ($0, try made.contents($0)) })
    let there = Vault(path: made.vault.path, environment: TestHost(secret: [UInt8](1...32)).environment)
    for _ in 0..<12 {
      #expect(throws: VaultFault.damaged) { _ = try there.unlock(passcode: passcode(rightPasscode)) }
      #expect(throws: VaultFault.damaged) { _ = try there.unlock(keyFile: made.keyFile) }
      #expect(throws: VaultFault.damaged) { _ = try there.restore(passcode: passcode(rightPasscode)) }
    }
    let nowhere = Vault(path: made.vault.path, environment: TestHost(secret: nil).environment)
    #expect(throws: VaultFault.hostSecret(.missing)) { _ = try nowhere.unlock(keyFile: made.keyFile) }
    #expect(try Dictionary(uniqueKeysWithValues: made.names().map { ($0, try made.contents($0)) }) == before)
    #expect(made.fault(of: rightPasscode) == nil)
  }

  @Test func `status says what can be known`() throws {
    let made = try TestVault(attemptLimit: 4)
    _ = made.fault(of: wrongPasscode)
    let status = try made.vault.status()
    #expect(status.hasPasscode && status.hasKeyFile && status.hasBothCopies)
    #expect((status.attemptLimit, status.attemptsLeft) == (4, 3))
    try made.put([], into: "attempts")
    try made.put([], into: "vault.copy")
    let damaged = try made.vault.status()
    #expect(damaged.attemptsLeft == nil && !damaged.hasBothCopies && damaged.id == status.id)
  }

  @Test func `wiping removes the folder, also of a damaged vault, and a new vault has another key`() throws {
    let made = try TestVault()
    let sealed = try made.vault.unlock(keyFile: made.keyFile).encrypted([1])
    try made.put([1, 2], into: "vault.key")
    try made.put([1, 2], into: "vault.copy")
    try made.vault.wipe()
    #expect(throws: FileError(.notFound, at: made.vault.path)) { try made.names() }
    #expect(throws: VaultFault.missing) { try made.vault.wipe() }
    let new = try made.vault.create(passcode: nil, keyFile: made.keyFile)
    #expect(throws: VaultFault.otherVault) { _ = try new.decrypted(sealed) }
  }

  @Test func `wiping removes the keys, whatever else is in the folder, and leaves that alone`() throws {
    for wipes in [true, false] {
      let made = try TestVault(attemptLimit: 3)
      try Files.createPrivateDirectory(at: made.vault.path + "/.before")
      try made.put([1], into: "a letter")
      if wipes {
        try made.vault.wipe()
        #expect(try made.names().sorted() == [".before", "a letter"])
      } else {
        for _ in 0..<3 { _ = made.fault(of: wrongPasscode) }
        #expect(try made.names().sorted() == [".before", "a letter", "attempts"])
        #expect(made.faultOfKeyFile() == .wiped)
      }
    }
  }

  @Test func `a creation that was interrupted is repeated, and until then nothing is unlocked`() throws {
    let made = try TestVault()
    try IncompleteFolder.mark(made.vault.path, as: .vault)
    #expect(made.faultOfKeyFile() == .incomplete)
    #expect(made.fault(of: rightPasscode) == .incomplete)
    _ = try made.vault.create(passcode: passcode("another horse"), keyFile: nil)
    #expect(made.fault(of: "another horse") == nil)
    #expect(try made.names() == ["attempts", "vault.copy", "vault.key"])
  }

  @Test func `links and files that others may read are not taken for the record`() throws {
    let made = try TestVault()
    try made.place.setMode("v/vault.key", 0o640)
    #expect(made.faultOfKeyFile() == .file(FileError(.tooOpen(mode: 0o640), at: made.vault.path + "/vault.key")))
    try made.place.setMode("v/vault.key", 0o600)
    try made.place.setMode("v", 0o750)
    #expect(made.faultOfKeyFile() == .file(FileError(.tooOpen(mode: 0o750), at: made.vault.path)))
  }

  @Test func `the record, the counter and the contents are those that an independent writer makes`() throws {
    let place = try TemporaryFolder()
    let vault = Vault(path: place.file("v"), environment: TestHost().environment)
    try Files.createPrivateDirectory(at: vault.path)
    try place.makeFile("v/vault.key", hex(Vector.record))
    try place.makeFile("v/attempts", hex(Vector.attempts))
    try place.makeFile("key", [UInt8](96..<128))
    #expect(try vault.status().attemptsLeft == 7)
    let unlocked = try vault.unlock(keyFile: place.file("key"))
    #expect(unlocked.copiedKey().bytes.array == [UInt8](32..<64))
    #expect(try unlocked.decrypted(hex(Vector.sealed), context: "greeting") == Array("hello".utf8))
    let same = try vault.unlock(passcode: passcode(rightPasscode))
    #expect(same.copiedKey().bytes.array == [UInt8](32..<64))
    // The second copy was missing.
    #expect(try place.contents("v/vault.copy") == hex(Vector.record))
  }
}

/// The test vector of docs/vault.md, which Tests/Interop/holdfast_peer/vault.py made.
enum Vector {
  static let record =
    "686f6c64666173742d7661756c742f31000102030405060708090a0b0c0d0e0f696d4d9a510cf8d99b6680a9d75002e7bc02e3bd0c41a900"
    + "610f972213da41ba00000001030a040801404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f2f23dc06aae989"
    + "1463c8f8d2e63130e7e73bf1552585dfcb41c75ebcc86adc592491d0751c52fbdf2bcf98c100e62870808182838485868788898a8b8c8d8e"
    + "8f909192939495969798999a9b9c9d9e9f8bcfb3325eb2908041ba2f9702d9b8fe51ffcb452cb2243a96956963e7171407bcd4f22a8c92ef"
    + "4a1df14e90e2457f129896602f46c179671ff668027cadaad0690618ef68fcc725f9e9ff1b0c7c4baf"
  static let attempts =
    "686f6c64666173742d74726965732f31000102030405060708090a0b0c0d0e0f0003f219565b099e3d4c57670b0c8949b016dea8b43cdb55"
    + "7c9115cdc1b63bc5cc41"
  static let sealed =
    "686f6c64666173742d63727970742f31000102030405060708090a0b0c0d0e0fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7"
    + "b8b9babbbcbdbebf82c16128b58fbd66b5807ad3fba1f7a11e478695984cee5dc60e142606703c1ac76e9ba4adaa8a83f570da7aa9d58124"
    + "abf82e495d"
}

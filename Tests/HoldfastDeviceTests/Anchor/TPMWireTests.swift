import Glibc
import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastDevice

/// Every byte that goes to a TPM, as TCG's TPM 2.0 Library, parts 2 and 3, have it.
@Suite struct TPMWireTests {
  private static let deviceID: DeviceID = fixed([0xab, 0xcd, 0xef] + [UInt8](repeating: 0x11, count: 13))
  private static let authorization = [UInt8](repeating: 0xa5, count: 32)
  private static let done = "8002 00000013 00000000 00000000 0000010000"
  /// The session with the authorization value of the device, and with that of the owner, which is empty.
  private static let session = "00000029 40000009 0000 01 0020" + hex(authorization)
  private static let ownerSession = "00000009 40000009 0000 01 0000"

  private func counter(_ tpm: ScriptedTPM) throws -> RollbackCounter {
    let place = try #require(CounterPlace(tpm: tpm.path, deviceID: Self.deviceID))
    return RollbackCounter(place, authorization: secret(Self.authorization), operations: .tpm)
  }

  private func digits(_ text: String) -> String { text.filter { $0 != " " } }

  @Test func `the index of a counter and the handle of a key are the first 22 bits of the device's id`() throws {
    #expect(try #require(CounterPlace(tpm: "/tpm", deviceID: Self.deviceID)).index == 0x01ab_cdef)
    #expect(try #require(TPMKeyPlace(tpm: "/tpm", deviceID: Self.deviceID)).handle == 0x816b_cdef)
    let other: DeviceID = fixed([0xff, 0x00, 0x01] + [UInt8](repeating: 0, count: 13))
    #expect(try #require(CounterPlace(tpm: "/tpm", deviceID: other)).index == 0x01bf_0001)
  }

  @Test func `the path of a TPM is absolute, without a zero byte, and short enough for a socket`() {
    func isPath(_ path: String) -> Bool { CounterPlace(tpm: path, deviceID: Self.deviceID) != nil }
    #expect(isPath("/dev/tpmrm0") && isPath("/\u{1}") && isPath("/" + String(repeating: "x", count: 106)))
    for path in ["/" + String(repeating: "x", count: 107), "dev/tpmrm0", "", "/a\0", "\0/a"] {
      #expect(!isPath(path), "\(path)")
      #expect(TPMKeyPlace(tpm: path, deviceID: Self.deviceID) == nil, "\(path)")
    }
  }

  @Test func `a counter is defined by the owner, incremented, and read`() throws {
    let value = "8002 0000001d 00000000 0000000a 0008 0102030405060708 0000010000"
    let tpm = try ScriptedTPM([Self.done, Self.done, value])
    #expect(try counter(tpm).define() == 0x0102_0304_0506_0708)
    // The attributes are those of a counter: AUTHREAD, AUTHWRITE, NO_DA.
    let definition = "0020 \(hex(Self.authorization)) 000e 01abcdef 000b 02040014 0000 0008"
    #expect(
      tpm.commands == [
        digits("8002 0000004d 0000012a 40000001 \(Self.ownerSession) \(definition)"),
        digits("8002 0000003f 00000134 01abcdef 01abcdef \(Self.session)"),
        digits("8002 00000043 0000014e 01abcdef 01abcdef \(Self.session) 0008 0000"),
      ])
  }

  @Test func `a counter that cannot be counted up is undefined again`() throws {
    let tpm = try ScriptedTPM([Self.done, "8001 0000000a 00000149", Self.done])
    #expect(throws: CounterFault.notOurs) { try counter(tpm).define() }
    #expect(tpm.commands.last == digits("8002 0000001f 00000122 40000001 01abcdef \(Self.ownerSession)"))
    #expect(tpm.commands.count == 3)
  }

  @Test(arguments: [
    // A value of 7 or 9 bytes, another count in front of it, and nothing at all.
    "8002 0000001c 00000000 00000009 0007 01020304050607 0000010000",
    "8002 0000001e 00000000 0000000b 0009 010203040506070809 0000010000",
    "8002 0000001d 00000000 0000000a 0007 0102030405060708 0000010000",
    "8002 0000001d 00000000 0000000a 0108 0102030405060708 0000010000", done,
    // More than was announced.
    "8002 0000001d 00000000 0000000a 0008 0102030405060708 0000010000 00",
  ])
  func `a counter's value has 8 bytes`(answer: String) throws {
    let tpm = try ScriptedTPM([answer])
    #expect(throws: CounterFault.malformed) { try counter(tpm).read() }
  }

  @Test(arguments: ["00000908", "0000090a", "00000920", "00000922"])
  func `a TPM that is busy is asked again on the same connection, until time is up`(code: String) throws {
    let busy = "8001 0000000a \(code)"
    let tpm = try ScriptedTPM([busy, busy, Self.done])
    try counter(tpm).increment()
    #expect(tpm.connections.map(\.count) == [3] && Set(tpm.commands).count == 1)
    let always = try ScriptedTPM(Array(repeating: busy, count: 200))
    #expect(throws: CounterFault.silent) {
      try TPM.run(
        TPMCommand(code: .increment, handles: [1, 1]), authorization: Span(), parameters: Span(), at: always.path,
        response: 0, timeoutMilliseconds: 300)
    }
    #expect(always.commands.count <= 60)
  }

  @Test func `any other failure is not tried again`() throws {
    for code in ["00000909", "00000921", "00000923", "00000101"] {
      let tpm = try ScriptedTPM(["8001 0000000a \(code)", Self.done])
      #expect(throws: CounterFault.self) { try counter(tpm).increment() }
      #expect(tpm.commands.count == 1)
    }
  }

  @Test func `a connection that ends before the answer or within it is told from an answer`() throws {
    let (silent, broken) = (try ScriptedTPM([]), try ScriptedTPM(["8002 00000013 00000000"]))
    #expect(throws: CounterFault.silent) { try counter(silent).increment() }
    #expect(throws: CounterFault.malformed) { try counter(broken).increment() }
    #expect(silent.commands.count == 1 && broken.commands.count == 1)
  }

  @Test func `an error of an earlier system call is no error of the connection`() throws {
    let tpm = try ScriptedTPM([Self.done])
    let counter = try counter(tpm)
    errno = ENOENT
    try counter.increment()
  }

  // MARK: Keys

  private static let unique = [UInt8](0x40..<0x60)
  private static let x = [UInt8](0x01...0x20)
  private static let y = [UInt8](0x81...0xa0)
  private static let created =
    "8002 000000d3 00000000 80000007 000000bc"
    + "0058 0023 000b 00020472 0000 0010 0019 000b 0003 0010 0020 \(hex(x)) 0020 \(hex(y))"
    + String(repeating: "5a", count: 98) + "0000010000"

  private func place(_ tpm: ScriptedTPM) throws -> TPMKeyPlace {
    try #require(TPMKeyPlace(tpm: tpm.path, deviceID: Self.deviceID))
  }

  private func make(_ tpm: ScriptedTPM) throws -> P256Point {
    try TPMKeyOperations.tpm.make(place(tpm), secret(Self.authorization), fixed(Self.unique))
  }

  private static let evicted = "8002 00000023 00000120 40000001 80000007 \(ownerSession) 816bcdef"
  private static let flushed = "8001 0000000e 00000165 80000007"

  @Test func `a key is created for agreement only, made persistent, and flushed, on one connection`() throws {
    let tpm = try ScriptedTPM([Self.created, Self.done, "8001 0000000a 00000000"])
    #expect(try make(tpm).bytes.array == [4] + Self.x + Self.y)
    // FIXEDTPM, FIXEDPARENT, SENSITIVEDATAORIGIN, USERWITHAUTH, NODA and DECRYPT.
    let template =
      "0038 0023 000b 00020472 0000 0010 0019 000b 0003 0010 0020 \(hex(Self.unique)) 0000"
    let creation =
      "8002 00000081 00000131 40000001 \(Self.ownerSession) 0024 0020 \(hex(Self.authorization)) 0000"
      + "\(template) 0000 00000000"
    #expect(tpm.connections == [[digits(creation), digits(Self.evicted), digits(Self.flushed)]])
  }

  @Test func `a key that cannot be made persistent is flushed all the same`() throws {
    let tpm = try ScriptedTPM([Self.created, "8001 0000000a 0000014c", "8001 0000000a 00000000"])
    #expect(throws: CounterFault.taken) { try make(tpm) }
    #expect(tpm.commands.suffix(2) == [digits(Self.evicted), digits(Self.flushed)])
    let strange = try ScriptedTPM([
      Self.created, "8002 00000014 00000000 00000001 00 0000010000", "8001 0000000a 00000000",
    ])
    #expect(throws: CounterFault.malformed) { try make(strange) }
  }

  @Test func `a key is removed by the owner`() throws {
    let tpm = try ScriptedTPM([Self.done])
    try TPMKeyOperations.tpm.remove(place(tpm))
    #expect(tpm.commands == [digits("8002 00000023 00000120 40000001 816bcdef \(Self.ownerSession) 816bcdef")])
  }

  @Test func `a key agrees with the point that it is given, with the device's authorization value`() throws {
    let point = "0044 0020 \(hex(Self.x)) 0020 \(hex(Self.y))"
    let tpm = try ScriptedTPM(["8002 00000059 00000000 00000046 \(point) 0000010000"])
    let peer = try P256PrivateKey(scalar: secret([UInt8](repeating: 3, count: 32))).publicPoint
    var shared = Secret<32>()
    try TPMKeyOperations.tpm.agree(place(tpm), secret(Self.authorization), peer, &shared)
    #expect(shared.withBytes { Array($0) } == Self.x)
    let (x, y) = (Array(peer.bytes.array[1..<33]), Array(peer.bytes.array[33...]))
    #expect(
      tpm.commands == [
        digits("8002 00000081 00000154 816bcdef \(Self.session) 0044 0020 \(hex(x)) 0020 \(hex(y))")
      ])
  }
}

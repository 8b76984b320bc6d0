import Foundation
import Glibc
import HoldfastCore
import TestSupport
import Testing

import HoldfastDevice

@Suite struct TPMTests {
  private func bytes(_ digits: String) -> [UInt8] { hex(digits.filter { $0 != " " }) }

  @Test func `a command has tag, size, code, handles, one password session and parameters`() throws {
    var command = ByteBuffer<160>()
    let (authorization, parameters): ([UInt8], [UInt8]) = ([0xaa, 0xbb], [0, 8, 0, 0])
    try TPMCommand(code: .read, handles: [0x0180_0001, 0x0180_0001]).encode(
      authorization: authorization.span, parameters: parameters.span, into: &command)
    let encoded = Array(command.bytes)
    #expect(
      encoded
        == bytes("8002 00000025 0000014e 01800001 01800001 0000000b 40000009 0000 01 0002aabb 00080000"))
  }

  @Test func `a response with parameters and an empty session is a success`() throws {
    let answer = bytes("8002 0000001d 00000000 0000000a 00080000000000000005 0000010000")
    #expect(try TPMResponse(answer.span) == .success(parameters: bytes("00080000000000000005")))
    let empty = bytes("8002 00000013 00000000 00000000 0000010000")
    #expect(try TPMResponse(empty.span) == .success(parameters: []))
  }

  @Test func `a response of every other shape is malformed`() throws {
    let answer = bytes("8002 0000001d 00000000 0000000a 00080000000000000005 0000010000")
    for count in answer.indices {
      let cut = Array(answer[..<count])
      #expect(throws: CounterFault.malformed) { try TPMResponse(cut.span) }
    }
    // Every byte but those of the parameters is fixed; a response code with parameters is none.
    for index in answer.indices where !(14..<24).contains(index) {
      for bit in 0..<8 {
        var changed = answer
        changed[index] ^= 1 << UInt8(bit)
        #expect(throws: CounterFault.malformed, "byte \(index), bit \(bit)") { try TPMResponse(changed.span) }
      }
    }
    for text in [
      "8002 0000000a 0000018b", "8001 0000000b 0000018b 00", "8001 0000000a 00000000", "8001 00000000 00000001",
    ] {
      let wrong = bytes(text)
      #expect(throws: CounterFault.malformed) { try TPMResponse(wrong.span) }
    }
  }

  @Test(
    arguments: [
      (0x18b, CounterFault.notDefined), (0x28b, .notDefined), (0x98e, .notOurs), (0x9a2, .notOurs), (0x14a, .notOurs),
      (0x149, .notOurs), (0x12f, .notOurs), (0x282, .notOurs), (0x14c, .taken), (0x14b, .full),
      (0x921, .refused(code: 0x921)), (0x101, .refused(code: 0x101)), (0x84, .refused(code: 0x84)),
    ] as [(UInt32, CounterFault)])
  func `each response code has its meaning`(code: UInt32, fault: CounterFault) throws {
    #expect(TPMResponseCode(rawValue: code).fault(isOwners: false) == fault)
    #expect(!TPMResponseCode(rawValue: code).wantsRetry)
  }

  @Test func `a refusal to the owner is told from one to the device`() {
    #expect(TPMResponseCode(rawValue: 0x9a2).fault(isOwners: true) == .ownerOnly)
  }

  @Test func `a TPM that is not there, or no TPM, is said to be so`() throws {
    let place = try TemporaryFolder()
    let command = TPMCommand(code: .increment, handles: [1, 1])
    func fault(_ path: String) -> CounterFault? {
      do throws(CounterFault) {
        _ = try TPM.run(
          command, authorization: Span(), parameters: Span(), at: path, response: 0, timeoutMilliseconds: 20)
        return nil
      } catch { return error }
    }
    #expect(fault(place.file("nothing")) == .notThere)
    #expect(fault(try place.makeFile("file")) == .notThere)
    #expect(fault(place.path) == .notThere)
    // Takes everything, and is at its end when read.
    #expect(fault("/dev/null") == .silent)
    #expect(fault("/dev/zero") == .malformed)
  }
}

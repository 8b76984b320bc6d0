import TestSupport
import Testing

import HoldfastCore

/// Bytes that are almost a message.
@Suite struct MessageTests {
  /// `[2, head, null, null, sealed]`.
  private func answer(
    headStart: UInt8 = 0x83, encoding: UInt64 = 1, token: Int = 20, sealed: Int = 20
  ) -> [UInt8] {
    var head = [headStart]
    head.appendCBOR(bytes: [UInt8](repeating: 1, count: 16).span)
    head.appendCBOR(unsigned: encoding)
    head.appendCBOR(bytes: [UInt8](repeating: 2, count: token).span)
    var message: [UInt8] = [0x85, 0x02]
    message.appendCBOR(bytes: head.span)
    message += [0xf6, 0xf6]
    message.appendCBOR(bytes: [UInt8](repeating: 3, count: sealed).span)
    return message
  }

  private func decodeAnswer(_ message: [UInt8]) throws(EncodingFault) {
    _ = try ProofMessage(message.span)
  }

  @Test func `M2 has at most 4096 bytes`() throws {
    let overhead = answer(sealed: 4000).count - 4000
    try decodeAnswer(answer(sealed: 4096 - overhead))
    #expect(throws: EncodingFault.tooLong) { try decodeAnswer(answer(sealed: 4097 - overhead)) }
  }

  @Test func `a reference has sixteen bytes, and a token at most 3072`() throws {
    try decodeAnswer(answer(encoding: 0, token: 16))
    for count in [0, 15, 17, 440] {
      #expect(throws: EncodingFault.unexpected) { try decodeAnswer(answer(encoding: 0, token: count)) }
    }
    for encoding in [1, 2] as [UInt64] {
      try decodeAnswer(answer(encoding: encoding, token: 3072))
      #expect(throws: EncodingFault.unexpected) { try decodeAnswer(answer(encoding: encoding, token: 3073)) }
    }
  }

  @Test func `a head that promises more or fewer elements than it has is malformed`() throws {
    try decodeAnswer(answer())
    for start in [0x82, 0x84] as [UInt8] {
      #expect(throws: EncodingFault.self) { try decodeAnswer(answer(headStart: start)) }
    }
  }

  @Test func `M2 of a compatibility round has each part in its place`() throws {
    let nonce: Nonce = fixed([UInt8](repeating: 0x7f, count: 16))
    let (integrity, device): (MAC, MAC) = (MAC(filledWith: 2), MAC(filledWith: 3))
    let reference = [UInt8](repeating: 4, count: 16)
    var message: [UInt8] = []
    ProofMessage.encodeCompatibility(
      nonce: nonce, encoding: .reference, token: reference.span, integrityProof: integrity, deviceProof: device,
      command: "unlock", into: &message)
    func repeated(_ byte: String, _ count: Int) -> String { String(repeating: byte, count: count) }
    #expect(
      hex(message) == "870c50" + repeated("7f", 16) + "0050" + repeated("04", 16) + "5820" + repeated("02", 32) + "5820"
        + repeated("03", 32) + "66756e6c6f636b")
    try decodeAnswer(message)
  }

  @Test func `M1 requires no factor that there is not`() throws {
    var message: [UInt8] = []
    Challenge(deviceID: DeviceID(), nonce: TypedBytes(), keyID: KeyID(), required: .all, clock: nil)
      .encode(into: &message)
    #expect(try Challenge(message.span).required == .all)
    message[message.count - 2] = 0x10
    #expect(throws: EncodingFault.unexpected) { try Challenge(message.span) }
  }

  @Test func `M3 has at most 4096 bytes`() throws {
    for count in [4090, 4091] {
      var message: [UInt8] = []
      let sealed = [UInt8](repeating: 1, count: count)
      VerdictMessage.encode(.accepted, sealed: sealed.span, into: &message)
      if message.count <= 4096 {
        #expect(throws: Never.self) { _ = try VerdictMessage(message.span).isSealed }
      } else {
        #expect(throws: EncodingFault.tooLong) { _ = try VerdictMessage(message.span).isSealed }
      }
    }
  }

  @Test(
    arguments: [
      "a0", "a10161ff", "a2016161028000", "a201616103836161616161", "a20161610381616100", "a1",
      "a20161610461", "a2016161028900", "f90000", "a201616102826161", "a0016161", "a2016161038361616162",
      // A request number that is no unsigned integer, beyond 2^53 - 1, out of order, given twice, or followed by another label.
      "a2016161056131", "a20161610520", "a201616105f6", "a2016161051b0020000000000000", "a3016161050104826161623131",
      "a301616105010502", "a301616105010601", "a20161610600", "a2016161051801",
    ])
  func `a request that is not quite one is refused`(text: String) {
    #expect(throws: EncodingFault.self) { _ = try Request(hex(text).span) }
  }

  @Test func `an empty list of parameters is not the same as none`() throws {
    for text in ["a1016161", "a20161610280"] {
      var written: [UInt8] = []
      let request = try Request(hex(text).span)
      request.encode(into: &written)
      #expect(hex(written.span) == text)
      #expect(request.parameterCount == (text == "a1016161" ? nil : 0))
    }
  }

  @Test(arguments: ["a20161610500", "a2016161051b001fffffffffffff", "a3016161028005183d", "a201616105183d"])
  func `a request number is an unsigned integer of at most 2^53 - 1`(text: String) throws {
    let request = try Request(hex(text).span)
    #expect(request.number != nil)
    var written: [UInt8] = []
    request.encode(into: &written)
    #expect(hex(written.span) == text)
    #expect(request.copy().number == request.number)
  }

  @Test(
    arguments: [
      ("a20140061864", 100), ("a3014006182a0700", 42), ("a2014007f6", nil), ("a2014008a2016161026162", nil),
      ("a201400783010203", nil), ("a2014007f5", nil), ("a2014007a2616160626161820102", nil), ("a2014007a0", nil),
      ("a2014019ffff4102", nil), ("a301400700182007", nil), ("a2014007a2616100616200", nil),
      ("a2014007a218180018190a", nil),
    ] as [(String, UInt64?)])
  func `labels of a reply above those that are known are read over`(text: String, highest: UInt64?) throws {
    #expect(try VerdictBody(hex(text).span).notice.highestRequestNumber == highest)
  }

  @Test(arguments: [
    // Out of order, twice, indefinite, cut off, with a tag, a float, a text that is none, unordered keys, and nested too deep.
    "a301400700060a", "a3014007000700", "a20140079fff", "a201400742ff", "a2014007c000", "a2014007f90000",
    "a201400761ff",
    "a2014007a2616200616100", "a2014007a2616100616100", "a201400718", "a2014007", "a20140071b0020000000000000",
    "a2014007" + String(repeating: "81", count: 8) + "00", "a201402000", "a201400000",
  ])
  func `an unknown label of a reply must still be deterministic`(text: String) {
    #expect(throws: EncodingFault.self) {
      let reply = try VerdictBody(hex(text).span)
      _ = reply.result.count
    }
  }

  @Test(arguments: [
    "a0", "a00140", "a1014000", "a20140061800", "a2014006", "a20140021c00000000000000000000000200000000",
  ])
  func `a reply that is not quite one is refused`(text: String) {
    #expect(throws: EncodingFault.self) {
      let reply = try VerdictBody(hex(text).span)
      _ = reply.result.count
    }
  }

  @Test func `text that is not UTF-8, and simple values with an argument, are malformed CBOR`() {
    #expect(throws: EncodingFault.malformed) { _ = try Request(hex("a10161ff").span) }
    #expect(throws: EncodingFault.malformed) { _ = try Request(hex("f90000").span) }
    #expect(throws: EncodingFault.malformed) { _ = try Request(hex("f8ff").span) }
  }
}

import TestSupport
import Testing

import HoldfastCore
import HoldfastDevice

@Suite struct ActuatorMessageTests {
  private func command() throws -> ActuatorCommand {
    var request = Request(command: "open-safe")
    try request.append(parameter: "7")
    try request.append(parameter: "ä\n")
    return ActuatorCommand(request, of: AcceptedRound(sequence: 300, user: "alice", subject: "app"))
  }

  @Test func `a command is written as documented`() throws {
    #expect(
      hex(ActuatorCBOR.encode(try command())) == "860119012c696f70656e2d7361666582613763c3a40a65616c69636563617070")
    #expect(
      String(decoding: ActuatorJSON.encode(try command()), as: UTF8.self)
        == #"{"sequence":300,"command":"open-safe","parameters":["7","ä\n"],"user":"alice","subject":"app"}"#)
    let plain = ActuatorCommand(Request(command: "lock"), of: AcceptedRound())
    #expect(hex(ActuatorCBOR.encode(plain)) == "860100646c6f636b80f660")
    #expect(
      String(decoding: ActuatorJSON.encode(plain), as: UTF8.self)
        == #"{"sequence":0,"command":"lock","parameters":[],"user":null,"subject":""}"#)
    #expect(hex(ActuatorCBOR.start) == "8102")
    #expect(String(decoding: ActuatorJSON.start, as: UTF8.self) == #"{"start":1}"#)
  }

  @Test(arguments: [
    ("82004161", ActuatorAnswer.Outcome.done([0x61]), nil as UInt64?), ("820040", .done([]), nil),
    ("8300416107", .done([0x61]), 7), ("82016161", .failed("a"), nil), ("830160190100", .failed(""), 256),
  ])
  func `an answer in CBOR is read`(message: String, outcome: ActuatorAnswer.Outcome, sequence: UInt64?) throws {
    let answer = try ActuatorCBOR.answer(hex(message))
    #expect(answer.outcome == outcome && answer.sequence == sequence)
  }

  @Test(arguments: [
    // Not deterministic: an indefinite length, an argument that is not the shortest, a length that is not.
    ("9f004161ff", ActuatorMessageFault.malformed), ("8218004161", .malformed), ("82005f4161ff", .malformed),
    ("8200580161", .malformed), ("83004161190007", .malformed),
    // Not one item: cut, or with something behind it, or nothing.
    ("8200", .malformed), ("820041", .malformed), ("8200416100", .malformed), ("", .malformed),
    // Another structure.
    ("8100", .unexpected), ("840041610707", .unexpected), ("850041610761610a", .unexpected), ("82006161", .unexpected),
    ("82014161", .unexpected),
    ("82024161", .unexpected), ("830041616161", .unexpected), ("a0", .unexpected), ("00", .unexpected),
    ("820162c328", .malformed),
  ])
  func `anything else is refused`(message: String, fault: ActuatorMessageFault) {
    #expect(throws: fault) { try ActuatorCBOR.answer(hex(message)) }
  }

  @Test func `an event of an answer has 1 to 64 bytes that a person can see`() throws {
    let line = try ActuatorCBOR.answer(hex("84004161076161"))
    #expect(line.outcome == .done([0x61]) && line.sequence == 7 && line.event == "a")
    #expect(try ActuatorCBOR.answer(hex("84016162076161")).event == "a")
    func json(_ event: String) throws -> BoundedText<64>? {
      try ActuatorJSON.answer(Array(#"{"sequence":7,"result":"open","event":\#(event)}"#.utf8)).event
    }
    #expect(try json(#""the door was held open""#) == "the door was held open")
    #expect(try json("\"\(String(repeating: "a", count: 64))\"") != nil)
    for wrong in [
      #""""#, #""a\nb""#, #""\u001b[2J""#, #""\u200b""#, #""\u202ea""#, "7", "null", #"["a"]"#,
      "\"\(String(repeating: "a", count: 65))\"",
    ] {
      #expect(throws: ActuatorMessageFault.unexpected, "\(wrong)") { try json(wrong) }
    }
    for wrong in ["840041610760", "8400416107610a"] {
      #expect(throws: ActuatorMessageFault.unexpected, "\(wrong)") { try ActuatorCBOR.answer(hex(wrong)) }
    }
    #expect(throws: ActuatorMessageFault.unexpected) {
      try ActuatorJSON.answer(Array(#"{"sequence":7,"event":"a"}"#.utf8))
    }
  }

  @Test func `a result has at most 1024 bytes, and a text 64`() throws {
    func message(_ count: Int) -> [UInt8] { [0x82, 0, 0x59, UInt8(count >> 8), UInt8(count & 0xff)] + zeros(count) }
    #expect(try ActuatorCBOR.answer(message(1024)).outcome == .done(zeros(1024)))
    #expect(throws: ActuatorMessageFault.tooLong) { try ActuatorCBOR.answer(message(1025)) }
    func text(_ count: Int) -> [UInt8] { [0x82, 1, 0x78, UInt8(count)] + [UInt8](repeating: 0x61, count: count) }
    _ = try ActuatorCBOR.answer(text(64))
    #expect(throws: ActuatorMessageFault.unexpected) { try ActuatorCBOR.answer(text(65)) }
    func line(_ name: String, _ count: Int) -> [UInt8] {
      Array(#"{"sequence":1,"\#(name)":"\#(String(repeating: "a", count: count))"}"#.utf8)
    }
    #expect(try ActuatorJSON.answer(line("result", 1024)).outcome == .done([UInt8](repeating: 0x61, count: 1024)))
    #expect(throws: ActuatorMessageFault.tooLong) { try ActuatorJSON.answer(line("result", 1025)) }
    _ = try ActuatorJSON.answer(line("error", 64))
    #expect(throws: ActuatorMessageFault.unexpected) { try ActuatorJSON.answer(line("error", 65)) }
  }

  private func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

  @Test func `an answer on a line is read: text, bytes, or the reason of a failure`() throws {
    func answer(_ line: String) throws -> ActuatorAnswer { try ActuatorJSON.answer(Array(line.utf8)) }
    let open = try answer(#"{"sequence":7,"result":"open"}"#)
    #expect(open.outcome == .done(Array("open".utf8)) && open.sequence == 7)
    #expect(try answer(#"{"result":"","sequence":7}"#).outcome == .done([]))
    #expect(try answer(#"{"sequence":7,"result_base64url":"_wA"}"#).outcome == .done([0xff, 0]))
    #expect(try answer(#"{"sequence":7,"error":"stuck"}"#).outcome == .failed("stuck"))
    for line in [
      #"{"result":"open"}"#, #"{"sequence":7}"#, #"{"sequence":7,"result":"a","error":"b"}"#,
      #"{"sequence":7,"result":1}"#,
      #"{"sequence":"7","result":"a"}"#, #"{"sequence":7,"result_base64url":"_wA="}"#, #"{"sequence":7,"results":"a"}"#,
      "[]", "7",
    ] {
      #expect(throws: ActuatorMessageFault.unexpected, "\(line)") { try answer(line) }
    }
    for line in [
      "", "open", #"{"sequence":7,"result":"a"}}"#, #"{"sequence":7,"sequence":7,"result":"a"}"#,
      #"{"sequence":-7,"result":"a"}"#,
    ] {
      #expect(throws: ActuatorMessageFault.malformed, "\(line)") { try answer(line) }
    }
    #expect(throws: ActuatorMessageFault.malformed) {
      try ActuatorJSON.answer(Array(#"{"sequence":7,"result":""#.utf8) + [0xff] + Array(#""}"#.utf8))
    }
  }

  @Test func `the list of commands has 1 to 32, each once, of 1 to 32 bytes`() throws {
    #expect(try ActuatorCBOR.commands(hex("820282646c6f636b66756e6c6f636b")) == ["lock", "unlock"])
    #expect(try ActuatorJSON.commands(Array(#"{"commands":["lock","unlock"]}"#.utf8)) == ["lock", "unlock"])
    func list(_ names: [String]) -> [UInt8] {
      Array(#"{"commands":[\#(names.map { "\"\($0)\"" }.joined(separator: ","))]}"#.utf8)
    }
    let names = (0..<33).map { "c\($0)" }
    #expect(try ActuatorJSON.commands(list(Array(names.prefix(32)))).count == 32)
    for bad in [names, [], ["a", "a"], [""], [String(repeating: "a", count: 33)]] {
      #expect(throws: ActuatorMessageFault.commands) { try ActuatorJSON.commands(list(bad)) }
    }
    for message in ["820280", "82028160", "82028261616161"] {
      #expect(throws: ActuatorMessageFault.commands, "\(message)") { try ActuatorCBOR.commands(hex(message)) }
    }
    for message in ["8102", "8201816161", "82026161", "830281616100", "82029f6161ff"] {
      #expect(throws: ActuatorMessageFault.self, "\(message)") { try ActuatorCBOR.commands(hex(message)) }
    }
    #expect(throws: ActuatorMessageFault.unexpected) {
      try ActuatorJSON.commands(Array(#"{"commands":["a"],"more":1}"#.utf8))
    }
  }
}

@Suite struct ActuatorInputTests {
  private func messages(_ framing: ActuatorFraming, _ bytes: [UInt8], by step: Int) throws -> [[UInt8]] {
    var input = ActuatorInput(framing: framing, maximumByteCount: 8)
    var messages: [[UInt8]] = []
    for start in stride(from: 0, to: bytes.count, by: step) {
      input.append(bytes[start..<min(start + step, bytes.count)])
      while let message = try input.next() { messages.append(message) }
    }
    #expect(!input.hasBegun)
    return messages
  }

  @Test(arguments: [1, 2, 3, 100])
  func `messages are told apart, however the bytes arrive`(step: Int) throws {
    let sent: [[UInt8]] = [[1], [2, 3], [0, 0, 0], Array(1...8)]
    for framing in [ActuatorFraming.lengths, .lines] {
      #expect(try messages(framing, sent.flatMap { framing.frame($0) }, by: step) == sent)
    }
  }

  @Test func `a packet is a message`() throws {
    #expect(try messages(.packets, [1, 2, 3, 4], by: 2) == [[1, 2], [3, 4]])
  }

  @Test func `a message that is too long is refused before it has ended, and an empty one of bytes as well`() {
    func fault(_ framing: ActuatorFraming, _ bytes: [UInt8]) -> ActuatorMessageFault? {
      do throws(ActuatorMessageFault) {
        var input = ActuatorInput(framing: framing, maximumByteCount: 8)
        input.append(bytes[...])
        _ = try input.next()
        return nil
      } catch { return error }
    }
    #expect(fault(.lengths, [0, 9]) == .tooLong && fault(.lengths, [0xff, 0xff, 1]) == .tooLong)
    #expect(fault(.lengths, [0, 0]) == .malformed)
    #expect(fault(.lines, [UInt8](repeating: 1, count: 9)) == .tooLong)
    #expect(fault(.lines, [UInt8](repeating: 1, count: 9) + [0x0a]) == .tooLong)
    #expect(fault(.lines, [UInt8](repeating: 1, count: 8)) == nil)
    #expect(fault(.packets, [UInt8](repeating: 1, count: 9)) == .tooLong)
  }
}

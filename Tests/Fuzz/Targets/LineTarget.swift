import HoldfastCore
import HoldfastFirmware
import HoldfastOpenSSL
import TestSupport

/// A whole small device, which is fed by its serial line: noise, frames of noise, good answers, spoiled ones and old ones, and mail, with
/// pauses anywhere, and a power supply that may end. It must live, start again, and move its machine only for good answers.
let lineTarget = FuzzTarget(
  "line",
  [
    "HoldfastFirmware/Device/FirmwareDevice.swift", "HoldfastFirmware/Serial/FramedLine.swift",
    "HoldfastFirmware/Store/FlashStore+Home.swift", "HoldfastFirmware/Store/FlashStore+Bulletins.swift",
  ], maximumByteCount: 2048, variantCount: 4
) { bytes in
  var input = FuzzInput(bytes)
  try FuzzedLife(&input).run()
}

/// A device, the provers of it, and two states of its flash.
private struct LineKit {
  let firmware: TestFirmware
  let provers: [TestProver]
  let freshImage: [UInt8]
  /// A journal that has little room, with as many audit entries as a device accepts commands with.
  let fullImage: [UInt8]

  init(homeRefuses: Bool? = nil) throws {
    let firmware = try TestFirmware(homeRefuses: homeRefuses)
    self.firmware = firmware
    provers = [
      try firmware.prover(), try firmware.prover { ($0.tokenID, $0.maximumUses) = (TokenID(filledWith: 1), 1) },
      try firmware.prover(stranger: TestIssuer()), try firmware.prover(isSigned: false),
      try firmware.prover { $0.expires = testTime - 1 },
    ]
    freshImage = firmware.flash.image
    var store = try FlashStore.open(firmware.flash.powered(), using: OpenSSLCryptography())
    let limit = homeRefuses == true ? 16_000 : Int.max
    while store.auditByteCount < limit, store.journal.room > 3000 {
      try store.note(.started(bootCount: 0), realClock: nil)
    }
    fullImage = firmware.flash.image
  }
}

private let kits = [try! LineKit(), try! LineKit(homeRefuses: false), try! LineKit(homeRefuses: true)]
private let stranger = try! TestIssuer()
private let goodCount = 2

private final class FuzzedLife {
  private let kit: LineKit
  private let line: TestLine
  private let machine = CountingMachine()
  private let wordCount: Int?
  private var sent: [[UInt8]] = []
  /// How many messages the device may act upon.
  private var allowed = 0

  private var firmware: TestFirmware { kit.firmware }
  private var provers: [TestProver] { kit.provers }

  init(_ input: inout FuzzInput) {
    let power = input.number()
    kit = kits[(power >> 13 & 3) % kits.count]
    let isFull = power & 0x1000 != 0
    kit.firmware.flash.image = isFull ? kit.fullImage : kit.freshImage
    line = TestLine(clock: kit.firmware.clock)
    // A move of the journal takes thousands of words.
    wordCount = power < 0x8000 ? nil : (power & 0x7ff) * (isFull ? 16 : 1)
    while !input.isEmpty { add(input.byte(), &input) }
  }

  private func add(_ kind: UInt8, _ input: inout FuzzInput) {
    let (count, speed) = (input.number() % 5000, UInt64(input.byte()))
    if kind >= 0xf8 { return mail(count, speed, count % 6 < 4 ? [] : input.bytes(count / 6)) }
    switch kind % 8 {
    case 0:
      let noise = input.bytes(min(count, 64))
      line.then { $0.bytes(noise, every: speed) }
    case 1:
      // Also one as long as a message may be.
      let noise = count < 4000 ? input.bytes(min(count, 256)) : [UInt8](repeating: input.byte(), count: count)
      line.then { $0.message(noise, every: speed) }
    case 2: line.then { $0.bytes([0, 0], every: speed) }
    case 3: line.then { $0.quiet(milliseconds: UInt64(count) * speed) }
    case 4: answer(Int(speed) % provers.count, command: count, flaws: Flaws())
    case 5: answer(0, command: count, flaws: Flaws(rawValue: Int(speed) & 63), isNumbered: speed & 64 != 0)
    case 6: spoiled(input.bytes(1 + count % 6), at: input.number())
    default: replay(count, speed)
    }
  }

  private var challenge: [UInt8]? { line.messages.last { (try? Challenge($0.bytes.span)) != nil }?.bytes }

  private func answer(_ index: Int, command: Int, flaws: Flaws, isNumbered: Bool = false) {
    let name = ["unlock", "status", "configure", "fly"][command % 4]
    line.then { [self] line in
      guard let challenge else { return }
      let number = isNumbered ? UInt64(command / 4 + 1) : nil
      let message = try provers[index].answer(challenge, command: name, flaws: flaws, number: number).message
      let isRight =
        flaws.isDisjoint(with: [.wrongDevice, .wrongSeal])
        && (!flaws.contains(.wrongIntegrity) || flaws.contains(.noIntegrity))
      if index < goodCount, command % 4 < 2, isRight { allowed += 1 }
      sent.append(message)
      line.message(message)
    }
  }

  private func spoiled(_ changes: [UInt8], at place: Int) {
    line.then { [self] line in
      guard let challenge else { return }
      let good = try provers[0].answer(challenge, command: "unlock").message
      var message = good
      for (index, change) in changes.enumerated() {
        let at = (place + index * index) % message.count
        if change == 0xff { message.remove(at: at) } else { message[at] ^= change }
      }
      if message == good { allowed += 1 }
      line.message(message)
    }
  }

  private func replay(_ index: Int, _ speed: UInt64) {
    line.then { [self] line in
      guard !sent.isEmpty else { return }
      line.message(sent[index % sent.count], every: speed % 4)
    }
  }

  /// Sends a message about mail, or one that may be such a message.
  private func mail(_ kind: Int, _ number: UInt64, _ content: [UInt8]) {
    line.then { [self] line in
      switch kind % 6 {
      case 0: line.message(message(.list, []))
      case 1: line.message(message(.page(from: number), []))
      case 2: line.message(message(.receipt, try receipt(number)))
      case 3: line.message(message(.bulletin, try bulletin(number)))
      case 4: line.message(message(number & 1 == 0 ? .receipt : .bulletin, content))
      default: line.message([0x82] + content)
      }
    }
  }

  private func message(_ kind: MailMessage.Kind, _ content: [UInt8]) -> [UInt8] {
    var message: [UInt8] = []
    MailMessage.encode(kind, content.span, into: &message)
    return message
  }

  /// Returns the home's receipt for the entries up to a number, or, from 0x80 on, one that is wrong.
  private func receipt(_ number: UInt64) throws -> [UInt8] {
    var store = try FlashStore.open(firmware.flash.powered(), using: OpenSSLCryptography())
    let whole = store.audit
    switch number {
    case 0xff: return try firmware.receipt(whole, by: stranger)
    case 0xfe: return try firmware.receipt(whole, for: DeviceID())
    case 0xfd: return try firmware.receipt(AuditChain(count: whole.count + 1, head: whole.head))
    case 0x80...: return try firmware.receipt(AuditChain(count: whole.count, head: Digest()))
    default:
      var chain = whole
      try store.forEachAuditEntry { _, known in if known.count == number { chain = known } }
      return try firmware.receipt(chain)
    }
  }

  /// Returns a bulletin that revokes up to 63 tokens of nobody, and that the device may refuse for its number or for its claims.
  private func bulletin(_ number: UInt64) throws -> [UInt8] {
    var bulletin = TestBulletin(for: number & 0x40 == 0 ? firmware.deviceID : DeviceID())
    bulletin.number += number
    if number & 0x80 != 0 { bulletin.predecessor = bulletin.number - 1 }
    let first = 0x80 + UInt8(number & 0x30)
    bulletin.revoked = (0..<UInt8(number & 63)).map { (TokenID(filledWith: first + $0), testTime + 1000) }
    if number & 63 == 0 { bulletin.users = [("ann", nil)] }
    return try firmware.issuers[0].bulletin(bulletin)
  }

  func run() throws {
    attempt { try firmware.serve(line, machine, wordCount: wordCount) }
    note(life: line, machine, firmware)
    try require(machine.performed.count <= allowed, "the machine is moved by what the device should refuse")
    let again = TestLine(clock: firmware.clock)
    again.then { [self] line in
      line.message(try provers[0].answer(line.messages.last!.bytes, command: "status").message)
    }
    let other = CountingMachine()
    try mustSucceed("the device does not start again") { try firmware.serve(again, other) }
    note(life: again, other, firmware)
    // A device that may lose no entry goes on once its home has them.
    try require(other.performed.count == 1 || firmware.homeRefuses == true, "the device does not go on")
  }
}

/// Notes what a small device has sent and told, what its machine did, and what is in its flash. Of a message, the first bytes and the
/// length count: the rest depends on signatures, which are others each time.
func note(life line: TestLine, _ machine: CountingMachine, _ firmware: TestFirmware) {
  guard Notes.current != nil else { return }
  let begin = line.messages.first?.milliseconds ?? 0
  for message in line.messages {
    note("\(message.milliseconds - begin) \(message.bytes.count) \(message.bytes.prefix(3))")
  }
  note("\(line.notices) \(line.pauses) \(line.receptionCount) \(machine.performed.count)")
  // Only behind a provision that was checked.
  var cryptography = OpenSSLCryptography()
  guard attempt({ try Provision(reading: firmware.flash.powered(), using: &cryptography) }) != nil,
    var store = attempt({ try FlashStore.open(firmware.flash.powered(), using: OpenSSLCryptography()) })
  else { return }
  note("\(store.state) \(store.audit.count) \(store.auditByteCount) \(store.journal.room)")
  attempt {
    try store.forEachAuditEntry { entry, chain in note("\(entry?.sequence ?? 0) \(entry?.time ?? 0) \(chain.count)") }
  }
}

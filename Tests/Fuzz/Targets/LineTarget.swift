import HoldfastCore
import HoldfastFirmware
import TestSupport

/// A whole small device, which is fed by its serial line: noise, frames of noise, good answers, spoiled ones and old ones, with pauses
/// anywhere, and a power supply that may end. It must live, start again, and move its machine only for good answers.
let lineTarget = FuzzTarget(
  "line",
  ["HoldfastFirmware/Device/FirmwareDevice.swift", "HoldfastFirmware/Serial/FramedLine.swift"], maximumByteCount: 2048
) { bytes in
  var input = FuzzInput(bytes)
  try FuzzedLife(&input).run()
}

private let firmware = try! TestFirmware()
private let freshImage = firmware.flash.image
private let provers = [
  try! firmware.prover(), try! firmware.prover { ($0.tokenID, $0.maximumUses) = (TokenID(filledWith: 1), 1) },
  try! firmware.prover(stranger: TestIssuer()), try! firmware.prover(isSigned: false),
  try! firmware.prover { $0.expires = testTime - 1 },
]
private let goodCount = 2

private final class FuzzedLife {
  private let line: TestLine
  private let machine = CountingMachine()
  private let wordCount: Int?
  private var sent: [[UInt8]] = []
  /// How many messages the device may act upon.
  private var allowed = 0

  init(_ input: inout FuzzInput) {
    firmware.flash.image = freshImage
    line = TestLine(clock: firmware.clock)
    let power = input.number()
    wordCount = power < 0x8000 ? nil : power & 0x7ff
    while !input.isEmpty { add(input.byte(), &input) }
  }

  private func add(_ kind: UInt8, _ input: inout FuzzInput) {
    let (count, speed) = (input.number() % 5000, UInt64(input.byte()))
    switch kind % 8 {
    case 0:
      let noise = input.bytes(min(count, 64))
      line.then { $0.bytes(noise, every: speed) }
    case 1:
      let noise = input.bytes(min(count, 256))
      line.then { $0.message(noise, every: speed) }
    case 2: line.then { $0.bytes([0, 0], every: speed) }
    case 3: line.then { $0.quiet(milliseconds: UInt64(count) * speed) }
    case 4: answer(Int(speed) % provers.count, command: count, flaws: Flaws())
    case 5: answer(0, command: count, flaws: Flaws(rawValue: Int(speed) & 63))
    case 6: spoiled(input.bytes(1 + count % 6), at: input.number())
    default: replay(count, speed)
    }
  }

  private var challenge: [UInt8]? { line.messages.last { (try? Challenge($0.bytes.span)) != nil }?.bytes }

  private func answer(_ index: Int, command: Int, flaws: Flaws) {
    let name = ["unlock", "status", "configure", "fly"][command % 4]
    line.then { [self] line in
      guard let challenge else { return }
      let message = try provers[index].answer(challenge, command: name, flaws: flaws).message
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

  func run() throws {
    try? firmware.serve(line, machine, wordCount: wordCount)
    try require(machine.performed.count <= allowed, "the machine is moved by what the device should refuse")
    let again = TestLine(clock: firmware.clock)
    again.then { line in
      line.message(try provers[0].answer(line.messages.last!.bytes, command: "status").message)
    }
    let other = CountingMachine()
    try mustSucceed("the device does not start again") { try firmware.serve(again, other) }
    try require(other.performed.count == 1, "the device does not go on")
  }
}

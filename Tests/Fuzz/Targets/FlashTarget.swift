import HoldfastCore
import HoldfastFirmware
import HoldfastOpenSSL
import TestSupport

/// A used device's flash, which is changed before the device starts. As long as nobody makes the checksums anew, the device denies or
/// knows what it knew; whoever does, may not crash it, nor have a stranger's token accepted.
let flashTarget = FuzzTarget(
  "flash",
  [
    "HoldfastFirmware/Journal/Journal.swift", "HoldfastFirmware/Store/Items.swift",
    "HoldfastFirmware/Store/UserItem.swift",
    "HoldfastFirmware/Store/StoreIndex.swift", "HoldfastFirmware/Store/FlashStore.swift",
    "HoldfastFirmware/Provision/Provision.swift", "HoldfastFirmware/Provision/FirmwarePolicy.swift",
    "HoldfastFirmware/Provision/IssuerTable.swift",
  ], maximumByteCount: 2048
) { bytes in
  var input = FuzzInput(bytes)
  firmware.flash.image = usedImage
  let isResealed = input.byte() & 1 == 1
  while !input.isEmpty { change(&input) }
  if isResealed { reseal() }
  try start(isResealed: isResealed)
}

/// The items in the journal of a small device's flash.
let itemTarget = FuzzTarget(
  "items", ["HoldfastFirmware/Store/UserItem.swift", "HoldfastFirmware/Store/Items.swift"], maximumByteCount: 512
) { bytes in
  var written: [UInt8] = []
  if let user = try? UserItem(bytes.span) {
    user.encode(into: &written)
  } else if let uses = try? ReplayRecord(bytes.span) {
    uses.encode(into: &written)
  } else {
    CodeItem.encode(try CodeItem.decode(bytes.span), into: &written)
  }
  // The number of elements in front is not read: the place of an item's end is checked.
  try require(
    bytes.suffix(written.count - 1).elementsEqual(written.dropFirst()), "an item that is read and written again differs"
  )
}

private let firmware = try! TestFirmware()
private let stranger = try! firmware.prover(stranger: TestIssuer())
private let spent = try! firmware.prover { ($0.tokenID, $0.maximumUses) = (TokenID(filledWith: 1), 1) }
private let good = try! firmware.prover()
private let slots = [FlashLayout.slots.first, FlashLayout.slots.second]
private let usedImage: [UInt8] = {
  let line = TestLine(clock: firmware.clock)
  for prover in [good, spent, good, good] {
    line.then { $0.message(try prover.answer($0.messages.last!.bytes, command: "unlock").message) }
  }
  try! firmware.serve(line)
  var store = open()!
  try! store.compact()
  let again = TestLine(clock: firmware.clock)
  again.then { $0.message(try good.answer($0.messages.last!.bytes, command: "unlock").message) }
  try! firmware.serve(again)
  return firmware.flash.image
}()
private let known = open()!.state

private func open() -> FlashStore<SimulatedFlash, OpenSSLCryptography>? {
  do {
    return try FlashStore.open(firmware.flash.powered(), using: OpenSSLCryptography())
  } catch { return nil }
}

/// Most changes are where something is.
private func change(_ input: inout FuzzInput) {
  let (kind, place, value) = (input.byte(), input.number(), input.byte())
  let base = [0, slots[0], slots[1]][Int(kind >> 4) % 3]
  let offset = base + place % (kind & 8 == 0 ? 1500 : FlashLayout.slotByteCount)
  switch kind & 3 {
  case 0: firmware.flash.flip(bit: offset * 8 + Int(value & 7))
  case 1: firmware.flash[offset] = value
  case 2: firmware.flash[offset] ^= value
  default:
    for index in 0..<4 { firmware.flash[offset / 4 * 4 + index] = input.byte() }
  }
}

/// Makes the checksums of a slot anew, as far as its lengths lead.
private func reseal() {
  for slot in slots {
    let flash = firmware.flash.powered()
    let sequence = flash.word(at: slot + 4)
    var position = slot + SlotHead.byteCount
    while position + 8 <= slot + FlashLayout.slotByteCount,
      let transaction = Transaction(flash, at: position, in: slot + FlashLayout.slotByteCount)
    {
      var crc = CRC32()
      crc.append(word: sequence)
      for word in stride(from: position, to: transaction.end - 4, by: 4) { crc.append(word: flash.word(at: word)) }
      let checksum = Transaction.checksum(crc)
      for index in 0..<4 {
        firmware.flash[transaction.end - 4 + index] = UInt8(truncatingIfNeeded: checksum >> UInt32(8 * index))
      }
      position = transaction.end
    }
  }
}

private func start(isResealed: Bool) throws {
  if !isResealed, let store = open() {
    try require(
      store.state.bootCount == known.bootCount && store.state.clockFloor == known.clockFloor, "the device forgets")
  }
  let (line, machine) = (TestLine(clock: firmware.clock), CountingMachine())
  for prover in isResealed ? [stranger] : [stranger, spent] {
    line.then { line in
      guard let challenge = line.messages.last(where: { (try? Challenge($0.bytes.span)) != nil }) else { return }
      line.message(try prover.answer(challenge.bytes, command: "unlock").message)
    }
  }
  line.then { $0.bytes([0, 0, 0, 3, 1, 2, 3]) }
  do { try firmware.serve(line, machine) } catch { return }
  try require(machine.performed.isEmpty, "the device accepts what it must not")
}

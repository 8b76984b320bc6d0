import HoldfastCore
import HoldfastFirmware
import HoldfastOpenSSL
import TestSupport

/// A used device's flash, which is changed before the device starts. As long as nobody makes the checksums anew, erases one, or puts the
/// older slot in force again, the device denies or knows what it knew; whoever does, may not crash it, nor have a stranger's token accepted.
let flashTarget = FuzzTarget(
  "flash",
  [
    "HoldfastFirmware/Journal/Journal.swift", "HoldfastFirmware/Store/Items.swift",
    "HoldfastFirmware/Store/UserItem.swift", "HoldfastFirmware/Store/StoreIndex.swift",
    "HoldfastFirmware/Store/FlashStore.swift", "HoldfastFirmware/Store/FlashStore+Audit.swift",
    "HoldfastFirmware/Store/FlashStore+Requests.swift", "HoldfastFirmware/Provision/Provision.swift",
    "HoldfastFirmware/Provision/ProvisionedHome.swift", "HoldfastFirmware/Provision/Groups.swift",
    "HoldfastFirmware/Provision/FirmwarePolicy.swift", "HoldfastFirmware/Provision/IssuerTable.swift",
  ], maximumByteCount: 2048, variantCount: 16
) { bytes in
  var input = FuzzInput(bytes)
  let kind = input.byte()
  let device = devices[Int(kind >> 1 & 1)]
  device.firmware.flash.image = device.image
  let isResealed = kind & 1 == 1
  while !input.isEmpty { device.change(&input) }
  if isResealed { try device.reseal() }
  try device.start(isResealed: isResealed)
}

/// The items in the journal of a small device's flash.
let itemTarget = FuzzTarget(
  "items", ["HoldfastFirmware/Store/UserItem.swift", "HoldfastFirmware/Store/Items.swift"], maximumByteCount: 512
) { bytes in
  var written: [UInt8] = []
  if let user = attempt({ try UserItem(bytes.span) }) {
    user.encode(into: &written)
  } else if let uses = attempt({ try ReplayRecord(bytes.span) }) {
    uses.encode(into: &written)
  } else {
    CodeItem.encode(try CodeItem.decode(bytes.span), into: &written)
  }
  // The number of elements in front is not read: the place of an item's end is checked.
  try require(
    bytes.suffix(written.count - 1).elementsEqual(written.dropFirst()), "an item that is read and written again differs"
  )
}

/// A device that has accepted rounds, and one with each kind of item in its journal, with groups and a home of its audit log.
private let devices = [try! UsedDevice(), try! UsedDevice(ofEachKind: ())]

private final class UsedDevice {
  let firmware: TestFirmware
  let image: [UInt8]
  private let known: StoreState
  /// The offset of the slot in force.
  private let slot: Int
  private let spent: TestProver
  /// The offsets of the checksums of the transactions in that slot.
  private let checksums: [Int]
  private let slots = [FlashLayout.slots.first, FlashLayout.slots.second]

  private init(_ firmware: TestFirmware, spent: TestProver) throws {
    (self.firmware, self.spent) = (firmware, spent)
    image = firmware.flash.image
    let store = try FlashStore.open(firmware.flash.powered(), using: OpenSSLCryptography())
    (known, slot) = (store.state, store.journal.slot)
    checksums = Self.transactions(of: firmware.flash.powered(), in: slot).map { $0.upperBound - 4 }
  }

  convenience init() throws {
    let firmware = try TestFirmware()
    let spent = try firmware.prover { ($0.tokenID, $0.maximumUses) = (TokenID(filledWith: 1), 1) }
    let good = try firmware.prover()
    try firmware.accept([good, spent, good, good])
    try firmware.changeStore { try $0.compact() }
    try firmware.accept([good])
    try self.init(firmware, spent: spent)
  }

  convenience init(ofEachKind: Void) throws {
    let firmware = try TestFirmware(
      policy: .forLock(limits: TokenLimits(maximumAgeSeconds: 1_000_000)), issuerCount: 2,
      groups: ["north", "doors"], homeRefuses: false)
    let spent = try firmware.prover { ($0.tokenID, $0.maximumUses) = (TokenID(filledWith: 1), 1) }
    let good = try firmware.prover()
    try firmware.accept([good, spent])
    try firmware.changeStore { try $0.keepUsers() }
    try firmware.keepBulletin()
    try firmware.changeStore { store in
      _ = try store.acknowledgeAudit(store.audit, by: KeyID(), realClock: nil)
      try store.compact()
      // Of what is about to be removed, the journal keeps nothing when it moves.
      _ = try store.removeUser(ann, realClock: nil)
      _ = try store.removeUser("zoe", realClock: nil)
      try store.raiseGenerationFloor(of: try firmware.issuers[1].keyID(), to: 1, realClock: nil)
    }
    try firmware.accept([good])
    try self.init(firmware, spent: spent)
  }

  private var flash: TestFlash { firmware.flash }

  /// Most changes are where something is.
  func change(_ input: inout FuzzInput) {
    let (kind, place, value) = (input.byte(), input.number(), input.byte())
    if kind & 4 != 0 { return changeItem(kind, place, value) }
    let base = [0, slots[0], slots[1]][Int(kind >> 4) % 3]
    let offset = base + place % (kind & 8 == 0 ? 1500 : FlashLayout.slotByteCount)
    switch kind & 3 {
    case 0: flash.flip(bit: offset * 8 + Int(value & 7))
    case 1: flash[offset] = value
    case 2: flash[offset] ^= value
    default:
      for index in 0..<4 { flash[offset / 4 * 4 + index] = input.byte() }
    }
  }

  /// Changes one byte of a transaction of the slot in force. The place is the number of the transaction and the offset into it.
  private func changeItem(_ kind: UInt8, _ place: Int, _ value: UInt8) {
    var transactions = Self.transactions(of: flash.powered(), in: slot)[...].dropFirst(place >> 8)
    guard let transaction = transactions.popFirst() else { return }
    let offset = transaction.lowerBound + 4 + place & 0xff
    guard offset < transaction.upperBound - 4 else { return }
    if kind & 1 == 0 { flash[offset] = value } else { flash[offset] ^= value }
  }

  /// The ranges of the transactions of a slot, with their heads and checksums, as far as their lengths lead.
  private static func transactions(of flash: borrowing SimulatedFlash, in slot: Int) -> [Range<Int>] {
    var ranges: [Range<Int>] = []
    var position = slot + SlotHead.byteCount
    let end = slot + FlashLayout.slotByteCount
    while position + 8 <= end, let transaction = Transaction(flash, at: position, in: end) {
      ranges.append(position..<transaction.end)
      position = transaction.end
    }
    return ranges
  }

  /// Makes the checksums of both slots anew, and the hash of the provision.
  func reseal() throws {
    for slot in slots {
      let sequence = flash.powered().word(at: slot + 4)
      for transaction in Self.transactions(of: flash.powered(), in: slot) {
        let end = transaction.upperBound - 4
        // A transaction that was cut off remains so.
        guard flash.powered().word(at: end) != .max else { continue }
        var crc = CRC32()
        crc.append(word: sequence)
        for word in stride(from: transaction.lowerBound, to: end, by: 4) {
          crc.append(word: flash.powered().word(at: word))
        }
        let checksum = Transaction.checksum(crc)
        for index in 0..<4 { flash[end + index] = UInt8(truncatingIfNeeded: checksum >> UInt32(8 * index)) }
      }
    }
    let byteCount = min(Int(flash.powered().word(at: 8)), 4096)
    let end = 12 + (byteCount + 3) / 4 * 4
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append(Array(flash.image[..<end]).span)
    let digest: Digest = try hash.finish()
    for index in 0..<32 { flash[end + index] = digest[index] }
  }

  /// Whether the two words that say which slot is in force were both changed, the older slot's to what only erased flash has. No checksum
  /// is over them, because they change last.
  private var isOlderSlotInForce: Bool {
    let flash = flash.powered()
    let older = slot == slots[0] ? slots[1] : slots[0]
    let words = [SlotHead.completeOffset, SlotHead.supersededOffset].map { flash.word(at: slot + $0) }
    return flash.word(at: older + SlotHead.supersededOffset) == .max && words != [0, .max]
  }

  /// Whether the checksum of a transaction is as in erased flash. After a power cut before its last word, a transaction never happened.
  private var isChecksumErased: Bool {
    let flash = flash.powered()
    return checksums.contains { flash.word(at: $0) == .max }
  }

  func start(isResealed: Bool) throws {
    var cryptography = OpenSSLCryptography()
    let isProvisioned = attempt { try Provision(reading: flash.powered(), using: &cryptography) } != nil
    let isForged = isResealed || isOlderSlotInForce || isChecksumErased
    // Only behind a provision that was checked.
    if isProvisioned, !isForged, let store = try? FlashStore.open(flash.powered(), using: OpenSSLCryptography()) {
      try require(
        store.state.bootCount == known.bootCount && store.state.clockFloor == known.clockFloor, "the device forgets")
    }
    let (line, machine) = (TestLine(clock: firmware.clock), CountingMachine())
    for prover in isForged ? [stranger] : [stranger, spent] {
      line.then { line in
        guard let challenge = line.messages.last(where: { (try? Challenge($0.bytes.span)) != nil }) else { return }
        line.message(try prover.answer(challenge.bytes, command: "unlock").message)
      }
    }
    line.then { $0.bytes([0, 0, 0, 3, 1, 2, 3]) }
    do throws(FirmwareFault) {
      var device = try firmware.start(line, machine)
      device.run()
    } catch {
      note("\(error)")
      if case .provision = error { try require(!isProvisioned, "a device denies for a provision that its owner reads") }
      try deny(line)
    }
    note(life: line, machine, firmware)
    try require(machine.performed.isEmpty, "the device accepts what it must not")
  }

  /// Denies everything, as a board does whose device cannot start.
  private func deny(_ line: TestLine) throws {
    line.then { $0.message([1, 2, 3]) }
    var denied = DeniedDevice(board: line, clock: firmware.clock)
    denied.run()
    let refusal: [UInt8] = [0x83, 3, Status.internal.rawValue, 0xf6]
    try require(
      line.messages.allSatisfy { $0.bytes.isEmpty || $0.bytes == refusal }, "a device that denies says something else")
  }
}

private let stranger = try! TestFirmware().prover(stranger: TestIssuer())

extension TestFirmware {
  /// Starts, and accepts a command of each prover.
  fileprivate func accept(_ provers: [TestProver]) throws {
    let line = TestLine(clock: clock)
    for (index, prover) in provers.enumerated() {
      line.then {
        $0.message(try prover.answer($0.messages.last!.bytes, command: "unlock", number: UInt64(index + 1)).message)
      }
    }
    let nonce = [UInt8](repeating: 7, count: 16)
    line.then { $0.message(try provers[0].compatibilityAnswer(nonce: nonce, command: "unlock")) }
    try serve(line)
  }

  /// Takes a bulletin that revokes three tokens.
  fileprivate func keepBulletin() throws {
    var bulletin = TestBulletin(for: deviceID)
    (bulletin.number, bulletin.generation) = (1000 * testTime + 1, 1)
    bulletin.revoked = (0x80..<0x83).map { (TokenID(filledWith: $0), until: testTime + 1000) }
    let (signed, courier) = (try issuers[0].bulletin(bulletin), try prover())
    let line = TestLine(clock: clock)
    line.then { $0.message(try courier.answer($0.messages.last!.bytes, command: "status").message) }
    line.then { line in
      var message: [UInt8] = []
      MailMessage.encode(.bulletin, signed.span, into: &message)
      line.message(message)
    }
    try serve(line)
  }

  /// Changes the store, while the device does not run.
  fileprivate func changeStore(
    _ body: (inout FlashStore<SimulatedFlash, OpenSSLCryptography>) throws -> Void
  ) throws {
    var store = try FlashStore.open(flash.powered(), using: OpenSSLCryptography())
    try body(&store)
  }
}

extension FlashStore where Flash: ~Copyable, Crypto: ~Copyable {
  /// Adds users with codes of each method, and a code of the owner for each purpose.
  fileprivate mutating func keepUsers() throws {
    for (name, password, seal) in [(ann, hotpMethod, counterSealMethod), (bob, totpMethod, timeSealMethod)] {
      var accounts = ByPurpose<CodeAccount>()
      (accounts[.otp], accounts[.seal]) = (CodeAccount(method: password), CodeAccount(method: seal))
      try addUser(name, accounts, realClock: nil) { _ in
        let bytes = usersSecret
        var secret = CodeSecret()
        try! secret.append(bytes.span)
        return secret
      }
    }
    var methods = ByPurpose<CodeMethod>()
    methods[.seal] = challengeSealMethod
    _ = try issueCode(.unlock, key: Secret(), user: bob, lifetimeSeconds: 1000, methods: methods, realClock: nil)
    _ = try issueCode(.activation, key: Secret(), user: "zoe", lifetimeSeconds: 1000, methods: methods, realClock: nil)
  }
}

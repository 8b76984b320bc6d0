import HoldfastCore
import HoldfastOpenSSL
import TestSupport
import Testing

import HoldfastFirmware

@Suite struct ProvisionTests {
  let firmware: TestFirmware
  var flash: TestFlash { firmware.flash }

  init() throws {
    firmware = try TestFirmware(issuerCount: 3)
  }

  private func fault(_ flash: TestFlash) -> ProvisionFault? {
    var cryptography = OpenSSLCryptography()
    do throws(ProvisionFault) {
      _ = try Provision(reading: flash.powered(), using: &cryptography)
      return nil
    } catch { return error }
  }

  private func write(_ provision: borrowing Provision, wordCount: Int? = nil) throws(ProvisionFault) {
    var cryptography = OpenSSLCryptography()
    var powered = flash.powered(wordCount: wordCount)
    try provision.write(into: &powered, using: &cryptography)
  }

  /// The bytes from the first to the last that count.
  private var byteCount: Int { (flash.image[..<FlashLayout.slots.first].lastIndex { $0 != 0xff } ?? -1) + 1 }

  @Test func `what the owner wrote is what the device reads`() throws {
    var cryptography = OpenSSLCryptography()
    let read = try Provision(reading: flash.powered(), using: &cryptography)
    #expect(read.deviceID == firmware.deviceID)
    #expect(read.publicPoint == firmware.point)
    #expect(read.scalar.withBytes { Array($0) } == Array(repeating: 0x42, count: 32))
    #expect(read.issuers.count == 3)
    for (index, issuer) in firmware.issuers.enumerated() {
      let (keyID, point) = (try issuer.keyID(), issuer.point)
      #expect(read.issuers.keyID(index) == keyID)
      let isSame = read.issuers[keyID]?.isSame(as: .signing(point))
      #expect(isSame == true)
    }
    let knowsStranger = read.issuers[KeyID(filledWith: 1)] != nil
    #expect(!knowsStranger)
    #expect(encoded(read.policy) == encoded(firmware.policy()))
  }

  @Test func `groups are read as they were written, and a provision without any is as before`() throws {
    let plain = flash.image
    let names: [[BoundedText<32>]] = [
      [BoundedText("north")], (0..<8).map { BoundedText("\($0)\(String(repeating: "x", count: 31))")! },
    ]
    for groups in names {
      let other = try TestFirmware(issuerCount: 3, groups: groups)
      var cryptography = OpenSSLCryptography()
      let read = try Provision(reading: other.flash.powered(), using: &cryptography)
      #expect(read.groups == groups)
      #expect(read.issuers.count == 3)
      #expect(encoded(read.policy) == encoded(other.policy()))
      let line = TestLine(clock: other.clock)
      try other.serve(line)
      #expect(line.notices.first == .started(bootCount: 1))
    }
    try write(firmware.provision())
    #expect(flash.image == plain)
    let nine = (0..<9).map { BoundedText<32>("\($0)")! }
    let full = Provision(
      deviceID: firmware.deviceID, scalar: TestFirmware.scalar(), publicPoint: firmware.point, issuers: IssuerTable(),
      policy: firmware.policy(), groups: nine)
    try write(full)
    #expect(fault(flash) == .damaged)
  }

  @Test func `erased flash is blank, and anything else is foreign`() {
    #expect(fault(TestFlash()) == .blank)
    #expect(fault(TestFlash(Array(repeating: 0, count: FlashLayout.byteCount))) == .foreign)
    var image = flash.image
    image[0] = 0x47
    #expect(fault(TestFlash(image)) == .foreign)
  }

  @Test(arguments: [2, 3, 255]) func `a later version is told apart from damage`(version: UInt8) {
    flash[4] = version
    #expect(fault(flash) == .newerVersion)
    flash[4] = 0
    #expect(fault(flash) == .damaged)
    for offset in 4..<8 { flash[offset] = 0xff }
    #expect(fault(flash) == .damaged, "erased")
  }

  private func startFault() -> FirmwareFault? {
    do throws(FirmwareFault) {
      _ = try firmware.start(TestLine(clock: firmware.clock), CountingMachine())
      return nil
    } catch { return error }
  }

  /// Writes a body with a right digest.
  private func write(body: [UInt8]) throws {
    var image = Array(flash.image[..<8])
    for shift in stride(from: 0, to: 32, by: 8) { image.append(UInt8(truncatingIfNeeded: body.count >> shift)) }
    image += body
    while image.count % 4 != 0 { image.append(0xff) }
    var cryptography = OpenSSLCryptography()
    var hash = cryptography.sha256()
    hash.append(image.span)
    let digest: Digest = try hash.finish()
    image += Array(digest)
    flash.image = image + flash.image[image.count...]
  }

  @Test func `a body is whole and has nothing behind it, for the owner and for the device`() throws {
    let body = Array(flash.image[12..<12 + Int(flash.image[8]) + Int(flash.image[9]) << 8])
    let longer = body + [0xf6]
    let shorter = Array(body.dropLast())
    for (bytes, isRight) in [(body, true), (longer, false), (shorter, false)] {
      try write(body: bytes)
      #expect(fault(flash) == (isRight ? nil : .damaged))
      #expect(startFault() == (isRight ? nil : .provision(.damaged)))
    }
  }

  @Test func `half of it is none, at whichever word the power fails`() throws {
    let before = flash.image
    let whole = (byteCount + 3) / 4
    let erasing = FlashLayout.slots.first / 4
    for wordCount in 0..<erasing + whole {
      flash.image = before
      #expect(throws: ProvisionFault.flash) { try write(firmware.provision(), wordCount: wordCount) }
      let found = fault(flash)
      guard found != nil || wordCount == 0 else {
        Issue.record("\(wordCount) words are enough")
        return
      }
      #expect(found != .foreign)
    }
    try write(firmware.provision(), wordCount: erasing + whole)
    #expect(fault(flash) == nil)
  }

  @Test func `no bit of it may flip`() {
    for bit in 0..<byteCount * 8 {
      flash.flip(bit: bit)
      #expect(fault(flash) != nil, "bit \(bit)")
      flash.flip(bit: bit)
    }
    #expect(byteCount > 500)
    #expect(fault(flash) == nil)
  }

  @Test(arguments: [(8, true), (9, false)]) func `a device starts with eight issuers and not with nine`(
    count: Int, isRight: Bool
  ) throws {
    let body = Array(flash.image[12..<12 + Int(flash.image[8]) + Int(flash.image[9]) << 8])
    var reader = CBORReader(body.span)
    _ = try reader.arrayHead()
    for _ in 0..<3 { try reader.skip() }
    let start = reader.position
    try reader.skip()
    var issuers: [UInt8] = []
    issuers.appendCBOR(array: count)
    for id in 1...UInt8(count) {
      issuers.appendCBOR(array: 2)
      issuers.appendCBOR(bytes: KeyID(filledWith: id).bytes)
      issuers.appendCBOR(bytes: P256Point(filledWith: id).bytes)
    }
    try write(body: Array(body[..<start]) + issuers + Array(body[reader.position...]))
    #expect(fault(flash) == (isRight ? nil : .damaged))
    #expect(startFault() == (isRight ? nil : .provision(.damaged)))
  }

  @Test(arguments: [4097, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff] as [UInt32])
  func `a length beyond any that there is reads nothing`(byteCount: UInt32) {
    for index: UInt32 in 0..<4 { flash[8 + Int(index)] = UInt8(truncatingIfNeeded: byteCount >> (8 * index)) }
    #expect(fault(flash) == .damaged)
  }

  @Test func `eight issuers are trusted, each once, and not one more`() throws {
    var table = IssuerTable()
    func appends(_ id: UInt8, _ point: UInt8) -> Bool {
      table.append(KeyID(filledWith: id), .signing(P256Point(filledWith: point)))
    }
    #expect(appends(1, 1) && !appends(1, 2))
    let isFirst = table[KeyID(filledWith: 1)]?.isSame(as: .signing(P256Point(filledWith: 1)))
    #expect(isFirst == true)
    for byte: UInt8 in 2...8 { #expect(appends(byte, byte)) }
    #expect(!appends(9, 9))
    #expect(table.count == 8)
    // With MAC keys, which are shorter, nine would have room.
    var shared = IssuerTable()
    for byte: UInt8 in 1...9 {
      let isAdded = shared.append(KeyID(filledWith: byte), .mac(secret([UInt8](repeating: byte, count: 32))))
      #expect(isAdded == (byte < 9))
    }
  }

  @Test func `nine issuers in flash are refused, and one that is there twice`() throws {
    for ids: [UInt8] in [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 1]] {
      var encoded: [UInt8] = []
      encoded.appendCBOR(array: ids.count)
      for id in ids {
        encoded.appendCBOR(array: 2)
        encoded.appendCBOR(bytes: KeyID(filledWith: id).bytes)
        encoded.appendCBOR(bytes: P256Point(filledWith: id).bytes)
      }
      #expect(throws: EncodingFault.unexpected) {
        var reader = CBORReader(encoded.span)
        _ = try IssuerTable(&reader)
      }
    }
  }
}

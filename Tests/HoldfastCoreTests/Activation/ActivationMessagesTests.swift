import TestSupport
import Testing

import HoldfastCore

@Suite struct ActivationMessagesTests {
  private let mac = [UInt8](repeating: 0xaa, count: 32)
  private let point = [UInt8](repeating: 0x04, count: 65)

  private func item(_ count: Int, _ type: UInt64, _ strings: [UInt8]...) -> [UInt8] {
    var message: [UInt8] = []
    message.appendCBOR(array: count)
    message.appendCBOR(unsigned: type)
    for string in strings { message.appendCBOR(bytes: string.span) }
    return message
  }

  private func isReply(_ message: [UInt8]) -> Bool {
    do throws(EncodingFault) {
      _ = try ActivationReply(message.span)
      return true
    } catch { return false }
  }

  private func fault(_ body: () throws -> Void) -> EncodingFault? {
    do {
      try body()
      return nil
    } catch { return error as? EncodingFault }
  }

  @Test func `a user's messages are read as they are written`() throws {
    for message in [item(3, 21, point, mac), item(2, 23, mac), item(2, 25, mac)] {
      let decoded = try #require(try ActivationMessage(message.span))
      var again: [UInt8] = []
      decoded.encode(into: &again)
      #expect(again == message)
    }
  }

  @Test func `what is no message of a user is left to whom it belongs`() throws {
    for message in [item(5, 2), item(7, 12), item(2, 21, point), item(3, 23, mac, mac), item(2, 24, mac), item(3, 22)] {
      #expect(try ActivationMessage(message.span) == nil)
    }
  }

  @Test func `a user's message that is not well made is refused`() {
    let bad: [[UInt8]] = [
      [], [0x80], [0x83], [0xa0], item(3, 21), item(3, 21, point), item(3, 21, Array(point.dropLast()), mac),
      item(3, 21, point + [0], mac), item(3, 21, point, Array(mac.dropLast())), item(3, 21, point, mac) + [0],
      item(2, 23), item(2, 23, mac + [0]), item(2, 23, mac) + [0], item(2, 25, []), [0x82, 0x18, 0x19, 0xf6],
      [0x82, 0x19, 0x00, 0x19] + Array(item(2, 25, mac).dropFirst(3)), [UInt8](repeating: 0x82, count: 4097),
    ]
    for message in bad {
      #expect(throws: EncodingFault.self) { _ = try ActivationMessage(message.span) }
    }
    for message in [item(3, 21, point, mac), item(2, 23, mac)] {
      for count in 0..<message.count {
        #expect(throws: EncodingFault.self) { _ = try ActivationMessage(Array(message.prefix(count)).span) }
      }
    }
  }

  @Test func `a device's replies are read, and nothing else`() throws {
    let grant = item(3, 22, point, [1, 2, 3])
    let reply = try ActivationReply(grant.span)
    var texts: [String] = []
    if case .grant(let read, let sealed) = reply { texts = [hex(read.bytes), hex(sealed)] }
    #expect(texts == [hex(point.span), "010203"])
    #expect(isReply(item(2, 24, mac)) && isReply(item(2, 26, mac)))
    let bad: [[UInt8]] = [
      [], item(3, 22, point), item(3, 21, point, mac), item(2, 23, mac), item(2, 25, mac), item(2, 24, mac) + [0],
      item(3, 24, mac), item(2, 24, Array(mac.dropLast())), grant + [0], item(3, 22, Array(point.dropLast()), [1]),
      [UInt8](repeating: 0, count: 4097),
    ]
    for message in bad { #expect(!isReply(message)) }
  }

  @Test func `a message has at most 4096 bytes`() throws {
    let grant = { item(3, 22, point, [UInt8](repeating: 1, count: $0)) }
    let foreign = { item(2, 99, [UInt8](repeating: 1, count: $0)) }
    #expect(grant(4096 - 72).count == 4096 && foreign(4096 - 6).count == 4096)
    #expect(isReply(grant(4096 - 72)))
    #expect(try ActivationMessage(foreign(4096 - 6).span) == nil)
    #expect(fault { _ = try ActivationReply(grant(4097 - 72).span) } == .tooLong)
    #expect(fault { _ = try ActivationMessage(foreign(4097 - 6).span) } == .tooLong)
  }

  @Test func `a grant is read as it is written`() throws {
    for (otp, seal) in [
      (totpMethod, timeSealMethod), (hotpMethod, nil), (nil, challengeSealMethod),
    ] as [(CodeMethod?, CodeMethod?)] {
      let grant = ActivationGrant(
        user: "ann", time: 1_790_000_000, methods: ByPurpose(otp: otp, seal: seal), sealParameterLength: 16)
      var bytes: [UInt8] = []
      grant.encode(into: &bytes)
      var demand = ProtectionDemand(needsKey: true)
      let read = try ActivationGrant(bytes.span, demand: &demand)
      #expect(demand == nil)
      #expect(read.user == "ann" && read.time == 1_790_000_000 && read.sealParameterLength == 16)
      #expect(read.methods == ByPurpose(otp: otp, seal: seal))
      for count in bytes.indices {
        #expect(throws: EncodingFault.self) { _ = try ActivationGrant(Array(bytes.prefix(count)).span) }
      }
      #expect(throws: EncodingFault.self) { _ = try ActivationGrant((bytes + [0]).span) }
      for head in [0xa3, 0xa5, 0xa6] as [UInt8] {
        let changed = [head] + bytes.dropFirst()
        #expect(throws: EncodingFault.self) { _ = try ActivationGrant(changed.span) }
      }
    }
  }

  @Test func `a demand is read as it is written, and one that nobody could meet is refused`() throws {
    let grant = ActivationGrant(user: "ann", time: 1, methods: ByPurpose(otp: hotpMethod), sealParameterLength: 16)
    for (length, needsKey) in [(4, false), (6, true), (64, false), (nil, true)] as [(Int?, Bool)] {
      let demand = try #require(ProtectionDemand(pinLength: length, needsKey: needsKey))
      var bytes: [UInt8] = []
      grant.encode(with: demand, into: &bytes)
      var read: ProtectionDemand?
      #expect(try ActivationGrant(bytes.span, demand: &read) == grant)
      #expect(read == demand && ProtectionDemand(stored: demand.stored) == demand)
      for count in bytes.indices {
        #expect(throws: EncodingFault.self) { _ = try ActivationGrant(Array(bytes.prefix(count)).span) }
      }
    }
    for bad in [[0, 0], [3, 0], [65, 0], [6, 2], [6], [6, 0, 0]] as [[UInt64]] {
      var bytes: [UInt8] = []
      grant.encode(into: &bytes)
      bytes[0] += 1
      bytes.appendCBOR(unsigned: 5)
      bytes.appendCBOR(array: bad.count)
      for number in bad { bytes.appendCBOR(unsigned: number) }
      #expect(fault { _ = try ActivationGrant(bytes.span) } != nil)
    }
    #expect([3, 65].allSatisfy { ProtectionDemand(pinLength: $0) == nil } && ProtectionDemand() == nil)
    for number in [0, 3, 65, 256 + 6] as [UInt64] { #expect(ProtectionDemand(stored: number) == nil) }
  }

  @Test func `a grant that is not well made is refused`() throws {
    func grant(
      labels: [UInt64] = [1, 2, 3, 4], user: String = "ann", purposes: [UInt64] = [1, 2], length: UInt64 = 16
    ) -> [UInt8] {
      var bytes: [UInt8] = []
      bytes.appendCBOR(map: labels.count)
      for label in labels {
        bytes.appendCBOR(unsigned: label)
        switch label {
        case 1: bytes.appendCBOR(text: Array(user.utf8).span)
        case 3:
          bytes.appendCBOR(array: purposes.count)
          for purpose in purposes {
            bytes.appendCBOR(array: 2)
            bytes.appendCBOR(unsigned: purpose)
            hotpMethod.encode(into: &bytes)
          }
        case 4: bytes.appendCBOR(unsigned: length)
        default: bytes.appendCBOR(unsigned: 5)
        }
      }
      return bytes
    }
    #expect(fault { _ = try ActivationGrant(grant().span) } == nil)
    for bad in [
      grant(labels: [1, 2, 3]), grant(labels: [1, 2, 3, 4, 5]), grant(labels: [1, 2, 4, 3]),
      grant(labels: [1, 1, 3, 4]),
      grant(user: ""), grant(user: String(repeating: "x", count: 33)), grant(purposes: [2, 1]),
      grant(purposes: [1, 1]),
      grant(purposes: [0]), grant(purposes: [3]), grant(purposes: [1, 2, 3]), grant(length: 0), grant(length: 65),
    ] {
      #expect(fault { _ = try ActivationGrant(bad.span) } != nil)
    }
  }
}

extension ActivationGrant {
  /// Reads a grant, with or without a demand.
  fileprivate init(_ plaintext: Span<UInt8>) throws(EncodingFault) {
    var demand: ProtectionDemand?
    try self.init(plaintext, demand: &demand)
  }
}

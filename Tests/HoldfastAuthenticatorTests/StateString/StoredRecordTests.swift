import HoldfastCore
import TestSupport
import Testing

import HoldfastAuthenticator

/// A record as a state string and an app's store have it, at the limits of its fields.
@Suite struct StoredRecordTests {
  /// The fields of a record of a user `ann` with a counter, which a test changes.
  private struct Fields {
    var user = "ann"
    var index: UInt64 = 1
    var purpose: UInt64 = 1
    var issuer = "Issuer"
    var clockOffsetSeconds: Int64 = 0
    var sealFieldByteLimit: UInt64?
    var isConfirmed: UInt64 = 1
    var secret: [UInt8]? = usersSecret
    var change: UInt64 = 0
    var undo: [UInt8]?
    var challenge: [UInt8]?
    var demand: UInt64?

    func read() throws(EncodingFault) -> StoredRecord {
      var bytes: [UInt8] = []
      bytes.appendCBOR(array: demand == nil ? 21 : 22)
      bytes.appendCBOR(text: Array(user.utf8).span)
      for number in [index, purpose] { bytes.appendCBOR(unsigned: number) }
      bytes.appendCBOR(text: Array(issuer.utf8).span)
      bytes.appendCBORNull()
      hotpMethod.encode(into: &bytes)
      for number: UInt64 in [1, 0] { bytes.appendCBOR(unsigned: number) }
      bytes.appendCBOR(integer: clockOffsetSeconds)
      for _ in 0..<3 { bytes.appendCBORNull() }
      if let sealFieldByteLimit { bytes.appendCBOR(unsigned: sealFieldByteLimit) } else { bytes.appendCBORNull() }
      for number in [0, isConfirmed] { bytes.appendCBOR(unsigned: number) }
      bytes.appendCBOR(array: 1)
      bytes.appendCBOR(unsigned: 0)
      Self.append(secret, to: &bytes)
      bytes.appendCBOR(unsigned: change)
      Self.append(undo, to: &bytes)
      Self.append(challenge, to: &bytes)
      bytes.appendCBORNull()
      if let demand { bytes.appendCBOR(unsigned: demand) }
      var reader = CBORReader(bytes.span)
      let record = try StoredRecord(&reader)
      try reader.finish()
      return record
    }

    private static func append(_ string: [UInt8]?, to bytes: inout [UInt8]) {
      if let string { bytes.appendCBOR(bytes: string.span) } else { bytes.appendCBORNull() }
    }
  }

  /// Whether the record is read, with this change of its fields.
  private func isRead(_ change: (inout Fields) -> Void) -> Bool {
    var fields = Fields()
    change(&fields)
    do throws(EncodingFault) { _ = try fields.read() } catch {
      #expect(error == .unexpected)
      return false
    }
    return true
  }

  @Test func `texts, secrets and copies have their least and greatest lengths, and no others`() {
    for (count, isRight) in [(0, false), (1, true), (32, true), (33, false)] {
      #expect(isRead { $0.user = String(repeating: "u", count: count) } == isRight, "a user of \(count)")
    }
    for (count, isRight) in [(0, true), (64, true), (65, false)] {
      #expect(isRead { $0.issuer = String(repeating: "i", count: count) } == isRight, "an issuer of \(count)")
    }
    for (count, isRight) in [(0, false), (1, true), (128, true), (129, false)] {
      #expect(isRead { $0.secret = [UInt8](repeating: 1, count: count) } == isRight, "a secret of \(count)")
    }
    for (count, isRight) in [(512, true), (513, false)] {
      #expect(isRead { $0.undo = [UInt8](repeating: 1, count: count) } == isRight, "a copy of \(count)")
    }
    #expect(!isRead { $0.user = "a\nn" } && !isRead { $0.user = "a\u{202e}n" })
  }

  @Test func `numbers have their least and greatest values, and no others`() {
    for (index, isRight) in [(0, false), (1, true), (8, true), (9, false), (257, false)] as [(UInt64, Bool)] {
      #expect(isRead { $0.index = index } == isRight, "index \(index)")
    }
    for (limit, isRight) in [(0, false), (1, true), (64, true), (65, false)] as [(UInt64, Bool)] {
      #expect(isRead { $0.sealFieldByteLimit = limit } == isRight, "a field of \(limit)")
    }
    for (number, isRight) in [(0, true), (1, true), (2, false), (256, false)] as [(UInt64, Bool)] {
      #expect(isRead { $0.isConfirmed = number } == isRight, "confirmed \(number)")
    }
    // A seal or a host's code is not made by HOTP.
    for (purpose, isRight) in [(0, false), (1, true), (2, false), (3, false), (257, false)] as [(UInt64, Bool)] {
      #expect(isRead { $0.purpose = purpose } == isRight, "purpose \(purpose)")
    }
    for (change, isRight) in [(0, true), (4, true), (5, false), (256, false)] as [(UInt64, Bool)] {
      #expect(isRead { $0.change = change } == isRight, "change \(change)")
    }
    let most = Int64(UInt32.max)
    for (offset, isRight) in [(most, true), (-most, true), (most + 1, false), (-most - 1, false)] {
      #expect(isRead { $0.clockOffsetSeconds = offset } == isRight, "offset \(offset)")
    }
    for (demand, isRight) in [(0, false), (4, true), (128, true), (192, true), (255, false)] as [(UInt64, Bool)] {
      #expect(isRead { $0.demand = demand } == isRight, "demand \(demand)")
    }
  }

  @Test func `a secret is missing only while it is being replaced`() {
    for change in UInt64(0)...4 {
      let isReplaced = change == 2 || change == 4
      #expect(
        isRead { fields in (fields.secret, fields.change) = (nil, change) } == isReplaced, "change \(change)")
    }
  }

  @Test func `a challenge in a record is 16 hexadecimal digits in lower case, as it is written`() throws {
    #expect(try Fields().read().clientChallenge == nil)
    var fields = Fields()
    fields.challenge = Array("0123456789abcdef".utf8)
    #expect(try fields.read().clientChallenge == "0123456789abcdef")
    for wrong in ["", "0123456789abcde", "0123456789ABCDEF", "0123456789abcdeg", "0123456789abcdef0"] {
      #expect(!isRead { $0.challenge = Array(wrong.utf8) }, "\(wrong)")
    }
  }
}

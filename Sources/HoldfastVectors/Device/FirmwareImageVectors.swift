import HoldfastCore
import HoldfastDevice
import HoldfastFirmware
import HoldfastFormats
import HoldfastOpenSSL

/// The vectors `FirmwareImage`: images of a microcontroller's flash, which the owner's commands accept or refuse.
///
/// Source: docs/provisioning.md, The format.
struct FirmwareImageVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let image = try image(of: test)
    let shown: [(String, JSONValue)]
    do throws(FirmwareImageFault) { shown = try FirmwareImage.contents(of: image) } catch {
      return .refused("\(error)")
    }
    guard test.result != .invalid else { return .accepted }
    for (name, value) in shown {
      let expected = try test.node.member(name)
      guard expected.value == value else { return .differs(name) }
    }
    return .accepted
  }

  /// Returns the whole image, of which the test has the runs that are not blank.
  private func image(of test: VectorTest) throws(VectorFault) -> [UInt8] {
    var image = [UInt8](repeating: 0xff, count: FlashLayout.byteCount)
    for run in try test.node.member("image").elements() {
      let parts = try run.elements()
      guard parts.count == 2 else { throw run.fault(.wrongValue) }
      let (offset, bytes) = (try parts[0].number(), try parts[1].bytes())
      guard offset <= UInt64(image.count - min(bytes.count, image.count)), bytes.count <= image.count else {
        throw run.fault(.wrongValue)
      }
      image.replaceSubrange(Int(offset)..<Int(offset) + bytes.count, with: bytes)
    }
    return image
  }
}

extension FirmwareImage {
  /// Reads everything that the owner's commands show of an image, by the names of a test's members.
  fileprivate static func contents(of image: [UInt8]) throws(FirmwareImageFault) -> [(String, JSONValue)] {
    var bytes = SecretBytes(copying: image.span)
    return try edit(&bytes) { (store, provision) throws(LedgerFault) in
      guard let device = known(provision) else { throw .damaged }
      let descriptor = device.descriptor
      var policy: [UInt8] = []
      provision.policy.encode(into: &policy)
      let state = store.state
      let (floors, users) = (try store.floors(), try store.users())
      return [
        ("deviceId", .string(hexadecimal(descriptor.deviceID))),
        ("publicKey", .string(hexadecimal(descriptor.publicPoint))),
        ("groups", provision.groupNames), ("home", provision.homeParts),
        ("issuers", .array(provision.issuers.pairs)), ("policy", .string(hexadecimal(policy.span))),
        ("clockFloor", .integer(state.clockFloor)), ("starts", .integer(state.bootCount)),
        ("kept", .integer(UInt64(store.keptCount))), ("floors", floors), ("users", users),
        ("codes", try store.codes()), ("entries", try store.entries()),
        ("auditCount", .integer(store.audit.count)), ("auditHead", .string(hexadecimal(store.audit.head))),
        ("acknowledged", .integer(store.acknowledged)), ("unacknowledgedBytes", .integer(UInt64(store.auditByteCount))),
      ]
    }
  }
}

extension Provision {
  /// The names of the groups that the device belongs to.
  fileprivate var groupNames: JSONValue { .array(groups.map { .string("\($0)") }) }

  /// The home of the audit log: the id of its key, whether commands are refused once the log is full, and its key for agreement, or null.
  fileprivate var homeParts: JSONValue {
    guard let home else { return .null }
    let agreementKey: JSONValue = home.agreementKey.map { .string(hexadecimal($0)) } ?? .null
    return .array([.string(hexadecimal(home.keyID)), .bool(home.refusesWhenFull), agreementKey])
  }
}

extension IssuerTable {
  /// The id and the key of each issuer.
  fileprivate var pairs: [JSONValue] {
    (0..<count).map { .array([.string(hexadecimal(keyID($0))), .string(text(of: self[keyID($0)]))]) }
  }

  private func text(of key: borrowing IssuerKey?) -> String {
    switch key {
    case .signing(let point): hexadecimal(point)
    case .mac(let secret): secret.withBytes { hexadecimal($0) }
    case nil: ""
    }
  }
}

extension FirmwareImage.Store {
  /// The generation floor of each key that has one, by key id.
  fileprivate func floors() throws(LedgerFault) -> JSONValue {
    var floors: [(keyID: String, floor: UInt64)] = []
    do throws(EncodingFault) {
      for place in index.generations.indices where index.generations[place] != 0 {
        let (keyID, floor) = try generation(index.generations[place])
        floors.append((hexadecimal(keyID), floor))
      }
    } catch { throw .damaged }
    return .array(
      floors.sorted { $0.keyID < $1.keyID }.map { .array([.string($0.keyID), .integer($0.floor)]) })
  }

  /// The newest item of each user with the user's secrets, by name.
  fileprivate mutating func users() throws(LedgerFault) -> JSONValue {
    try attempt { (store) throws(DeviceFault) in
      var users: [(name: [UInt8], value: JSONValue)] = []
      for place in 0..<Self.userLimit {
        guard let (name, record) = try store.user(at: place) else { continue }
        var item: [UInt8] = []
        UserItem(name: name, record: record).encode(into: &item)
        var parts = [JSONValue.string(hexadecimal(item.span))]
        for purpose in CodePurpose.allCases {
          guard let secret = try store.codeSecret(of: record.id, purpose) else {
            parts.append(.string(""))
            continue
          }
          parts.append(.string(hexadecimal(secret)))
        }
        users.append(([UInt8](name.bytes), .array(parts)))
      }
      return .array(users.sorted { $0.name.lexicographicallyPrecedes($1.name) }.map(\.value))
    }
  }

  /// The items of the owner's codes, in the order in which they were made.
  fileprivate mutating func codes() throws(LedgerFault) -> JSONValue {
    try attempt { (store) throws(DeviceFault) in
      var codes: [(id: UInt64, value: JSONValue)] = []
      while let code = try store.oneUseCode(at: codes.count) {
        var item: [UInt8] = []
        CodeItem.encode(code, into: &item)
        codes.append((code.id, .string(hexadecimal(item.span))))
      }
      return .array(codes.sorted { $0.id < $1.id }.map(\.value))
    }
  }

  /// The audit entries, each of which must be well-formed and have the number of its place.
  fileprivate mutating func entries() throws(LedgerFault) -> JSONValue {
    var entries: [JSONValue] = []
    var isWhole = true
    try attempt { (store) throws(DeviceFault) in
      try store.forEachAuditEntry { (entry, chain) in
        guard let entry, entry.sequence == chain.count else { return isWhole = false }
        var bytes: [UInt8] = []
        entry.encode(into: &bytes)
        entries.append(.string(hexadecimal(bytes.span)))
      }
    }
    guard isWhole else { throw .damaged }
    return .array(entries)
  }
}

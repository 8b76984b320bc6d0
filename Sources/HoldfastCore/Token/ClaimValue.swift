#if !hasFeature(Embedded)
/// The value of a claim of any type, for code that treats all claims alike and may use the heap.
///
/// No value holds a secret.
package enum ClaimValue: Sendable {
  /// The value of a claim of the types `text64` and `text32`.
  case text(String)
  /// The value of a claim of the type `number`.
  case number(UInt64)
  /// The value of a claim of the types `deviceID` and `bytes16`.
  case bytes([UInt8])
  /// The value of a claim of the type `commands`.
  case texts([String])
  /// The value of a claim of the type `version`.
  case version(AppVersion)
}

extension ClaimValue: Equatable {
  /// Returns whether both are the same value. Texts are compared byte by byte.
  package static func == (left: ClaimValue, right: ClaimValue) -> Bool {
    switch (left, right) {
    case (.text(let left), .text(let right)): left.utf8.elementsEqual(right.utf8)
    case (.number(let left), .number(let right)): left == right
    case (.bytes(let left), .bytes(let right)): left == right
    case (.texts(let left), .texts(let right)):
      left.elementsEqual(right) { $0.utf8.elementsEqual($1.utf8) }
    case (.version(let left), .version(let right)): left == right
    default: false
    }
  }
}

extension Claim {
  /// The claim's name in test vectors, such as `maximumUses` and `tokenId`.
  package var vectorName: String {
    let name = "\(self)"
    return name.hasSuffix("ID") ? name.dropLast(2) + "Id" : name
  }
}

extension MeasurementClaims {
  /// The value of a claim; nil if it is absent or secret.
  package subscript(claim: Claim) -> ClaimValue? {
    guard has(claim) else { return nil }
    switch claim.row.kind {
    case .text64(let place): return .text(texts64[place].description)
    case .text32(let place): return .text(texts32[place].description)
    case .number(let place): return .number(numbers[place])
    case .deviceID: return .bytes(Self.array(audience.bytes))
    case .bytes16: return .bytes(Self.array(tokenID.bytes))
    case .secret32, .secret16: return nil
    case .commands:
      switch commands {
      case .some(let commands): return .texts((0..<commands.count).map { commands[$0].description })
      case .none: return nil
      }
    case .version: return .version(version)
    }
  }

  private static func array(_ bytes: Span<UInt8>) -> [UInt8] { bytes.indices.map { bytes[$0] } }

  /// The values of all claims that are present and not secret.
  package var values: [Claim: ClaimValue] {
    var values: [Claim: ClaimValue] = [:]
    for claim in Claim.all { values[claim] = self[claim] }
    return values
  }

  /// Sets a claim that is not secret.
  ///
  /// - Throws: `unexpected` if the value is of another type, too long or too large, or the claim has another way to
  ///   be set.
  package mutating func set(_ claim: Claim, to value: ClaimValue) throws(EncodingFault) {
    switch (claim.row.kind, value) {
    case (.text64, .text(let text)):
      guard let bounded = BoundedText<64>(text) else { throw .unexpected }
      set(claim, bounded)
    case (.text32, .text(let text)):
      guard let bounded = BoundedText<32>(text) else { throw .unexpected }
      set(claim, bounded)
    case (.number, .number(let number)):
      guard number <= maximumInteger else { throw .unexpected }
      set(claim, number)
    case (.commands, .texts(let texts)):
      var list = CommandList()
      for text in texts {
        guard let command = BoundedText<32>(text) else { throw .unexpected }
        try list.append(command)
      }
      set(commands: list)
    case (.version, .version(let version)): set(version: version)
    default: throw .unexpected
    }
  }
}
#endif

import HoldfastCore
import HoldfastDatabase
import HoldfastFormats
import HoldfastIssuer
import HoldfastStorage

/// A request to the administration interface whose parameters have the right form.
package struct AdministrationRequest: Sendable {
  /// The operator.
  let caller: Operator
  /// The key in the path; empty if there is none.
  let key: String
  let query: JSONMember
  let body: JSONMember
}

extension AdministrationRequest {
  /// Returns the operator as the one who makes a change, with the reason in the body, if there is one.
  func actor() throws(AdministrationFault) -> Actor {
    let reason: BoundedText<255>? = try text("reason")
    return Actor(caller.name, reason: reason?.description ?? "")
  }

  /// Returns the key in the path as an id.
  ///
  /// - Throws: `notFound` if it has another form.
  func id<Kind, let count: Int>() throws(AdministrationFault) -> TypedBytes<Kind, count> {
    guard let id: TypedBytes<Kind, count> = HoldfastFormats.fixedBytes(hexadecimal: key) else { throw .notFound }
    return id
  }

  /// Returns the key in the path as a name.
  ///
  /// - Throws: `notFound` if it has another form, such as control characters.
  func userName() throws(AdministrationFault) -> BoundedText<32> {
    guard let name = BoundedText<32>(key), !name.isEmpty, !Schema.hasControlCharacters(key) else { throw .notFound }
    return name
  }

  func page(of listing: Listing, in fleet: Fleet, filters: [Value] = []) throws(AdministrationFault) -> JSONValue {
    try fleet.page(
      listing, after: query.member("after")?.value.text, limit: query.member("limit")?.value.number ?? 100,
      filters: filters)
  }

  func fixedBytes<Kind, let count: Int>(_ name: String) throws(AdministrationFault) -> TypedBytes<Kind, count> {
    guard let text = body.member(name)?.value.text,
      let bytes: TypedBytes<Kind, count> = HoldfastFormats.fixedBytes(hexadecimal: text)
    else { throw .mistake(JSONMistake(at: [.member(name)], expected: .hexadecimal(digitCount: count * 2))) }
    return bytes
  }

  /// Returns the bytes of a member; nil if there is none.
  func bytesIfPresent<Kind, let count: Int>(_ name: String) throws(AdministrationFault) -> TypedBytes<Kind, count>? {
    body.member(name) == nil ? nil : try fixedBytes(name)
  }

  func text<let capacity: Int>(_ name: String) throws(AdministrationFault) -> BoundedText<capacity>? {
    guard let text = body.member(name)?.value.text else { return nil }
    guard let bounded = BoundedText<capacity>(text) else {
      throw .conflict(.tooLong)
    }
    return bounded
  }

  func required<let capacity: Int>(_ name: String) throws(AdministrationFault) -> BoundedText<capacity> {
    guard let text: BoundedText<capacity> = try text(name) else {
      throw .mistake(JSONMistake(at: [.member(name)], expected: .presence))
    }
    return text
  }

  func version(_ name: String) throws(AdministrationFault) -> AppVersion {
    let numbers = body.member(name)?.value.elements?.compactMap(\.number) ?? []
    guard numbers.count == 3 else {
      throw .mistake(JSONMistake(at: [.member(name)], expected: .array(elementCount: 3)))
    }
    return AppVersion(major: numbers[0], minor: numbers[1], patch: numbers[2])
  }

  func descriptor(_ name: String) throws(AdministrationFault) -> DeviceDescriptor {
    do throws(KeyFault) { return try DeviceDescriptor(body.member(name)?.value ?? .null) } catch {
      throw .conflict(.invalidKey)
    }
  }

  /// Returns a descriptor as its maker signed it; nil if there is none.
  func signedDescriptor() throws(AdministrationFault) -> SignedDescriptor? {
    let (text, signature) = (body.member("signed_descriptor"), body.member("signature"))
    if text == nil, signature == nil { return nil }
    for (name, member) in [("signed_descriptor", text), ("signature", signature)] where member == nil {
      throw .mistake(JSONMistake(at: [.member(name)], expected: .presence))
    }
    do throws(KeyFault) {
      return try SignedDescriptor(
        Array((text?.value.text ?? "").utf8), signature: signature?.value.text.flatMap { Schema.base64Bytes($0) } ?? [])
    } catch { throw .conflict(.invalidKey) }
  }

  func releaseKeys(_ name: String) throws(AdministrationFault) -> ReleaseKeys {
    let root: FixedBytes<16> = try fixedBytes(name)
    guard let secret = Secret<16>(copying: root.bytes) else { throw .fleet(.cryptography) }
    do throws(CryptographyFailure) { return try ReleaseKeys(of: secret) } catch { throw .fleet(.cryptography) }
  }

  /// Returns the maker's manifest, whose signature is right; nil if there is none.
  func manifest() throws(AdministrationFault) -> ReleaseManifest? {
    let (text, signature, key) = (body.member("manifest"), body.member("signature"), body.member("maker_key"))
    if text == nil, signature == nil, key == nil { return nil }
    for (name, member) in [("manifest", text), ("signature", signature), ("maker_key", key)] where member == nil {
      throw .mistake(JSONMistake(at: [.member(name)], expected: .presence))
    }
    let bytes = signature?.value.text.flatMap { Schema.base64Bytes($0) } ?? []
    do throws(ReleaseManifest.Fault) {
      return try ReleaseManifest(
        Array((text?.value.text ?? "").utf8), signature: bytes, maker: Array((key?.value.text ?? "").utf8))
    } catch {
      guard case .mistake(let mistake) = error else { throw .conflict(.manifestSignature) }
      throw .mistake(JSONMistake(at: [.member("manifest")] + mistake.path, expected: mistake.expectation))
    }
  }

  /// Returns the policy in the body, whose form was checked.
  func policy() throws(AdministrationFault) -> ServicePolicy {
    let members = body.member("policy")?.value.members ?? []
    do throws(ServicePolicyFault) {
      return try ServicePolicy(json: JSONValue.object(members + [("images", .object([]))]).compact())
    } catch {
      // The form was checked. What is left are texts that are too long, and settings that contradict themselves or each other.
      guard case .member(let mistake) = error, case .form = mistake.expectation else { throw .conflict(.tooLong) }
      throw .mistake(JSONMistake(at: [.member("policy")] + mistake.path, expected: mistake.expectation))
    }
  }

  /// Returns the way in which bulletins are to reach a device.
  func delivery() throws(AdministrationFault) -> DeliveryChange {
    var change = DeliveryChange()
    change.capacity = body.member("revocation_capacity")?.value.number
    guard let names = body.member("groups")?.value.elements else { return change }
    change.groups = []
    for name in names {
      guard let group = name.text.flatMap({ BoundedText<32>($0) }) else { throw .conflict(.tooLong) }
      // A name that is given twice counts once.
      if change.groups?.contains(group) == false { change.groups?.append(group) }
    }
    return change
  }

  func permission() throws(AdministrationFault) -> TokenPermission {
    var permission = TokenPermission()
    permission.user = try text("user")
    if let commands = body.member("commands")?.value.elements {
      permission.commands = []
      for command in commands {
        guard let name = command.text.flatMap({ BoundedText<32>($0) }) else { throw .conflict(.tooLong) }
        permission.commands?.append(name)
      }
    }
    permission.maximumUses = body.member("maximum_uses")?.value.number
    return permission
  }
}

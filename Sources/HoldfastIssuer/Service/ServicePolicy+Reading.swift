import HoldfastCore
import HoldfastJSON
import HoldfastKeys

/// Why a policy could not be read.
public enum ServicePolicyFault: Error, Equatable {
  /// Not strict JSON, or too long.
  case malformed
  /// A member is unknown, missing, of another kind or out of range: its name, or for a member of `images` its path.
  case member(String)
  /// A member of an earlier shape, which is no longer read.
  case formerMember(String)
}

extension ServicePolicy {
  private static let memberNames = [
    "issuer", "attestation_issuer", "audience", "images", "devices", "refused_properties", "subject",
    "attestation_seconds", "token_seconds", "commands", "maximum_uses",
  ]

  /// Reads a policy; members that it does not know are refused, so that a slip of the pen permits nothing.
  ///
  /// `issuer`, `attestation_issuer`, `audience` and `images` are required; the others have their defaults.
  ///
  /// - Throws: `malformed`, `member`; `formerMember` for the list `image_digests`, which `images` has replaced.
  public init(json bytes: [UInt8]) throws(ServicePolicyFault) {
    let value: JSONValue
    do throws(JSONFault) {
      value = try JSONValue(parsing: bytes, byteLimit: Self.maximumByteCount)
    } catch { throw .malformed }
    guard let members = value.members else { throw .malformed }
    if value["image_digests"] != nil { throw .formerMember("image_digests") }
    for (name, _) in members where !Self.memberNames.contains(where: { haveSameBytes($0, name) }) {
      throw .member(name)
    }
    self.init(
      issuer: try value.boundedText("issuer"), attestationIssuer: try value.boundedText("attestation_issuer"),
      audience: try value.boundedText("audience"))
    guard let images = value["images"]?.members else { throw .member("images") }
    for (name, value) in images { self.images.append(try ApprovedImage(name, value)) }
    if let devices = value["devices"] {
      guard let admission = devices.text.flatMap(DeviceAdmission.init) else { throw .member("devices") }
      self.devices = admission
    }
    if value["refused_properties"] != nil {
      refusedProperties = try value.list("refused_properties") { $0.text.flatMap(BoundedText.init) }
    }
    if value["subject"] != nil { subject = try value.boundedText("subject") }
    if value["attestation_seconds"] != nil {
      attestationSeconds = try value.number("attestation_seconds", in: 1...3600)
    }
    if value["token_seconds"] != nil {
      tokenSeconds = try value.number("token_seconds", in: 1...(10 * 366 * 24 * 60 * 60))
    }
    if value["commands"] != nil {
      let commands: [BoundedText<32>] = try value.list("commands") { $0.text.flatMap(BoundedText.init) }
      guard commands.count <= 16 else { throw .member("commands") }
      self.commands = commands
    }
    if value["maximum_uses"] != nil { maximumUses = try value.number("maximum_uses", in: 1...maximumInteger) }
  }
}

extension JSONValue {
  fileprivate func boundedText<let capacity: Int>(
    _ name: String
  ) throws(ServicePolicyFault) -> BoundedText<capacity> {
    guard let text: BoundedText<capacity> = self[name]?.text.flatMap(BoundedText.init), !text.isEmpty else {
      throw .member(name)
    }
    return text
  }

  fileprivate func number(_ name: String, in range: ClosedRange<UInt64>) throws(ServicePolicyFault) -> UInt64 {
    guard let number = self[name]?.number, range.contains(number) else { throw .member(name) }
    return number
  }

  fileprivate func list<Element>(
    _ name: String, _ element: (JSONValue) -> Element?
  ) throws(ServicePolicyFault) -> [Element] {
    guard let values = self[name]?.elements else { throw .member(name) }
    var list: [Element] = []
    for value in values {
      guard let item = element(value) else { throw .member(name) }
      list.append(item)
    }
    return list
  }
}

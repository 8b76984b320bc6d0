import HoldfastCore
import HoldfastOpenSSL

extension Credential {
  /// Reads a Portable Symmetric Key Container: HOTP, TOTP and OCRA keys, plain, or encrypted under a key or a passphrase.
  ///
  /// Source: RFC 6030. Keys of the kind `pin`, which are no keys, are passed over. A signature is not checked.
  static func readContainer(
    _ bytes: Span<UInt8>, parameters: borrowing ImportParameters
  ) throws(ImportFault) -> [Credential] {
    let container = try XMLDocument.parse(bytes)
    guard container.name == "KeyContainer", PSKCNames.pskc.contains(container.namespace) else { throw .malformed }
    guard container.attributes["Version"] == "1.0" else { throw .unsupportedFeature }
    guard parameters.acceptsUncheckedSignature || !container.children.contains(where: { $0.name == "Signature" })
    else { throw .signatureNotChecked }
    let packages = container.children.filter { $0.name == "KeyPackage" && PSKCNames.pskc.contains($0.namespace) }
    guard packages.count <= maximumAccountCount else { throw .tooLarge }
    let protection = try PSKCProtection(container: container, containerKey: parameters.containerKey)
    var credentials: [Credential] = []
    for package in packages {
      let device = try package.child("DeviceInfo", in: PSKCNames.pskc)
      guard let element = try package.child("Key", in: PSKCNames.pskc) else { throw .malformed }
      let key = PSKCKey(element)
      guard !key.isPIN else { continue }
      if !parameters.acceptsUnenforcedPolicy {
        guard try device?.child("DeviceBinding", in: PSKCNames.pskc) == nil else { throw .policyNotEnforced }
      }
      try key.checkPolicy(acceptsUnenforced: parameters.acceptsUnenforcedPolicy)
      credentials.append(try key.credential(protection: protection, user: parameters.user))
    }
    return credentials
  }
}

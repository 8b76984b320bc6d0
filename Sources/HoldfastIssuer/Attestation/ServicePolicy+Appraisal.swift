import HoldfastCore

extension ServicePolicy {
  /// The components that every baseline has, as docs/measurement.md names them.
  private static let requiredAppIDs: [ComponentID] = [
    "app.debug", "app.image", "app.injected", "app.text", "os.release",
  ].compactMap { BoundedText($0) }
  private static let requiredDeviceIDs: [ComponentID] = [
    "device.cpu", "device.machine", "device.secret",
  ].compactMap { BoundedText($0) }

  /// How far a baseline's time may be from now.
  private static let freshnessSeconds: UInt64 = 5 * 60
  private static let imageID = ComponentID("app.image" as StaticString)

  /// Appraises authentic evidence: the approved image that made it, or why it is refused.
  ///
  /// The image's entry in the policy gives name and version. A claim in the evidence must agree with it.
  func appraise(_ evidence: Evidence, now: UInt64) -> Result<ApprovedImage, AttestationRefusal> {
    let created = evidence.configuration.created
    guard max(now, created) - min(now, created) <= Self.freshnessSeconds else { return .failure(.notFresh) }
    guard Self.requiredAppIDs.allSatisfy(evidence.configuration.appIDs.contains),
      Self.requiredDeviceIDs.allSatisfy(evidence.configuration.deviceIDs.contains)
    else { return .failure(.incomplete) }
    guard let digest = evidence.app.first(where: { $0.id == Self.imageID })?.digest,
      let image = images.first(where: { $0.digest == digest })
    else { return .failure(.unknownImage) }
    if let claimed = evidence.subject, claimed != image.subject {
      return .failure(.subject(claimed: claimed, approved: image.subject))
    }
    if let claimed = evidence.version, claimed != image.version {
      return .failure(.version(claimed: claimed, approved: image.version))
    }
    if let property = evidence.properties.first(where: refusedProperties.contains) {
      return .failure(.property(property))
    }
    return .success(image)
  }
}

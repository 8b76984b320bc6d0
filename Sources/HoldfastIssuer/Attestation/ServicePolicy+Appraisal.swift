import HoldfastCore

extension ServicePolicy {
  /// The components that every baseline has, as DESIGN §3 names them.
  private static let requiredAppIDs: [ComponentID] = [
    "app.debug", "app.image", "app.injected", "app.text", "os.release",
  ].compactMap { BoundedText($0) }
  private static let requiredDeviceIDs: [ComponentID] = [
    "device.cpu", "device.machine", "device.secret",
  ].compactMap { BoundedText($0) }

  /// How far a baseline's time may be from now.
  private static let freshnessSeconds: UInt64 = 5 * 60
  private static let imageID = ComponentID("app.image" as StaticString)

  /// Why authentic evidence is refused now; nil when it is not.
  func refusal(of evidence: Evidence, now: UInt64) -> AttestationRefusal? {
    let created = evidence.configuration.created
    guard max(now, created) - min(now, created) <= Self.freshnessSeconds else { return .notFresh }
    guard Self.requiredAppIDs.allSatisfy(evidence.configuration.appIDs.contains),
      Self.requiredDeviceIDs.allSatisfy(evidence.configuration.deviceIDs.contains)
    else { return .incomplete }
    guard let image = evidence.app.first(where: { $0.id == Self.imageID }), imageDigests.contains(image.digest) else {
      return .unknownImage
    }
    if let property = evidence.properties.first(where: refusedProperties.contains) { return .property(property) }
    return nil
  }
}

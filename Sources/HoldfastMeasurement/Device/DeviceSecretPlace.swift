/// Where the app's own storage is.
public enum DeviceSecretPlace {
  /// The path of the device secret; nil when the environment names no storage.
  public static var path: String? {
    guard let secret = try? DeviceSecret(HostFiles()) else { return nil }
    return "\(secret.folder)/\(secret.name)"
  }
}
